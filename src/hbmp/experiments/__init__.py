"""Experiments: one cell of a table is one JSON line; recipes hold the paper's tables, and the report shows both."""

from hbmp.experiments.cells import CODES, Cell, Place
from hbmp.experiments.codes import Codes
from hbmp.experiments.records import made_by, record, settings_of
from hbmp.experiments.running import cut, is_current, load_results, measure, run, run_all, train

__all__ = [
    "CODES",
    "Cell",
    "Codes",
    "Place",
    "cut",
    "is_current",
    "load_results",
    "made_by",
    "measure",
    "record",
    "run",
    "run_all",
    "settings_of",
    "train",
]
