"""One cell of a table: method × protocol × data × bits × seed, and where its codes come from."""

from __future__ import annotations

import hashlib
import json
import os
from dataclasses import asdict, dataclass, field, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from hbmp import datasets, protocols

CODES = ("function", "target", "target-all")
_PREFIX = "prefix of "


@dataclass(frozen=True)
class Cell:
    """What to run: one number of a table.

    Parameters
    ----------
    method : str
        Name of the method.
    protocol : str
        Name of the protocol.
    data : str
        Name of the data set.
    bits : int
        Code length.
    seed : int, default=0
        Seed of the split and of the method.
    params : dict, default={}
        Settings of the method as JSON holds them:
        ``{"scheme": "constant", "function": ["mlp", {"hidden": [512]}]}``.
    protocol_params : dict, default={}
        Settings of the protocol that differ from its own.
    codes : str, default="function"
        "function" fits the method and encodes. "target" scores target codes of the labels, with a code book of the
        training items; "target-all" uses a code book of all items. "prefix of 48" scores the first bits of 48-bit
        codes, which are nested, with the weights for their own length.

    Examples
    --------
    >>> from hbmp.experiments import Cell
    >>> Cell("itq", "cifar-1", "digits", 16, params={"n_iter": 3}).label
    'itq(n_iter=3) cifar-1 on digits, 16 bits, seed 0'
    """

    method: str
    protocol: str
    data: str
    bits: int
    seed: int = 0
    params: dict[str, Any] = field(default_factory=dict)
    protocol_params: dict[str, Any] = field(default_factory=dict)
    codes: str = "function"

    def __post_init__(self) -> None:
        if self.codes not in CODES and not (self.codes.startswith(_PREFIX) and self.codes[len(_PREFIX) :].isdigit()):
            known = ", ".join(map(repr, CODES))
            raise ValueError(f"codes must be one of {known}, or '{_PREFIX}48'; found {self.codes!r}.")

    @property
    def key(self) -> str:
        """Sixteen hexadecimal digits that identify the cell."""
        text = json.dumps(asdict(self), sort_keys=True, ensure_ascii=False)
        return hashlib.sha256(text.encode()).hexdigest()[:16]

    @property
    def label(self) -> str:
        """The cell in a few words, for progress and errors."""
        settings = ", ".join(f"{key}={value}" for key, value in self.params.items())
        return f"{self.method}({settings}) {self.protocol} on {self.data}, {self.bits} bits, seed {self.seed}"

    @property
    def whole(self) -> Cell:
        """The cell that trains the codes: the cell itself, or the cell of the long codes that it takes a prefix of."""
        if not self.codes.startswith(_PREFIX):
            return self
        return replace(self, bits=int(self.codes[len(_PREFIX) :]), codes="function")


class Place:
    """Where a cell is measured: protocol, data and split.

    Parameters
    ----------
    cell : Cell
        The cell.
    data_dir : str or Path, default=None
        Data directory; `hbmp.datasets.data_dir` chooses one if None.

    Attributes
    ----------
    protocol : Protocol
        The protocol with the settings of the cell.
    data : Data
        The data set.
    split : Split
        The split that the protocol draws for the seed of the cell.

    Examples
    --------
    >>> from hbmp.experiments import Cell, Place
    >>> sizes = {"train_per_class": 10, "query_per_class": 4}
    >>> len(Place(Cell("itq", "cifar-1", "digits", 16, protocol_params=sizes)).split.train)
    100
    """

    def __init__(self, cell: Cell, data_dir: str | os.PathLike[str] | None = None):
        self.protocol = protocols.get(cell.protocol, **cell.protocol_params)
        self.data = _load(cell.data, str(datasets.data_dir(data_dir)))
        self.split = self.protocol.split(self.data, cell.seed)
        self._name = f"{cell.protocol}-{cell.data}-{cell.seed}"

    def save_split(self, results: str | os.PathLike[str]) -> None:
        """Save the split under `results/splits/`, so that others can run the same cell.

        Parameters
        ----------
        results : str or Path
            Folder of results.
        """
        folder = Path(results) / "splits"
        path = folder / f"{self._name}-{self.split.checksum}.npz"
        if path.exists():
            return
        folder.mkdir(parents=True, exist_ok=True)
        self.split.save(path)


@lru_cache(maxsize=2)
def _load(name: str, folder: str) -> datasets.Data:
    return datasets.load(name, folder)
