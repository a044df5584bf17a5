"""Who should be close: one neighbourhood a file."""

from hbmp import catalog


def __getattr__(name: str):
    return catalog.load_class("affinities", name)


def __dir__():
    return list(catalog.names("affinities"))
