"""Search without hashing: each alternative against loops, and what a comparison says of them."""

from __future__ import annotations

import json

import numpy as np
import pytest
from sklearn.datasets import load_digits

import hbmp
from hbmp.evaluation import BaselineResult, tables
from hbmp.evaluation.baselines import measure_baselines
from hbmp.evaluation.trial import Trial


@pytest.fixture(scope="module")
def digits():
    X, y = load_digits(return_X_y=True)
    return (X - 8).astype(np.float32), y


def trial(X, y, several=False):
    labels = np.eye(10, dtype=np.float32)[y] if several else y
    part = lambda rows: (X[rows], None if labels is None else labels[rows])  # noqa: E731
    return Trial(part(slice(300)), part(slice(400)), part(slice(400, 460)))


def slow_map(distances, relevant):
    """Mean average precision, query by query."""
    found = []
    for row, wanted in zip(distances, relevant, strict=True):
        order = sorted(range(len(row)), key=lambda item: (row[item], item))
        hits, total = 0, 0.0
        for rank, item in enumerate(order, 1):
            if wanted[item]:
                hits += 1
                total += hits / rank
        found.append(total / hits)
    return np.mean(found)


def test_floats_are_ranked_by_cosine_and_found_whole(digits):
    X, y = digits
    found = measure_baselines(trial(X, y), [16])[0]
    units = X / np.linalg.norm(X, axis=1, keepdims=True)
    distances = -(units[400:460].astype(float) @ units[:400].T.astype(float))
    assert (found.name, found.bytes_per_item) == ("floats, cosine", 256)
    assert found.score == pytest.approx(slow_map(distances, y[400:460, None] == y[None, :400]), abs=1e-4)
    nearest = []
    for query, row in enumerate(distances):
        own = [item for item in np.argsort(row) if y[item] == y[400 + query]][:10]
        nearest.append(len(set(own) & set(np.argsort(row)[:10])) / 10)
    assert found.neighbours == pytest.approx(np.mean(nearest), abs=2e-3)


@pytest.mark.parametrize("several", [False, True])
def test_every_alternative_is_measured_at_its_bytes(digits, several):
    found = {each.name: each for each in measure_baselines(trial(*digits, several), [8, 12, 16])}
    sizes = {"floats, cosine": 256, "classifier": 40, "sign": 8, "PQ, 8 bits": 1, "PQ, 16 bits": 2, "RaBitQ": 16}
    assert {name: each.bytes_per_item for name, each in found.items()} == sizes
    assert not any(each.error for each in found.values())
    scores = {name: each.score for name, each in found.items()}
    assert scores["classifier"] > scores["floats, cosine"] > scores["sign"] > 0.3
    assert found["PQ, 16 bits"].neighbours > found["PQ, 8 bits"].neighbours
    assert found["RaBitQ"].neighbours > found["sign"].neighbours


def test_without_labels_floats_find_all_ten_and_nothing_is_classified(digits):
    X, _ = digits
    parts = [(rows, None) for rows in (X[:300], X[:400], X[400:460])]
    found = measure_baselines(Trial(*parts), [16])
    assert [each.name for each in found] == ["floats, Euclidean", "sign", "PQ, 16 bits", "RaBitQ"]
    assert found[0].score == max(each.score for each in found)


def test_an_alternative_that_fails_has_its_reason(digits):
    X, _ = digits
    part = X[:300], np.zeros(300, dtype=int)  # one class: nothing to classify
    found = {each.name: each for each in measure_baselines(Trial(part, part, part), [16])}
    assert "class" in found["classifier"].error
    assert not found["sign"].error
    text = tables.alternatives(list(found.values()), "map").text()
    assert found["classifier"].error in text


def test_a_comparison_shows_them_and_recommends(digits):
    pandas = pytest.importorskip("pandas")
    X, y = digits
    settings = {"methods": ["itq", "sdh"], "bits": (8, 16), "progress": False, "device": "cpu"}
    found = hbmp.compare(X[:500], y[:500], **settings)
    text = found.to_markdown()
    assert "| RaBitQ" in text
    assert "“recall@10”" in text
    row = next(row for row in found.rows if row.method == "sdh" and row.bits == 16)
    assert found.recommendation.startswith(
        f"16 bits of sdh (2 bytes per item) have mAP {row.score():.3f}; the original vectors"
    )
    assert found.recommendation in text
    assert [each["name"] for each in json.loads(found.to_json())["baselines"]] == [e.name for e in found.baselines]
    frame = found.to_pandas()
    assert isinstance(frame, pandas.DataFrame)
    assert frame[["method", "bits"]].to_numpy().tolist() == [["itq", 8], ["itq", 16], ["sdh", 8], ["sdh", 16]]
    without = hbmp.compare(X[:200], y[:200], **settings, baselines=False)
    assert "RaBitQ" not in without.to_markdown()


def test_the_shortest_codes_within_a_point_are_recommended():
    row = hbmp.evaluation.MethodResult
    rows = [row("a", 16, {"map.tie-aware": 0.79}), row("a", 32, {"map.tie-aware": 0.8}), row("b", 16, {})]
    floats = BaselineResult("floats, cosine", 1024, 0.82, 0.9, 0.1)
    assert tables.recommendation(rows, "map", [floats]) == (
        "16 bits of a (2 bytes per item) have mAP 0.790; "
        "the original vectors (1,024 bytes) have 0.820, so 96 % is kept."
    )
    assert tables.recommendation(rows, "map", []) == "16 bits of a (2 bytes per item) have mAP 0.790."
    assert tables.recommendation(rows[2:], "map", [floats]) == ""
    text = tables.recommendation(rows, "map", [floats, BaselineResult("classifier", 40, 0.9, 0.2, 1.0)])
    assert text.endswith("so 96 % is kept; classifier (40 bytes) has 0.900.")


def test_without_labels_recall_is_recommended_beside_the_best_of_equal_size():
    row, first = hbmp.evaluation.MethodResult, hbmp.evaluation.FirstResults
    rows = [
        row(name, bits, first=first(None, recall, 9, 9, 0.0, floats))
        for name, bits, recall, floats in (("a", 64, 0.5, 0.79), ("b", 256, 0.7, 0.8), ("c", 64, 0.6, None))
    ]
    others = [
        BaselineResult("floats", 1024, 1, 1.0, 0),
        BaselineResult("PQ", 8, 0, 0.7, 0),
        BaselineResult("PQ, 256 bits", 32, 0, 0.75, 0),
    ]
    assert tables.recommended_neighbours(rows, others) == (
        "64 bits of a (8 bytes per item) find 79 % of the ten nearest, with real-valued queries; "
        "PQ (8 bytes) finds 70 %."
    )
    assert tables.recommended_neighbours([row("a", 8)], others) == ""
