"""Published hashing methods: one a file."""

from hbmp._core import catalog


def __getattr__(name: str):
    return catalog.load_class("methods", name)


def __dir__():
    return list(catalog.names("methods"))
