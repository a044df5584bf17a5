"""Origin of results: what changes the hash of a method's source, what does not, and what every line carries."""

from __future__ import annotations

import ast
import builtins
import importlib
import json
import subprocess

import pytest

import hbmp
from hbmp.experiments import Cell, provenance, records, run, running, store

SMALL = {"train_per_class": 10, "query_per_class": 4}
CODE = """
import numpy as np
from hbmp import hamming

def f(x: int = 2) -> int:
    return x + 1
"""


@pytest.mark.parametrize(
    "changed",
    [
        CODE.replace("def f", "# a comment\ndef f"),
        CODE.replace("    return", '    """A docstring."""\n    return'),
        CODE.replace("from hbmp import hamming", "from hbmp.elsewhere import hamming"),
        CODE.replace("x: int = 2) -> int", "x=2)"),
        CODE.replace("x + 1", "(x\n        + 1)"),
    ],
)
def test_documentation_layout_and_moves_keep_the_hash(changed):
    assert changed != CODE
    assert "".join(provenance._code(ast.parse(changed))) == "".join(provenance._code(ast.parse(CODE)))


@pytest.mark.parametrize("changed", [CODE.replace("= 2", "= 3"), CODE.replace("x + 1", "x - 1"), CODE + "f = None"])
def test_other_code_changes_the_hash(changed):
    assert "".join(provenance._code(ast.parse(changed))) != "".join(provenance._code(ast.parse(CODE)))


@pytest.fixture
def fresh_hashes():
    caches = (provenance.source_hash, provenance._tree, provenance._digest, provenance._used_by)
    for cache in caches:
        cache.cache_clear()
    yield
    for cache in caches:
        cache.cache_clear()


def test_a_changed_helper_makes_exactly_the_methods_that_use_it_stale(fresh_hashes, monkeypatch):
    methods = hbmp.list_methods()
    before = {name: provenance.source_hash(name) for name in methods}
    assert len(set(before.values())) == len(methods)
    real = provenance._digest
    changed = provenance._path_of("hbmp.methods._shared.rotation")
    monkeypatch.setattr(provenance, "_digest", lambda path: real(path) + ("x" if path == changed else ""))
    provenance.source_hash.cache_clear()
    stale = {name for name in methods if provenance.source_hash(name) != before[name]}
    assert "itq" in stale
    assert "lsh" not in stale


def test_a_method_that_loads_pieces_by_name_depends_on_all_of_them(fresh_hashes, monkeypatch):
    before = {name: provenance.source_hash(name) for name in ("hbmp", "lsh")}
    real = provenance._digest
    changed = provenance._path_of("hbmp.functions.linear")
    monkeypatch.setattr(provenance, "_digest", lambda path: real(path) + ("x" if path == changed else ""))
    provenance.source_hash.cache_clear()
    assert provenance.source_hash("hbmp") != before["hbmp"]
    assert provenance.source_hash("lsh") == before["lsh"]


def test_every_line_carries_its_source_and_its_resolved_settings(tmp_path, monkeypatch):
    cell = Cell("lsh", "cifar-1", "digits", 8, protocol_params=SMALL)
    record = run(cell, results=tmp_path, device="cpu")
    assert record["source"] == provenance.origin("lsh")
    assert record["source"]["version"] == hbmp.__version__
    assert record["plan"] is None
    method = hbmp.get_method("lsh")(8)
    method.plan_ = {"function": "kernel", "bits": 8}
    assert records.made_by(method, cell, "cpu")["plan"] == method.plan_


def test_the_commit_is_that_of_this_package_alone(tmp_path, monkeypatch):
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / "hbmp").mkdir()
    (tmp_path / "hbmp" / "__init__.py").write_text("")
    monkeypatch.setattr(provenance, "_ROOT", tmp_path / "hbmp")
    provenance._commit.cache_clear()
    try:
        assert provenance._commit() == ""  # the checkout holds other files: the package is merely installed in it
    finally:
        provenance._commit.cache_clear()


def test_a_stale_cell_runs_again_only_on_request(tmp_path):
    cell = Cell("lsh", "cifar-1", "digits", 8, protocol_params=SMALL)
    first = run(cell, results=tmp_path, device="cpu")
    path = tmp_path / "cifar-1.jsonl"
    old = {**first, "source": {"version": "0.0.9", "method": "0" * 16}}
    path.write_text(json.dumps(old) + "\n")
    assert provenance.is_stale(run(cell, results=tmp_path, device="cpu"))
    assert not provenance.is_stale(run(cell, results=tmp_path, device="cpu", refresh=True))
    assert len(store.read(path)) == 2
    assert not provenance.is_stale(store.newest(store.read(path))[cell.key])


def test_results_are_written_where_no_fcntl_exists(tmp_path, monkeypatch):
    """As on Windows: the lock is the soft one of filelock there, and nothing here imports fcntl itself."""
    real = builtins.__import__

    def without_fcntl(name, globals=None, locals=None, fromlist=(), level=0):
        if name == "fcntl" and (globals or {}).get("__name__", "").startswith("hbmp"):
            raise ModuleNotFoundError("No module named 'fcntl'")
        return real(name, globals, locals, fromlist, level)

    monkeypatch.setattr(builtins, "__import__", without_fcntl)
    fresh = importlib.reload(store)
    assert fresh.append(tmp_path / "a.jsonl", {"key": "a"})
    assert not fresh.append(tmp_path / "a.jsonl", {"key": "a"})
    assert not hasattr(fresh, "fcntl")


def test_files_of_other_measurements_are_no_results(tmp_path):
    (tmp_path / "benchmark.jsonl").write_text('{"seconds": 1}\n')
    store.append(tmp_path / "cifar-1.jsonl", {"key": "a"})
    assert running.load_results(tmp_path) == [{"key": "a"}]
