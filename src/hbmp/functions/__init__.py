"""Hash functions that learn target codes: one a file."""

from hbmp import catalog


def __getattr__(name: str):
    return catalog.load_class("functions", name)


def __dir__():
    return list(catalog.names("functions"))
