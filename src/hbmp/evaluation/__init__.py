"""Evaluation on your own arrays: one fitted model (`evaluate`) or methods side by side (`compare`)."""

from hbmp.evaluation.baselines import BaselineResult
from hbmp.evaluation.cells import MethodResult
from hbmp.evaluation.choice import MethodRun
from hbmp.evaluation.comparison import Comparison, compare
from hbmp.evaluation.first_results import FirstResults
from hbmp.evaluation.one_model import Evaluation, evaluate, hold_out

__all__ = [
    "BaselineResult",
    "Comparison",
    "Evaluation",
    "FirstResults",
    "MethodResult",
    "MethodRun",
    "compare",
    "evaluate",
    "hold_out",
]

Cell, Row = MethodRun, MethodResult  # their former names
