"""Files of weights, read without running them, and what else backbones refuse; a module of the user's own."""

import pickle
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from torch import nn

import hbmp
from hbmp._training.loop import seeded
from hbmp.backbones._shared import weights as weight_files
from hbmp.backbones._shared.layers import SameConv2d


class Harmful:
    def __reduce__(self):
        return (Path.touch, (Path("harm"),))


def small_network():
    return nn.Sequential(nn.Conv2d(3, 2, 3), nn.BatchNorm2d(2))


def put(path):
    network = small_network()
    tensors = weight_files.read_tensors(path)
    weight_files.put_tensors(network, tensors, lambda name: f"net.{name}", str(path))
    return network


@pytest.mark.parametrize("ending", ["pth", "safetensors"])
def test_both_formats_fill_a_network_and_its_running_averages(tmp_path, ending):
    state = {f"net.{name}": torch.rand_like(tensor.float()) for name, tensor in small_network().state_dict().items()}
    del state["net.1.num_batches_tracked"]
    path = tmp_path / f"weights.{ending}"
    if ending == "pth":
        torch.save({"epoch": 3, "state_dict": state}, path)
    else:
        save_file(state, path)
    for name, tensor in put(path).state_dict().items():
        assert name.endswith("num_batches_tracked") or torch.equal(tensor, state[f"net.{name}"])


def test_wrong_files_of_weights_say_why(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    state = {f"net.{name}": tensor for name, tensor in small_network().state_dict().items()}
    torch.save({**state, "net.0.weight": torch.zeros(2, 3, 5, 5)}, "shape.pth")
    torch.save({name: state[name] for name in state if "running_mean" not in name}, "missing.pth")
    torch.save(torch.zeros(3), "tensor.pth")
    torch.save({"net": Harmful()}, "harmful.pth")
    Path("pickled.pth").write_bytes(pickle.dumps(Harmful(), protocol=2))
    Path("short.pth").write_bytes(Path("shape.pth").read_bytes()[:300])
    Path("text.safetensors").write_text("no tensors")
    for name, message in {
        "absent.pth": "There is no file absent.pth",
        "shape.pth": r"'net.0.weight' of shape \(2, 3, 5, 5\), where this network has \(2, 3, 3, 3\)",
        "missing.pth": r"has no weights 'net.1.running_mean'; it holds net.0.weight, .* and \d more",
        "tensor.pth": "must hold a state dict of named tensors, found a Tensor",
        "harmful.pth": "cannot be read as tensors alone",
        "pickled.pth": "cannot be read as tensors alone",
        "short.pth": "cannot be read as tensors alone",
        "text.safetensors": "cannot be read as safetensors",
    }.items():
        with pytest.raises(ValueError, match=message):
            put(name)
    assert not Path("harm").exists()


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("AlexNet", "get alexnet-owt-7be5be79.pth from https://download.pytorch.org/models"),
        ("VGGF", "get imagenet-vgg-f.mat from https://www.vlfeat.org/matconvnet/pretrained"),
        ("Tiny", "Tiny has no pretrained weights, found pretrained=True"),
    ],
)
def test_published_weights_that_no_package_brings_are_asked_for(name, message):
    with pytest.raises(ValueError, match=message):
        getattr(hbmp.backbones, name)(pretrained=True).build()
    if name != "Tiny":
        with pytest.raises(ValueError, match="There is no file nowhere"):
            getattr(hbmp.backbones, name)(pretrained="nowhere.pth").build()


# --- your own, and the pieces ----------------------------------------------------------------------------------------
def test_a_module_of_your_own_is_copied_and_measured():
    own = nn.Sequential(nn.Conv2d(3, 5, 3), nn.BatchNorm2d(5), nn.AdaptiveAvgPool2d(2))
    before = {name: tensor.clone() for name, tensor in own.state_dict().items()}
    backbone = hbmp.backbones.Module(own, size=20, mean=(1, 2, 3), scale=10.0)
    module = backbone.build().train()
    assert module.n_features == 20
    with torch.no_grad():
        out = module(backbone.normalise(torch.full((4, 20, 20, 3), 9, dtype=torch.uint8)))
        module.network[0].weight.zero_()
    assert out.shape == (4, 20)
    assert all(torch.equal(tensor, before[name]) for name, tensor in own.state_dict().items())
    assert backbone.weights_note == "your own Sequential"
    assert hbmp.backbones.Module(own, size=20, n_features=20).build().n_features == 20


