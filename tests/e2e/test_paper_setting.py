"""The paper's own setting, from official files to a table: few pictures, and networks of few weights."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from PIL import Image
from scipy.io import savemat
from torch import nn

import hbmp
from hbmp import datasets, experiments, protocols
from hbmp._core import catalog
from hbmp._training.checkpoints import Checkpoints
from hbmp.app.cli import main
from hbmp.backbones._shared.layers import Layers, he_start
from hbmp.experiments import paper_setting, planning, recipes, running, store
from hbmp.experiments.paper_setting import DEEP_METHODS
from hbmp.experiments.recipes import fig1, table1, table3, table4, table5, table6
from hbmp.experiments.recipes._shared import capacity
from hbmp.methods.hbmp.published import PUBLISHED

CIFAR = {"train_per_class": 4, "query_per_class": 2}


def small_layers(self):
    """VGG-F with its layers and input, three channels each and twelve features."""
    from hbmp.backbones.vggf import _MeanImage, _response_norm

    layers = {"centre": _MeanImage(self.size), "conv1": nn.Conv2d(3, 3, 11, stride=4), "norm1": _response_norm()}
    layers |= {"pool1": nn.MaxPool2d(3, stride=4)}
    layers |= {f"conv{n}": nn.Conv2d(3, 3, 3, padding=1) for n in range(2, 6)}
    layers |= {"pool5": nn.AdaptiveMaxPool2d(6), "fc6": nn.Conv2d(3, 12, 6), "relu6": nn.ReLU()}
    layers |= {"drop6": nn.Dropout(self.dropout), "fc7": nn.Conv2d(12, 12, 1), "flatten": nn.Flatten()}
    return he_start(Layers(layers, n_features=12))


def cell(values):
    out = np.empty((1, len(values)), dtype=object)
    out[0] = values
    return out


def write_mat(path):
    """Weights of the small network in MatConvNet's layout: filters (H, W, I, O) and the average image."""
    path.parent.mkdir(parents=True)
    rng, layers = np.random.default_rng(0), []
    for name, weights in small_layers(hbmp.backbones.VGGF()).state_dict().items():
        if name.endswith("weight"):
            filters = rng.normal(0, (2 / np.prod(weights.shape[1:])) ** 0.5, weights.shape).astype(np.float32)
            filters = np.asfortranarray(filters.transpose(2, 3, 1, 0))
            biases = np.zeros((1, weights.shape[0]), np.float32)
            layers.append({"name": name.partition(".")[0], "type": "conv", "weights": cell([filters, biases])})
    layers.append({"name": "norm", "type": "lrn", "param": np.array([[5.0, 2, 1e-4, 0.75]])})
    average = rng.uniform(90, 130, (224, 224, 3)).astype(np.float32)
    savemat(path, {"layers": cell(layers), "meta": {"normalization": {"averageImage": average}}})


def write_cifar(folder, per_class=8):
    """Six batches of pictures whose class shows in their colour."""
    folder.mkdir(parents=True)
    rng = np.random.default_rng(1)
    labels = rng.permutation(np.repeat(np.arange(10), per_class))
    colours = rng.integers(0, 256, (10, 3, 1))
    pixels = np.clip(colours[labels] + rng.integers(-30, 30, (len(labels), 3, 1024)), 0, 255).astype(np.uint8)
    records = np.concatenate([labels[:, None].astype(np.uint8), pixels.reshape(len(labels), -1)], axis=1)
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    for name, part in zip(names, np.array_split(records, 6), strict=True):
        (folder / name).write_bytes(part.tobytes())


@pytest.fixture(scope="module")
def data_dir(tmp_path_factory):
    folder = tmp_path_factory.mktemp("data")
    write_cifar(folder / "cifar10")
    write_mat(folder / "weights" / "imagenet-vgg-f.mat")
    return folder


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """The small network under the name of VGG-F, two epochs, and few pictures per class."""
    monkeypatch.setattr(hbmp.backbones.VGGF, "architecture", small_layers)
    monkeypatch.setitem(paper_setting._TRAINING, "epochs", 2)
    monkeypatch.setitem(paper_setting._ONE_LAYER, "epochs", 2)
    monkeypatch.setattr(protocols.Cifar1.__init__, "__kwdefaults__", {**CIFAR, "normalize": False})


def only(monkeypatch, table, *names, part=0):
    """The table with one part and these rows."""
    rows = tuple(row for row in table.PARTS[part].rows if row.name in names)
    monkeypatch.setattr(table, "PARTS", (replace(table.PARTS[part], rows=rows),))


