"""The grids that `hbmp compare --validation` searches: small, around the defaults, of settings that do something."""

import re
from pathlib import Path

import numpy as np
import pytest
from sklearn.datasets import make_blobs
from sklearn.model_selection import ParameterGrid

import hbmp

TUNED = [name for name in hbmp.list_methods() if hbmp.get_method(name).search]
SHARED = {"n_bits", "function", "device", "random_state", "verbose"}  # the same for all methods that are compared
PAGE = Path(__file__).parents[2] / "docs" / "compare.md"


def values_of(grid) -> dict[str, list]:
    """Every setting of a grid with all its values."""
    found: dict[str, list] = {}
    for part in [grid] if isinstance(grid, dict) else grid:
        for setting, values in part.items():
            found.setdefault(setting, []).extend(values)
    return found


@pytest.fixture(scope="module")
def label_sets():
    """Label sets, where the weights of pairs with several labels matter too."""
    X, y = make_blobs(80, n_features=12, centers=4, random_state=0)
    labels = np.eye(4, dtype=int)[y]
    labels[::3, 0] = 1
    return X.astype(np.float32), labels


@pytest.mark.parametrize("name", TUNED)
def test_settings_are_arguments_with_values_around_their_default(name):
    method = hbmp.get_method(name)
    defaults = method().get_params(deep=False)
    for setting, values in values_of(method.search).items():
        assert setting in set(defaults) - SHARED
        assert len(set(values)) == len(values)
        assert any(value != defaults[setting] for value in values)
        assert defaults[setting] in values or defaults[setting] == "auto"


@pytest.mark.parametrize("name", TUNED)
def test_budgets_are_comparable(name):
    assert 2 <= len(ParameterGrid(hbmp.get_method(name).search)) <= 8


@pytest.mark.parametrize("name", TUNED)
def test_every_combination_fits_and_they_differ(name, label_sets):
    method = hbmp.get_method(name)
    seeded = {"random_state": 0} if "random_state" in method().get_params() else {}
    found = set()
    for settings in ParameterGrid(method.search):
        labels = label_sets[1].argmax(axis=1) if getattr(method, "single_label", False) else label_sets[1]
        model = method(8, **{**method.smoke, **seeded, **settings}).fit(label_sets[0], labels)
        scores = model.project(label_sets[0])
        assert np.isfinite(scores).all(), settings
        assert np.isfinite(model.bit_weights_).all(), settings
        found.add(scores.tobytes())
    assert len(found) > 1


def test_the_page_on_comparisons_shows_the_grids_as_they_are():
    shown = re.findall(r"^\| `(\w+)` \| (`.*) \|$", PAGE.read_text(encoding="utf-8"), flags=re.M)
    assert len(shown) >= 22
    for name, grid in shown:
        searched = values_of(hbmp.get_method(name).search)
        assert grid == " · ".join(f"`{setting}` {', '.join(map(str, values))}" for setting, values in searched.items())
