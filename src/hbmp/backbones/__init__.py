"""Networks that turn images into features, with their own preprocessing and weights: one a file."""

from hbmp._core import catalog
from hbmp.backbones._shared.base import Backbone

__all__ = ["Backbone"]


def __getattr__(name: str):
    return catalog.load_class("backbones", name)


def __dir__():
    return sorted([*__all__, *catalog.names("backbones")])
