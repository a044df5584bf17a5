"""Protocols of comparison, one per file: `cifar_1.py` is "cifar-1".

A protocol defines how training, query and database items are drawn, what is relevant to a query, and which metrics are
computed under which conventions. `hbmp.protocols.get("cifar-1")` returns one.
"""

from __future__ import annotations

import difflib
from typing import Any

from hbmp._core import catalog
from hbmp.protocols._shared.base import Protocol
from hbmp.protocols._shared.measure import Measure
from hbmp.protocols._shared.split import Split

__all__ = ["Measure", "Protocol", "Split", "get", "names"]


def names() -> tuple[str, ...]:
    """List the protocols.

    Returns
    -------
    tuple of str
        Their names, as tables print them.

    Examples
    --------
    >>> from hbmp import protocols
    >>> protocols.names()[:2]
    ('cifar-1', 'cifar-2')
    """
    return tuple(name.replace("_", "-") for name in catalog.names("protocols"))


def get(name: str, **settings: Any) -> Protocol:
    """Create a protocol by name.

    Parameters
    ----------
    name : str
        Name of the protocol.
    **settings
        Settings that differ from its own, such as ``train_per_class=50``.

    Returns
    -------
    Protocol
        The protocol.

    Examples
    --------
    >>> from hbmp import protocols
    >>> protocols.get("cifar-1", train_per_class=50).name
    'cifar-1'
    """
    if name not in names():
        close = difflib.get_close_matches(str(name), names(), n=1)
        hint = f" Did you mean {close[0]!r}?" if close else ""
        raise LookupError(f"No protocol called {name!r}.{hint} There are {len(names())}: {', '.join(names())}.")
    protocol: Protocol = catalog.load("protocols", name.replace("-", "_"))(**settings)
    return protocol


def __getattr__(name: str) -> Any:
    return catalog.load_class("protocols", name)


def __dir__() -> list[str]:
    return sorted([*__all__, *catalog.names("protocols")])
