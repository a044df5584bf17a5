"""Every backbone, found by its file; timm's by a stand-in where timm cannot be imported."""

import sys

import fake_timm
import numpy as np
import pytest
import torch
from sklearn.base import clone

import hbmp
from hbmp._core import catalog, storage
from hbmp._training.loop import seeded

NAMES = catalog.names("backbones")


@pytest.fixture(autouse=True)
def timm_calls(monkeypatch):
    """What TimmModel asked timm for."""
    calls: list = []
    for name, module in fake_timm.make(calls).items():
        monkeypatch.setitem(sys.modules, name, module)
    return calls


def smallest(name):
    cls = catalog.load("backbones", name)
    return cls(**cls.smoke)


@pytest.fixture(scope="module")
def built():
    """Each network built once: the large ones draw 57 million numbers."""
    networks: dict = {}

    def build(name):
        if name not in networks:
            with seeded(7):
                networks[name] = smallest(name).build().eval()
        return networks[name]

    return build


def pixels_for(backbone, n=3):
    return np.random.default_rng(0).integers(0, 256, (n, backbone.size, backbone.size, 3), dtype=np.uint8)


@pytest.mark.parametrize("name", NAMES)
def test_features_have_the_promised_form_and_no_image_sees_another(name, built):
    backbone, module = smallest(name), built(name)
    inputs = backbone.normalise(torch.from_numpy(pixels_for(backbone)))
    with torch.no_grad():
        features, alone = module(inputs), module(inputs[1:2])
    assert features.shape == (3, module.n_features)
    assert isinstance(module.n_features, int)
    assert features.dtype == torch.float32
    assert torch.isfinite(features).all()
    assert features.std(dim=0).max() > 1e-3  # random weights too must tell images apart
    torch.testing.assert_close(alone[0], features[1], rtol=1e-4, atol=1e-4 * float(features.abs().max()))


@pytest.mark.parametrize("name", NAMES)
def test_inputs_are_pixels_less_mean_over_scale(name):
    backbone = smallest(name)
    assert isinstance(backbone.size, int)
    pixels = pixels_for(backbone)
    expected = (pixels.astype(float) - np.asarray(backbone.mean)) / np.asarray(backbone.scale)
    inputs = backbone.normalise(torch.from_numpy(pixels))
    np.testing.assert_allclose(inputs.numpy(), expected.transpose(0, 3, 1, 2), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_random_weights_follow_the_seed_and_leave_the_global_generator(name, built):
    before = torch.random.get_rng_state()
    with seeded(7):
        again = smallest(name).build()
    assert torch.equal(torch.random.get_rng_state(), before)
    for key, value in built(name).state_dict().items():
        assert torch.equal(again.state_dict()[key], value), key


@pytest.mark.parametrize("name", NAMES)
def test_the_architecture_takes_the_weights_of_a_built_network(name, built):
    backbone = smallest(name)
    with torch.device("meta"):  # names and shapes alone: what a saved model is loaded into
        copy = backbone.architecture()
    copy.load_state_dict(built(name).state_dict(), assign=True)
    inputs = backbone.normalise(torch.from_numpy(pixels_for(backbone, n=1)))
    with torch.no_grad():
        assert torch.equal(copy.eval()(inputs), built(name)(inputs))


@pytest.mark.parametrize("name", [name for name in NAMES if name != "module"])  # a module without weights
def test_gradients_reach_the_first_layer(name, built):
    backbone, module = smallest(name), built(name)
    inputs = backbone.normalise(torch.from_numpy(pixels_for(backbone, n=2)))
    first = next(iter(module.parameters()))
    (gradient,) = torch.autograd.grad(module(inputs).square().sum(), [first])
    assert gradient.abs().max() > 0


@pytest.mark.parametrize("name", NAMES)
def test_a_backbone_is_a_description_that_can_be_copied(name):
    backbone = smallest(name)
    assert repr(clone(backbone)) == repr(backbone)
    assert isinstance(backbone.weights_note, str)
    assert backbone.weights_note
    assert set(vars(backbone)) == set(backbone.get_params())


@pytest.mark.parametrize("name", [name for name in NAMES if name != "module"])
def test_a_model_can_keep_the_description(name, tmp_path):
    backbone = smallest(name)
    storage.save(backbone, tmp_path / "model")
    loaded = storage.load(tmp_path / "model")
    assert repr(loaded) == repr(backbone)
    assert loaded.size == backbone.size


def test_the_folder_offers_its_classes_by_name():
    assert {"alexnet", "efficientnet_lite0", "module", "timm_model", "tiny", "vggf"} <= set(NAMES)
    assert hbmp.backbones.AlexNet is catalog.load("backbones", "alexnet")
    assert hbmp.backbones.EfficientNetLite0().size == 224
    with pytest.raises(LookupError, match=r"No backbone called 'alexnett'. Did you mean 'alexnet'\?"):
        catalog.load("backbones", "alexnett")


def test_timm_models_come_without_classifier_and_with_their_own_preprocessing(timm_calls):
    backbone = hbmp.backbones.TimmModel("resnet50")
    module = backbone.build()
    assert timm_calls == [("resnet50", True, 0)]
    assert (module[0].weight == 0.5).all()  # timm's own weights stay
    assert module.n_features == 7
    assert backbone.size == 48
    assert backbone.mean == pytest.approx((127.5, 102, 76.5))
    assert backbone.scale == pytest.approx((51, 63.75, 76.5))
    assert backbone.weights_note == "timm resnet50"
    backbone.architecture()
    assert timm_calls[-1] == ("resnet50", False, 0)


def test_timm_models_take_their_weights_from_a_file(tmp_path):
    network = hbmp.backbones.TimmModel("resnet18", pretrained=False).build()
    torch.save({**network.state_dict(), "fc.weight": torch.zeros(10, 7)}, tmp_path / "resnet.pth")
    backbone = hbmp.backbones.TimmModel("resnet18", pretrained=tmp_path / "resnet.pth")
    assert torch.equal(backbone.build()[0].weight, network[0].weight)
    assert backbone.weights_note == "file resnet.pth"


def test_without_timm_or_without_the_model_it_says_so(monkeypatch):
    with pytest.raises(LookupError, match=r"timm has no model called 'vitt'; timm.list_models\(\) shows all"):
        hbmp.backbones.TimmModel("vitt").build()
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(ValueError, match=r"TimmModel\('resnet50'\) needs timm.*pip install timm"):
        hbmp.backbones.TimmModel().build()
