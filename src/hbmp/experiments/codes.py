"""The codes of one cell: from a fitted method, or target codes straight from the labels (an oracle).

The oracle answers how well codes could retrieve if the hash function made no mistake. Its code book is inferred from
the label sets of the training items, or of all items as the paper's released code does; a label set that the code
book has not seen gets the code that fits its affinities best.

Codes of HBMP are nested: the first bits of long codes are codes too, with weights of their own.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field

import numpy as np

from hbmp import hamming
from hbmp._core import catalog
from hbmp._core.labels import distinct_rows
from hbmp.hasher import get_method

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
    """A piece from "mlp" or ["mlp", {settings}]; "auto" and objects stay as they are.

    A network's backbone is given the same way: ["network", {"backbone": ["efficientnet_lite0", {"size": 160}]}].
    """
    if isinstance(given, str):
        return given if given == "auto" else catalog.load(folder, given)()
    if isinstance(given, (list, tuple)):
        name, settings = given
        if "backbone" in settings:
            settings = {**settings, "backbone": make_piece("backbones", settings["backbone"])}
        return catalog.load(folder, name)(**settings)
    return given


def takes_images(method) -> bool:
    """Whether the hash function of a method sees images, and not features."""
    return bool(getattr(getattr(method, "function", None), "takes_images", False))


def learned_codes(method, inputs, labels, split) -> Codes:
    """Fit on the training rows of features (n, d) or images (n, h, w, 3) and encode queries and database."""
    images = takes_images(method)
    if inputs is None:
        missing = "images" if images else "features"
        raise ValueError(f"These data have no {missing} to learn from. Use data that have them, or target codes.")
    rows = _images if images else _rows
    y = None if labels is None else labels[split.train]
    start = time.perf_counter()
    method.fit(rows(inputs, split.train), y)
    fitted = time.perf_counter()
    scores = method.project(rows(inputs, split.query))
    database = method.transform(rows(inputs, split.database))
    seconds = {"fit": fitted - start, "encode": time.perf_counter() - fitted}
    facts: dict = {}
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


def first_bits(codes: Codes, method, n_bits: int) -> Codes:
    """The first bits of nested codes, weighted as the method weights a prefix of that length."""
    book = method.codebook_
    scores = None if codes.query_scores is None else codes.query_scores[:, :n_bits]
    facts = {**codes.facts, "relative_residual": float(book.relative_residuals[n_bits])}
    weights = method.weights_for(n_bits)
    facts["negative_weights"] = int((weights < 0).sum())
    facts.pop("unmatched_bits", None)  # that is a share of all bits
    return Codes(codes.query[:, :n_bits], codes.database[:, :n_bits], weights, scores, dict(codes.seconds), facts)


def target_codes(method, labels, split, *, items: str, seed: int) -> Codes:
    """Target codes of queries and database from their labels; `items`: "train" or "all" label sets make the book."""
    if labels is None:
        raise ValueError("Target codes come from labels, and this protocol has none. Use codes='function'.")
    used = labels[split.train] if items == "train" else labels[np.union1d(split.query, split.database)]
    start = time.perf_counter()
    affinity = method.label_affinity(used).fit(None, used)
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


def _images(images, rows: np.ndarray):
    """Some of the images, in memory or as paths."""
    return [images[row] for row in rows] if isinstance(images, (list, tuple)) else images[rows]
