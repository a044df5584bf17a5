"""Data sets in their official layouts: one a file. `hbmp.datasets.load("cifar10")` reads one."""

from hbmp._core import catalog
from hbmp.datasets._shared.base import Data, DataSet, MissingData, Remote, data_dir, get, load, names

__all__ = ["Data", "DataSet", "MissingData", "Remote", "data_dir", "get", "load", "names"]


def __getattr__(name: str):
    return catalog.load_class("datasets", name)


def __dir__():
    return sorted([*__all__, *catalog.names("datasets")])
