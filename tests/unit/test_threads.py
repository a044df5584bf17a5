"""Threads follow the work: one where steps are small, as many as the process may use elsewhere, and none that spin."""

from __future__ import annotations

import os
import time

import numpy as np
import pytest
import torch
from threadpoolctl import threadpool_info, threadpool_limits

import hbmp
from hbmp._core import device
from hbmp._core.device import one_thread, threads_for
from hbmp._core.machine import _quota, allowed_cores
from hbmp.affinities import SameClass


@pytest.fixture
def two_threads():
    """A process that starts with two threads, whatever the machine has."""
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    with threadpool_limits(2):
        yield
    torch.set_num_threads(before)


@pytest.mark.parametrize(
    ("files", "cores"),
    [
        ({"cpu.max": "150000 100000\n"}, 1),
        ({"cpu.max": "400000 100000\n"}, 4),
        ({"cpu.max": "50000 100000\n"}, 1),  # half a core is one thread
        ({"cpu.max": "max 100000\n"}, None),
        ({"cpu/cpu.cfs_quota_us": "300000\n", "cpu/cpu.cfs_period_us": "100000\n"}, 3),
        ({"cpu/cpu.cfs_quota_us": "-1\n", "cpu/cpu.cfs_period_us": "100000\n"}, None),
        ({"cpu.max": "\n"}, None),
        ({}, None),
    ],
)
def test_quotas_of_control_groups_are_read_in_both_versions(files, cores, tmp_path):
    for name, text in files.items():
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
    assert _quota(tmp_path) == (cores or os.cpu_count())


def test_the_smallest_limit_counts(monkeypatch):
    monkeypatch.setattr("hbmp._core.machine._quota", lambda: 3)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)), raising=False)
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)
    assert allowed_cores() == 3
    monkeypatch.setenv("OMP_NUM_THREADS", "2,1")
    assert allowed_cores() == 2
    monkeypatch.setenv("OMP_NUM_THREADS", "0")  # no limit
    assert allowed_cores() == 3


def test_small_steps_take_one_thread_and_large_ones_what_is_allowed(two_threads, monkeypatch):
    monkeypatch.setattr(device, "allowed_cores", lambda: 2)
    with threads_for(1e3):
        assert torch.get_num_threads() == 1
    with threads_for(1e15):
        assert torch.get_num_threads() == 2
    monkeypatch.setattr(device, "allowed_cores", lambda: 1)
    with threads_for(1e15):
        assert torch.get_num_threads() == 1
    assert torch.get_num_threads() == 2
    with one_thread():
        assert {library["num_threads"] for library in threadpool_info()} == {1}
    assert torch.get_num_threads() == 2


class Watching(SameClass):
    """Notes the threads of everything while a fit infers codes."""

    seen: list[set[int]] = []

    def matrix(self):
        self.seen.append({library["num_threads"] for library in threadpool_info()} | {torch.get_num_threads()})
        return super().matrix()


def test_a_fit_on_features_takes_one_core(two_threads):
    rng = np.random.default_rng(0)
    y = np.arange(3000) % 20
    X = (rng.standard_normal((20, 64))[y] + rng.standard_normal((3000, 64))).astype(np.float32)
    model = hbmp.HBMP(16, affinity=Watching(), function=hbmp.functions.Linear(epochs=20), random_state=0)
    model.fit(X[:100], y[:100])
    wall, cpu = time.perf_counter(), time.process_time()
    model.fit(X, y)
    wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    assert Watching.seen
    assert all(found == {1} for found in Watching.seen)
    assert cpu < 1.3 * wall, (cpu, wall)  # a thread that spins would double it
    assert torch.get_num_threads() == 2
