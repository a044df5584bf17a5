"""The picture of a comparison: every method named, labels apart, crowded scores spread."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_digits

import hbmp
from hbmp.evaluation.cells import MethodResult
from hbmp.evaluation.comparison import Comparison
from hbmp.evaluation.plot import spread
from hbmp.evaluation.trial import draw_split

X, Y = (part[:400] for part in load_digits(return_X_y=True))
QUIET = {"progress": False, "device": "cpu"}


@pytest.mark.parametrize("bits", [(4,), (4, 8)])
@pytest.mark.parametrize("ending", ["png", "svg", "pdf"])
def test_the_plot_names_every_method(bits, ending, tmp_path):
    pytest.importorskip("matplotlib")
    found = hbmp.compare(X, Y, methods={"mine": "lsh", "pca": "pca_sign"}, bits=bits, **QUIET)
    figure = found.plot(tmp_path / f"plot.{ending}")
    assert (tmp_path / f"plot.{ending}").stat().st_size > 1000
    (axis,) = figure.axes
    shown = [text.get_text() for text in (*axis.texts, *axis.get_yticklabels())]
    assert {"mine", "pca"} <= set(shown)
    for method in ("mine", "pca"):
        last = [row.score() for row in found.rows if row.method == method][-1]
        assert any(f"{last:.3f}" in text for text in shown)


def test_a_plot_of_nothing_and_of_no_known_kind_are_refused(tmp_path):
    pytest.importorskip("matplotlib")
    found = hbmp.compare(X, Y, methods=["pca_sign"], bits=[100], **QUIET)
    with pytest.raises(ValueError, match="Nothing to draw"):
        found.plot()
    found = hbmp.compare(X, Y, methods={"pca": "pca_sign"}, bits=[4], **QUIET)
    with pytest.raises(ValueError, match="has no suffix of a picture format"):
        found.plot(tmp_path / "plot.doc")


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_labels_are_moved_apart_in_order_and_no_further_than_needed(heights):
    wanted, gap = np.sort(heights), 0.04
    placed = spread(wanted, gap, 0.0, 2.0)
    assert (np.diff(placed) >= gap - 1e-9).all()
    assert placed.min() >= -1e-9
    assert placed.max() <= 2 + 1e-9
    if len(wanted) == 1 or np.diff(wanted).min() >= gap:
        np.testing.assert_allclose(placed, wanted, atol=1e-9)


def test_crowded_scores_are_drawn_by_what_is_missing_to_one():
    """Order is kept, and a step from 0.98 to 0.99 is as long as one from 0.8 to 0.9."""
    pytest.importorskip("matplotlib")
    scores = {"best": (0.98, 0.99), "second": (0.9, 0.97), "third": (0.8, 0.9), "last": (0.3, 1.0)}
    rows = [
        MethodResult(method, bits, scores={"map.tie-aware": score}, fit_seconds=1.0)
        for method, pair in scores.items()
        for bits, score in zip((8, 16), pair, strict=True)
    ]
    facts = {"measures": [{"name": "map"}], "data": {"name": "X"}, "split": {"queries": 1, "database": 2}}
    figure = Comparison(tuple(rows), draw_split(10, None, queries=2, train=None, seed=0), facts).plot()
    drawn = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines if line.get_label() in scores}
    assert np.diff(drawn["best"]) == pytest.approx(np.diff(drawn["third"]))
    assert drawn["last"][1] > drawn["best"][1] > drawn["second"][1] > drawn["third"][1] > drawn["last"][0]
    assert "logarithmic" in figure.axes[0].get_ylabel()
