"""Reports of near-duplicates: a page that shows each group side by side, JSON, CSV, and a few lines of text."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

from hbmp._core.table import Table
from hbmp.app.duplicates.collections import Collections
from hbmp.app.duplicates.grouped import groups_of_report
from hbmp.app.duplicates.page import as_html
from hbmp.dedup import Duplicates

ENDINGS = (".html", ".json", ".csv")
_LINES = 10  # groups in the text


def check_ending(path: str) -> None:
    """Refuse a report of an unknown kind before the work begins."""
    if Path(path).suffix.lower() not in ENDINGS:
        raise ValueError(f"Reports must end in {', '.join(ENDINGS)}; found {path}.")


def render(path: str, found: Duplicates, items: Collections, *, shown: int) -> str:
    """The report in the format that its suffix names."""
    ending = Path(path).suffix.lower()
    if ending == ".json":
        return as_json(found, items) + "\n"
    return as_csv(found, items) if ending == ".csv" else as_html(found, items, shown=shown)


def as_json(found: Duplicates, items: Collections) -> str:
    """Every group, and how the threshold was found."""
    calibration = None
    if found.calibration is not None:
        tail = found.calibration
        calibration = {"pairs": tail.n_pairs, "start": tail.start, "share": tail.share, "scale": tail.scale}
    told = {
        "items": found.n_items - found.n_old,
        "old_items": found.n_old,
        "kind": items.kind,
        "threshold": found.threshold,
        "rate": found.rate,
        "expected_false_pairs": found.expected_false_pairs,
        "pairs": len(found.pairs),
        "removed": len(found.removed),
        "calibration": calibration,
        "groups": [members for _, members in groups_of_report(found, items)],
    }
    return json.dumps(told, ensure_ascii=False)


def as_csv(found: Duplicates, items: Collections) -> str:
    """One line per item of a group."""
    file = io.StringIO()
    table = csv.writer(file, lineterminator="\n")
    table.writerow(("group", "item", "kept", "old", "like", "similarity"))
    for number, members in groups_of_report(found, items):
        for each in members:
            told = each["like"], each["similarity"]
            table.writerow((number, each["item"], int(each["kept"]), int(each["old"]), *told))
    return file.getvalue()


def as_text(found: Duplicates, items: Collections, source: str) -> str:
    """A sentence, and the largest groups."""
    lines = [f"{source}: {found.about()}"]
    if found.expected_false_pairs is not None and len(found.pairs):
        false = f"{found.expected_false_pairs:.2g}"
        lines.append(f"{len(found.pairs):,} pairs are similar; by chance, about {false} unrelated pairs would be.")
    if not found.groups:
        return "\n".join(lines)
    order = sorted(groups_of_report(found, items), key=lambda group: -len(group[1]))[:_LINES]
    rows = [
        (str(number), str(len(members)), members[0]["item"], ", ".join(each["item"] for each in members[1:4]))
        for number, members in order
    ]
    rows = [(a, b, c, d + (", …" if int(b) > 4 else "")) for a, b, c, d in rows]
    table = Table(("group", "items", "kept first", "others"), tuple(rows), n_names=0, n_notes=2)
    more = f"\n\nThe {_LINES} largest of {len(found.groups):,} groups." if len(found.groups) > _LINES else ""
    return "\n".join(lines) + f"\n\n{table.text()}{more}"
