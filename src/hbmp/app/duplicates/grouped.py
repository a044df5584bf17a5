"""The groups of a report: the facts shown for each item, the kept one first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hbmp.app.duplicates.collections import Collections
from hbmp.dedup import Duplicates


def groups_of_report(found: Duplicates, items: Collections) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """(number, members) of each group; each removed item has the most similar kept one as `like`."""
    kept = set(found.kept.tolist())
    like: dict[int, tuple[float, int]] = {}
    for (i, j), similarity in zip(found.pairs.tolist(), found.similarities.tolist(), strict=True):
        for row, other in ((i, j), (j, i)):
            if other in kept and row not in kept:
                like[row] = max(like.get(row, (-1.0, -1)), (similarity, other))
    for number, group in enumerate(found.groups, start=1):
        members = []
        for row in sorted(group.tolist(), key=lambda row: row not in kept):
            similarity, other = like.get(row, (1.0, row))
            members.append(
                {
                    "item": items.name(row),
                    "row": row,
                    "kept": row in kept,
                    "old": row < found.n_old,
                    "like": items.name(other),
                    "similarity": round(similarity, 4),
                }
            )
        yield number, members
