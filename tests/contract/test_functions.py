"""Every hash function, found by its file."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import load_digits

import hbmp
from hbmp._core import catalog

NAMES = catalog.names("functions")
SMALL_NETWORK = {
    "backbone": "tiny",
    "augmentation": "none",
    "epochs": 30,
    "batch_size": 64,
    "backbone_lr": 3e-3,
    "lr": 3e-3,
}


def smallest(name):
    cls = catalog.load("functions", name)
    return cls(**cls.smoke)


@pytest.fixture
def digits(request):
    """Features or images, as the function takes them, and their target codes."""
    X, y = load_digits(return_X_y=True)
    X = X[:600].astype(np.float32)
    name = getattr(request.node, "callspec", None) and request.node.callspec.params.get("name")
    if name and catalog.load("functions", name).takes_images:
        X = np.repeat((X * 15).astype(np.uint8).reshape(-1, 8, 8, 1), 3, axis=3)
    codes = hbmp.infer_codes(2 * np.eye(10) - 1, 8).codes
    return X, codes[y[:600]]


@pytest.mark.parametrize("name", NAMES)
def test_scores_have_the_promised_form_and_follow_the_seed(name, digits):
    X, targets = digits
    first = smallest(name).fit(X, targets, random_state=3)
    second = smallest(name).fit(X, targets, random_state=3)
    assert first.project(X).shape == targets.shape
    assert first.project(X).dtype == np.float32
    np.testing.assert_array_equal(first.project(X), second.project(X))
    assert first.unmatched(X, targets) == ((first.project(X) >= 0) != (targets > 0)).mean()


def trained(name, X, targets):
    settings = {"trees": {"n_trees": 20}, "mlp": {"hidden": (64,), "epochs": 50}, "network": SMALL_NETWORK}.get(
        name, {}
    )
    return catalog.load("functions", name)(**settings).fit(X, targets, random_state=0)


@pytest.mark.parametrize("name", NAMES)
def test_learns_codes_of_digits(name, digits):
    X, targets = digits
    function = trained(name, X[:500], targets[:500])
    assert function.unmatched(X[:500], targets[:500]) < (0.12 if name == "linear" else 0.08)
    assert function.unmatched(X[500:], targets[500:]) < 0.2


@pytest.mark.parametrize("name", NAMES)
def test_a_bit_that_never_changes_is_learned_too(name, digits):
    X, targets = digits
    targets = targets.copy()
    targets[:, 2] = -1
    assert (trained(name, X, targets).project(X)[:, 2] < 0).mean() > 0.9


@pytest.mark.parametrize("name", NAMES)
def test_clone_and_model_file_keep_the_function(name, digits, tmp_path):
    X, targets = digits
    function = smallest(name)
    model = hbmp.HBMP(8, function=function, random_state=0).fit(X, targets[:, 0] + 2 * targets[:, 1])
    assert repr(clone(function)) == repr(function)
    assert not any(attribute.endswith("_") for attribute in vars(function))
    model.save(tmp_path / "model")
    np.testing.assert_array_equal(hbmp.load(tmp_path / "model").project(X), model.project(X))


def test_trees_answer_as_the_library_that_grew_them(digits):
    from sklearn.ensemble import HistGradientBoostingClassifier

    from hbmp._core.seeds import as_generator, draw_seed
    from hbmp.functions import Trees

    X, targets = digits
    ours = Trees(n_trees=5, max_features=1.0).fit(X, targets[:, :1], random_state=7)
    theirs = HistGradientBoostingClassifier(
        max_iter=5,
        l2_regularization=1.0,
        max_features=1.0,
        early_stopping=False,
        random_state=draw_seed(as_generator(7)),
    ).fit(X, targets[:, 0] > 0)
    np.testing.assert_allclose(ours.project(X)[:, 0], theirs.decision_function(X), atol=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "logistic", "squared"])
def test_losses_are_their_definitions_and_bound_the_wrong_bits(loss):
    import torch

    from hbmp._training.losses import code_loss

    rng = np.random.default_rng(0)
    scores, targets = rng.standard_normal((6, 3)), np.sign(rng.standard_normal((6, 3)))
    importance = np.array([1.0, 2.0, 0.5])
    formula = {
        "hinge": lambda m: max(0, 1 - m),
        "logistic": lambda m: np.log1p(np.exp(-m)),
        "squared": lambda m: (1 - m) ** 2,
    }[loss]
    slow = sum(importance[k] * formula(scores[i, k] * targets[i, k]) for i in range(6) for k in range(3)) / 6
    fast = code_loss(loss, torch.from_numpy(importance))(torch.from_numpy(scores), torch.from_numpy(targets))
    assert float(fast) == pytest.approx(slow)
    wrong = (np.sign(scores) != targets).sum() / 6
    plain = float(code_loss(loss)(torch.from_numpy(scores), torch.from_numpy(targets)))
    assert plain >= wrong * (np.log(2) if loss == "logistic" else 1)


def test_importance_shifts_errors_to_bits_of_little_weight():
    from hbmp.functions import Linear

    rng = np.random.default_rng(0)
    X = rng.standard_normal((400, 1)).astype(np.float32)
    conflicting = np.stack([X[:, 0] > 0.5, X[:, 0] > -0.5], axis=1)  # one feature, two thresholds: bias decides
    targets = np.where(conflicting, 1, -1).astype(np.int8)
    function = Linear(bit_importance=True).fit(X, targets, bit_weights=[0.0, 1.0], random_state=0)
    errors = ((function.project(X) >= 0) != (targets > 0)).mean(axis=0)
    assert errors[1] < errors[0]


def test_schedules_start_low_end_at_zero_or_halve():
    from hbmp._training.loop import Recipe
    from hbmp._training.losses import code_loss

    one_cycle, step = Recipe(schedule="one-cycle"), Recipe(schedule="step", epochs=100)
    assert one_cycle.lr_factor(0) < 0.1 < one_cycle.lr_factor(0.1) == pytest.approx(1)
    assert one_cycle.lr_factor(1) == pytest.approx(0, abs=1e-9)
    assert [step.lr_factor(p) for p in (0, 0.199, 0.2, 0.95)] == [1, 1, 0.5, 0.0625]
    with pytest.raises(ValueError, match="optimizer must be"):
        Recipe(optimizer="adam").make_optimizer([])
    with pytest.raises(ValueError, match="loss must be one of"):
        code_loss("huber")
