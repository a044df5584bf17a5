"""Hash functions that learn target codes: one a file."""

from hbmp._core import catalog
from hbmp.functions._shared.base import HashFunction

__all__ = ["HashFunction"]


def __getattr__(name: str):
    return catalog.load_class("functions", name)


def __dir__():
    return sorted([*__all__, *catalog.names("functions")])
