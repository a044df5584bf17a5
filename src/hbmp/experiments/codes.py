"""The codes of one cell: from a fitted method, or target codes from the labels (an oracle).

The oracle bounds retrieval by a perfect hash function. Its code book is inferred from the label sets of the training
items, or of all items as in the paper's released code. A label set that the code book does not hold gets the code
that fits its affinities best.

Codes of HBMP are nested: the first bits of long codes are codes too, with their own weights.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp._core.labels import distinct_rows
from hbmp.hasher import Hasher
from hbmp.methods import make_method  # noqa: F401  formerly defined here
from hbmp.protocols import Split
from hbmp.pursuit import CodeBook


@dataclass
class Codes:
    """Codes of queries and database, with their cost.

    Parameters
    ----------
    query : ndarray of int8, shape (n_query, bits)
        Codes of the queries.
    database : ndarray of int8, shape (n_database, bits)
        Codes of the database.
    bit_weights : ndarray, shape (bits,)
        Weights of the bits in the distance.
    query_scores : ndarray, shape (n_query, bits), default=None
        The queries before the sign.
    seconds : dict of str to float, default={}
        Wall-clock time of "fit" and "encode".
    facts : dict, default={}
        What else the result line holds: bit errors, residual, label sets never seen in training.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.experiments import Codes
    >>> signs = np.ones((3, 8), dtype=np.int8)
    >>> Codes(signs, signs, np.ones(8)).seconds
    {}
    """

    query: NDArray[np.int8]
    database: NDArray[np.int8]
    bit_weights: NDArray[Any]
    query_scores: NDArray[Any] | None = None
    seconds: dict[str, float] = field(default_factory=dict)
    facts: dict[str, Any] = field(default_factory=dict)


def takes_images(method: Hasher) -> bool:
    """Whether the hash function of a method takes images rather than features.

    Parameters
    ----------
    method : Hasher
        The method.

    Returns
    -------
    bool
        True for a network on images.

    Examples
    --------
    >>> from hbmp import get_method
    >>> from hbmp.experiments.codes import takes_images
    >>> takes_images(get_method("lsh")(8))
    False
    """
    return bool(getattr(getattr(method, "function", None), "takes_images", False))


def learned_codes(method: Any, inputs: Any, labels: NDArray[Any] | None, split: Split) -> Codes:
    """Fit a method on the training rows, and encode queries and database.

    Parameters
    ----------
    method : Hasher
        The method; it is fitted in place.
    inputs : ndarray of shape (n, d) or (n, h, w, 3), or list of paths
        Features or images of all rows.
    labels : ndarray of shape (n,) or (n, c), or None
        Labels of all rows.
    split : Split
        Training, query and database rows.

    Returns
    -------
    Codes
        The codes.

    Examples
    --------
    >>> from hbmp import datasets, get_method, protocols
    >>> from hbmp.experiments.codes import learned_codes
    >>> digits = datasets.load("digits")
    >>> split = protocols.get("cifar-1", train_per_class=10, query_per_class=4).split(digits, seed=0)
    >>> learned_codes(get_method("lsh")(8, random_state=0), digits.features, digits.labels, split).query.shape
    (40, 8)
    """
    images = takes_images(method)
    if inputs is None:
        missing = "images" if images else "features"
        raise ValueError(f"These data have no {missing} to learn from. Use data that have them, or target codes.")
    rows = _images if images else _features
    y = None if labels is None else labels[split.train]
    start = time.perf_counter()
    method.fit(rows(inputs, split.train), y)
    fitted = time.perf_counter()
    scores = method.project(rows(inputs, split.query))
    database = method.transform(rows(inputs, split.database))
    seconds = {"fit": fitted - start, "encode": time.perf_counter() - fitted}
    facts: dict[str, Any] = {}
    if images:
        trained, encoded = len(split.train) * method.function.epochs, len(split.query) + len(split.database)
        rates = {"fit": trained / seconds["fit"], "encode": encoded / seconds["encode"]}
        facts["images_per_second"] = {name: round(rate) for name, rate in rates.items()}
    if hasattr(method, "unmatched_"):
        facts["unmatched_bits"] = float(method.unmatched_)
    if hasattr(method, "codebook_"):
        facts |= _book_facts(method.codebook_)
    query = hamming.signs(scores)
    return Codes(query, database, np.asarray(method.bit_weights_), scores, seconds, facts)


def first_bits(codes: Codes, method: Any, n_bits: int) -> Codes:
    """Take the first bits of nested codes, with the weights that the method has for that length.

    Parameters
    ----------
    codes : Codes
        Codes of a code book.
    method : HBMP
        The fitted method.
    n_bits : int
        How many bits to keep.

    Returns
    -------
    Codes
        The shorter codes.

    Examples
    --------
    >>> from hbmp import datasets, get_method, protocols
    >>> from hbmp.experiments.codes import first_bits, learned_codes
    >>> digits = datasets.load("digits")
    >>> split = protocols.get("cifar-1", train_per_class=10, query_per_class=4).split(digits, seed=0)
    >>> method = get_method("hbmp")(8, function="linear", random_state=0)
    >>> codes = learned_codes(method, digits.features, digits.labels, split)
    >>> first_bits(codes, method, 4).database.shape[1]
    4
    """
    book = method.codebook_
    scores = None if codes.query_scores is None else codes.query_scores[:, :n_bits]
    facts = {**codes.facts, "relative_residual": float(book.relative_residuals[min(n_bits, book.n_bits)])}
    weights = method.weights_for(n_bits)
    facts["negative_weights"] = int((weights < 0).sum())
    facts.pop("unmatched_bits", None)  # counts the errors of all bits
    return Codes(codes.query[:, :n_bits], codes.database[:, :n_bits], weights, scores, dict(codes.seconds), facts)


def target_codes(method: Any, labels: NDArray[Any] | None, split: Split, *, items: str, seed: int) -> Codes:
    """Compute target codes of queries and database from their labels.

    Parameters
    ----------
    method : HBMP
        The method that infers the code book; it is not fitted.
    labels : ndarray of shape (n,) or (n, c)
        Labels of all rows.
    split : Split
        Training, query and database rows.
    items : {"train", "all"}
        Whose label sets make the code book.
    seed : int
        Seed of the inference.

    Returns
    -------
    Codes
        The target codes.

    Examples
    --------
    >>> from hbmp import datasets, get_method, protocols
    >>> from hbmp.experiments.codes import target_codes
    >>> digits = datasets.load("digits")
    >>> split = protocols.get("cifar-1", train_per_class=10, query_per_class=4).split(digits, seed=0)
    >>> target_codes(get_method("hbmp")(8), digits.labels, split, items="train", seed=0).facts["items"]
    10
    """
    if labels is None:
        raise ValueError("Target codes come from labels, and this protocol has none. Use codes='function'.")
    used = labels[split.train] if items == "train" else labels[np.union1d(split.query, split.database)]
    start = time.perf_counter()
    book = method.infer(used, seed)
    fitted = time.perf_counter()
    query, unseen = _codes_of(book, labels[split.query])
    database, unseen_database = _codes_of(book, labels[split.database])
    seconds = {"fit": fitted - start, "encode": time.perf_counter() - fitted}
    facts = {"unseen_queries": unseen, "unseen_database": unseen_database, **_book_facts(book)}
    return Codes(query, database, np.asarray(book.weights), None, seconds, facts)


def _codes_of(book: Any, labels: NDArray[Any]) -> tuple[NDArray[np.int8], int]:
    """Codes of labelled rows, and how many of their label sets the code book does not hold."""
    if labels.ndim == 1:
        items, item_of = np.unique(labels, return_inverse=True)
    else:
        items, item_of, _ = distinct_rows(labels)
    unseen = book.affinity.find(items) < 0
    return book.encode(items)[item_of], int(unseen[item_of].sum())


def _book_facts(book: CodeBook) -> dict[str, Any]:
    return {
        "items": len(book.codes),
        "relative_residual": float(book.relative_residuals[-1]),
        "negative_weights": int((book.weights < 0).sum()),
    }


def _features(features: Any, rows: NDArray[Any]) -> NDArray[Any]:
    """Some of the features as float32."""
    return np.asarray(features[rows], dtype=np.float32)


def _images(images: Any, rows: NDArray[Any]) -> Any:
    """Some of the images, in memory or as paths."""
    return [images[row] for row in rows] if isinstance(images, (list, tuple)) else images[rows]
