"""Near-duplicates: groups of items that are closer than unrelated ones ever are.

    found = hbmp.deduplicate(X)                     # features of texts, pictures or anything else
    found.groups, found.kept, found.removed         # rows
    hbmp.deduplicate(X_new, against=X_old)          # new items against a collection

The parts: `dedup.space` is where items are compared, `dedup.calibration` finds the threshold from the data,
`dedup.joining` finds all pairs of codes within a radius, `dedup.grouping` makes groups of pairs.
"""

from __future__ import annotations

from hbmp.dedup.calibration import Calibration, calibrate
from hbmp.dedup.finding import Duplicates, deduplicate
from hbmp.dedup.joining import pairs_within

__all__ = ["Calibration", "Duplicates", "calibrate", "deduplicate", "pairs_within"]
