"""Image cells: one training for all prefixes, scored beside it, within a time, going on where it stopped."""

import dataclasses
import json

import numpy as np
import pytest
import torch
from torch import nn

import hbmp
from hbmp import datasets, metrics, protocols
from hbmp._training.loop import seeded
from hbmp.app.cli import main
from hbmp.datasets._shared import pack as packing
from hbmp.experiments import Cell, grids, image_grid, recipes, running, store
from hbmp.experiments import queue as cell_queue
from hbmp.experiments.codes import Codes
from hbmp.experiments.queue import run_queue
from hbmp.experiments.report.methods import _row
from hbmp.functions import Network
from hbmp.functions._shared.encoder import folded
from hbmp.methods import make_method

SMALL = {"train_per_class": 12, "query_per_class": 4}
TINY = {
    "function": [
        "network",
        {"backbone": ["tiny", {}], "epochs": 2, "batch_size": 32, "augmentation": "light", "lr": 3e-3},
    ]
}


def image_cell(bits=16, method="hbmp", codes="function", **params):
    return Cell(method, "cifar-1", "digits", bits, 0, {**TINY, **params}, SMALL, codes)


def long_and_prefixes():
    return [image_cell(), *(image_cell(bits, codes="prefix of 16") for bits in (12, 8))]


@pytest.fixture(scope="module")
def ran(tmp_path_factory):
    """A queue of a long code, two prefixes of it and another method, run once for all tests that look at it."""
    results = tmp_path_factory.mktemp("results")
    cells = [*long_and_prefixes(), image_cell(8, "csq")]
    outcome = run_queue(cells, results=results, device="cpu", scorers=1, keep_codes=True, progress=False)
    return results, cells, outcome


def test_one_line_a_cell_with_rates_and_all_readings(ran):
    results, cells, outcome = ran
    assert [cell.key for cell in outcome.finished] == [cell.key for cell in cells]
    assert outcome.left == outcome.failed == []
    records = {record["key"]: record for record in store.read(results / "cifar-1.jsonl")}
    assert set(records) == {cell.key for cell in cells}
    for cell in cells:
        record = records[cell.key]
        assert record["images_per_second"]["fit"] > 0
        assert record["seconds"]["fit"] > 0
        assert {"map", "map.tie-aware", "map.real-valued"} <= set(record["scores"])
    assert "map.weighted.real-valued" in records[cells[0].key]["scores"]
    assert "unmatched_bits" in records[cells[0].key]
    assert "unmatched_bits" not in records[cells[1].key]


def test_prefixes_are_the_first_bits_of_one_training_with_their_own_weights(ran):
    results, cells, _ = ran
    data = datasets.load("digits")
    split = protocols.get("cifar-1", **SMALL).split(data, 0)
    method = make_method("hbmp", 16, TINY, seed=0, device="cpu")
    method.fit(data.images[split.train], data.labels[split.train])
    queries, database = (method.transform(data.images[rows]) for rows in (split.query, split.database))
    records = {record["key"]: record for record in store.read(results / "cifar-1.jsonl")}
    for cell in cells[:3]:
        expected = metrics.mean_average_precision(
            queries[:, : cell.bits],
            database[:, : cell.bits],
            data.labels[split.query],
            data.labels[split.database],
            bit_weights=method.weights_for(cell.bits),
        )
        assert records[cell.key]["scores"]["map.weighted"] == pytest.approx(expected, abs=1e-6)


def test_kept_codes_are_those_that_were_scored(ran):
    results, cells, _ = ran
    with np.load(results / "codes" / f"{cells[0].key}.npz") as kept:
        data = datasets.load("digits")
        query, database = (hbmp.hamming.unpack(kept[name], int(kept["n_bits"])) for name in ("query", "database"))
        score = metrics.mean_average_precision(
            query,
            database,
            data.labels[kept["query_rows"]],
            data.labels[kept["database_rows"]],
            bit_weights=kept["bit_weights"],
        )
    (record,) = (record for record in store.read(results / "cifar-1.jsonl") if record["key"] == cells[0].key)
    assert score == pytest.approx(record["scores"]["map.weighted"], abs=1e-6)


def test_finished_cells_train_nothing(ran, monkeypatch):
    results, cells, _ = ran
    monkeypatch.setattr(running, "train", lambda *_, **__: pytest.fail("trained again"))
    again = run_queue(cells, results=results, device="cpu", progress=False)
    assert len(again.finished) == len(cells)


def test_cells_that_share_a_training_are_trained_once():
    ((whole, members), (other, _)) = cell_queue._by_training([*reversed(long_and_prefixes()), image_cell(8, "csq")])
    assert whole.key == image_cell().key
    assert [cell.bits for cell in members] == [8, 12, 16]
    assert other.method == "csq"


