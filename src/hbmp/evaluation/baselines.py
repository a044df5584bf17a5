"""Search without hashing, measured on the split of a comparison.

    floats, cosine        the original vectors; Euclidean distance if neighbours are defined by distance
    classifier            logistic regression on the training rows; items are class probabilities, ranked by how likely
                          they share the class of the query (for multi-label rows: by the expected number of labels)
    sign                  one bit per dimension, its sign, as sentence-transformers quantises embeddings
    PQ                    FAISS product quantisation with as many bytes as the codes; queries keep their floats
    RaBitQ                FAISS RaBitQ, one bit per dimension and 8 bytes; queries keep their floats

Each gives distances of all items for a block of queries, and these are ranked and scored like codes.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp import metrics
from hbmp.evaluation.first_results import SHOWN
from hbmp.evaluation.trial import Trial
from hbmp.metrics.ranking import RankedList, score_queries

Distances = Callable[[int, int], NDArray[np.float32]]  # of the queries from … to … to all items

_CENTROIDS, _RABITQ_EXTRA = 256, 8  # of a product quantiser's byte; bytes that RaBitQ keeps beside its bits
_MOST_CLASSIFIED = 20_000_000  # numbers (rows × features) up to which a classifier is trained in reasonable time


@dataclass(frozen=True)
class BaselineResult:
    """Scores and costs of one alternative to learned codes.

    Parameters
    ----------
    name : str
        Description, for example "floats, cosine".
    bytes_per_item : int
        Bytes stored for each item.
    score : float
        mAP on the comparison's split, with its cutoff.
    neighbours : float
        Share of the true ten nearest items (with labels: of the same label) among the first ten.
    fit_seconds : float
        Wall-clock time of training and encoding.
    error : str, default=""
        Reason of a failure; the scores are then NaN.

    Examples
    --------
    >>> from hbmp.evaluation import BaselineResult
    >>> BaselineResult("sign", 64, 0.41, 0.3, 0.01).bytes_per_item
    64
    """

    name: str
    bytes_per_item: int
    score: float
    neighbours: float
    fit_seconds: float
    error: str = ""


def measure_baselines(trial: Trial, bits: Sequence[int], seed: int = 0) -> list[BaselineResult]:
    """Every alternative that these data allow, in the order of the module's table; one that fails has its reason."""
    return [_measured(trial, name, make) for name, make in _makers(trial, bits, seed)]


def _measured(trial: Trial, name: str, make: Callable[[], tuple[int, Distances]]) -> BaselineResult:
    start = time.perf_counter()
    try:
        n_bytes, distances = make()
    except Exception as error:  # the comparison goes on without it
        return BaselineResult(name, 0, np.nan, np.nan, np.nan, " ".join(str(error).split()) or type(error).__name__)
    seconds = time.perf_counter() - start
    ranker = _DistanceRanker((len(trial.queries), len(trial.database)), distances)
    return BaselineResult(name, n_bytes, _map(trial, ranker), _neighbours(trial, ranker), seconds)


