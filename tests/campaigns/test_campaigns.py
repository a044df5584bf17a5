"""A short slice of every campaign, the same attacks each time. The long runs are `scripts/campaigns.py --minutes N`."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
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
