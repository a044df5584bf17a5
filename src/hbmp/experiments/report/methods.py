"""Every method side by side, one table a protocol: default settings, best first."""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from hbmp import protocols
from hbmp._core.table import Table
from hbmp.experiments import scores
from hbmp.experiments.image_grid import learned_anyway
from hbmp.experiments.report.tables import LARGE_IMAGES, at_defaults, group_name, machine_text, mean_text
from hbmp.hasher import get_method


def methods_tables(records: list[dict]) -> dict[str, Table]:
    """For each protocol with results of more than HBMP, a row a method by the protocol's own score, best first."""
    groups: dict[str, list[dict]] = defaultdict(list)
    for record in records:
        if at_defaults(record["cell"]):
            groups[group_name(record)].append(record)
    return {
        name: _table(name, group)
        for name, group in sorted(groups.items())
        if {record["cell"]["method"] for record in group} != {"hbmp"}
    }


def _table(name: str, records: list[dict]) -> Table:
    protocol = protocols.get(records[0]["cell"]["protocol"])
    measure, *others = [each.name for each in protocol.measures]
    graded = [name for name in others if name.startswith("ndcg-shared")]
    lengths = sorted({record["cell"]["bits"] for record in records})
    judged = _judged_length(records)
    by_method: dict[tuple[str, str], dict[int, list[dict]]] = defaultdict(lambda: defaultdict(list))
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
                *(mean_text(scores.own_score(record, measure) for record in cells[n]) for n in lengths),
                mean_text(_tie_aware(record, measure) for record in at),
                mean_text(record["scores"].get(f"{measure}.real-valued") for record in at),
                *(mean_text(scores.own_score(record, extra) for record in at) for extra in graded),
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
        "encoded a second",
    )
    machines = sorted({machine_text(record) for record in records})
    caption = (
        f"{measure}, each method at its defaults (constants of its publication; hash functions, steps and optimiser "
        "shared where a method leaves them open), by its own distance: weighted where it has bit weights. Means over "
        f"the seeds that all methods of a column have. Sorted by {judged} bits. {protocol.caption} "
        f"{LARGE_IMAGES + ' ' if name.endswith('images') else ''}"
        f"Times are of one cell among several on {'; '.join(machines)}."
    )
    return Table(header, tuple(rows), f"{name}: every method", caption, n_names=2)


def _row(record: dict) -> tuple[str, str]:
    """The method, and where its codes are the first bits of longer ones, of how many."""
    cell = record["cell"]
    own = cell["codes"] == "function" or learned_anyway(cell)
    return cell["method"], "" if own else f", first bits of {cell['codes'].split()[-1]}"


def _uses_labels(method: str, protocol) -> bool:
    return get_method(method).supervised or (method == "hbmp" and protocol.name != "labelme")


def _on_common_seeds(records) -> list[dict]:
    """At each code length only the seeds that every method there has: another seed is another split."""
    seeds: dict[int, dict[tuple[str, str], set]] = defaultdict(lambda: defaultdict(set))
    for record in records:
        cell = record["cell"]
        seeds[cell["bits"]][_row(record)].add(cell["seed"])
    common = {length: set.intersection(*methods.values()) for length, methods in seeds.items()}
    return [record for record in records if record["cell"]["seed"] in common[record["cell"]["bits"]]]


def _judged_length(records) -> int:
    """The longest codes that nearly as many methods have as any other length."""
    methods: dict[int, set] = defaultdict(set)
    for record in records:
        methods[record["cell"]["bits"]].add(_row(record))
    most = max(map(len, methods.values()))
    return max(length for length, found in methods.items() if len(found) >= 0.8 * most)


def _tie_aware(record: dict, measure: str) -> float | None:
    found = record["scores"]
    return found.get(f"{measure}.weighted.tie-aware", found.get(f"{measure}.tie-aware"))


def _seconds(records) -> str:
    return f"{np.mean([record['seconds']['fit'] for record in records]):.1f}" if records else scores.MISSING


def _rate(records) -> str:
    if not records:
        return scores.MISSING
    encoded = np.mean([record["split"]["query"] + record["split"]["database"] for record in records])
    return f"{encoded / max(np.mean([record['seconds']['encode'] for record in records]), 1e-9):,.0f}"