def test_no_time_begins_nothing_and_a_failure_stops_nothing(tmp_path):
    cells = [*long_and_prefixes()]
    none = run_queue(cells, minutes=0, results=tmp_path, device="cpu", progress=False)
    assert none.left == cells
    assert not (tmp_path / "cifar-1.jsonl").exists()
    bad = image_cell(8, "csq", codes="prefix of 12")  # not nested
    missing = dataclasses.replace(image_cell(8), data="nowhere")
    both = run_queue([missing, bad], results=tmp_path, device="cpu", progress=False)
    assert [cell.key for cell, _ in both.failed] == [missing.key, bad.key]
    assert "has no prefix" in str(both.failed[1][1])


def test_a_cell_too_long_for_the_time_left_gives_way_to_a_shorter_one(tmp_path, monkeypatch):
    clock = iter(np.arange(0, 10_000, 40.0))  # every look at the clock is 40 seconds later
    monkeypatch.setattr(cell_queue, "_now", lambda: float(next(clock)))
    longer = {"function": ["network", {**TINY["function"][1], "epochs": 200}]}
    cells = [image_cell(4), dataclasses.replace(image_cell(5), params=longer), image_cell(6)]
    outcome = run_queue(cells, minutes=4, results=tmp_path, device="cpu", scorers=1, progress=False)
    assert [cell.bits for cell in outcome.finished] == [4, 6]
    assert [cell.bits for cell in outcome.left] == [5]


def test_prefix_cell_alone_and_its_name():
    cell = image_cell(8, codes="prefix of 16")
    assert cell.whole == image_cell(16)
    assert image_cell(16).whole.key == image_cell(16).key
    assert cell.key != image_cell(8).key
    with pytest.raises(ValueError, match="prefix of 48"):
        image_cell(codes="prefix of many")


def test_the_grid_trains_every_cell_alike_and_in_the_order_of_its_parts():
    cells = grids.cells_of("images", parts=["rivals-voc2007", "nested-cifar-1"])
    assert [cell.protocol for cell in cells] == sorted([cell.protocol for cell in cells], reverse=True)
    for protocol in image_grid.DATA:
        recipes = [cell.params["function"][1] for cell in grids.cells_of("images") if cell.protocol == protocol]
        seen = ("backbone", "mirror")
        trained = {json.dumps({key: value for key, value in recipe.items() if key not in seen}) for recipe in recipes}
        assert len(trained) == 1
        inputs = {json.dumps({key: recipe.get(key) for key in seen}) for recipe in recipes}
        assert len(inputs) == (3 if protocol == "cifar-1" else 2)  # two sizes of the usual backbone, and AlexNet
    with pytest.raises(LookupError, match="No part called 'nested-coco'"):
        grids.cells_of("images", parts=["nested-coco"])
    with pytest.raises(ValueError, match="Only the grid 'images' has parts"):
        grids.cells_of("coco", parts=["nested-cifar-1"])
    assert {cell.method for cell in grids.cells_of("images", methods=["csq"])} == {"csq"}


def test_first_bits_of_what_hbmp_learns_anyway_stand_in_its_own_row():
    def row(protocol, **params):
        cell = next(c for c in image_grid.cells([f"nested-{protocol}"]) if c.codes == "prefix of 48")
        return "".join(_row({"cell": {**dataclasses.asdict(cell), "params": {**cell.params, **params}}}))

    assert row("cifar-1") == row("cifar-2") == "hbmp"
    assert row("voc2007") == row("cifar-1", extra_bits=0) == "hbmp, first bits of 48"  # no bits beside those asked for
    alone = image_grid.cells(["alone-cifar-1"])
    assert {(cell.bits, cell.seed) for cell in alone} == {(bits, seed) for bits in (12, 32) for seed in (0, 1, 2)}
    assert all(cell.params["extra_bits"] == 0 for cell in alone)


def test_the_command_says_what_is_left(tmp_path, capsys):
    options = ["reproduce", "images", "--parts", "nested-cifar-1", "--minutes", "0", "--results", str(tmp_path)]
    assert main([*options, "--data", "digits", "--protocol-params", json.dumps(SMALL), "--device", "cpu"]) == 0
    assert "15 remain" in capsys.readouterr().out


def test_voc_images_are_packed_in_the_order_of_the_labels(tmp_path):
    from PIL import Image

    (tmp_path / "voc2007" / "images").mkdir(parents=True)
    folder, names = tmp_path / "voc2007", ["b", "a", "c"]
    labels = np.eye(3, 20, dtype=np.uint8)
    np.savez(folder / "labels.npz", labels=labels, split=np.uint8([0, 1, 0]), names=names)
    for name, grey in zip(names, (40, 120, 200), strict=True):
        Image.new("RGB", (30, 20), (grey, grey, grey)).save(folder / "images" / f"{name}.jpg")
    assert main(["fetch", "voc2007", "--data-dir", str(tmp_path), "--pack-images", "8"]) == 0
    data = datasets.load("voc2007", tmp_path)
    assert data.images.shape == (3, 8, 8, 3)
    assert np.abs(data.images.mean(axis=(1, 2, 3)) - [40, 120, 200]).max() < 2
    assert data.split.tolist() == [1, 0, 1]
    assert data.features is None
    (folder / "images" / "a.jpg").unlink()
    with pytest.raises(ValueError, match=r"lacks 1 of 3 images, a\.jpg first"):
        packing.pack_images(folder, size=8)


