"""A short slice of every campaign, the same attacks each time. The long runs are `scripts/campaigns.py --minutes N`."""

from __future__ import annotations

import contextlib
import importlib.util
import json
import os
import subprocess
import sys
import types
from pathlib import Path

import counting
import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "campaigns.py"


def run(tmp_path, *words):
    """The results by campaign."""
    output = tmp_path / "results.json"
    command = [sys.executable, str(SCRIPT), "-o", str(output), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]
    return {one["campaign"]: one for one in json.loads(output.read_text())["campaigns"]}


@pytest.mark.skipif(os.name == "nt", reason="Windows has no fork")
def test_no_promise_is_broken(tmp_path):
    """All campaigns in one process, which imports the package once."""
    found = run(tmp_path, "--slice")
    assert set(found) == set(counting.CAMPAIGNS)
    for name, one in found.items():
        assert one["absent"] or one["attacks"] >= one["slice"], name
        assert one["broken"] == [], name


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no fork")
@pytest.mark.parametrize("name", counting.CAMPAIGNS)
def test_no_promise_is_broken_for_a_minute(name, tmp_path):
    found = run(tmp_path, name, "--minutes", "1", "--seed", "1")[name]
    if found["absent"]:
        pytest.skip(found["absent"])
    assert found["broken"] == []
    assert found["memory_growth_mb"] < 50


def test_the_page_shows_the_committed_counts():
    spec = importlib.util.spec_from_file_location("campaigns", SCRIPT)
    campaigns = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(campaigns)
    content = json.loads(campaigns.RESULTS.read_text(encoding="utf-8"))
    page = (SCRIPT.parents[1] / "docs" / "reliability.md").read_text(encoding="utf-8")
    assert campaigns.filled(page, content) == page
    assert {one["campaign"] for one in content["campaigns"]} == set(counting.CAMPAIGNS)
    assert all(one["broken"] == [] for one in content["campaigns"])


def test_a_campaign_that_fails_itself_counts_the_attack_and_goes_on(monkeypatch):
    def attack(number, rng):
        if number == 1:
            raise ConnectionError("the line broke")
        return [("call", "finished")]

    campaign = types.SimpleNamespace(attacks=lambda folder: contextlib.nullcontext(attack))
    monkeypatch.setitem(sys.modules, "failing", campaign)
    tally = counting.run("failing", most=3)
    assert tally.counts == {("call", "finished"): 2, ("all", "BROKEN"): 1}
    assert [one["number"] for one in tally.broken] == [1]
    assert tally.broken[0]["why"].endswith("ConnectionError: the line broke\n")


def test_results_of_two_runs_add_up():
    one = {"attacks": 2, "seconds": 1.0, "seed": 1, "outcomes": {"a": {"right": 2}}, "broken": []}
    other = {
        "attacks": 3,
        "seconds": 0.5,
        "seed": 2,
        "outcomes": {"a": {"right": 1}, "b": {"x": 2}},
        "broken": [{"number": 4}],
    }
    rest = {"memory_growth_mb": 1.0, "absent": ""}
    found = counting.added({**one, **rest}, {**other, **rest})
    assert (found["attacks"], found["seconds"], found["seed"]) == (5, 1.5, [1, 2])
    assert found["outcomes"] == {"a": {"right": 3}, "b": {"x": 2}}
    assert found["broken"] == [{"number": 4}]


def test_a_broken_attack_that_holds_when_it_is_repeated_is_no_longer_listed():
    rest = {"attacks": 1, "seconds": 1.0, "memory_growth_mb": 0.0, "absent": "", "outcomes": {}}
    one = {**rest, "seed": [1, 2], "broken": [{"seed": seed, "number": number} for seed in (1, 2) for number in (4, 5)]}
    found = counting.added(one, {**rest, "seed": 2, "made": [5, 6], "broken": []})
    assert found["broken"] == [{"seed": 1, "number": 4}, {"seed": 1, "number": 5}, {"seed": 2, "number": 4}]
    assert "made" not in found
    again = counting.added(one, {**rest, "seed": 2, "made": [4, 6], "broken": [{"seed": 2, "number": 5}]})
    assert again["broken"] == [{"seed": 1, "number": 4}, {"seed": 1, "number": 5}, {"seed": 2, "number": 5}]
