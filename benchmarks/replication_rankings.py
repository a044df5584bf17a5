"""The order of methods in each table of the paper and here."""

from __future__ import annotations

import numpy as np
from scipy import stats

from hbmp._core import catalog
from hbmp.experiments import Cell
from hbmp.experiments.scores import own_score, source_with_results
from hbmp.experiments.settings import SEEDS, hbmp, network
from replication_verdicts import HOLDS, NOT, PART, UNTESTED, Record, Rows


def rankings(records: list[Record]) -> Rows:
    """Each table's order of methods in the paper and here."""
    by_key = {record["key"]: record for record in records}
    rows: Rows = []
    for number in range(1, 5):
        for part in catalog.load_module("recipes", f"table{number}").PARTS:
            source = source_with_results(part, by_key)
            ours: dict[str, dict[tuple, float]] = {}
            for row in part.rows if source else ():
                cells = [part.cell(row, source, bits, seed) for bits in part.bits for seed in SEEDS]
                ours[row.name] = _known(cells, by_key, part.score)
            words = f"Table {number}, {part.title}"
            rows.append(ranking(words, part, ours, (source.stand_in if source else "") or "no data"))
            protocol = part.sources[0].protocol
            if protocol in ("cifar-1", "cifar-2"):
                networks = {row.name: _networks(row.method, protocol, part, by_key) for row in part.rows}
                rows.append(ranking(words, part, networks, "whole EfficientNet-Lite0 networks instead of VGG-F"))
    return rows


def _known(cells: list[Cell], by_key: dict[str, Record], score: str) -> dict[tuple, float]:
    found = {}
    for cell in cells:
        value = own_score(by_key[cell.key], score) if cell.key in by_key else None
        if value is not None:
            found[cell.bits, cell.seed] = value
    return found


def _networks(method: str, protocol: str, part, by_key: dict[str, Record]) -> dict[tuple, float]:
    """Cells of whole networks; HBMP's are the first bits of 48."""
    params = hbmp(network(protocol)) if method == "hbmp" else network(protocol)
    kinds = ("function", "prefix of 48") if method == "hbmp" else ("function",)
    cells = [Cell(method, protocol, "cifar10", bits, seed, params, {}, kind)
             for bits in part.bits for seed in SEEDS for kind in kinds]  # fmt: skip
    return _known(cells, by_key, part.score)


def ranking(words: str, part, ours: dict[str, dict[tuple, float]], data: str) -> tuple[str, ...]:
    """Rank of HBMP and rank correlation, over the lengths and seeds that all measured methods have.

    It holds if HBMP's rank is the paper's and the correlation at least 0.7; in part if one of them is true.
    """
    ours = {name: values for name, values in ours.items() if values}
    common = set.intersection(*(set(values) for values in ours.values())) if len(ours) > 2 else set()
    if not common or "HBMP" not in ours:
        return words, data, "—", "—", UNTESTED
    lengths = sorted({bits for bits, _ in common})
    theirs = {row.name: np.mean([row.paper[part.bits.index(bits)] for bits in lengths]) for row in part.rows}
    mine = {name: np.mean([values[key] for key in common]) for name, values in ours.items()}
    names = sorted(mine, key=mine.__getitem__, reverse=True)
    papers = sorted(mine, key=theirs.__getitem__, reverse=True)
    correlation = stats.spearmanr([mine[name] for name in names], [theirs[name] for name in names]).statistic
    same = names.index("HBMP") == papers.index("HBMP")
    verdict = (NOT, PART, HOLDS)[int(same) + int(correlation >= 0.7)]
    text = f"HBMP {papers.index('HBMP') + 1} → {names.index('HBMP') + 1} of {len(names)}, correlation {correlation:.2f}"
    order = ", ".join(f"{name} {mine[name]:.3f}" for name in names[:4])
    n_seeds = len({seed for _, seed in common})
    at = f"{', '.join(map(str, lengths))} bits, {'one seed' if n_seeds == 1 else f'{n_seeds} seeds'}"
    return words, data, f"{text} ({at})", order, verdict
