"""Which rows train, query and are searched, and how such rows are drawn."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp._core.arrays import read_npz
from hbmp._core.files import beside
from hbmp._core.reading import reading
from hbmp.datasets import Data


@dataclass(frozen=True)
class Split:
    """Training, query and database rows: sorted index arrays into the rows of the data.

    Parameters
    ----------
    train : ndarray of int, shape (n_train,)
        Training rows.
    query : ndarray of int, shape (n_query,)
        Queries.
    database : ndarray of int, shape (n_database,)
        Rows that are searched; training rows are included where the protocol includes them.

    Examples
    --------
    >>> import numpy as np
    >>> from hbmp.protocols import Split
    >>> Split(np.array([0, 1]), np.array([2]), np.array([0, 1, 3])).checksum
    '527608f2a1d3'
    """

    train: NDArray[Any]
    query: NDArray[Any]
    database: NDArray[Any]

    @cached_property
    def checksum(self) -> str:
        """Twelve hexadecimal digits of the SHA-256 of all rows: equal splits have equal digits."""
        digest = hashlib.sha256()
        for rows in (self.train, self.query, self.database):
            digest.update(len(rows).to_bytes(8, "little") + rows.astype("<i8").tobytes())
        return digest.hexdigest()[:12]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a compressed `.npz` file with one byte per row: 1 for train, 2 for query, 4 for database, added up.

        Parameters
        ----------
        path : str or Path
            The file.
        """
        n_rows = 1 + max(int(rows.max(initial=0)) for rows in (self.train, self.query, self.database))
        roles = np.zeros(n_rows, dtype=np.uint8)
        for role, rows in ((1, self.train), (2, self.query), (4, self.database)):
            roles[rows] |= role
        with beside(Path(path)) as part, open(part, "wb") as file:
            np.savez_compressed(file, roles=roles)

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Split:
        """Read a split that `save` wrote.

        Parameters
        ----------
        path : str or Path
            The file.

        Returns
        -------
        Split
            The split.
        """
        arrays = read_npz(Path(path))
        with reading(Path(path), "a split"):
            return cls(*(np.flatnonzero(arrays["roles"] & role) for role in (1, 2, 4)))


def draw_per_class(classes: NDArray[Any], counts: tuple[int, ...], seed: int) -> list[NDArray[Any]]:
    """Disjoint sorted index arrays, one per count, with that many items of every class."""
    rng = np.random.default_rng(seed)
    drawn: list[list[NDArray[Any]]] = [[] for _ in counts]
    for value in np.unique(classes):
        rows = rng.permutation(np.flatnonzero(classes == value))
        if len(rows) < sum(counts):
            raise ValueError(
                f"The protocol draws {sum(counts)} items per class, and class {value} has {len(rows)}. "
                "Use the whole data set, or set fewer items per class."
            )
        for part, piece in zip(drawn, np.split(rows, np.cumsum(counts))[:-1], strict=True):
            part.append(piece)
    return [np.sort(np.concatenate(part)) for part in drawn]


def all_but(n_rows: int, left_out: NDArray[Any]) -> NDArray[Any]:
    """The sorted indices below n_rows without those left out."""
    kept = np.ones(n_rows, dtype=bool)
    kept[left_out] = False
    return np.flatnonzero(kept)


def given_split(data: Data) -> NDArray[Any]:
    """The split that comes with the data, (n,): 0 query, 1 train, 2 further database, -1 unused."""
    if data.split is None:
        raise ValueError(f"This protocol uses the split that comes with the data; {data.name} has none. Add `split`.")
    return np.asarray(data.split)