class OwnNetwork(nn.Module):
    """What a user would write."""

    def __init__(self, width=6):
        super().__init__()
        self.layers = nn.Sequential(nn.Conv2d(3, width, 3, stride=2), nn.BatchNorm2d(width), nn.AdaptiveAvgPool2d(2))

    def forward(self, inputs):
        return torch.relu(self.layers(inputs))


def test_a_model_with_a_module_of_your_own_is_saved_without_its_code_and_given_it_again(tmp_path):
    pixels = np.random.default_rng(0).integers(0, 256, (40, 16, 16, 3), dtype=np.uint8)
    backbone = hbmp.backbones.Module(OwnNetwork(), size=16)
    network = hbmp.functions.Network(backbone, epochs=1, augmentation="none", device="cpu", batch_size=20)
    model = hbmp.HBMP(8, function=network, random_state=0).fit(pixels, np.arange(40) % 4)
    model.save(tmp_path / "model")
    given = OwnNetwork()  # its own random weights: those of the training are in the file
    again = hbmp.load(tmp_path / "model", module=given)
    np.testing.assert_array_equal(again.project(pixels), model.project(pixels))
    again.save(tmp_path / "again")
    np.testing.assert_array_equal(
        hbmp.load(tmp_path / "again", module=OwnNetwork()).transform(pixels), model.transform(pixels)
    )
    alone = hbmp.load(tmp_path / "model")
    assert "OwnNetwork" in repr(alone)
    np.testing.assert_array_equal(alone.codes_for([0, 1]), model.codes_for([0, 1]))  # these need no network
    with pytest.raises(ValueError, match=r"a custom network, OwnNetwork, whose code is not saved.*module=network"):
        alone.transform(pixels)
    alone.save(tmp_path / "untouched")  # may be passed on by someone who does not have it
    passed_on = hbmp.load(tmp_path / "untouched", module=given)
    np.testing.assert_array_equal(passed_on.transform(pixels), model.transform(pixels))
    with pytest.raises(ValueError, match="different layers from the one that was trained: size mismatch"):
        hbmp.load(tmp_path / "model", module=OwnNetwork(width=7)).transform(pixels)
    database = hbmp.Database.build(model, pixels)
    database.save(tmp_path / "db")
    _, ids = hbmp.Database.load(tmp_path / "db", module=OwnNetwork()).search(pixels[:3], 1)
    assert ids.shape == (3, 1)


def test_a_module_that_does_not_fit_is_told():
    own = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 4))
    with pytest.raises(ValueError, match=r"cannot take a batch \(2, 3, 9, 9\).*Pass the size it was made for"):
        hbmp.backbones.Module(own, size=9).build()
    with pytest.raises(ValueError, match="n_features is 5, but module gives 4"):
        hbmp.backbones.Module(own, size=8, n_features=5).build()
    with pytest.raises(ValueError, match=r"must be a torch.nn.Module, found str"):
        hbmp.backbones.Module("resnet", size=8).build()


@pytest.mark.parametrize("side", [7, 8, 9])
@pytest.mark.parametrize("kernel", [1, 3, 5])
@pytest.mark.parametrize("stride", [1, 2, 3])
def test_same_padding_gives_the_promised_side(side, kernel, stride):
    out = SameConv2d(1, 1, kernel, stride)(torch.zeros(1, 1, side, side + 3))
    assert out.shape[-2:] == (-(-side // stride), -(-(side + 3) // stride))


def test_tiny_is_tiny_and_has_no_batch_normalisation():
    with seeded(0):
        module = hbmp.backbones.Tiny().build()
    assert 15_000 < sum(parameter.numel() for parameter in module.parameters()) < 25_000
    assert not list(module.buffers())
