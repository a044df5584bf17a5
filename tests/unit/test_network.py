"""Networks on images: what they see in training, how they learn, and what is refused."""

import os

import numpy as np
import PIL.Image
import pytest
import torch
from sklearn.datasets import load_digits

import hbmp
from hbmp._training.loop import seeded
from hbmp._training.losses import code_loss
from hbmp.functions import Network
from hbmp.functions._shared.augment import Augmentation, augmented, resized
from hbmp.functions._shared.image_batches import ImageBatches, MixedLoss, View

SMALL = {"backbone": "tiny", "augmentation": "none", "device": "cpu", "lr": 3e-3, "backbone_lr": 3e-3, "batch_size": 64}


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    pixels = np.repeat((X[:400] * 15).astype(np.uint8).reshape(-1, 8, 8, 1), 3, axis=3)
    return pixels, y[:400]


@pytest.fixture
def pictures():
    return torch.from_numpy(np.random.default_rng(0).integers(0, 256, (4, 12, 12, 3), dtype=np.uint8))


def test_no_augmentation_leaves_images_of_the_right_size_as_they_are(pictures):
    as_they_are = pictures.permute(0, 3, 1, 2).float()
    torch.testing.assert_close(resized(pictures, 12), as_they_are)
    torch.testing.assert_close(augmented(pictures, 12, Augmentation(flip=0)), as_they_are, atol=1e-2, rtol=0)


def test_flip_mirrors_and_shift_moves(pictures):
    as_they_are = pictures.permute(0, 3, 1, 2).float()
    flipped = augmented(pictures, 12, Augmentation(flip=1))
    torch.testing.assert_close(flipped, as_they_are.flip(3), atol=1e-2, rtol=0)
    with seeded(0):
        shifted = augmented(pictures, 12, Augmentation(flip=0, shift=0.5))
    assert not torch.allclose(shifted, as_they_are, atol=1)


def test_enlarged_smoothly_and_kept_in_range(pictures):
    large = resized(pictures, 36)
    assert large.shape == (4, 3, 36, 36)
    assert 0 <= float(large.min()) <= float(large.max()) <= 255
    expected = torch.nn.functional.interpolate(
        pictures.permute(0, 3, 1, 2).float(), (36, 36), mode="bicubic", align_corners=False
    ).clamp(0, 255)
    torch.testing.assert_close(large, expected)


def test_cutout_blanks_one_square_and_brightness_shifts_all_alike():
    grey = torch.full((50, 20, 20, 3), 200, dtype=torch.uint8)
    with seeded(1):
        cut = augmented(grey, 20, Augmentation(flip=0, cutout=0.4))
        bright = augmented(grey, 20, Augmentation(flip=0, brightness=0.2))
    blank = (cut == 127).all(dim=1).float().mean(dim=(1, 2))
    assert float(blank.max()) <= 0.4**2 + 1e-6
    assert float(blank.mean()) > 0.08  # some squares reach over the edge
    spread = bright.amax(dim=(1, 2, 3)) - bright.amin(dim=(1, 2, 3))
    assert float(spread.max()) < 1e-3
    assert float(bright.amax(dim=(1, 2, 3)).std()) > 10


def test_mixed_batches_hold_both_images_and_their_shares(digits):
    pixels, y = digits
    backbone = hbmp.backbones.Tiny()
    view = View(backbone, Augmentation(flip=0), "cpu", channels_last=False)
    targets = np.where(np.eye(10)[y] > 0, 1.0, -1.0).astype(np.float32)
    options = {"view": view, "batch_size": 32, "device": "cpu", "workers": 0, "on_error": "refuse"}
    images = hbmp.Images.from_array(pixels)
    with seeded(0):
        inputs, share, first, second = next(
            ImageBatches(images, targets, mixup=0.4, **options).batches(torch.Generator().manual_seed(1))
        )
    (plain, alone) = next(ImageBatches(images, targets, mixup=0.0, **options).batches(torch.Generator().manual_seed(1)))
    torch.testing.assert_close(first, alone)
    same = (share > 0.999).nonzero()[:, 0]
    torch.testing.assert_close(inputs[same], plain[same], atol=0.05, rtol=0)
    assert not torch.equal(first, second)
    scores = torch.randn(32, 10)
    hinge = code_loss("hinge")
    by_hand = share.mean() * hinge(scores, first) + (1 - share.mean()) * hinge(scores, second)
    torch.testing.assert_close(MixedLoss(hinge)(scores, share, first, second), by_hand)


def test_what_a_loss_learns_is_trained_with_mixup_too(digits):
    pixels, y = digits
    labels = np.eye(10, dtype=np.float32)[y]
    loss = hbmp.get_method("greedyhash")(8).make_loss(labels, 0)
    before = [parameter.detach().clone() for parameter in loss.parameters()]
    Network(**SMALL, epochs=1, mixup=0.4).learn(pixels, loss, labels, np.arange(400), n_bits=8, random_state=0)
    assert before
    assert not any(torch.equal(old, new) for old, new in zip(before, loss.parameters(), strict=True))


