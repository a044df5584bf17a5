"""Networks that turn images into features, with their own preprocessing and weights: one a file."""

from hbmp import catalog


def __getattr__(name: str):
    return catalog.load_class("backbones", name)


def __dir__():
    return list(catalog.names("backbones"))
