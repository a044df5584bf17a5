"""The stored results of `without_labels.py` as Markdown: leads of HBMP, recall of every method, nested prefixes.

python benchmarks/without_labels_tables.py            prints the tables
python benchmarks/without_labels_tables.py --write    into docs/without-labels.md, below its heading "Tables"
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

import without_labels_settings
from without_labels import METRICS, SETS, stored
from without_labels_methods import METHODS

PAGE = Path(__file__).parent.parent / "docs" / "without-labels.md"
SETTINGS, HEADING, COMMANDS = "<!-- settings -->", "## Tables\n", "<!-- not run"
OWN, FLOATS = "HBMP", "HBMP, float queries"  # the defaults, and queries="floats"


def cells(queries, depth="at_10", endings=("", " hamming")):
    """{(metric, ratio, data): {method: mean recall}} by the best ranking of these queries."""
    found: dict = {}
    for row in stored():
        names = [queries + ending for ending in endings]
        scores = [each[depth] for each in row["results"] if each["queries"] in names and depth in each]
        if scores:
            cell = found.setdefault((row["metric"], row["ratio"], row["data"]), {})
            cell.setdefault(row["method"], []).append(max(scores))
    return {key: {method: float(np.mean(s)) for method, s in cell.items()} for key, cell in found.items()}


def lead(column, own):
    """How far this HBMP is ahead of the best other method, or None where either is missing."""
    others = [value for method, value in column.items() if not method.startswith(OWN)]
    return column[own] - max(others) if others and own in column else None


def lead_table(depth, queries, own=OWN):
    """HBMP less the best other in points: one row per metric and bits per dimension, one column per set."""
    found = cells(queries, depth)
    lines = ["| metric | bits per dimension | " + " | ".join(SETS) + " | mean |"]
    lines.append("|:---|---:|" + "---:|" * (len(SETS) + 1))
    for metric in METRICS:
        for ratio in sorted({key[1] for key in found if key[0] == metric}):
            columns = [found.get((metric, ratio, name), {}) for name in SETS]
            leads = [lead(column, own) for column in columns]
            known = [each for each in leads if each is not None]
            if known:
                shown = [rival(column, own) for column in columns]
                lines.append(f"| {metric} | {ratio:g} | " + " | ".join(shown) + f" | {100 * np.mean(known):+.1f} |")
    return "\n".join(lines)


def rival(column, own):
    """The lead in points and the best other method."""
    if lead(column, own) is None:
        return "—"
    others = {method: value for method, value in column.items() if not method.startswith(OWN)}
    return f"{100 * lead(column, own):+.1f} {max(others, key=others.__getitem__)}"


def recall_table(title, columns):
    """Recall of every method (rows) on every set (columns), the best of a set in bold."""
    names = [name for name in SETS if name in columns]
    lines = [f"**{title}**", "", "| method | " + " | ".join(names) + " |", "|:---|" + "---:|" * len(names)]
    for method in METHODS:
        if any(method in columns[name] for name in names):
            lines.append(f"| {method} | " + " | ".join(shown(columns[name], method) for name in names) + " |")
    return "\n".join(lines)


def shown(column, method):
    """A cell of a table, in bold where it is the best of its column."""
    if method not in column:
        return "—"
    text = f"{column[method]:.3f}"
    return f"**{text}**" if column[method] == max(column.values()) else text


def recall_tables(metrics, endings=("", " hamming"), methods=None, words=""):
    """Recall@10 per metric, bits per dimension and kind of query."""
    parts = []
    for queries in ("float", "codes"):
        found = cells(queries, endings=endings)
        for metric, ratio in sorted({key[:2] for key in found if key[0] in metrics}):
            columns = {key[2]: column for key, column in found.items() if key[:2] == (metric, ratio)}
            if methods:
                columns = {name: {m: v for m, v in each.items() if m in methods} for name, each in columns.items()}
            parts.append(recall_table(f"{words}{metric}, {queries} queries, {ratio:g} bits per dimension", columns))
    return "\n\n".join(parts)


def nested_table():
    """Recall@10 of prefixes of nested codes at one bit per dimension, and of codes learned at the same size."""
    rows = {(row["data"], row["method"], row["ratio"]): row for row in stored() if row["metric"] == "cosine"}
    lines = [
        "| set | bits per dimension | prefix of nested codes | codes of that size, float queries |",
        "|:---|---:|---:|---:|",
    ]
    for name in SETS:
        nested = rows.get((name, "HBMP nested", 1.0))
        for part in (4, 2, 1) if nested else ():
            own = rows.get((name, FLOATS, 1 / part))
            scores = [{each["queries"]: each["at_10"] for each in row["results"]} for row in (nested, own or nested)]
            prefix = scores[0]["float" if part == 1 else f"1/{part} float"]
            fresh = f"{scores[1]['float']:.3f}" if own else "—"
            lines.append(f"| {name} | {1 / part:g} | {prefix:.3f} | {fresh} |")
    return "\n".join(lines)


def tables():
    """Everything below the heading."""
    by_index = recall_tables(("cosine",), (" hamming",), (OWN, FLOATS, "ITQ", "PCA rotation"), "Index: ")
    parts = [
        "HBMP less the best other method in points of recall@10, and which that is. Real-valued queries, "
        'HBMP(queries="floats"):',
        lead_table("at_10", "float", FLOATS),
        "HBMP by its defaults, real-valued queries:",
        lead_table("at_10", "float"),
        "HBMP by its defaults, codes as queries:",
        lead_table("at_10", "codes"),
        "### New rows, and rescoring\n\nReal-valued queries. Among the 3,000 rows that did not train, "
        'HBMP(queries="floats"):',
        lead_table("new_at_10", "float", FLOATS),
        "HBMP by its defaults:",
        lead_table("new_at_10", "float"),
        'The ten nearest within the first 40, which is recall@10 after rescoring 4 times, HBMP(queries="floats"):',
        lead_table("at_40", "float", FLOATS),
        "HBMP by its defaults:",
        lead_table("at_40", "float"),
        "Within the first 100, HBMP by its defaults:",
        lead_table("at_100", "float"),
        "### Nested codes\n\nRecall@10 of real-valued queries by cosine, ranked by rebuilt vectors:",
        nested_table(),
        "### Recall@10 of every method\n",
        recall_tables(METRICS),
        "### What `hbmp.Index` finds\n\nRecall@10 by weighted Hamming distance.",
        by_index,
    ]
    return "\n\n".join(parts)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="into the page of the documentation")
    if not parser.parse_args().write:
        return print(tables())
    page = PAGE.read_text()
    start, end = page.index(HEADING) + len(HEADING), page.index(COMMANDS)
    page = page[:start] + "\n" + tables() + "\n\n" + page[end:]
    start, end = page.index(SETTINGS) + len(SETTINGS), page.index(HEADING)
    PAGE.write_text(page[:start] + "\n\n" + without_labels_settings.table((0.25, 0.5, 1)) + "\n\n" + page[end:])


if __name__ == "__main__":
    main()
