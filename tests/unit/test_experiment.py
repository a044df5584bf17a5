"""Experiments: one line a cell, never twice, never lost: torn lines, parallel writers, a kill in the middle."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

from hbmp import datasets, experiments, metrics, protocols
from hbmp.app.cli import main
from hbmp.datasets import Data
from hbmp.experiments import Cell, grids, run, run_all, running, store
from hbmp.experiments.codes import target_codes
from hbmp.methods import make_method

SMALL = {"train_per_class": 10, "query_per_class": 4}


def small_cell(bits=8, seed=0, **params):
    settings = {"function": ["linear", {"epochs": 2}], **params}
    return Cell("hbmp", "cifar-1", "digits", bits, seed, settings, SMALL)


def test_record_holds_everything(tmp_path):
    cell = small_cell(item_weights="count", seed=1)
    record = run(cell, results=tmp_path, device="cpu")
    (line,) = (tmp_path / "cifar-1.jsonl").read_text().splitlines()
    assert json.loads(line) == record
    assert record["cell"]["params"] == cell.params
    assert Cell(**record["cell"]).key == cell.key == record["key"]
    assert record["settings"]["function__epochs"] == 2
    assert record["settings"]["item_weights"] == "count"
    assert record["settings"]["random_state"] == 1
    data = datasets.load("digits")
    split = protocols.get("cifar-1", **SMALL).split(data, 1)
    assert record["split"] == {"checksum": split.checksum, "train": 100, "query": 40, "database": 1757}
    assert record["data"]["checksum"] == data.checksum()
    assert record["device"] == "cpu"
    assert record["machine"]["cores"] == os.cpu_count()
    assert {"hbmp", "numpy", "torch", "python"} <= set(record["versions"])
    assert all(record["seconds"][name] >= 0 for name in ("fit", "encode", "evaluate"))
    assert 0 <= record["unmatched_bits"] <= 1
    saved = protocols.Split.load(next((tmp_path / "splits").glob("*.npz")))
    assert saved.checksum == split.checksum


def test_scores_can_be_had_again_from_the_settings(tmp_path):
    record = run(small_cell(), results=tmp_path, device="cpu")
    data = datasets.load("digits")
    split = protocols.get("cifar-1", **SMALL).split(data, 0)
    method = make_method("hbmp", 8, record["cell"]["params"], seed=0, device="cpu")
    method.fit(data.features[split.train], data.labels[split.train])
    expected = metrics.mean_average_precision(
        method.transform(data.features[split.query]),
        method.transform(data.features[split.database]),
        data.labels[split.query],
        data.labels[split.database],
        bit_weights=method.bit_weights_,
    )
    assert record["scores"]["map.weighted"] == pytest.approx(expected, abs=1e-6)


def test_finished_cell_is_not_run_again(tmp_path, monkeypatch):
    first = run(small_cell(), results=tmp_path)
    monkeypatch.setattr(running, "measure", lambda *_, **__: pytest.fail("ran again"))
    assert run(small_cell(), results=tmp_path) == first
    assert run_all([small_cell()], results=tmp_path, progress=False) == [first]


def test_changed_default_runs_again_and_the_newest_counts(tmp_path, monkeypatch):
    first = run(small_cell(), results=tmp_path, device="cpu")
    original = running.make_method

    def other_default(*args, **options):
        return original(*args, **options).set_params(improve="none", verbose=True)

    monkeypatch.setattr(running, "make_method", other_default)
    second = run(small_cell(), results=tmp_path, device="cpu")
    assert second["key"] == first["key"]
    assert second["settings"]["improve"] == "none"
    assert len(store.read(tmp_path / "cifar-1.jsonl")) == 2
    assert experiments.load_results(tmp_path) == [second]
    assert run_all([small_cell()], results=tmp_path, progress=False) == [second]
    assert len(store.read(tmp_path / "cifar-1.jsonl")) == 2


def test_every_field_changes_the_key():
    cell = small_cell()
    others = [
        small_cell(bits=9),
        small_cell(seed=1),
        small_cell(scheme="constant"),
        Cell("pca_sign", "cifar-1", "digits", 8, 0, cell.params, SMALL),
        Cell("hbmp", "cifar-2", "digits", 8, 0, cell.params, SMALL),
        Cell("hbmp", "cifar-1", "mnist", 8, 0, cell.params, SMALL),
        Cell("hbmp", "cifar-1", "digits", 8, 0, cell.params, {}),
        Cell("hbmp", "cifar-1", "digits", 8, 0, cell.params, SMALL, "target"),
    ]
    assert len({other.key for other in [cell, *others]}) == 1 + len(others)
    assert small_cell().key == cell.key


def test_torn_line_is_ignored_and_repaired(tmp_path):
    path = tmp_path / "toy.jsonl"
    assert store.append(path, {"key": "a"})
    with open(path, "ab") as file:
        file.write(b'{"key": "b", "scor')
    assert [record["key"] for record in store.read(path)] == ["a"]
    assert store.append(path, {"key": "c"})
    assert [record["key"] for record in store.read(path)] == ["a", "c"]
    assert path.read_bytes().endswith(b"}\n")
    assert not store.append(path, {"key": "c"})
    assert len(path.read_text().splitlines()) == 2


def test_torn_first_line_leaves_a_usable_file(tmp_path):
    path = tmp_path / "toy.jsonl"
    path.write_bytes(b'{"key"')
    assert store.read(path) == []
    store.append(path, {"key": "a"})
    assert [record["key"] for record in store.read(path)] == ["a"]


def test_broken_line_in_the_middle_is_named(tmp_path):
    path = tmp_path / "toy.jsonl"
    path.write_text('{"key": "a"}\nnonsense\n{"key": "b"}\n')
    with pytest.raises(ValueError, match="Line 2 of"):
        store.read(path)


WRITER = """
import sys
from hbmp.experiments import store
path, writer = sys.argv[1], int(sys.argv[2])
print(sum(store.append(path, {"key": f"{writer % 2}-{i}", "filler": "x" * 5000}) for i in range(25)))
"""


def test_parallel_writers_lose_and_repeat_nothing(tmp_path):
    path = tmp_path / "toy.jsonl"
    commands = [[sys.executable, "-c", WRITER, str(path), str(writer)] for writer in range(4)]
    writers = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for command in commands]
    added = [int(writer.communicate()[0]) for writer in writers]
    keys = [record["key"] for record in store.read(path)]
    assert sum(added) == len(keys) == len(set(keys)) == 50


def test_run_all_gives_records_in_order(tmp_path):
    cells = [small_cell(bits=bits) for bits in (10, 4)]
    records = run_all([*cells, cells[0]], results=tmp_path, device="cpu", progress=False)
    assert [record["key"] for record in records] == [cell.key for cell in [*cells, cells[0]]]
    assert len(store.read(tmp_path / "cifar-1.jsonl")) == 2


def test_a_failing_cell_does_not_stop_the_others(tmp_path):
    bad = Cell("hbmp", "coco", "digits", 8)
    with pytest.raises(RuntimeError, match=r"1 of 3 cells failed.*rows of 0/1 labels"):
        run_all([small_cell(), bad, small_cell(bits=5)], results=tmp_path, progress=False)
    assert len(store.read(tmp_path / "cifar-1.jsonl")) == 2


GRID = """
import sys
from hbmp.experiments import Cell, run_all
small = {"train_per_class": 10, "query_per_class": 4}
if __name__ == "__main__":
    cells = [Cell("pca_sign", "cifar-1", "digits", bits, 0, {}, small) for bits in range(4, 24)]
    run_all(cells, jobs=2, results=sys.argv[1], device="cpu", progress=False)
