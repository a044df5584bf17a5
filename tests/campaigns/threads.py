"""Threads that search, add and remove at once: every result is right for a state that existed, and none fails."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import writers
from counting import Broken

import hbmp
from hbmp import hamming

TITLE = "Threads on one `Index` and one `Database`"
PROMISE = "each result is exact for a state that existed, additions are seen whole, nothing is lost"
GOAL = 3000
SLICE = 40
_TURNS = 5
_GROUP = 10  # items that come and go together
_BITS = 24


@contextmanager
def attacks(folder: Path) -> Iterator[Callable[..., Any]]:
    """One attack is one episode of two writing and two searching threads."""
    yield lambda number, rng: _episode(rng, (_OnIndex, _OnDatabase)[number % 2])


class _OnIndex:
    """Adds, removes and searches an index."""

    name = "index"

    def __init__(self, model: Any, X: np.ndarray, ids: np.ndarray):
        self.model, self.index = model, hbmp.Index(_BITS)
        self.add(X, ids)

    def add(self, X: np.ndarray, ids: np.ndarray) -> None:
        self.index.add(self.model.transform(X), ids)

    def remove(self, ids: np.ndarray) -> None:
        self.index.remove(ids)

    def search(self, queries: np.ndarray, k: int, n_bits: int) -> tuple[np.ndarray, np.ndarray]:
        self.index.nbytes  # noqa: B018 - measured while others change what it measures
        return self.index.search(queries, k, n_bits=n_bits)


class _OnDatabase:
    """The same on a database in memory."""

    name = "database"

    def __init__(self, model: Any, X: np.ndarray, ids: np.ndarray):
        self.database = hbmp.Database.build(model, X, ids=ids)

    def add(self, X: np.ndarray, ids: np.ndarray) -> None:
        self.database.add(X, ids=ids)

    def remove(self, ids: np.ndarray) -> None:
        self.database.remove(ids)

    def search(self, queries: np.ndarray, k: int, n_bits: int) -> tuple[np.ndarray, np.ndarray]:
        return self.database.search_codes(queries, k, n_bits=n_bits, bit_weights=np.ones(n_bits))


def _episode(rng: np.random.Generator, kind: type) -> list[tuple[str, str]]:
    groups = 2 * _TURNS
    model = writers.lsh(_BITS)
    X = rng.standard_normal((300 + groups * _GROUP, writers.X.shape[1])).astype(np.float32)
    codes, ids = model.transform(X), np.arange(len(X))
    subject = kind(model, X[:300], ids[:300])
    errors: list[BaseException] = []
    outcomes: list[tuple[str, str]] = []
    seeds = rng.integers(2**31, size=2)

    def write(who: int) -> None:
        for turn in range(_TURNS):
            group = ids[300 + (who * _TURNS + turn) * _GROUP :][:_GROUP]
            subject.add(X[group], group)
            if turn % 2:
                subject.remove(group)

    def search(who: int) -> None:
        own = np.random.default_rng(seeds[who])
        for _ in range(2 * _TURNS):
            n_bits = int(own.choice([5, 16, _BITS]))
            queries = np.where(own.random((2, _BITS)) < 0.5, 1, -1).astype(np.int8)[:, :n_bits]
            k = int(own.choice([3, len(codes)]))
            _check(codes, queries, n_bits, k, *subject.search(queries, k, n_bits))
            outcomes.append((kind.name, "right"))

    def guarded(work: Callable[[int], None], who: int) -> None:
        try:
            work(who)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work, who)) for work in (write, search) for who in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    if errors:
        raise Broken(f"{kind.name}: {type(errors[0]).__name__}: {errors[0]}") from errors[0]
    _, found = subject.search(codes[:1], len(codes), _BITS)
    gone = [300 + (who * _TURNS + turn) * _GROUP for who in (0, 1) for turn in range(1, _TURNS, 2)]
    expected = set(ids.tolist()) - {start + n for start in gone for n in range(_GROUP)}
    if set(found[0][found[0] >= 0].tolist()) != expected:
        raise Broken(f"{kind.name}: other items at the end")
    return outcomes


def _check(codes: np.ndarray, queries: np.ndarray, n_bits: int, k: int, found: np.ndarray, ids: np.ndarray) -> None:
    """Distances are those of the items, in order; stable items are never missed; groups are seen whole."""
    table = hamming.distances(queries, codes[:, :n_bits]).astype(np.float32)
    for row in range(len(queries)):
        here = ids[row][ids[row] >= 0]
        if len(set(here.tolist())) != len(here):
            raise Broken("an item twice")
        if not np.array_equal(table[row][here], found[row][: len(here)]):
            raise Broken("a distance of another item")
        if not np.array_equal(np.lexsort((here, found[row][: len(here)])), np.arange(len(here))):
            raise Broken("not in the order of distance and id")
        if k == len(codes):
            if not set(range(300)) <= set(here.tolist()):
                raise Broken("a stable item is missing")
            _, sizes = np.unique((here[here >= 300] - 300) // _GROUP, return_counts=True)
            if (sizes != _GROUP).any():
                raise Broken("a part of an addition")
        elif (np.sort(table[row][:300])[: len(here)] < found[row][: len(here)]).any():
            raise Broken("a nearer item is missing")