def test_table_1_from_official_files(data_dir, tmp_path, monkeypatch, capsys):
    only(monkeypatch, table1, "ITQ", "MIHash", "HBMP")
    options = {"data_dir": data_dir, "bits": [12], "seeds": [0], "results": tmp_path, "device": "cpu"}
    planned = recipes.reproduce("table1", **options, plan_only=True)
    assert "the paper's own setting, vggf fine-tuned on cifar10" in planned
    assert "| hbmp   | cifar10      |    0 |          12 |" in planned
    assert "0 of 3 cells are done, 3 will run: about " in planned
    assert "First, 80 images are encoded to" in planned
    assert not (data_dir / "cifar10-vggf").exists()
    text = recipes.reproduce("table1", **options)
    assert "0 of 3 cells are done, 3 will run" in capsys.readouterr().err
    assert "Missing" not in text
    assert "Ours: the paper's own setting" in text
    assert "—" not in text
    records = {record["cell"]["method"]: record for record in experiments.load_results(tmp_path)}
    assert records["hbmp"]["cell"]["data"] == records["mihash"]["cell"]["data"] == "cifar10"
    assert records["itq"]["cell"]["data"] == "cifar10-vggf"
    assert records["itq"]["cell"]["protocol_params"] == {"normalize": True}
    assert {record["split"]["checksum"] for record in records.values()} == {records["itq"]["split"]["checksum"]}
    settings, asked = records["hbmp"]["settings"], hbmp.HBMP.paper(12).get_params(deep=False)
    assert all(settings[name] == asked[name] for name in PUBLISHED)
    assert settings["function__loss"] == "hinge"
    assert (settings["function__optimizer"], settings["function__schedule"]) == ("sgd", "step")
    assert settings["function__backbone__pretrained"] == "imagenet-vgg-f.mat"  # not where it is on this machine
    assert settings["function__checkpoint"] is None
    assert len(records["hbmp"]["weights"]["sha256"]) == 64
    assert not list((tmp_path / "checkpoints").iterdir())
    features = datasets.load("cifar10-vggf", data_dir)
    assert features.features.shape == (80, 12)
    assert np.array_equal(features.labels, datasets.load("cifar10", data_dir).labels)
    before = (tmp_path / "cifar-1.jsonl").read_bytes()
    recipes.reproduce("table1", **options)
    assert (tmp_path / "cifar-1.jsonl").read_bytes() == before
    assert "3 of 3 cells are done, 0 will run" in capsys.readouterr().err


def test_constant_against_regress_in_the_papers_setting(data_dir, tmp_path, monkeypatch):
    only(monkeypatch, table5, "constant", "regress")
    recipes.reproduce("table5", data_dir=data_dir, bits=[16], seeds=[0], results=tmp_path, device="cpu")
    schemes = {record["settings"]["scheme"] for record in experiments.load_results(tmp_path)}
    assert schemes == {"constant", "regress"}


def test_a_killed_training_continues_from_its_checkpoint(data_dir, tmp_path, monkeypatch):
    only(monkeypatch, table1, "HBMP")
    options = {"data_dir": data_dir, "bits": [12], "seeds": [0], "device": "cpu"}
    recipes.reproduce("table1", **options, results=tmp_path / "whole")
    saved, states = Checkpoints.save, []

    def save_and_stop(self, state):
        saved(self, state)
        states.append(self.path)
        raise KeyboardInterrupt

    monkeypatch.setattr(Checkpoints, "save", save_and_stop)
    with pytest.raises(KeyboardInterrupt):
        recipes.reproduce("table1", **options, results=tmp_path / "stopped")
    assert states[0].is_file()
    monkeypatch.setattr(Checkpoints, "save", saved)
    loaded = []
    load = Checkpoints.load
    monkeypatch.setattr(Checkpoints, "load", lambda self: loaded.append(load(self)) or loaded[-1])
    recipes.reproduce("table1", **options, results=tmp_path / "stopped")
    assert loaded[0] is not None
    assert not states[0].exists()
    (whole,), (stopped,) = (experiments.load_results(tmp_path / name) for name in ("whole", "stopped"))
    assert stopped["scores"] == whole["scores"]