"""


def test_a_killed_grid_goes_on_where_it_stopped(tmp_path):
    script, results = tmp_path / "grid.py", tmp_path / "results"
    script.write_text(GRID)
    path = results / "cifar-1.jsonl"
    command = [sys.executable, str(script), str(results)]
    process = subprocess.Popen(command)
    deadline = time.monotonic() + 120
    while len(store.read(path)) < 3 and process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.02)
    os.kill(process.pid, signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    time.sleep(1.5)  # its workers notice within half a second and end
    before = path.read_bytes()
    time.sleep(1.0)
    assert path.read_bytes() == before, "a worker outlived its parent"
    finished = {record["key"]: record for record in store.read(path)}
    assert 3 <= len(finished) < 20
    with open(path, "ab") as file:
        file.write(b'{"key": "torn by the ki')
    assert subprocess.run(command, check=False).returncode == 0
    records = store.read(path)
    assert len(records) == len({record["key"] for record in records}) == 20
    kept = {record["key"]: record for record in records if record["key"] in finished}
    assert kept == finished
    alone = run(Cell("pca_sign", "cifar-1", "digits", 23, 0, {}, SMALL), results=tmp_path / "alone", device="cpu")
    (same,) = (record for record in records if record["key"] == alone["key"])
    assert same["scores"] == alone["scores"]


def test_pieces_are_built_from_json():
    method = make_method(
        "hbmp",
        12,
        {"function": ["mlp", {"hidden": [7]}], "affinity": "label_overlap", "scheme": "constant"},
        seed=5,
        device="cpu",
    )
    assert type(method.function).__name__ == "MLP"
    assert method.function.hidden == [7]
    assert method.function.device == "cpu"
    assert type(method.affinity).__name__ == "LabelOverlap"
    assert (method.scheme, method.random_state, method.device) == ("constant", 5, "cpu")
    assert make_method("pca_sign", 4, {}, seed=0, device="cpu").n_bits == 4


def test_target_codes_place_unseen_label_sets():
    rng = np.random.default_rng(0)
    labels = (rng.random((300, 6)) < 0.35).astype(np.uint8)
    data = Data("toy", labels=labels)
    split = protocols.Split(train=np.arange(60), query=np.arange(250, 300), database=np.arange(250))
    method = make_method("hbmp", 24, {"function": "linear"}, seed=0, device="cpu")
    codes = target_codes(method, data.labels, split, items="train", seed=0)
    seen = {row.tobytes() for row in labels[:60]}
    assert codes.facts["unseen_queries"] == sum(row.tobytes() not in seen for row in labels[250:])
    assert codes.facts["unseen_database"] == sum(row.tobytes() not in seen for row in labels[:250]) > 0
    for rows, found in ((split.query, codes.query), (split.database, codes.database)):
        by_set = {}
        for row, code in zip(labels[rows], found, strict=True):
            assert (by_set.setdefault(row.tobytes(), code) == code).all()
    everything = target_codes(method, data.labels, split, items="all", seed=0)
    assert everything.facts["unseen_queries"] == 0
    options = {"query_labels": labels[split.query], "database_labels": labels[split.database]}
    score = metrics.mean_average_precision(codes.query, codes.database, **options, bit_weights=codes.bit_weights)
    chance = metrics.mean_average_precision(-codes.query, codes.database, **options, bit_weights=codes.bit_weights)
    assert score > 0.8 > chance


def test_unknown_kind_of_codes_is_refused():
    with pytest.raises(ValueError, match="codes must be one of"):
        Cell("hbmp", "cifar-1", "digits", 8, codes="oracle")


@pytest.mark.parametrize("name", sorted(grids.GRIDS))
def test_grids_name_what_exists(name):
    cells = grids.cells_of(name)
    assert len({cell.key for cell in cells}) == len(cells) > 0
    for cell in cells:
        protocols.get(cell.protocol)
        make_method(cell.method, cell.bits, cell.params, seed=cell.seed, device="cpu")
    some = cells[0]
    narrowed = grids.cells_of(name, bits=[some.bits], seeds=[some.seed])
    assert some.key in {cell.key for cell in narrowed}
    assert {(cell.bits, cell.seed) for cell in narrowed} == {(some.bits, some.seed)}


def test_grid_command_runs_small(tmp_path, capsys):
    options = ["reproduce", "cifar-1", "--data", "digits", "--bits", "12", "--seeds", "0", "--results", str(tmp_path)]
    options += ["--device", "cpu", "--protocol-params", json.dumps(SMALL)]
    assert main(options) == 0
    assert f"cells of cifar-1 are in {tmp_path}" in capsys.readouterr().out
    records = store.read(tmp_path / "cifar-1.jsonl")
    functions = {record["cell"]["params"].get("function", ["auto"])[0] for record in records}
    assert functions == {"linear", "mlp", "kernel", "auto"}
    assert main(options) == 0
    assert "[1/" not in capsys.readouterr().err
    assert main([*options, "--list"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(records)
    assert main(["reproduce", "coco", "--data-dir", str(tmp_path), "--results", str(tmp_path), "--bits", "12"]) == 2
    assert "cells failed" in capsys.readouterr().err
