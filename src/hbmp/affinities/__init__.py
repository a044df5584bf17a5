"""Who should be close: one neighbourhood a file."""

from hbmp._core import catalog
from hbmp.affinities._shared.base import Affinity

__all__ = ["Affinity"]


def __getattr__(name: str):
    return catalog.load_class("affinities", name)


def __dir__():
    return sorted([*__all__, *catalog.names("affinities")])
