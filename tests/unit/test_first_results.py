"""The first ten results: the right kind and the right ones, against loops over queries."""

import numpy as np
import pytest

import hbmp
from hbmp.evaluation.first_results import FirstResults, first_results
from hbmp.evaluation.trial import Trial


@pytest.fixture(scope="module")
def parts():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((150, 5)), rng.integers(0, 3, 150)
    codes = np.where(rng.standard_normal((150, 24)) > 0, 1, -1).astype(np.int8)
    return X, y, codes, rng.uniform(0.5, 2, 24)


def loops(X, codes, weights, same):
    """Right kind and right ones of the first 30 rows as queries, without ties."""
    kind, ones = [], []
    unit = X / np.linalg.norm(X, axis=1, keepdims=True)
    for i in range(30):
        distances = [(weights * (codes[i] != code)).sum() for code in codes[30:]]
        first = np.argsort(distances)[:10]
        kind.append(np.mean([same(i, 30 + j) for j in first]))
        near = sorted((j for j in range(120) if same(i, 30 + j)), key=lambda j: -unit[i] @ unit[30 + j])[:10]
        ones.append(len(set(first) & set(near)) / len(near))
    return np.mean(kind), np.mean(ones)


@pytest.mark.parametrize("labelled", [True, False])
def test_as_one_query_after_the_other(parts, labelled):
    X, y, codes, weights = parts
    labels = (y[30:], y[:30]) if labelled else (None, None)
    trial = Trial((X[30:], labels[0]), (X[30:], labels[0]), (X[:30], labels[1]))
    found = first_results(trial, codes[:30], codes[30:], weights)
    kind, ones = loops(X, codes, weights, (lambda i, j: y[i] == y[j]) if labelled else (lambda i, j: True))
    assert found.right_ones == pytest.approx(ones)
    assert found.right_kind == (pytest.approx(kind) if labelled else None)
    assert (found.distinct, found.items) == (len(np.unique(codes[30:], axis=0)), 120)


def test_one_code_per_class_is_the_right_kind_and_tied(parts):
    X, y, codes, _ = parts
    of_class = codes[:3][y]
    trial = Trial((X[30:], y[30:]), (X[30:], y[30:]), (X[:30], y[:30]))
    found = first_results(trial, of_class[:30], of_class[30:], None)
    assert (found.right_kind, found.tied, found.distinct) == (1, 1, 3)
    assert found.right_ones < 0.4  # ten of about forty, in any order
    assert found.cells()[3:] == ("3", "100 %")
    assert "For 100 % of the queries, the first ten results are all tied" in found.sentence()
    assert "tied" not in FirstResults(1.0, 0.5, 100, 120, 0.0).sentence()
    assert FirstResults(None, None, 5, 6, 0.0).cells()[:2] == ("—", "—")


def test_a_comparison_and_an_evaluation_show_them(parts):
    X, y, _, _ = parts
    table = hbmp.compare(X, y, methods=["lsh", "pca_sign"], bits=(4,), device="cpu", progress=False, baselines=False)
    assert {row.method: row.first.items for row in table.rows} == {"lsh": 135, "pca_sign": 135}
    text = table.to_markdown()
    head = ("precision@10", "recall@10", "recall@10, real-valued queries", "distinct codes", "all tied")
    assert " | ".join(head) in text
    assert "“recall@10” is the fraction" in table.caption
    heads = table.to_csv().splitlines()[0].split(",")
    assert heads[4:9] == ["right_kind", "right_ones", "right_ones_float", "distinct", "tied"]
    found = hbmp.evaluate(hbmp.get_method("pca_sign")(4).fit(X), X, y)
    assert found.to_json()["first_results"]["items"] == 135
    assert "| recall@10 " in found.to_markdown()
    assert found.first.sentence() in found.to_markdown()
    alone = hbmp.evaluate(hbmp.get_method("pca_sign")(4).fit(X), X)
    assert "precision@10" not in alone.tables()  # not measured without labels
    assert "| score" not in alone.tables(graded=False)
    assert "| recall@10 " in alone.tables(graded=False)
