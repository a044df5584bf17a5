"""The codes of one cell: from a fitted method, or target codes straight from the labels (an oracle).

The oracle answers how well codes could retrieve if the hash function made no mistake. Its code book is inferred from
the label sets of the training items, or of all items as the paper's released code does; a label set that the code
book has not seen gets the code that fits its affinities best.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from hbmp import catalog
from hbmp.hasher import get_method
from hbmp.labels import distinct_rows

_PIECES = {"function": "functions", "affinity": "affinities"}


@dataclass
class Codes:
    """What a cell is scored on, with what it cost."""

    query: np.ndarray  # (n_query, bits) int8
    database: np.ndarray  # (n_database, bits) int8
    bit_weights: np.ndarray  # (bits,)
    query_scores: np.ndarray | None = None  # (n_query, bits) before the sign
    seconds: dict[str, float] = field(default_factory=dict)
    facts: dict = field(default_factory=dict)  # unmatched bits, residual, unseen label sets


def make_method(name: str, n_bits: int, params: dict, *, seed: int, device: str):
    """The method with its settings; pieces are named, or named with settings: ["mlp", {"hidden": [512]}]."""
    given = {key: make_piece(_PIECES[key], value) if key in _PIECES else value for key, value in params.items()}
    method = get_method(name)(n_bits, **given)
    known = method.get_params(deep=True)
    chosen = {"random_state": seed, **{key: device for key in known if key.rpartition("__")[2] == "device"}}
    return method.set_params(**{key: value for key, value in chosen.items() if key in known and key not in params})


def make_piece(folder: str, given):
    """A piece from "mlp" or ["mlp", {settings}]; "auto" and objects stay as they are."""
    if isinstance(given, str):
        return given if given == "auto" else catalog.load(folder, given)()
    if isinstance(given, (list, tuple)):
        name, settings = given
        return catalog.load(folder, name)(**settings)
    return given


def learned_codes(method, features, labels, split) -> Codes:
    """Fit on the training rows of features (n, d) and encode queries and database."""
    if features is None:
        raise ValueError("These data have no features to learn from. Encode the images first, or use target codes.")
    y = None if labels is None else labels[split.train]
    start = time.perf_counter()
    method.fit(_rows(features, split.train), y)
    fitted = time.perf_counter()
    scores = method.project(_rows(features, split.query))
    database = method.transform(_rows(features, split.database))
    seconds = {"fit": fitted - start, "encode": time.perf_counter() - fitted}
    facts = {}
    if hasattr(method, "unmatched_"):
        facts["unmatched_bits"] = float(method.unmatched_)
    if hasattr(method, "codebook_"):
        facts |= _book_facts(method.codebook_)
    query = np.where(scores >= 0, np.int8(1), np.int8(-1))
    return Codes(query, database, np.asarray(method.bit_weights_), scores, seconds, facts)


def target_codes(method, labels, split, *, items: str, seed: int) -> Codes:
    """Target codes of queries and database from their labels; `items`: "train" or "all" label sets make the book."""
    if labels is None:
        raise ValueError("Target codes come from labels, and this protocol has none. Use codes='function'.")
    used = labels[split.train] if items == "train" else labels[np.union1d(split.query, split.database)]
    start = time.perf_counter()
    affinity = method._affinity(used).fit(None, used)
    book = method.infer(affinity, used, seed)
    fitted = time.perf_counter()
    query, unseen = _codes_of(book, labels[split.query])
    database, unseen_database = _codes_of(book, labels[split.database])
    seconds = {"fit": fitted - start, "encode": time.perf_counter() - fitted}
    facts = {"unseen_queries": unseen, "unseen_database": unseen_database, **_book_facts(book)}
    return Codes(query, database, np.asarray(book.weights), None, seconds, facts)


def _codes_of(book, labels) -> tuple[np.ndarray, int]:
    """Codes of labelled rows, each distinct label set encoded once, and how many rows the book had never seen."""
    if labels.ndim == 1:
        items, item_of = np.unique(labels, return_inverse=True)
    else:
        items, item_of, _ = distinct_rows(labels)
    unseen = book.affinity.find(items) < 0
    return book.encode(items)[item_of], int(unseen[item_of].sum())


def _book_facts(book) -> dict:
    return {
        "items": len(book.codes),
        "relative_residual": float(book.relative_residuals[-1]),
        "negative_weights": int((book.weights < 0).sum()),
    }


def _rows(features, rows: np.ndarray) -> np.ndarray:
    return np.asarray(features[rows], dtype=np.float32)