def test_what_is_missing_is_named_with_its_command(tmp_path, capsys):
    assert main(["reproduce", "table3", "--data-dir", str(tmp_path), "--results", str(tmp_path), "--list"]) == 0
    text = capsys.readouterr().out
    assert f"curl -L --create-dirs -o {tmp_path}/weights/alexnet-owt-7be5be79.pth https://download.pytorch.org" in text
    assert "Ask for ImageNet (ILSVRC 2012)" in text
    assert f"hbmp features imagenet100 --data-dir {tmp_path} --backbone" in text
    write_cifar(tmp_path / "cifar10")
    text = recipes.reproduce("table2", data_dir=tmp_path, results=tmp_path, plan_only=True)
    assert f"Missing: {tmp_path}/weights/imagenet-vgg-f.mat. `curl" in text
    assert f"hbmp fetch nuswide --data-dir {tmp_path}" in text
    assert "cifar10 is not" not in text
    with pytest.raises(ValueError, match="only tables have a plan"):
        recipes.reproduce("fig2", data_dir=tmp_path, results=tmp_path, plan_only=True)


def test_features_of_a_data_set_by_the_command_that_is_named(data_dir, tmp_path, capsys):
    weights = data_dir / "weights" / "imagenet-vgg-f.mat"
    words = [
        "features",
        "cifar10",
        "--data-dir",
        str(data_dir),
        "--backbone",
        f'["vggf", {{"pretrained": "{weights}"}}]',
    ]
    assert main([*words, "-o", str(tmp_path / "cifar10-vggf" / "features.npy")]) == 0
    assert "80 vectors of 12 numbers" in capsys.readouterr().out
    assert np.array_equal(datasets.load("cifar10-vggf", tmp_path).split, datasets.load("cifar10", data_dir).split)
    assert main([*words, "-o", str(tmp_path / "x.npy")]) == 2
    assert "write NAME/features.npy" in capsys.readouterr().err


def test_figure_1_f_with_gist_fc7_and_the_whole_network(data_dir, tmp_path, monkeypatch):
    monkeypatch.setattr(fig1, "N_INSTANCES", 60)
    monkeypatch.setattr(fig1, "N_QUERIES", 10)
    monkeypatch.setattr(capacity, "GIST_SIZE", 16)
    text = recipes.reproduce("fig1", data_dir=data_dir, results=tmp_path, bits=[4], seeds=[0], device="cpu")
    assert "Missing" not in text
    found = {r["settings"]["name"]: r["unmatched"] for r in store.read(tmp_path / "fig1.jsonl") if "unmatched" in r}
    assert list(found) == [capacity.ON_GIST, capacity.ON_FC7, capacity.WHOLE]
    assert all(0 <= value <= 1 for value in found.values())
    weights = data_dir / "weights" / "imagenet-vgg-f.mat"
    weights.rename(weights.with_suffix(".away"))
    try:
        text = recipes.reproduce("fig1", data_dir=data_dir, results=tmp_path, bits=[4], seeds=[0], device="cpu")
    finally:
        weights.with_suffix(".away").rename(weights)
    assert "Missing for part (f): " in text
    assert "another network" in text


def test_deep_methods_are_those_that_train_networks_and_each_has_published_rates():
    rows = {
        row.method
        for name in catalog.names("recipes")
        for part in getattr(catalog.load_module("recipes", name), "PARTS", ())
        for row in part.rows
    }
    assert {name for name in rows if hbmp.get_method(name).takes_images} == set(DEEP_METHODS)
    for part in (*table1.PARTS, *table3.PARTS, table4.PARTS[0]):
        own = part.sources[0]
        for row in part.rows:
            made = part.cell(row, own, 16, 0)
            assert (made.data == own.setting.images) == (row.method in DEEP_METHODS)


def test_estimates_use_what_is_known(tmp_path):
    cells = [experiments.Cell("lsh", "cifar-1", "digits", bits, protocol_params=CIFAR) for bits in (8, 16)]
    running.run(cells[0], results=tmp_path, device="cpu")
    done, waiting = planning.plan(cells, results=tmp_path)
    assert (done.done, waiting.done) == (True, False)
    assert 0 < waiting.seconds < 60
    (unknown,) = planning.plan([replace(cells[0], method="itq")], results=tmp_path)
    assert unknown.seconds is None
    assert "1 of unknown time" in planning.plan_table([unknown], "", "cpu").caption
    record = {"settings": {"function__backbone": "Tiny"}, "images_per_second": {"fit": 250}}
    record["machine"] = planning.machine.describe("cpu")
    assert planning._pace("tiny", [record], "cpu") == 250