def test_figures_show_the_codes_that_a_run_kept(tmp_path):
    rng = np.random.default_rng(0)
    (tmp_path / "cifar10").mkdir()
    for name in (*(f"data_batch_{number}" for number in range(1, 6)), "test_batch"):
        records = rng.integers(0, 256, (60, 3073), dtype=np.uint8)
        records[:, 0] = np.arange(60) % 10
        records.tofile(tmp_path / "cifar10" / f"{name}.bin")
    labels = datasets.load("cifar10", tmp_path).labels
    split = protocols.get("cifar-1", query_per_class=4, train_per_class=4).split(datasets.load("cifar10", tmp_path), 0)
    n_bits = 48
    centres = rng.choice(np.array([-1, 1], np.int8), (10, n_bits))
    query, database = centres[labels[split.query]], centres[labels[split.database]]
    codes = Codes(query, database, np.ones(n_bits))
    for method in ("hbmp", "mihash"):
        path = tmp_path / "codes" / f"{image_grid.figure_cell(method, n_bits, 0).key}.npz"
        cell_queue.save_codes(path, codes, split)
    for figure in ("fig3", "fig4"):
        text = recipes.reproduce(figure, data_dir=tmp_path, results=tmp_path, device="cpu")
        assert "networks trained on" in text
        (tmp_path / "figures" / f"{figure}.png").unlink()
    assert "hbmp, 48 bits: 30 of 30 are neighbours" in text
    for path in (tmp_path / "codes").iterdir():
        path.unlink()
    assert "networks trained on" in recipes.reproduce("fig4", data_dir=tmp_path, results=tmp_path, device="cpu")


def test_folded_network_gives_the_same_scores_without_normalising():
    with seeded(0):
        network = nn.Sequential(
            nn.Conv2d(3, 8, 3, bias=False),
            nn.BatchNorm2d(8, eps=1e-3),
            nn.ReLU(),
            nn.Sequential(nn.Conv2d(8, 4, 1), nn.BatchNorm2d(4)),
        )
        pictures = torch.randn(16, 3, 9, 9)
        for norm in (network[1], network[3][1]):
            nn.init.normal_(norm.weight)
            nn.init.normal_(norm.bias)
        network(3 * pictures + 1)  # moves the running means away from 0 and 1
    network.eval()
    with torch.inference_mode():
        before = network(pictures)
        ready = folded(network)
        torch.testing.assert_close(ready(pictures), before, atol=1e-5, rtol=1e-5)
        torch.testing.assert_close(network(pictures), before)  # itself untouched
    assert not any(isinstance(part, nn.BatchNorm2d) for part in ready.modules())


def test_compiled_training_sees_whole_batches_only(monkeypatch):
    compiled, seen = [], []
    monkeypatch.setattr(nn.Module, "compile", lambda module, **_: compiled.append(module))  # it takes a minute

    class Watched(nn.Module):
        def forward(self, inputs):
            seen.append(len(inputs))
            return inputs[:, :, ::4, ::4]

    data = datasets.load("digits")
    backbone = hbmp.backbones.Module(Watched(), size=8)
    targets = np.where(np.eye(10)[data.labels[:100]] > 0, 1, -1).astype(np.int8)
    for whole, batches in ((True, [32, 32, 32]), (False, [32, 32, 32, 4])):
        function = Network(backbone, epochs=1, batch_size=32, device="cpu", compile=whole)
        function.fit(data.images[:100], targets, random_state=0)
        assert seen[-len(batches) :] == batches
        assert len(compiled) == 1
    assert not any(isinstance(part, nn.Linear) for part in compiled[0].modules())  # the head is not in it


@pytest.mark.parametrize(
    ("settings", "device", "world", "mode"),
    [
        ({}, "cuda", "1", "reduce-overhead"),
        ({}, "cpu", "1", None),
        ({"accumulate": 2}, "cuda", "1", None),
        ({}, "cuda:1", "2", None),
    ],
)
def test_kernels_are_launched_together_only_where_gradients_are_used_at_once(
    settings, device, world, mode, monkeypatch
):
    monkeypatch.setenv("WORLD_SIZE", world)
    asked = []
    backbone = nn.Identity()
    monkeypatch.setattr(backbone, "compile", lambda **options: asked.append(options["mode"]))
    Network(**settings)._compile(backbone, device)
    assert asked == [mode]
