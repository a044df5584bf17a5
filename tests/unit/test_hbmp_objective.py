"""The loss of stage three against loops, how normalised scores are folded in, extra bits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch
from sklearn.datasets import make_blobs

import hbmp
from hbmp._training.losses import code_loss
from hbmp.functions import Linear, Network
from hbmp.methods._shared import function as method_function
from hbmp.methods.hbmp import objective
from hbmp.methods.hbmp import plan as plans
from hbmp.methods.hbmp.objective import Objective
from hbmp.methods.hbmp.plan import DataFacts, Plan, hash_function

RNG = np.random.default_rng(0)
BOOK = np.where(RNG.random((4, 6)) < 0.5, -1, 1).astype(np.int8)
ITEMS = np.array([0, 3, 1, 1, 2])
CLASSES = np.array([2, 0, 1, 1, 0])
SCORES = RNG.normal(size=(5, 6 + 3))


def softmax(values):
    values = np.exp(values - values.max())
    return values / values.sum()


def slow_loss(plan, scores, certain):
    """The formula of `objective`, row by row and bit by bit, with the hinge."""
    total, n_bits = 0.0, BOOK.shape[1]
    for row, item in enumerate(ITEMS):
        psi, own = scores[row, :n_bits], BOOK[item].astype(float)
        for bit in range(n_bits):
            total += (1 - plan.contrast_share) * max(0, 1 - psi[bit] * own[bit])
        book = BOOK if certain else BOOK[ITEMS]
        logits = np.array([psi @ code / np.linalg.norm(psi) for code in book.astype(float)])
        if certain:
            logits[item] -= 0.2 * n_bits**0.5
            wanted = np.eye(len(book))[item]
        else:
            wanted = softmax(np.array([own @ code / n_bits**0.5 for code in book.astype(float)]))
        total -= plan.contrast_share * n_bits * (wanted @ np.log(softmax(logits)))
    for row, kind in enumerate(CLASSES):
        soft = 0.2 if 0 < plan.n_classes <= 10 else 0.1
        total -= ((1 - soft) * np.eye(3)[kind] + soft / 3) @ np.log(softmax(scores[row, n_bits:]))
    return total / len(scores)


def torch_loss(plan, scores, certain):
    loss = Objective(plan, 6, BOOK if certain else None, code_loss("hinge"))
    rest = [torch.from_numpy(np.asarray(part)) for part in (BOOK[ITEMS], ITEMS, CLASSES)]
    return loss(torch.from_numpy(scores), *rest)


@pytest.mark.parametrize("certain", [True, False])
@pytest.mark.parametrize("share", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("n_classes", [3, 10, 11])
def test_the_loss_is_the_formula(n_classes, share, certain):
    plan = Plan(contrast_share=share, n_classes=n_classes)
    assert float(torch_loss(plan, SCORES, certain)) == pytest.approx(slow_loss(plan, SCORES, certain), rel=1e-5)


def without_labels(plan, scores, codes, book):
    """The loss of a batch that learns no labels."""
    n = len(scores)
    items = torch.arange(n) % len(book)
    empty = torch.empty((n, 0))
    return float(Objective(plan, codes.shape[1], book, code_loss("hinge"))(scores, codes, items, empty))


def test_without_contrast_the_loss_is_that_of_the_paper():
    scores, codes = torch.from_numpy(SCORES[:, :6]), torch.from_numpy(BOOK[ITEMS])
    plain = code_loss("hinge")(scores, codes)
    assert without_labels(Plan(), scores, codes, BOOK) == pytest.approx(float(plain))


def test_contrast_grows_as_another_code_comes_nearer():
    codes = np.array([[1, 1, 1, 1], [-1, -1, 1, 1]], dtype=np.int8)
    towards = [codes[0] + step * (codes[1] - codes[0]) / 2 for step in np.linspace(0, 1.5, 7)]
    plan, own = Plan(contrast_share=1.0), torch.from_numpy(codes[:1])
    assert (np.diff([without_labels(plan, torch.tensor(row[None]), own, codes) for row in towards]) > 0).all()


def test_normalised_scores_are_folded_into_the_function(monkeypatch):
    X, y = make_blobs(80, n_features=4, centers=4, random_state=3)
    X = X.astype(np.float32)
    seen = {}
    learn, resolve = Linear.learn, hbmp.methods.hbmp.estimator.resolve

    def watched(function, X, loss, *rest, **named):
        learn(function, X, loss, *rest, **named)
        seen["raw"], seen["loss"] = function.project(X), loss.eval()

    monkeypatch.setattr(Linear, "learn", watched)
    normalised = lambda *facts: replace(resolve(*facts), normalise=True)  # noqa: E731
    monkeypatch.setattr(hbmp.methods.hbmp.estimator, "resolve", normalised)
    model = hbmp.HBMP(6, function=Linear(epochs=5, device="cpu"), contrast_share=0.5, random_state=0).fit(X, y)
    found = model.function_.project(X)
    with torch.inference_mode():
        expected = seen["loss"].norm(torch.from_numpy(seen["raw"][:, :6])).numpy()
    np.testing.assert_allclose(found[:, :6], expected, rtol=1e-3, atol=1e-4)
    np.testing.assert_allclose(found[:, 6:], seen["raw"][:, 6:], rtol=1e-5, atol=1e-6)  # label scores stay


@pytest.fixture(scope="module")
def classes():
    X, y = make_blobs(120, n_features=6, centers=4, random_state=1)
    return X.astype(np.float32), y


def test_images_of_classes_are_learned_as_whole_codes(monkeypatch):
    images = np.random.default_rng(0).integers(0, 255, (24, 32, 32, 3), dtype=np.uint8)
    learned = []

    class Watched(Objective):
        def __init__(self, plan, n_bits, *rest):
            super().__init__(plan, n_bits, *rest)
            learned.append((n_bits, plan.contrast_share, self.norm is not None))

    monkeypatch.setattr(objective, "Objective", Watched)
    monkeypatch.setattr(Network, "pretrained", True)
    model = hbmp.HBMP(8, function=Network("tiny", epochs=1, device="cpu"), random_state=0)
    y, voting = np.arange(24) % 3, []
    for many in (24, 25):
        monkeypatch.setattr(plans, "MANY_IMAGES", many)
        for labels in (y, np.eye(3, dtype=int)[y]):
            assert model.fit(images, labels).transform(images).shape == (24, 8)
            voting.append(model.encoder_.votes is not None)
    assert learned == [(48, 0.75, True), (8, 0.25, False), (8, 0.75, False), (8, 0.25, False)]
    assert voting == [False, True, True, True]


def test_functions_know_whether_they_are_pretrained():
    backbones = ("tiny", hbmp.backbones.AlexNet(pretrained=False), hbmp.backbones.AlexNet(pretrained="weights.pth"))
    assert [Network(backbone).pretrained for backbone in backbones] == [False, False, True]
    own = hbmp.backbones.Module(torch.nn.Flatten(), size=8)
    assert Network(own).pretrained  # a network of the user's own counts as trained
    assert not hbmp.functions.Linear().pretrained


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
    np.testing.assert_allclose(short.encoder_.odds(X), long.encoder_.odds(X)[:, :8], atol=1e-5)
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
    np.testing.assert_allclose(short.encoder_.odds(images), long.encoder_.odds(images)[:, :8], atol=1e-5)


def test_many_rows_are_learned_by_a_small_network():
    few, many = DataFacts(method_function.LARGE - 1, n_classes=3), DataFacts(method_function.LARGE, n_classes=3)
    params = hbmp.HBMP(8).get_params(deep=False)
    assert isinstance(hash_function(params, few), hbmp.functions.Kernel)
    network = hash_function(params, many)
    assert isinstance(network, hbmp.functions.MLP)
    assert network.loss == "smooth"
    rows = np.zeros((method_function.LARGE, 2), np.float32)
    assert isinstance(method_function.make_function("auto", rows), hbmp.functions.MLP)  # for every method alike


def test_a_function_that_learns_bits_alone_is_fitted_as_it_is(classes):
    X, y = classes
    model = hbmp.HBMP.paper(8, function=Linear(epochs=3), random_state=0).fit(X, y)
    assert model.plan_.learns_bits_alone
    assert model.function_.project(X).shape == (len(X), 8)
