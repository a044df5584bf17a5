"""Retrieval metrics: average precision, NDCG, precision and recall, with every convention by name.

Each metric ranks the database for each query by (weighted) Hamming distance, in blocks, so that 10,000 queries against
200,000 codes need no 10,000 × 200,000 matrix. A score is meaningful only with its cutoff, denominator, tie rule and
gain. All of them are arguments, and the defaults follow the paper's own evaluation.
"""

from hbmp.metrics.average_precision import (
    average_precision_per_query,
    average_precision_scorer,
    mean_average_precision,
    self_retrieval_map,
)
from hbmp.metrics.bootstrap import ConfidenceInterval, confidence_interval
from hbmp.metrics.collapse import distinct_codes, self_first_share, tied_share
from hbmp.metrics.ndcg import find_largest_grade, ndcg, ndcg_per_query, ndcg_scorer
from hbmp.metrics.neighbours import Nearest, neighbour_recall
from hbmp.metrics.precision import (
    PrecisionRecall,
    curve_of,
    curve_ranks,
    hits_scorer,
    precision_at,
    precision_recall_curve,
    radius_precision,
    radius_success,
    recall_at,
)
from hbmp.metrics.relevance import (
    CountsSharedLabels,
    DistanceGrades,
    DistanceLevels,
    Graded,
    Relevance,
    SameClass,
    SharedLabels,
    SharesClass,
    remembered,
)
from hbmp.metrics.together import score_together

__all__ = [
    "ConfidenceInterval",
    "CountsSharedLabels",
    "DistanceGrades",
    "DistanceLevels",
    "Graded",
    "Nearest",
    "PrecisionRecall",
    "Relevance",
    "SameClass",
    "SharedLabels",
    "SharesClass",
    "average_precision_per_query",
    "average_precision_scorer",
    "confidence_interval",
    "curve_of",
    "curve_ranks",
    "distinct_codes",
    "find_largest_grade",
    "hits_scorer",
    "mean_average_precision",
    "ndcg",
    "ndcg_per_query",
    "ndcg_scorer",
    "neighbour_recall",
    "precision_at",
    "precision_recall_curve",
    "radius_precision",
    "radius_success",
    "recall_at",
    "remembered",
    "score_together",
    "self_first_share",
    "self_retrieval_map",
    "tied_share",
]
