"""How methods are compared: one named protocol a file, `cifar_1.py` for "cifar-1".

A protocol says how training, query and database items are drawn, what is relevant to a query, and which metrics are
taken with which conventions. `hbmp.protocols.get("cifar-1")` gives one.
"""

from __future__ import annotations

import difflib

from hbmp._core import catalog
from hbmp.protocols._shared.base import Measure, Protocol, Split

__all__ = ["Measure", "Protocol", "Split", "get", "names"]


def names() -> tuple[str, ...]:
    """The names of all protocols, as tables print them."""
    return tuple(name.replace("_", "-") for name in catalog.names("protocols"))


def get(name: str, **settings) -> Protocol:
    """The protocol called `name`; settings change its sizes, for example `get("cifar-1", train_per_class=50)`."""
    if name not in names():
        close = difflib.get_close_matches(str(name), names(), n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise LookupError(f"No protocol called {name!r}.{hint} There are {len(names())}: {', '.join(names())}.")
    return catalog.load("protocols", name.replace("-", "_"))(**settings)


def __getattr__(name: str):
    return catalog.load_class("protocols", name)


def __dir__():
    return sorted([*__all__, *catalog.names("protocols")])
