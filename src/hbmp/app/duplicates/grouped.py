"""The groups of a report: what is told of each item, the kept one first."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from hbmp.app.duplicates.collections import Collections
from hbmp.dedup import Duplicates


def groups_of_report(found: Duplicates, items: Collections) -> Iterator[tuple[int, list[dict[str, Any]]]]:
    """(number, members) of each group; the kept item comes first."""
    similar: dict[tuple[int, int], float] = {}
    for (i, j), value in zip(found.pairs.tolist(), found.similarities.tolist(), strict=True):
        similar[i, j] = value
    for number, (group, kept) in enumerate(zip(found.groups, found.kept.tolist(), strict=True), start=1):
        rows = [kept, *(row for row in group.tolist() if row != kept)]
        members = []
        for row in rows:
            similarity = 1.0 if row == kept else similar.get((max(row, kept), min(row, kept)))
            members.append(
                {
                    "item": items.name(row),
                    "row": row,
                    "kept": row == kept,
                    "old": row < found.n_old,
                    "similarity": None if similarity is None else round(similarity, 4),
                }
            )
        yield number, members
