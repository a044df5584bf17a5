"""Searching a database: the model encodes queries, the index finds candidates, vectors rank them if requested."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp._core.filters import Where
from hbmp.database.encoding import vectors_of
from hbmp.database.items import Items
from hbmp.hasher import Hasher
from hbmp.index import Index
from hbmp.index.rescoring import rescore as rescored

Metric = Literal["cosine", "ip", "l2"]
Rescoring = tuple[NDArray[Any], int, Metric]  # vectors of the queries, number of candidates, distance
_ATTEMPTS = 3  # searches while another thread changes the index, before it has to wait


class Searchable(Items):
    """The part of a `Database` that searches."""

    def search(
        self,
        X: Any,
        k: int = 10,
        *,
        real_valued: bool | None = None,
        where: Where | None = None,
        ids: Any = None,
        n_bits: int | None = None,
        rescore: int | None = None,
        metric: Metric = "cosine",
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Find the nearest items to each query.

        Parameters
        ----------
        X : array-like of shape (n_queries, n_features), Images, path or list of str
            Queries, as the model takes them; texts for a model that has an encoder.
        k : int, default=10
            Number of items per query.
        real_valued : bool, default=None
            Compare the scores of a query before the sign: finer distances. None is True with `rescore`, where the
            candidates then miss fewer items, and for models learned for such queries (`HBMP(queries="floats")`).
        where : mapping, default=None
            Conditions on the payload and on "label", all of which must hold: ``{"brand": "sony"}``,
            ``{"brand": ["sony", "canon"]}``, ``{"price": {">=": 10, "<": 20}}``.
        ids : array-like of int or str, default=None
            Search only among these items; unknown ids are ignored.
        n_bits : int, default=None
            Compare only the first bits of the codes.
        rescore : int, default=None
            Rank this many nearest codes by their original vectors, which the database must hold. Distances are then
            those of the vectors.
        metric : {"cosine", "ip", "l2"}, default="cosine"
            Distance for `rescore`, see `hbmp.rescore`.

        Returns
        -------
        distances : ndarray of shape (n_queries, k)
            Weighted Hamming distances, ascending, or those of `metric`; infinity if there are fewer than `k`.
        ids : ndarray of shape (n_queries, k)
            Ids of the items; -1, or None for ids that are texts, if there are fewer than `k`.
        """

        def encode(model: Hasher) -> tuple[NDArray[Any], Rescoring | None]:
            finer = real_valued
            if finer is None:
                finer = rescore is not None or getattr(model, "queries", "codes") == "floats"
            if rescore is None:
                return model.project(X) if finer else model.transform(X), None
            vectors = vectors_of(model, X)
            queries = model.project(vectors) if finer else model.transform(vectors)
            return queries, (np.asarray(vectors), rescore, metric)

        if rescore is not None and self.vectors is None:
            raise ValueError(
                "Rescoring needs the original vectors, which this database does not store: build it with "
                "vectors='float16', or use hbmp.rescore with vectors of your own."
            )
        return self._searched(encode, k, n_bits, None, where, ids)

    def search_codes(
        self,
        queries: ArrayLike,
        k: int = 10,
        *,
        n_bits: int | None = None,
        bit_weights: ArrayLike | None = None,
        where: Where | None = None,
        ids: Any = None,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Find the nearest items to codes or scores that the model has computed before.

        Parameters
        ----------
        queries : array-like of shape (n_queries, n_bits)
            Signs, or scores before the sign.
        k : int, default=10
            Number of items per query.
        n_bits : int, default=None
            Compare only the first bits.
        bit_weights : array-like of shape (n_bits,), default=None
            Weights instead of the database's own.
        where, ids
            As for `search`.

        Returns
        -------
        distances : ndarray of shape (n_queries, k)
            Weighted Hamming distances, ascending.
        ids : ndarray of shape (n_queries, k)
            Ids of the items.
        """
        return self._searched(lambda _: (queries, None), k, n_bits, bit_weights, where, ids)

    def _searched(
        self,
        encode: Callable[[Hasher], tuple[ArrayLike, Rescoring | None]],
        k: int,
        n_bits: int | None,
        bit_weights: ArrayLike | None,
        where: Where | None,
        ids: Any,
    ) -> tuple[NDArray[Any], NDArray[Any]]:
        """Encode and search; repeat if another thread or process has changed the database."""
        model, encoded = None, None
        for attempt in range(1, _ATTEMPTS + 1):
            waiting = attempt == _ATTEMPTS  # hold the lock and the state of the file all the time
            with self._snapshot() if waiting else nullcontext():
                with self._snapshot() as contents:
                    index, state = contents.index, (contents.changes, contents.generation)
                    subset = contents.chosen(ids, where)
                    if encoded is None or model is not self.model:
                        model, encoded = self.model, None
                queries, rescoring = encoded = encode(model) if encoded is None else encoded
                weights = self._weights(index, n_bits) if bit_weights is None else bit_weights
                wanted = k if rescoring is None else max(k, rescoring[1])
                found, numbers = index.search(queries, wanted, n_bits=n_bits, bit_weights=weights, subset=subset)
                with self._snapshot() as contents:
                    if (contents.changes, contents.generation) == state and self.model is model:
                        if rescoring is not None:
                            X, _, metric = rescoring
                            found, numbers = rescored(X, numbers, contents.vectors, k=k, metric=metric)
                        return found, contents.ids_at(numbers)
        raise RuntimeError("The database changes faster than it can be searched.")

    def _weights(self, index: Index, n_bits: int | None) -> NDArray[Any] | None:
        """The best weights of the first bits; None where the index has them."""
        if n_bits is None or n_bits == index.n_bits or not hasattr(self.model, "weights_for"):
            return None
        return np.asarray(self.model.weights_for(n_bits))