def _makers(trial: Trial, bits: Sequence[int], seed: int) -> Iterator[tuple[str, Callable[[], tuple[int, Distances]]]]:
    vectors = _Vectors(trial)
    yield f"floats, {'Euclidean' if trial.kind == 'distances' else 'cosine'}", vectors.floats
    if trial.kind != "distances" and vectors.train.size <= _MOST_CLASSIFIED:
        yield "classifier", lambda: _classifier(trial)
    yield "sign", vectors.signs
    for n_bits in sorted({n_bits for n_bits in bits if n_bits % 8 == 0}):
        if len(vectors.train) >= _CENTROIDS and n_bits // 8 <= vectors.train.shape[1]:
            yield f"PQ, {n_bits} bits", partial(vectors.product_quantised, n_bits // 8, seed)
    yield "RaBitQ", lambda: vectors.rabitq(seed)


class _Vectors:
    """Training rows, items and queries as float32: of unit length with labels, as they are without."""

    def __init__(self, trial: Trial):
        unit = trial.kind != "distances"
        parts = (np.asarray(part, dtype=np.float32) for part in (trial.train, trial.database, trial.queries))
        self.train, self.items, self.queries = (_unit(part) if unit else part for part in parts)

    def floats(self) -> tuple[int, Distances]:
        return 4 * self.items.shape[1], _squared_distances(self.queries, self.items)

    def signs(self) -> tuple[int, Distances]:
        queries, items = (np.where(part > 0, np.float32(1), np.float32(-1)) for part in (self.queries, self.items))
        return -(-self.items.shape[1] // 8), lambda start, stop: -(queries[start:stop] @ items.T)

    def product_quantised(self, n_bytes: int, seed: int) -> tuple[int, Distances]:
        import faiss

        train, items, queries = (_padded(part, n_bytes) for part in (self.train, self.items, self.queries))
        quantiser = faiss.ProductQuantizer(train.shape[1], n_bytes, 8)
        quantiser.cp.seed, quantiser.cp.min_points_per_centroid = seed + 1, 1
        quantiser.train(train)
        decoded: Any = quantiser.decode(quantiser.compute_codes(items))  # type: ignore[call-arg, func-returns-value]
        return n_bytes, _squared_distances(queries, decoded)

    def rabitq(self, seed: int) -> tuple[int, Distances]:
        import faiss

        d = self.items.shape[1]
        rotation = faiss.RandomRotationMatrix(d, d)
        rotation.init(seed + 1)
        index = faiss.IndexPreTransform(rotation, faiss.IndexRaBitQ(d, faiss.METRIC_L2))
        index.train(self.train)
        index.add(self.items)

        def distances(start: int, stop: int) -> NDArray[np.float32]:
            found = np.empty((stop - start, len(self.items)), np.float32)
            near, places = index.search(self.queries[start:stop], len(self.items))
            np.put_along_axis(found, places, near, axis=1)
            return found

        return -(-d // 8) + _RABITQ_EXTRA, distances


def _classifier(trial: Trial) -> tuple[int, Distances]:
    from sklearn.exceptions import ConvergenceWarning
    from sklearn.linear_model import LogisticRegression
    from sklearn.multiclass import OneVsRestClassifier
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    logistic = LogisticRegression(max_iter=100, tol=1e-3, C=0.1)
    several = trial.kind == "label sets"
    model = make_pipeline(StandardScaler(), OneVsRestClassifier(logistic) if several else logistic)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        warnings.filterwarnings("ignore", message="Label .* is present in all training examples|Label not")
        model.fit(trial.train, trial.train_labels)
    queries, items = (np.asarray(model.predict_proba(part), np.float32) for part in (trial.queries, trial.database))
    return 4 * items.shape[1], lambda start, stop: -(queries[start:stop] @ items.T)


class _DistanceRanker:
    """Ranks by given distances; for `score_queries`."""

    def __init__(self, shape: tuple[int, int], distances: Distances):
        self.shape, self.prepare = shape, distances

    def rank(self, query: NDArray[np.float32], grades: NDArray[Any], excluded: int | None) -> RankedList:
        """The items in order of distance, equal ones as in the database."""
        order = np.argsort(query, kind="stable")

        def find_bounds() -> NDArray[Any]:
            inner = np.flatnonzero(np.diff(query[order])) + 1
            return np.concatenate([[0], inner, [len(order)]])

        return RankedList(grades.take(order), find_bounds)


def _map(trial: Trial, ranker: _DistanceRanker) -> float:
    scorer = metrics.average_precision_scorer(ranker.shape[1], cutoff=trial.cutoff, ties="average")
    return float(np.nanmean(score_queries(ranker, trial.relevance(), scorer)))  # type: ignore[arg-type]


def _neighbours(trial: Trial, ranker: _DistanceRanker) -> float:
    ranks = np.array([min(SHOWN, ranker.shape[1])])
    counts = np.array(score_queries(ranker, trial.nearest, metrics.hits_scorer(ranks)), np.float64)  # type: ignore[arg-type]
    found, total = counts.reshape(-1, 2).T
    return float(np.mean(found[total > 0] / total[total > 0]))


def _squared_distances(queries: NDArray[np.float32], items: NDArray[np.float32]) -> Distances:
    """Up to a constant for each query."""
    lengths = (items**2).sum(axis=1)
    return lambda start, stop: lengths - 2 * (queries[start:stop] @ items.T)


def _unit(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    return np.asarray(rows / np.where(lengths > 0, lengths, 1), dtype=np.float32)


def _padded(rows: NDArray[np.float32], n_parts: int) -> NDArray[np.float32]:
    """The rows with columns of zeros, so that their number is a multiple of the parts."""
    return np.ascontiguousarray(np.pad(rows, ((0, 0), (0, -rows.shape[1] % n_parts))))
