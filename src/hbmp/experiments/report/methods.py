"""Every method side by side, one table per protocol: default settings, best first."""

from __future__ import annotations

from collections import defaultdict
from functools import partial
from typing import Any

import numpy as np

from hbmp import protocols
from hbmp._core.table import Table
from hbmp.experiments import scores
from hbmp.experiments.image_grid import learned_anyway
from hbmp.experiments.report.tables import LARGE_IMAGES, at_defaults, group_name, machine_text, record_text, source_note
from hbmp.experiments.store import Record
from hbmp.hasher import get_method
from hbmp.protocols import Protocol


def methods_tables(records: list[Record]) -> dict[str, Table]:
    """For each protocol with results of more than HBMP, one row per method by the protocol's own score, best first."""
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if at_defaults(record["cell"]):
            groups[group_name(record)].append(record)
    return {
        name: _table(name, group)
        for name, group in sorted(groups.items())
        if {record["cell"]["method"] for record in group} != {"hbmp"}
    }


def _table(name: str, records: list[Record]) -> Table:
    protocol = protocols.get(records[0]["cell"]["protocol"])
    measure, *others = [each.name for each in protocol.measures]
    graded = [name for name in others if name.startswith("ndcg-shared")]
    lengths = sorted({record["cell"]["bits"] for record in records})
    judged = _judged_length(records)
    by_method: dict[tuple[str, str], dict[int, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in _on_common_seeds(records):
        by_method[_row(record)][record["cell"]["bits"]].append(record)

    def score(method: tuple[str, str]) -> float:
        found = scores.mean_and_spread(scores.own_score(record, measure) for record in by_method[method][judged])
        return -1.0 if found is None else found[0]

    rows = []
    for method in sorted(by_method, key=score, reverse=True):
        cells = by_method[method]
        at = cells[judged]
        rows.append(
            (
                "".join(method),
                "labels" if _uses_labels(method[0], protocol) else "none",
                *(record_text(cells[n], lambda record: scores.own_score(record, measure)) for n in lengths),
                record_text(at, lambda record: _tie_aware(record, measure)),
                record_text(at, lambda record: record["scores"].get(f"{measure}.real-valued")),
                *(record_text(at, partial(scores.own_score, name=extra)) for extra in graded),
                _seconds(at),
                _rate(at),
            )
        )
    header = (
        "method",
        "learns from",
        *(f"{n} bits" for n in lengths),
        f"tie-aware, {judged}",
        f"real-valued query, {judged}",
        *(f"{extra}, {judged}" for extra in graded),
        "fit (s)",
        "encoded per second",
    )
    machines = sorted({machine_text(record) for record in records})
    caption = (
        f"{measure}, each method at its defaults (constants of its publication; shared hash functions, steps and "
        "optimiser where it fixes none), by its own distance: weighted if it has bit weights. Means over the seeds "
        f"that all methods of a column have. Sorted by {judged} bits. {protocol.caption} "
        f"{LARGE_IMAGES + ' ' if name.endswith('images') else ''}"
        f"Times are of one cell among several on {'; '.join(machines)}. {source_note(records)}"
    ).rstrip()
    return Table(header, tuple(rows), f"{name}: every method", caption, n_names=2)


def _row(record: Record) -> tuple[str, str]:
    """The method, and the length of the longer codes whose first bits it takes."""
    cell = record["cell"]
    own = cell["codes"] == "function" or learned_anyway(cell)
    return cell["method"], "" if own else f", first bits of {cell['codes'].split()[-1]}"


def _uses_labels(method: str, protocol: Protocol) -> bool:
    return get_method(method).supervised or (method == "hbmp" and protocol.name != "labelme")


def _on_common_seeds(records: list[Record]) -> list[Record]:
    """At each code length, only the seeds that every method has; another seed means another split."""
    seeds: dict[int, dict[tuple[str, str], set[int]]] = defaultdict(lambda: defaultdict(set))
    for record in records:
        cell = record["cell"]
        seeds[cell["bits"]][_row(record)].add(cell["seed"])
    common = {length: set.intersection(*methods.values()) for length, methods in seeds.items()}
    return [record for record in records if record["cell"]["seed"] in common[record["cell"]["bits"]]]


def _judged_length(records: list[Record]) -> int:
    """The longest codes that nearly as many methods have as any other length."""
    methods: dict[int, set[Any]] = defaultdict(set)
    for record in records:
        methods[record["cell"]["bits"]].add(_row(record))
    most = max(map(len, methods.values()))
    return max(length for length, found in methods.items() if len(found) >= 0.8 * most)


def _tie_aware(record: Record, measure: str) -> float | None:
    found: dict[str, float] = record["scores"]
    return found.get(f"{measure}.weighted.tie-aware", found.get(f"{measure}.tie-aware"))


def _seconds(records: list[Record]) -> str:
    return f"{np.mean([record['seconds']['fit'] for record in records]):.1f}" if records else scores.MISSING


def _rate(records: list[Record]) -> str:
    if not records:
        return scores.MISSING
    encoded = np.mean([record["split"]["query"] + record["split"]["database"] for record in records])
    return f"{encoded / max(np.mean([record['seconds']['encode'] for record in records]), 1e-9):,.0f}"
