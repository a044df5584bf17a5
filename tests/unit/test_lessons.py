"""Stage two: the loss against loops, what bagging draws, how normalised scores are folded in, what HBMP asks for."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest
import torch
from hbmp.methods.hbmp.lesson_loss import LessonLoss
from hbmp.methods.hbmp.lessons import Lesson, teach
from sklearn.datasets import make_blobs

import hbmp
from hbmp._training.losses import code_loss
from hbmp.functions import Linear, Network
from hbmp.methods import hbmp as hbmp_file
from hbmp.methods._shared import function as method_function
from hbmp.methods.hbmp import held_out, lesson_loss, training_plan
from hbmp.methods.hbmp import lessons as lesson_parts

RNG = np.random.default_rng(0)
BOOKS = [np.where(RNG.random((4, bits)) < 0.5, -1, 1).astype(np.int8) for bits in (6, 3)]
ITEMS = np.array([0, 3, 1, 1, 2])
CLASSES = np.array([2, 0, 1, 1, 0])
COUNTS = RNG.poisson(2, (5, 9)).astype(np.uint8)
SCORES = RNG.normal(size=(5, 9 + 3))


def softmax(values):
    values = np.exp(values - values.max())
    return values / values.sum()


def slow_loss(lessons, scores, certain):
    """The formula of `lesson_parts`, sample by sample and bit by bit, with the hinge."""
    total, start = 0.0, 0
    for lesson in lessons:
        n_bits = lesson.codes.shape[1]
        for row, item in enumerate(ITEMS):
            psi, own = scores[row, start : start + n_bits], lesson.codes[item].astype(float)
            for bit in range(n_bits):
                count = COUNTS[row, start + bit] / 2 if lesson.bagging else 1
                total += (1 - lesson.contrast_share) * count * max(0, 1 - psi[bit] * own[bit])
            book = lesson.codes if certain else lesson.codes[ITEMS]
            logits = np.array([psi @ code / np.linalg.norm(psi) for code in book.astype(float)])
            if certain:
                logits[item] -= 0.2 * n_bits**0.5
                wanted = np.eye(len(book))[item]
            else:
                alike = softmax(np.array([own @ code / n_bits**0.5 for code in book.astype(float)]))
                same = np.array([kind == CLASSES[row] for kind in CLASSES], dtype=float)
                wanted = (alike + same / same.sum()) / 2 if lesson.neighbours else alike
            total -= lesson.contrast_share * n_bits * (wanted @ np.log(softmax(logits)))
        start += n_bits
    for row, kind in enumerate(CLASSES):
        total -= (0.9 * np.eye(3)[kind] + 0.1 / 3) @ np.log(softmax(scores[row, start:]))
    return total / len(scores)


def torch_loss(lessons, scores, certain):
    loss = LessonLoss(lessons, [code_loss("hinge")] * len(lessons), certain=certain, labelled=True)
    targets = np.concatenate([lesson.codes for lesson in lessons], axis=1)[ITEMS]
    rest = [torch.from_numpy(np.asarray(part)) for part in (targets, ITEMS, CLASSES, COUNTS)]
    return loss(torch.from_numpy(scores), *rest)


@pytest.mark.parametrize("certain", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
def test_the_loss_is_the_formula(share, certain):
    lessons = [
        Lesson(BOOKS[0], np.ones(6), share, True, neighbours=True),
        Lesson(BOOKS[1], np.ones(3), 0.5, False),
    ]
    assert float(torch_loss(lessons, SCORES, certain)) == pytest.approx(slow_loss(lessons, SCORES, certain), rel=1e-5)


def test_neighbours_of_a_batch_share_a_label():
    labels = np.array([[1, 1, 0], [0, 1, 0], [0, 0, 1], [0, 0, 0]], dtype=np.float32)
    expected = [
        [1.0 if row == other or (labels[row] * labels[other]).any() else 0.0 for other in range(4)] for row in range(4)
    ]
    found = lesson_loss._neighbours(torch.from_numpy(labels))
    assert found.tolist() == [[share / sum(row) for share in row] for row in expected]


def test_without_labels_the_contrast_goes_by_codes_alone():
    scores, own = torch.from_numpy(SCORES[:, :6]), torch.from_numpy(BOOKS[0][ITEMS]).float()
    cosines = scores / scores.norm(dim=1, keepdim=True) @ own.double().T
    alike = torch.softmax(own @ own.T / 6**0.5, dim=1)
    expected = -(alike * torch.log_softmax(cosines, dim=1)).sum(dim=1).mean()
    assert float(lesson_loss.contrast(scores, own, None)) == pytest.approx(float(expected), rel=1e-5)


def test_without_contrast_and_bagging_the_loss_is_that_of_the_paper():
    loss = LessonLoss([Lesson(BOOKS[0], np.ones(6))], [code_loss("hinge")], certain=True, labelled=False)
    scores, targets = torch.from_numpy(SCORES[:, :6]), torch.from_numpy(BOOKS[0][ITEMS])
    plain = code_loss("hinge")(scores, targets)
    assert float(loss(scores, targets, torch.from_numpy(ITEMS))) == pytest.approx(float(plain))


def test_contrast_grows_as_another_code_comes_nearer():
    codes = np.array([[1, 1, 1, 1], [-1, -1, 1, 1]], dtype=np.int8)
    loss = LessonLoss([Lesson(codes, np.ones(4), 1.0)], [None], certain=True, labelled=False)
    towards = [codes[0] + step * (codes[1] - codes[0]) / 2 for step in np.linspace(0, 1.5, 7)]
    losses = [float(loss(torch.tensor(row[None]), torch.from_numpy(codes[:1]), torch.tensor([0]))) for row in towards]
    assert (np.diff(losses) > 0).all()


def test_a_bit_draws_twice_as_many_samples_as_there_are(monkeypatch):
    monkeypatch.setattr(lesson_parts, "_BLOCK", 1500)
    lessons = [Lesson(BOOKS[0], np.ones(6), 0.0, True), Lesson(BOOKS[1], np.ones(3), 0.0, False)]
    counts = lesson_parts.draw_counts(4000, lessons, np.random.default_rng(0))
    assert counts.shape == (4000, 9)
    assert (counts[:, 6:] == 2).all()
    assert counts[:, :6].mean(axis=0) == pytest.approx(np.full(6, 2), abs=0.1)
    assert (counts[:, :6] == 0).mean() == pytest.approx(np.exp(-2), abs=0.01)
    assert np.abs(np.corrcoef(counts[:, :6].T) - np.eye(6)).max() < 0.1  # each bit a sample of its own


def test_normalised_scores_are_folded_into_the_function(monkeypatch):
    X, y = make_blobs(80, n_features=4, centers=4, random_state=3)
    seen = {}
    learn = Linear.learn

    def watched(function, X, loss, *rest, **named):
        learn(function, X, loss, *rest, **named)
        seen["raw"], seen["loss"] = function.project(X), loss.eval()

    monkeypatch.setattr(Linear, "learn", watched)
    function = Linear(epochs=5, device="cpu")
    teach(function, X.astype(np.float32), [Lesson(BOOKS[0], np.ones(6), 0.5, False, True)], y, labels=y, random_state=0)
    found = function.project(X.astype(np.float32))
    with torch.inference_mode():
        expected = seen["loss"].parts[0].normalise(torch.from_numpy(seen["raw"][:, :6])).numpy()
    np.testing.assert_allclose(found[:, :6], expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found[:, 6:], seen["raw"][:, 6:], rtol=1e-5, atol=1e-6)  # label scores stay


def test_a_held_out_instance_does_not_find_itself():
    codes = np.where(np.random.default_rng(1).random((40, 12)) < 0.5, -1.0, 1.0)
    alone = np.arange(40)  # every instance a class of its own
    trial = held_out.Trial((codes, codes), (codes, codes), alone, alone + 100)
    assert trial.retrieval(0.0).tolist() == [0, 0]


@pytest.fixture(scope="module")
def classes():
    X, y = make_blobs(120, n_features=6, centers=4, random_state=1)
    return X.astype(np.float32), y


@pytest.mark.parametrize(
    ("settings", "rows", "expected"),
    [
        ({}, False, (0.25, True)),
        ({}, True, (0.5, False)),
        ({"label_share": 0}, False, (0.0, False)),  # the paper's three stages
        ({"contrast_share": 1}, False, (1.0, True)),
        ({"bagging": False}, False, (0.25, False)),
        ({"contrast_share": 0.5, "bagging": True, "label_share": 0}, True, (0.5, True)),
        ({"function": hbmp.functions.Trees(n_trees=2)}, False, (0.0, False)),
    ],
)
def test_what_is_learned_follows_the_labels_and_the_settings(settings, rows, expected, classes, monkeypatch):
    X, y = classes
    monkeypatch.setattr(training_plan, "FEW", len(X))
    model = hbmp.HBMP(8, **{"function": Linear(epochs=2), "random_state": 0, **settings})
    model.fit(X, np.eye(4, dtype=int)[y] if rows else y)
    assert (model.contrast_share_, model.bagging_) == expected
    monkeypatch.setattr(training_plan, "FEW", len(X) + 1)
    few = model.fit(X, y)
    assert (few.contrast_share_, few.bagging_) == (settings.get("contrast_share", 0), settings.get("bagging", False))


def test_images_of_classes_are_learned_as_whole_codes(monkeypatch):
    images = np.random.default_rng(0).integers(0, 255, (24, 32, 32, 3), dtype=np.uint8)
    lessons = []

    def watched(function, X, found, *rest, **named):
        lessons.extend(found)
        teach(function, X, found, *rest, **named)

    monkeypatch.setattr(hbmp_file, "teach", watched)
    monkeypatch.setattr(Network, "pretrained", True)
    model = hbmp.HBMP(8, function=Network("tiny", epochs=1, device="cpu"), random_state=0)
    y, voting = np.arange(24) % 3, []
    for many in (24, 25):
        monkeypatch.setattr(training_plan, "MANY_IMAGES", many)
        for labels in (y, np.eye(3, dtype=int)[y]):
            assert model.fit(images, labels).transform(images).shape == (24, 8)
            voting.append(model.votes_ is not None)
    how = [(lesson.codes.shape[1], lesson.contrast_share, lesson.normalise) for lesson in lessons]
    assert how == [(48, 0.75, True), (8, 0.25, False), (8, 0.75, False), (8, 0.25, False)]
    assert voting == [False, True, True, True]


def test_networks_that_start_from_random_weights_learn_no_further_bits():
    images = np.zeros((2000, 8, 8, 3), np.uint8)
    plan = partial(training_plan.usual_plan, images, np.arange(2000) % 3, n_bits=8, nested=True)
    assert (plan(pretrained=True).extra_bits, plan(pretrained=False).extra_bits) == (40, 0)
    backbones = ("tiny", hbmp.backbones.AlexNet(pretrained=False), hbmp.backbones.AlexNet(pretrained="weights.pth"))
    assert [Network(backbone).pretrained for backbone in backbones] == [False, False, True]
    own = hbmp.backbones.Module(torch.nn.Flatten(), size=8)
    assert Network(own).pretrained  # what is brought along is taken for trained
    assert not hbmp.functions.Linear().pretrained


def test_settings_of_the_training_are_checked(classes):
    for settings, message in (
        ({"bagging": "some"}, "bagging must be"),
        ({"contrast_share": 2}, "contrast_share must"),
        ({"extra_bits": -1}, "extra_bits must be"),
        ({"extra_bits": True}, "extra_bits must be"),
        ({"extra_bits": 4, "function": hbmp.functions.Trees(n_trees=2)}, "Leave extra_bits at 0"),
    ):
        with pytest.raises(ValueError, match=message):
            hbmp.HBMP(8, **settings).fit(*classes)


@pytest.mark.parametrize("function", [Linear(epochs=3), hbmp.functions.MLP(epochs=3), hbmp.functions.Kernel()])
@pytest.mark.parametrize("label_share", [0, 0.5])
def test_extra_bits_are_learned_and_dropped(function, label_share, classes, tmp_path):
    """What is left is the beginning of the longer codes, with weights of its own, in memory and in a file."""
    X, y = classes
    settings = {"function": function, "feature_share": 0.5, "label_share": label_share, "weight_share": 1}
    settings |= {"contrast_share": 0.5, "random_state": 0}
    long = hbmp.HBMP(20, extra_bits=0, **settings).fit(X, y)
    short = hbmp.HBMP(8, extra_bits=12, **settings).fit(X, y)
    np.testing.assert_array_equal(short.transform(X), long.transform(X)[:, :8])
    np.testing.assert_allclose(short._odds(X)[0], long._odds(X)[0][:, :8], atol=1e-5)
    np.testing.assert_allclose(short.bit_weights_, long.weights_for(8))
    np.testing.assert_array_equal(short.codes_for(y), long.codes_for(y)[:, :8])
    assert short.function_.project(X).shape == (len(X), 8 + (4 if label_share else 0))
    short.save(tmp_path / "short.hbmp")
    again = hbmp.load(tmp_path / "short.hbmp")
    np.testing.assert_array_equal(again.transform(X), short.transform(X))


def test_extra_bits_of_a_network_leave_its_head():
    images = np.random.default_rng(0).integers(0, 255, (24, 32, 32, 3), dtype=np.uint8)
    y = np.arange(24) % 3
    network = Network("tiny", epochs=1, device="cpu")
    long = hbmp.HBMP(12, function=network, label_share=0.5, random_state=0).fit(images, y)
    short = hbmp.HBMP(8, extra_bits=4, function=network, label_share=0.5, random_state=0).fit(images, y)
    assert short.function_.weights_["head.bias"].shape == (8 + 3,)
    np.testing.assert_allclose(short._odds(images)[0], long._odds(images)[0][:, :8], atol=1e-5)


def test_many_instances_are_learned_by_a_small_network():
    rows = np.zeros((method_function.LARGE, 2), np.float32)
    assert [method_function.suited_to(part) for part in (rows[:-1], rows)] == ["kernel", "mlp"]
    assert isinstance(hbmp.HBMP(8)._function(rows[:-1]), hbmp.functions.Kernel)
    network = hbmp.HBMP(8)._function(rows)
    assert isinstance(network, hbmp.functions.MLP)
    assert network.loss == "smooth"
    assert isinstance(method_function.make_function("auto", rows), hbmp.functions.MLP)  # for every method alike
