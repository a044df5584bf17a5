"""The settings of HBMP as published, beside its hash function: `HBMP.paper` and the recipes of the paper's tables."""

from __future__ import annotations

from typing import Any

PUBLISHED: dict[str, Any] = {
    "improve": "resample",
    "item_weights": None,
    "weighting": "least-squares",
    "feature_share": 0,
    "intercept": False,
    "contrast_share": 0,
    "dither": 0,
    "extra_bits": 0,
    "detail_bits": 0,
    "label_share": 0,
    "label_queries": False,
    "weight_share": 1,
    "restarts": 1,
}