def test_table_3_from_lists_and_torchvisions_file(tmp_path, monkeypatch):
    """ImageNet100: HashNet's lists over JPEG files, AlexNet's state dict."""

    def small_alexnet(self):
        layers = {"conv1": nn.Conv2d(3, 3, 11, stride=8), "pool5": nn.AdaptiveMaxPool2d(3), "flatten": nn.Flatten()}
        return he_start(Layers(layers | {"full7": nn.Linear(27, 8)}, n_features=8))

    folder, rng = tmp_path / "data" / "imagenet100", np.random.default_rng(0)
    lists = {"train": 6, "test": 2, "database": 4}
    for part, count in lists.items():
        (folder / part).mkdir(parents=True)
        lines = []
        for number in range(4 * count):
            name, columns = f"{part}/{number}.JPEG", ["0"] * 100
            Image.fromarray(rng.integers(0, 256, (40, 60, 3), dtype=np.uint8)).save(folder / name)
            columns[25 * (number % 4)] = "1"
            lines.append(f"{name} {' '.join(columns)}\n")
        (folder / f"{part}.txt").write_text("".join(lines))
    monkeypatch.setattr(hbmp.backbones.AlexNet, "architecture", small_alexnet)
    state = small_alexnet(None).state_dict()
    names = {"conv1": "features.0", "full7": "classifier.4"}
    renamed = {f"{names[key.split('.')[0]]}.{key.split('.')[1]}": value for key, value in state.items()}
    (tmp_path / "data" / "weights").mkdir()
    torch.save(renamed, tmp_path / "data" / "weights" / "alexnet-owt-7be5be79.pth")
    sizes = {"train_per_class": 5, "query_per_class": 2, "normalize": False}
    monkeypatch.setattr(protocols.ImageNet100.__init__, "__kwdefaults__", sizes)
    only(monkeypatch, table3, "HBMP")
    options = {"bits": [16], "seeds": [0], "results": tmp_path, "device": "cpu"}
    text = recipes.reproduce("table3", data_dir=tmp_path / "data", **options)
    assert "Missing" not in text
    (record,) = experiments.load_results(tmp_path)
    assert record["split"] | {"checksum": ""} == {"checksum": "", "train": 20, "query": 8, "database": 40}
    assert record["settings"]["function__backbone"] == "AlexNet"
    assert record["weights"]["file"] == "alexnet-owt-7be5be79.pth"


def test_table_6_from_the_concepts_and_images_of_nus_wide(data_dir, tmp_path, monkeypatch):
    folder, rng = tmp_path / "nuswide", np.random.default_rng(0)
    (folder / "Flickr").mkdir(parents=True)
    (folder / "ImageList").mkdir()
    labels = np.zeros((60, 81), dtype=int)
    labels[np.arange(60), np.arange(60) % 21] = labels[::3, :2] = 1
    (folder / "AllLabels81.txt").write_text("\n".join(" ".join(map(str, row)) for row in labels) + "\n")
    names = [f"{number:03}.jpg" for number in range(60)]
    for name in names:
        Image.fromarray(rng.integers(0, 256, (30, 50, 3), dtype=np.uint8)).save(folder / "Flickr" / name)
    (folder / "ImageList" / "Imagelist.txt").write_text("\n".join(names) + "\n")
    (tmp_path / "weights").symlink_to(data_dir / "weights")
    sizes = {"train_per_concept": 1, "query_per_concept": 1, "n_concepts": 21, "normalize": False}
    monkeypatch.setattr(protocols.Nus1.__init__, "__kwdefaults__", sizes)
    only(monkeypatch, table6, "regress")
    recipes.reproduce("table6", data_dir=tmp_path, bits=[16], seeds=[0], results=tmp_path / "r", device="cpu")
    (record,) = experiments.load_results(tmp_path / "r")
    assert record["settings"]["affinity"] == "LabelOverlap"
    assert record["settings"]["function__augmentation"] == {"flip": 0.5}
    assert record["items"] <= 21
    assert "ndcg-binary" in record["scores"]


def test_table_7_with_one_layer_on_the_authors_descriptors(tmp_path, monkeypatch):
    """22K LabelMe: a MATLAB file of GIST, and rivals that need labels left out."""
    (tmp_path / "labelme").mkdir()
    savemat(tmp_path / "labelme" / "LabelMe_gist.mat", {"gist": np.random.default_rng(0).random((80, 16))})
    sizes = {"n_train": 40, "n_query": 10, "normalize": True}
    monkeypatch.setattr(protocols.LabelMe.__init__, "__kwdefaults__", sizes)
    text = recipes.reproduce("table7", data_dir=tmp_path, bits=[16], seeds=[0], results=tmp_path, device="cpu")
    assert "Missing" not in text
    assert "the paper's own setting, one linear layer" in text
    settings = [record["settings"] for record in experiments.load_results(tmp_path)]
    assert [each["scheme"] for each in settings] == ["constant", "regress"]
    assert settings[0]["function__optimizer"] == "sgd"
    (cell,) = table4.PARTS[1].cells(table4.PARTS[1].sources[0], bits=[16], seeds=[0])
    assert cell.method == "hbmp"