class Counting(torch.nn.Module):
    """A loss that notes how often it is asked, and told of steps and epochs."""

    def __init__(self):
        super().__init__()
        self.asked = self.steps = self.epochs = 0

    def forward(self, scores, targets):
        self.asked += 1
        return code_loss("hinge")(scores, targets)

    def after_step(self):
        self.steps += 1

    def after_epoch(self):
        self.epochs += 1


@pytest.mark.parametrize(("settings", "asks"), [({}, 1), ({"mixup": 0.4}, 2), ({"mixup": 0.4, "accumulate": 2}, 4)])
def test_a_loss_counts_steps_and_epochs_however_often_a_step_asks_it(settings, asks, digits):
    pixels, y = digits
    targets = np.where(np.eye(10)[y] > 0, 1.0, -1.0).astype(np.float32)
    loss = Counting()
    Network(**SMALL, epochs=2, **settings).learn(pixels[:128], loss, targets[:128], n_bits=10, random_state=0)
    assert (loss.steps, loss.epochs, loss.asked) == (4, 2, 4 * asks)


def test_mixup_leaves_the_sharpness_of_hashnet_as_it_is(digits):
    pixels, y = digits
    labels = np.eye(10, dtype=np.float32)[y]
    for mixup in (0.0, 0.4):
        loss = hbmp.get_method("hashnet")(8, hold=2).make_loss(labels, 0)
        network = Network(**SMALL, epochs=1, mixup=mixup)
        network.learn(pixels, loss, labels, np.arange(400), n_bits=8, random_state=0)
        assert int(loss.step) == -(-400 // 64)


def test_with_mirror_scores_are_the_mean_of_an_image_and_its_mirror_image(digits, tmp_path):
    pixels, y = digits
    mirrored = np.ascontiguousarray(pixels[:, :, ::-1])
    plain, both = (
        hbmp.HBMP(8, function=Network(**SMALL, epochs=2, mirror=mirror), label_share=0, random_state=0).fit(pixels, y)
        for mirror in (False, True)
    )
    weights, with_mirror = plain.function_.weights_, both.function_.weights_
    assert all(np.array_equal(with_mirror[name], weights[name]) for name in weights)  # it is not a way to train
    expected = (plain.function_.project(pixels) + plain.function_.project(mirrored)) / 2
    np.testing.assert_allclose(both.function_.project(pixels), expected, atol=1e-5)
    np.testing.assert_allclose(both.project(mirrored), both.project(pixels), atol=1e-5)
    both.save(tmp_path / "model")
    np.testing.assert_array_equal(hbmp.load(tmp_path / "model").project(pixels), both.project(pixels))


def test_hbmp_learns_from_images_and_is_saved(digits, tmp_path):
    pixels, y = digits
    model = hbmp.HBMP(8, function=Network(**SMALL, epochs=20), random_state=0).fit(pixels, y)
    assert model.score(pixels, y) > 0.8
    model.save(tmp_path / "model")
    again = hbmp.load(tmp_path / "model")
    np.testing.assert_array_equal(again.transform(pixels[:50]), model.transform(pixels[:50]))


@pytest.mark.parametrize("name", ["csq", "dpsh", "mihash", "orthohash"])
def test_deep_methods_learn_from_images_with_the_same_losses(name, digits):
    pixels, y = digits
    model = hbmp.get_method(name)(8, function=Network(**SMALL, epochs=1), random_state=0).fit(pixels, y)
    assert model.transform(pixels).shape == (400, 8)


def test_images_from_files_and_from_memory_train_the_same_network(digits, tmp_path):
    from PIL import Image

    pixels, y = digits
    paths = []
    for number, picture in enumerate(pixels[:60]):
        paths.append(tmp_path / f"{number:03}.png")
        Image.fromarray(np.kron(picture, np.ones((4, 4, 1), np.uint8))).save(paths[-1])  # 32 px, the network's size
    in_memory = np.stack([np.asarray(Image.open(path)) for path in paths])
    network = Network(**SMALL, epochs=2)
    from_files = hbmp.HBMP(8, function=network, random_state=0).fit(hbmp.Images.from_paths(paths), y[:60])
    from_memory = hbmp.HBMP(8, function=network, random_state=0).fit(in_memory, y[:60])
    np.testing.assert_array_equal(from_files.project(paths), from_memory.project(in_memory))


def test_streamed_images_train_too(digits, monkeypatch):
    from hbmp.functions._shared import image_batches

    pixels, y = digits
    large = np.kron(pixels[:90], np.ones((1, 6, 6, 1), np.uint8))  # larger than the input: decoded batch by batch
    monkeypatch.setattr(image_batches, "_MOST_ON_DEVICE", 0)
    targets = hbmp.infer_codes(2 * np.eye(10) - 1, 8).codes[y[:90]]
    function = Network(**SMALL, epochs=3, workers=1).fit(large, targets, random_state=0)
    assert function.loss_[-1] < function.loss_[0]


def test_validation_watches_held_out_images(digits):
    pixels, y = digits
    targets = hbmp.infer_codes(2 * np.eye(10) - 1, 8).codes[y]
    function = Network(**SMALL, epochs=4, validation=0.2, patience=0).fit(pixels, targets, random_state=0)
    assert 1 <= len(function.loss_) <= 4


def test_checkpoint_of_a_network_goes_on(digits, tmp_path):
    pixels, y = digits
    targets = hbmp.infer_codes(2 * np.eye(10) - 1, 8).codes[y]
    settings = {**SMALL, "epochs": 2, "checkpoint": str(tmp_path / "training")}
    first = Network(**settings).fit(pixels, targets, random_state=0)
    again = Network(**settings).fit(pixels, targets, random_state=0)
    np.testing.assert_array_equal(first.project(pixels), again.project(pixels))
    others = {
        "targets": (pixels, -targets, {}),
        "data": (255 - pixels, targets, {}),
        "loss": (pixels, targets, {"loss": "hinge"}),
        "augmentation": (pixels, targets, {"augmentation": "light"}),
    }
    for what, (other_pixels, other_targets, changed) in others.items():
        with pytest.raises(ValueError, match=f"another training: {what} differ"):
            Network(**{**settings, **changed}).fit(other_pixels, other_targets, random_state=0)


def test_checkpoint_of_replaced_image_files_is_refused(digits, tmp_path, monkeypatch):
    from hbmp.functions._shared import image_batches

    monkeypatch.setattr(image_batches, "_MOST_ON_DEVICE", 0)  # decoded batch by batch
    pixels, y = digits
    files = [tmp_path / f"{number}.png" for number in range(40)]
    for file, picture in zip(files, pixels, strict=False):
        PIL.Image.fromarray(picture).save(file)
    targets = hbmp.infer_codes(2 * np.eye(10) - 1, 8).codes[y[:40]]
    settings = {**SMALL, "epochs": 1, "validation": 0.2, "checkpoint": str(tmp_path / "training")}
    paths = [str(file) for file in files]
    first = Network(**settings).fit(paths, targets, random_state=0)
    again = Network(**settings).fit(paths, targets, random_state=0)
    np.testing.assert_array_equal(first.project(paths), again.project(paths))
    os.utime(files[3], ns=(1, 1))
    with pytest.raises(ValueError, match=r"another training: (data|validation) differ"):
        Network(**settings).fit(paths, targets, random_state=0)


def test_tensorboard_reads_what_each_epoch_wrote(digits, tmp_path):
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    pixels, y = digits
    targets = hbmp.infer_codes(2 * np.eye(10) - 1, 8).codes[y]
    folder = tmp_path / "log"
    function = Network(**SMALL, epochs=3, validation=0.2, log_dir=str(folder)).fit(pixels, targets, random_state=0)
    assert len(list(folder.iterdir())) == 1
    events = EventAccumulator(str(folder)).Reload()
    assert set(events.Tags()["scalars"]) == {"loss", "samples_per_second", "unmatched", "validation"}
    losses = events.Scalars("loss")
    assert [event.step for event in losses] == [1, 2, 3]
    np.testing.assert_allclose([event.value for event in losses], function.loss_, rtol=1e-6)
    assert all(0 <= event.value <= 1 for event in events.Scalars("validation"))
    hbmp.HBMP(8, function=function, random_state=0).fit(pixels, y)  # a second training writes a file of its own
    assert len(list(folder.iterdir())) == 2


def test_what_does_not_fit_is_said(digits):
    pixels, y = digits
    with pytest.raises(ValueError, match=r"Kernel does not take images. Use function='network'"):
        hbmp.HBMP(8, function="kernel").fit(pixels, y)
    with pytest.raises(ValueError, match=r"Network does not take feature vectors. Use function='kernel'"):
        hbmp.HBMP(8, function=Network(**SMALL)).fit(pixels.reshape(400, -1), y)
    with pytest.raises(ValueError, match="Images are hashed by their labels: pass y"):
        hbmp.HBMP(8, function=Network(**SMALL)).fit(pixels)
    with pytest.raises(ValueError, match="augmentation must be one of 'none', 'light', 'strong'"):
        hbmp.HBMP(8, function=Network(**{**SMALL, "augmentation": "huge"})).fit(pixels, y)
