"""`Index` and metrics in random configurations, against sorting every distance and against loops over every rank."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from counting import Broken

import hbmp
from hbmp import hamming, metrics

TITLE = "`Index` and metrics against brute force"
PROMISE = "equal results, ties included, or one sentence where float32 cannot hold the distances"
GOAL = 100_000
SLICE = 300
_BITS = (1, 2, 5, 8, 9, 16, 31, 48, 64, 65, 128, 200)
_SCALES = (1.0, 1.0, 1.0, 1e-3, 1e5, 1e30, 1e-30, 1e-310)


@contextmanager
def attacks(folder: Path) -> Iterator[Callable[..., Any]]:
    """One attack is one configuration: four of the index, then one of the metrics."""
    yield lambda number, rng: _metrics(rng) if number % 5 == 4 else _index(rng, folder)


def _index(rng: np.random.Generator, folder: Path) -> list[tuple[str, str]]:
    n_bits = int(rng.choice(_BITS))
    n_items = int(rng.choice([0, 1, 3, 30, 200, 200, 700, 2500]))
    codes = _codes(rng, n_items, n_bits)
    weights, kind = _weights(rng, n_bits)
    ids = np.arange(n_items) if rng.random() < 0.5 else rng.permutation(5 * n_items + 7)[:n_items]
    try:
        index = hbmp.Index(n_bits, weights)
    except ValueError as error:
        if "float32" not in str(error):
            raise Broken(str(error)) from error
        return [("index", "sentence: beyond float32")]
    for part in np.array_split(rng.permutation(n_items), rng.integers(1, 4)):
        index.add(codes[part], ids[part])
    gone = ids[rng.random(n_items) < rng.choice([0, 0, 0.2])]
    index.remove(gone)
    kept = np.argsort(ids)[~np.isin(np.sort(ids), gone)]
    codes, ids = codes[kept], ids[kept]
    if rng.random() < 0.2:
        index.save(folder / "codes.hbmp")
        index = hbmp.Index.load(folder / "codes.hbmp", mapped=bool(rng.random() < 0.5))
    compared = int(rng.integers(1, n_bits + 1)) if rng.random() < 0.2 else n_bits
    queries = _queries(rng, codes, n_bits, kind)[:, :compared]
    own = None if weights is None else weights[:compared]
    subset = rng.choice(5 * n_items + 7, n_items // 2) if rng.random() < 0.2 else None
    chosen = np.arange(len(ids)) if subset is None else np.flatnonzero(np.isin(ids, subset))
    more: dict[str, Any] = {"n_bits": compared, "subset": subset}
    try:
        table = hamming.distances(queries, codes[chosen][:, :compared], own).astype(np.float32)
    except ValueError as error:
        if "float32" not in str(error):
            raise Broken(str(error)) from error
        return [("index", "sentence: beyond float32")]
    _check_distances(rng, table, queries, codes[chosen][:, :compared], own)
    k = int(rng.choice([1, 3, 10, 100, n_items + 5]))
    found, found_ids = index.search(queries, k, **more)
    order = np.argsort(table, axis=1, kind="stable")[:, :k]
    n_found = order.shape[1]
    _equal("distances", found[:, :n_found], np.take_along_axis(table, order, axis=1))
    _equal("ids", found_ids[:, :n_found], ids[chosen][order])
    _equal("padding", found_ids[:, n_found:], -1)
    if len(chosen) and rng.random() < 0.3:
        radius = float(rng.choice(table[0]))
        for row, (distances, near) in enumerate(index.range_search(queries, radius, **more)):
            inside = np.flatnonzero(table[row] <= radius)
            inside = inside[np.argsort(table[row][inside], kind="stable")]
            _equal("ids within a radius", near, ids[chosen][inside])
            _equal("distances within a radius", distances, table[row][inside])
    return [("index", "equal")]


def _codes(rng: np.random.Generator, n_items: int, n_bits: int) -> np.ndarray:
    codes = np.where(rng.random((n_items, n_bits)) < 0.5, 1, -1).astype(np.int8)
    if n_items and rng.random() < 0.4:  # few distinct codes: many ties
        codes = codes[rng.integers(max(1, n_items // 20), size=n_items)]
    return codes


def _weights(rng: np.random.Generator, n_bits: int) -> tuple[np.ndarray | None, str]:
    kind = str(rng.choice(["none", "equal", "uniform", "normal", "heavy", "zeros"]))
    weights = {
        "none": None,
        "equal": np.full(n_bits, rng.uniform(0.1, 3)),
        "uniform": rng.uniform(0.1, 1, n_bits),
        "normal": rng.normal(size=n_bits),
        "heavy": rng.standard_cauchy(n_bits),
        "zeros": rng.integers(0, 2, n_bits).astype(float),
    }[kind]
    return (None if weights is None else weights * rng.choice(_SCALES)), kind


def _queries(rng: np.random.Generator, codes: np.ndarray, n_bits: int, kind: str) -> np.ndarray:
    n_queries = int(rng.integers(1, 6))
    if rng.random() < 0.5:
        queries = _codes(rng, n_queries, n_bits)
        if len(codes):
            queries[0] = codes[0]
        return queries
    scores = rng.normal(size=(n_queries, n_bits)) * rng.choice([1, 1, 0, 1e-40, 1e35, 1e-300])
    return scores.astype(np.float32) if rng.random() < 0.5 and np.abs(scores).max() < 3e38 else scores


def _check_distances(
    rng: np.random.Generator, table: np.ndarray, queries: np.ndarray, codes: np.ndarray, weights: np.ndarray | None
) -> None:
    """A few entries of the table by definition, in exact arithmetic up to the rounding of each product."""
    for _ in range(min(5, table.size)):
        row, item = int(rng.integers(table.shape[0])), int(rng.integers(table.shape[1]))
        alpha = np.ones(codes.shape[1]) if weights is None else weights
        terms = alpha * np.abs(queries[row].astype(float))
        expected = math.fsum(terms[np.where(queries[row] >= 0, 1, -1) != codes[item]])
        room = 1e-7 * abs(expected) + 2e-15 * float(np.abs(terms).sum()) + 2e-45
        if not abs(float(table[row, item]) - expected) <= room:
            raise Broken(f"a distance of {table[row, item]!r}, by definition {expected!r}")


def _metrics(rng: np.random.Generator) -> list[tuple[str, str]]:
    n_bits, n_items, n_queries = int(rng.choice(_BITS)), int(rng.integers(1, 60)), int(rng.integers(1, 5))
    database = _codes(rng, n_items, n_bits)
    queries = _codes(rng, n_queries, n_bits) if rng.random() < 0.6 else rng.normal(size=(n_queries, n_bits))
    weights, _ = _weights(rng, n_bits)
    weights = None if weights is None or not 1e-6 < np.abs(weights).sum() < 1e6 else weights
    if rng.random() < 0.5:
        labels = [rng.integers(0, 4, n).astype(int) for n in (n_queries, n_items)]
        grades = (labels[0][:, None] == labels[1][None]).astype(int)
    else:
        labels = [(rng.random((n, 5)) < 0.3).astype(np.uint8) for n in (n_queries, n_items)]
        grades = labels[0].astype(int) @ labels[1].T.astype(int)
    table = hamming.distances(queries, database, weights)
    cutoff = None if rng.random() < 0.4 else int(rng.integers(1, n_items + 5))
    ties = str(rng.choice(["database", "optimistic", "pessimistic"]))
    ranked = [_ranked(distances, grade, ties) for distances, grade in zip(table, grades, strict=True)]
    shared: dict[str, Any] = {"bit_weights": weights, "ties": ties}
    denominator, empty = str(rng.choice(["hits", "relevant"])), str(rng.choice(["drop", "zero"]))
    scores = [_average_precision(list(row), cutoff, denominator) for row in ranked]
    kept = [score for score in scores if score is not None] if empty == "drop" else [score or 0.0 for score in scores]
    if kept:
        options = {"cutoff": cutoff, "denominator": denominator, "empty": empty}
        found = metrics.mean_average_precision(queries, database, *labels, **options, **shared)
        _close("average precision", found, float(np.mean(kept)))
    found = metrics.ndcg(queries, database, *labels, cutoff=cutoff, gain="shared", **shared)
    _close("NDCG", found, float(np.mean([_ndcg(list(row), cutoff) for row in ranked])))
    at = int(rng.integers(1, n_items + 1))
    found = metrics.precision_at(queries, database, *labels, cutoffs=[at], **shared)[0]
    _close("precision", float(found), float(np.mean([np.mean(row[:at] > 0) for row in ranked])))
    return [("metrics", "equal")]


def _ranked(distances: np.ndarray, grades: np.ndarray, ties: str) -> np.ndarray:
    """The grades in the order of the ranking."""
    among_equals = {"database": 0 * grades, "optimistic": -grades, "pessimistic": grades}[ties]
    return grades[np.lexsort((np.arange(len(grades)), among_equals, distances))]


def _average_precision(grades: list[int], cutoff: int | None, denominator: str) -> float | None:
    hits, total = 0, 0.0
    for rank, grade in enumerate(grades[:cutoff], start=1):
        if grade > 0:
            hits += 1
            total += hits / rank
    count = hits if denominator == "hits" else sum(grade > 0 for grade in grades)
    return total / count if count else None


def _ndcg(grades: list[int], cutoff: int | None) -> float:
    def gain(order: list[int]) -> float:
        return sum((2**grade - 1) / math.log2(rank + 1) for rank, grade in enumerate(order[:cutoff], start=1))

    best = gain(sorted(grades, reverse=True))
    return gain(grades) / best if best else 1.0


def _equal(what: str, found: Any, expected: Any) -> None:
    if not np.array_equal(found, np.broadcast_to(expected, np.shape(found))):
        raise Broken(f"{what}: {found!r}, expected {expected!r}")


def _close(what: str, found: float, expected: float) -> None:
    if not abs(found - expected) <= 1e-9:
        raise Broken(f"{what}: {found!r}, expected {expected!r}")
