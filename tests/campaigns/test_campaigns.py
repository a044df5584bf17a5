"""A short slice of every campaign, the same attacks each time. The long runs are `scripts/campaigns.py --minutes N`."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import counting
import pytest

SCRIPT = Path(__file__).parents[2] / "scripts" / "campaigns.py"
SLICE = {
    "kills": 13, "together": 100, "damage": 450, "forged": 70, "brute_force": 300,
    "threads": 60, "crowd": 128, "hostile": 40, "lines": 10,
}  # fmt: skip


def run(tmp_path, name, *words):
    """The results of one campaign."""
    output = tmp_path / "results.json"
    command = [sys.executable, str(SCRIPT), name, "-o", str(output), *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=900)
    assert done.returncode == 0, done.stderr[-4000:]
    (found,) = json.loads(output.read_text())["campaigns"]
    if found["absent"]:
        pytest.skip(found["absent"])
    return found


@pytest.mark.skipif(os.name == "nt", reason="Windows has no fork")
@pytest.mark.parametrize("name", counting.CAMPAIGNS)
def test_no_promise_is_broken(name, tmp_path):
    found = run(tmp_path, name, "--attacks", str(SLICE[name]))
    assert found["attacks"] >= SLICE[name]
    assert found["broken"] == []


@pytest.mark.slow
@pytest.mark.skipif(os.name == "nt", reason="Windows has no fork")
@pytest.mark.parametrize("name", counting.CAMPAIGNS)
def test_no_promise_is_broken_for_a_minute(name, tmp_path):
    found = run(tmp_path, name, "--minutes", "1", "--seed", "1")
    assert found["broken"] == []
    assert found["memory_growth_mb"] < 50
