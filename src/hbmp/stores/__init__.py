"""The engines users already run: one a file."""

from hbmp import catalog


def __getattr__(name: str):
    return catalog.load_class("stores", name)


def __dir__():
    return list(catalog.names("stores"))
