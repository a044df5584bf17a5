"""An estimate of recall from held-out rows: what a search with these codes will find, with an interval.

Held-out rows query all other training rows. The true neighbours are the nearest in Euclidean
distance; the search is by real-valued queries and weighted Hamming distance. Queries are independent, so the mean over
them has Wilson's interval, with as many draws as give the variance that was seen.

How many bits reach a target follows from the errors of the scores. Their squares over those of the signal are
D / (Σλ - D), with the distortion D of the codes, which falls with the rate by reverse water-filling over the
variances λ of the features:

    D(R) = Σ_j min(θ, λ_j)        R = Σ_j max(0, ½ log2(λ_j / θ))

The rate at which D is what the codes leave unexplained, over their bits, is their efficiency; it is taken as fixed.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

_Z = 2.0  # of the interval: 95 % and a little, for codes that have seen the axes of the held-out rows
_RESCORED = 4  # times k candidates are rescored
_SCALE_QUERIES, _SCALE_ROWS = 100, 10_000  # that numbers of bits are tried on
_LARGEST = 16  # times the bits at hand are tried
_QUERIES = 64  # whose distances are held at a time


@dataclass(frozen=True)
class RecallEstimate:
    """Recall measured on held-out rows while fitting.

    Attributes
    ----------
    estimate, low, high : float
        Share of the true `k` nearest among the first `k`, and its interval.
    k, n_queries, n_database, n_bits : int
        Neighbours per query, held-out queries, rows searched, bits per code.
    rescored : float
        The same after the first 4 `k` are rescored by the original vectors.
    bits_for_90, rescored_bits_for_90 : int or None
        Bits that should reach a recall of 0.9; None where no number up to 16 times `n_bits` does.
    """

    estimate: float
    low: float
    high: float
    k: int
    n_queries: int
    n_database: int
    n_bits: int
    rescored: float
    bits_for_90: int | None
    rescored_bits_for_90: int | None

    def sentence(self) -> str:
        """One line: whether the bits suit the embedding, and how many reach a recall of 0.9."""
        few, rescoring = self.rescored < 0.9, self.estimate < 0.9 <= self.rescored
        verdict = (
            f"{'With rescoring, ' * rescoring}{self.n_bits} bits {'are few for' if few else 'suit'} this embedding"
        )
        return (
            f"{verdict}: recall@{self.k} is {self.estimate:.2f} ({self.low:.2f} to {self.high:.2f}), and "
            f"{self.rescored:.2f} with the first {_RESCORED * self.k} rescored. A recall of 0.9 takes "
            f"{_bits(self.bits_for_90, self.n_bits)} without rescoring and "
            f"{_bits(self.rescored_bits_for_90, self.n_bits)} with it."
        )


def shares_of_nearest(
    queries: np.ndarray,
    rows: np.ndarray,
    query_scores: np.ndarray,
    signs: np.ndarray,
    own: np.ndarray,
    k: int,
    metric: str,
) -> tuple[np.ndarray, np.ndarray]:
    """For each query the share of its k nearest rows among the first k by codes, and among as many as are rescored."""
    exact, rescored = [], []
    lengths = _half_lengths(rows, metric)
    for start in range(0, len(queries), _QUERIES):
        block = slice(start, start + _QUERIES)
        similarity = queries[block] @ rows.T - lengths
        found = query_scores[block] @ signs.T
        each = np.arange(len(found))
        similarity[each, own[block]] = found[each, own[block]] = -np.inf
        near = nearest(similarity, k)
        exact.append(shares_found(found, near, k))
        rescored.append(shares_found(found, near, _RESCORED * k))
    return np.concatenate(exact), np.concatenate(rescored)


def estimate_recall(
    queries: np.ndarray,
    rows: np.ndarray,
    query_scores: np.ndarray,
    codes: np.ndarray,
    *,
    unexplained: float,
    own: np.ndarray,
    k: int = 10,
    metric: str = "l2",
) -> RecallEstimate:
    """Recall of centred held-out queries (q, d) against centred rows (n, d), by scores (q, b) and codes (n, b).

    own : the row that each query is, which it does not find
    metric : "l2", or "ip", where queries are not centred
    unexplained : share of the rows' squared length that the codes do not rebuild
    """
    k = min(k, len(rows) - 1)
    n_bits = codes.shape[1]
    signs = codes.astype(np.float32)
    shares, rescored = shares_of_nearest(queries, rows, query_scores, signs, own, k, metric)
    low, high = interval(shares)
    few = slice(0, _SCALE_QUERIES)
    others = np.delete(np.arange(len(rows)), own[few])[:_SCALE_ROWS]
    sizes = _bits_needed(
        queries[few], rows[others], query_scores[few] @ signs[others].T, n_bits, unexplained, k, metric
    )
    return RecallEstimate(
        estimate=float(shares.mean()),
        low=low,
        high=high,
        k=k,
        n_queries=len(queries),
        n_database=len(rows) - 1,
        n_bits=n_bits,
        rescored=float(rescored.mean()),
        bits_for_90=sizes[0],
        rescored_bits_for_90=sizes[1],
    )


def nearest(similarity: np.ndarray, k: int) -> np.ndarray:
    """The columns of the k largest values of each row, (q, k)."""
    return np.argpartition(-similarity, k - 1, axis=1)[:, :k]


def shares_found(similarity: np.ndarray, near: np.ndarray, depth: int) -> np.ndarray:
    """For each query, the share of `near` among its first `depth` by similarity; equal values share their places."""
    depth = min(depth, similarity.shape[1])
    last = -np.partition(-similarity, depth - 1, axis=1)[:, depth - 1 : depth]
    ahead = (similarity > last).sum(axis=1, keepdims=True)
    level = (similarity == last).sum(axis=1, keepdims=True)
    values = np.take_along_axis(similarity, near, axis=1)
    return np.where(values > last, 1.0, np.where(values == last, (depth - ahead) / level, 0.0)).mean(axis=1)


def interval(shares: np.ndarray) -> tuple[float, float]:
    """Wilson's interval of the mean of shares in [0, 1], with as many draws as give the variance of their mean."""
    mean, n = float(shares.mean()), len(shares)
    spread = float(shares.var(ddof=1)) if n > 1 else 0.0
    draws = n * mean * (1 - mean) / spread if spread > 0 else n
    centre = (mean + _Z**2 / (2 * draws)) / (1 + _Z**2 / draws)
    half = _Z / (1 + _Z**2 / draws) * np.sqrt(mean * (1 - mean) / draws + _Z**2 / (4 * draws**2))
    return max(0.0, float(centre - half)), min(1.0, float(centre + half))


