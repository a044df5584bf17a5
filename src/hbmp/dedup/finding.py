"""`deduplicate`: calibrate a threshold, join the codes, verify the pairs by their vectors, group.

    b    bits        of a code: the signs of b random projections, orthogonal in groups
    θ    angle       arccos of the threshold; a bit of a pair at this angle differs with probability θ/π
    r    radius      a Binomial(b, θ/π) exceeds it with probability 10⁻⁴

Codes propose and vectors decide. All pairs of codes within r are found, so a pair at the threshold is missed with
probability 10⁻⁴, and a closer one less often. Their similarity in the vectors is then computed. To compute one takes as
long as to compare thousands of codes, so b is large enough that an item has few candidates among this data.

Reference: Charikar, Similarity Estimation Techniques from Rounding Algorithms, STOC 2002.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp.dedup.calibration import Calibration, calibrate
from hbmp.dedup.grouping import groups_of, kept_of
from hbmp.dedup.joining import as_words, pairs_within
from hbmp.dedup.space import Space

MISSED = 1e-4
_PROPOSED, _MOST_BITS = 1e-5, 1024
_CANDIDATES, _SAMPLE = 10, 2000  # of an item, at most; rows on which they are counted
_BLOCK = 1 << 15  # pairs verified at a time
_ROWS = 1 << 14


@dataclass(frozen=True)
class Duplicates:
    """What `deduplicate` found.

    Rows count from 0. With `against`, the old items come first: row `n_old` is the first new item.

    Parameters
    ----------
    n_items, n_old : int
        Number of items, and of old ones among them.
    pairs : ndarray of shape (n_pairs, 2)
        Near-duplicates (i, j), j < i.
    similarities : ndarray of shape (n_pairs,)
        Their similarities.
    groups : list of ndarray
        Connected items, each group ascending.
    kept : ndarray of shape (n_kept,)
        Items of groups that are kept, ascending: at least one per group. No two of them are near-duplicates, except old
        ones, and every other item of a group is a near-duplicate of one of them.
    threshold : float
        Least similarity of a pair.
    rate : float or None
        Share of unrelated pairs that may be near-duplicates; None for a threshold that was given.
    calibration : Calibration or None
        How the threshold was found.
    n_candidates : int
        Pairs that the codes proposed.

    Examples
    --------
    >>> import numpy as np
    >>> import hbmp
    >>> X = np.random.default_rng(0).standard_normal((400, 32))
    >>> found = hbmp.deduplicate(np.concatenate([X, X[:2] + 0.01]))
    >>> found.groups, found.removed
    ([array([  0, 400]), array([  1, 401])], array([400, 401]))
    """

    n_items: int
    n_old: int
    pairs: NDArray[np.int64]
    similarities: NDArray[np.float32]
    groups: list[NDArray[np.int64]]
    kept: NDArray[np.int64]
    threshold: float
    rate: float | None = None
    calibration: Calibration | None = None
    n_candidates: int = 0

    @property
    def removed(self) -> NDArray[np.int64]:
        """The items of groups that are not kept."""
        rows = np.concatenate([np.empty(0, np.int64), *self.groups])
        return np.setdiff1d(rows, self.kept)

    @property
    def unique(self) -> NDArray[np.int64]:
        """The rows that are left, of the new items."""
        return np.setdiff1d(np.arange(self.n_old, self.n_items), self.removed)

    @property
    def expected_false_pairs(self) -> float | None:
        """Number of pairs of unrelated items that are expected among `pairs`."""
        n_pairs = (self.n_items * (self.n_items - 1) - self.n_old * (self.n_old - 1)) / 2
        return None if self.rate is None else self.rate * n_pairs

    def about(self) -> str:
        """In one sentence."""
        n_groups, n_removed = len(self.groups), len(self.removed)
        among = f"among {self.n_items - self.n_old:,} items (similarity at least {self.threshold:.3f})."
        if not n_groups:
            return f"No near-duplicates {among}"
        groups = f"{n_groups:,} group{'s' * (n_groups > 1)} of near-duplicates"
        return f"{groups} with {n_removed:,} item{'s' * (n_removed != 1)} to remove, {among}"


def deduplicate(
    X: ArrayLike,
    *,
    against: ArrayLike | None = None,
    false_positives: float | None = None,
    threshold: float | None = None,
    keep: Literal["first", "largest"] = "first",
    sizes: ArrayLike | None = None,
    n_bits: int | None = None,
    random_state: int = 0,
    progress: bool = False,
) -> Duplicates:
    """Find groups of near-duplicates.

    Parameters
    ----------
    X : array-like of shape (n, n_features)
        Features of the items: vectors of texts or pictures by an encoder (`hbmp.encoders`), or any other.
    against : array-like of shape (n_old, n_features), default=None
        Features of a collection without duplicates, to which the items of X are to be added. Its items are compared
        with those of X but not with each other, and always kept.
    false_positives : float, default=None
        Accepted false positive rate over unrelated pairs, such as 1e-6. If None, one item in a
        hundred may get a false partner: 0.01 / n.
    threshold : float, default=None
        Least similarity, instead of a calibrated one. See docs/dedup.md.
    keep : {"first", "largest"}, default="first"
        Which of the near-duplicates is kept.
    sizes : array-like of shape (n_old + n,), default=None
        Sizes for keep="largest": bytes, pixels, characters.
    n_bits : int, default=None
        Length of the codes that propose pairs; chosen by the threshold and the data if None. It changes the speed and
        hardly the result.
    random_state : int, default=0
        Seed of the sample and the codes.
    progress : bool, default=False
        Show a progress bar on a terminal.

    Returns
    -------
    Duplicates

    Examples
    --------
    >>> import numpy as np
    >>> import hbmp
    >>> X = np.random.default_rng(0).standard_normal((400, 32))
    >>> found = hbmp.deduplicate(X[:10] + 0.01, against=X)
    >>> len(found.groups), len(found.unique)
    (10, 0)
    """
    from tqdm import tqdm

    if keep not in ("first", "largest"):
        raise ValueError(f"keep must be 'first' or 'largest', found {keep!r}.")
    if (keep == "largest") != (sizes is not None):
        raise ValueError("keep='largest' needs sizes=, one number per item, and sizes= needs keep='largest'.")
    if threshold is not None and false_positives is not None:
        raise ValueError("threshold= and false_positives= both choose the threshold; pass only one of them.")
    if threshold is not None and not 0 < threshold < 1:
        raise ValueError(f"A threshold is a similarity between 0 and 1, found {threshold}.")
    given = [_features(part) for part in (against, X) if part is not None]
    if len({part.shape[1] for part in given}) > 1:
        raise ValueError(f"Old items have {given[0].shape[1]} features and new ones {given[1].shape[1]}.")
    n_old = 0 if against is None else len(given[0])
    largest = None if sizes is None else np.asarray(sizes, np.float64)
    n = sum(map(len, given))
    if largest is not None and len(largest) != n:
        raise ValueError(f"There are {n} items but {len(largest)} sizes; pass one per item, old ones first.")
    if n < 2:
        return _result(n, n_old, _no_pairs(), largest, threshold or 1.0, None, None, 0)
    space = Space(given[0], random_state=random_state)
    rows = np.concatenate([space.rows(part) for part in given])
    calibration = None
    rate = None
    if threshold is None:
        rate = 0.01 / n if false_positives is None else false_positives
        calibration = calibrate(rows, rate=rate, random_state=random_state)
        threshold = calibration.threshold
    n_bits = bits_on(rows, threshold, random_state) if n_bits is None else n_bits
    packed = _codes(rows, n_bits, random_state)
    parts, n_candidates = [_no_pairs()], 0
    with tqdm(total=n - n_old, desc="comparing", unit="item", disable=None if progress else True) as bar:
        for i, j, _ in pairs_within(packed, radius_for(threshold, n_bits), first_new=n_old, progress=bar.update):
            n_candidates += len(i)
            parts.append(_verified(rows, i, j, threshold))
    pairs = tuple(np.concatenate(columns) for columns in zip(*parts, strict=True))
    return _result(n, n_old, pairs, largest, threshold, rate, calibration, n_candidates)


def radius_for(threshold: float, n_bits: int) -> int:
    """The Hamming radius that all but one in 10,000 of the pairs at a similarity keep to.

    Parameters
    ----------
    threshold : float
        Similarity.
    n_bits : int
        Length of the codes.

    Returns
    -------
    int

    Examples
    --------
    >>> from hbmp.dedup.finding import radius_for
    >>> radius_for(0.9, 256)
    59
    """
    from scipy.stats import binom

    return int(binom.ppf(1 - MISSED, n_bits, np.arccos(threshold) / np.pi))


def bits_for(threshold: float) -> int:
    """The fewest bits, by words of 64, with which one pair of random codes in 100,000 is within the radius.

    Parameters
    ----------
    threshold : float
        Similarity.

    Returns
    -------
    int
        At most 1,024.

    Examples
    --------
    >>> from hbmp.dedup.finding import bits_for
    >>> bits_for(0.9), bits_for(0.5)
    (128, 576)
    """
    from scipy.stats import binom

    few = (
        bits for bits in range(128, _MOST_BITS, 64) if binom.cdf(radius_for(threshold, bits), bits, 0.5) <= _PROPOSED
    )
    return next(few, _MOST_BITS)


def bits_on(rows: NDArray[np.float16], threshold: float, random_state: int = 0) -> int:
    """The fewest bits, from `bits_for` on, with which an item of these rows has few candidates in vain.

    Parameters
    ----------
    rows : ndarray of shape (n, d), float16
        Rows of unit length; a sample of them is compared.
    threshold : float
        Similarity.
    random_state : int, default=0
        Seed of the sample and the codes.

    Returns
    -------
    int
        At most 1,024.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.dedup.finding import bits_for, bits_on
    >>> rows = np.random.default_rng(0).standard_normal((500, 64)).astype(np.float16)
    >>> bits_on(rows, 0.9) == bits_for(0.9)
    True
    """
    fewest, n = bits_for(threshold), len(rows)
    some = rows if n <= _SAMPLE else rows[np.random.default_rng(random_state).choice(n, _SAMPLE, replace=False)]
    words = as_words(_codes(some, _MOST_BITS, random_state))
    exact = some.astype(np.float32)
    unlike, apart = exact @ exact.T < threshold, np.zeros((len(some), len(some)), np.uint16)
    for place, word in enumerate(words, 1):
        apart += np.bitwise_count(word[:, None] ^ word)
        bits = 64 * place
        if bits < fewest:
            continue
        pairs = np.count_nonzero(unlike & (apart <= radius_for(threshold, bits))) / 2
        if pairs * (n / len(some)) ** 2 <= _CANDIDATES * n:
            return bits
    return _MOST_BITS


Pairs = tuple[NDArray[Any], ...]  # (i, j, similarity), each (n_pairs,)


def _features(X: Any) -> Any:
    """Rows of numbers; a memory map stays one."""
    X = X if hasattr(X, "dtype") else np.asarray(X)
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        raise ValueError(f"Features are numbers of shape (n, d), found {X.dtype} of shape {X.shape}.")
    return X


def _codes(rows: NDArray[np.float16], n_bits: int, random_state: int) -> NDArray[np.uint8]:
    """Signs of projections on directions that are orthogonal in groups of d, packed."""
    rng = np.random.default_rng(random_state)
    d = rows.shape[1]
    turns = [np.linalg.qr(rng.standard_normal((d, d)))[0][:, :n_bits] for _ in range(0, n_bits, d)]
    directions = np.concatenate(turns, axis=1)[:, :n_bits].astype(np.float32)
    packed = np.empty((len(rows), -(-n_bits // 8)), np.uint8)
    for start in range(0, len(rows), _ROWS):
        scores = rows[start : start + _ROWS].astype(np.float32) @ directions
        packed[start : start + _ROWS] = np.packbits(scores >= 0, axis=1, bitorder="little")
    return packed


def _verified(rows: NDArray[np.float16], i: NDArray[Any], j: NDArray[Any], threshold: float) -> Pairs:
    """The pairs whose vectors are similar enough. Rows without direction are all the same item."""
    found = np.empty(len(i), np.float32)
    for start in range(0, len(i), _BLOCK):
        part = slice(start, start + _BLOCK)
        mine, others = rows[i[part]].astype(np.float32), rows[j[part]].astype(np.float32)
        found[part] = np.einsum("nd,nd->n", mine, others)
        found[part][~mine.any(axis=1) & ~others.any(axis=1)] = 1
    close = found >= threshold
    return i[close], j[close], np.minimum(found[close], 1)


def _no_pairs() -> Pairs:
    return np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0, np.float32)


def _result(
    n: int,
    n_old: int,
    found: Pairs,
    sizes: NDArray[np.float64] | None,
    threshold: float,
    rate: float | None,
    calibration: Calibration | None,
    n_candidates: int,
) -> Duplicates:
    pairs = np.stack(found[:2], axis=1)
    groups = groups_of(pairs, n)
    kept = kept_of(groups, pairs, n, sizes, n_old)
    return Duplicates(n, n_old, pairs, found[2], groups, kept, threshold, rate, calibration, n_candidates)