def distortion(variances: np.ndarray, rate: float) -> float:
    """Least mean squared error of a Gaussian with these variances at `rate` bits: reverse water-filling."""
    ordered = np.sort(variances[variances > 0])[::-1].astype(np.float64)
    level, n_used = water_level(ordered, rate)
    return float(n_used * level + ordered[n_used:].sum())


def water_level(ordered: np.ndarray, rate: float) -> tuple[float, int]:
    """(θ, how many variances share the rate), of positive variances in descending order."""
    logs = np.cumsum(np.log2(ordered)) / 2
    used = np.arange(1, len(ordered) + 1)
    levels = 2 ** (2 * (logs - rate) / used)  # the water level if the first axes share the rate
    best = np.flatnonzero(levels <= ordered)
    n_used = int(best[-1]) + 1 if len(best) else 1
    return float(levels[n_used - 1]), n_used


def _half_lengths(rows, metric: str):
    """What the product with a query is reduced by where the metric is distance."""
    return np.square(rows).sum(axis=1) / 2 if metric == "l2" else np.zeros(len(rows), rows.dtype)


def _bits_needed(queries, rows, found, n_bits, unexplained, k, metric) -> list[int | None]:
    """Bits that reach 0.9 without and with rescoring: the errors of the scores are scaled as the distortion falls."""
    similarity = queries @ rows.T - _half_lengths(rows, metric)
    errors = _on_scale_of(similarity, found) - similarity
    near = nearest(similarity, k)
    variances = rows.var(axis=0) if rows.shape[1] == 1 else np.linalg.eigvalsh(np.cov(rows.T))
    variances = np.maximum(variances, 1e-6 * variances.max())
    efficiency = _rate_of(variances, unexplained * variances.sum()) / n_bits
    here = _noise(variances, efficiency * n_bits)

    def recall(bits: int, depth: int) -> float:
        factor = np.sqrt(_noise(variances, efficiency * bits) / here)
        return float(shares_found(similarity + np.float32(factor) * errors, near, depth).mean())

    step = max(1, n_bits // 8)
    return [_fewest(lambda bits, depth=depth: recall(bits, depth) >= 0.9, step, n_bits) for depth in (k, _RESCORED * k)]


def _noise(variances, rate: float) -> float:
    """Squared error over squared signal of rebuilt vectors: these are shrunk as far as they are wrong."""
    left = min(distortion(variances, rate) / float(variances.sum()), 1 - 1e-9)
    return left / (1 - left)


def _on_scale_of(similarity, found):
    """Scores as affine estimates of the similarity, a line per query."""
    mean = similarity.mean(axis=1, keepdims=True)
    centred = found - found.mean(axis=1, keepdims=True)
    agreement = (centred * similarity).sum(axis=1, keepdims=True)
    # The slope for which found = similarity + independent errors, not the one that shrinks towards the mean.
    slopes = np.square(similarity - mean).sum(axis=1, keepdims=True) / np.maximum(agreement, 1e-30)
    return slopes * centred + mean


def _rate_of(variances, target: float) -> float:
    """The rate whose distortion is `target`, by bisection."""
    low, high = 0.0, 64.0 * len(variances)
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if distortion(variances, middle) > target else (low, middle)
    return max(high, 1e-6)


def _fewest(reaches, step: int, n_bits: int) -> int | None:
    """The fewest multiples of `step` bits that reach the target, by bisection; None beyond 16 times n_bits."""
    low, high = 0, _LARGEST * n_bits // step
    if not reaches(high * step):
        return None
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if reaches(middle * step) else (middle, high)
    return high * step


def _bits(found: int | None, n_bits: int) -> str:
    return f"about {found} bits" if found else f"more than {_LARGEST * n_bits} bits"
