"""Tables from records: ours beside the paper's, pure functions of what lies in the results."""

from __future__ import annotations

import numpy as np

from hbmp._core.table import Table
from hbmp.experiments.paper import DataSource, TablePart, TableRow
from hbmp.experiments.settings import SEEDS

MISSING = "—"


def own_score(record: dict, name: str) -> float | None:
    """The score by the method's own distance: weighted where it has bit weights, plain where not."""
    scores = record["scores"]
    return scores.get(f"{name}.weighted", scores.get(name))


def mean_and_spread(values) -> tuple[float, float] | None:
    """Mean and standard deviation over seeds; None where there is nothing."""
    known = [value for value in values if value is not None]
    if not known:
        return None
    return float(np.mean(known)), float(np.std(known, ddof=1)) if len(known) > 1 else 0.0


def ours(
    part: TablePart, row: TableRow, source: DataSource, n_bits: int, by_key: dict, seeds=None
) -> tuple[float, float] | None:
    """Our mean and spread for one number of the paper."""
    keys = [part.cell(row, source, n_bits, seed).key for seed in seeds or SEEDS]
    return mean_and_spread(own_score(by_key[key], part.score) for key in keys if key in by_key)


def source_with_results(part: TablePart, by_key: dict, seeds=None) -> DataSource | None:
    """The best data of the part for which there is any result."""
    for source in part.sources:
        if any(ours(part, row, source, n_bits, by_key, seeds) for row in part.rows for n_bits in part.bits):
            return source
    return None


def part_table(part: TablePart, source: DataSource | None, by_key: dict, *, bits=None, seeds=None) -> Table:
    """A row a method, a column a code length, each number as `ours (the paper's, difference)`."""
    columns = [(place, n_bits) for place, n_bits in enumerate(part.bits) if not bits or n_bits in bits]
    comparable = source is not None and not source.other_items
    rows = []
    for row in part.rows:
        texts = []
        for place, n_bits in columns:
            found = ours(part, row, source, n_bits, by_key, seeds) if source else None
            texts.append(compared(found, row.paper[place], comparable=comparable))
        rows.append((row.name, *texts))
    header = ("method", *(f"{n_bits} bits" for _, n_bits in columns))
    return Table(header, tuple(rows), part.title, part_caption(part, source))


def part_caption(part: TablePart, source: DataSource | None) -> str:
    """The lines below a part's table: what was run on what, and how it was scored."""
    sentences = [f"Ours (the paper's, difference). The paper: {part.features}." if part.features else ""]
    if source is None:
        names = " or ".join(f"`{each.data}`" for each in part.sources)
        sentences.append(f"Ours is missing: it needs {names}.")
    else:
        what = source.stand_in or "the paper's data"
        used = "Ours: " + what + (", so differences are left out." if source.other_items else ".")
        sentences.append(used)
        sentences.append(_protocol_caption(part, source))
    sentences.append(part.note)
    return " ".join(sentence for sentence in sentences if sentence)


def compared(found: tuple[float, float] | None, paper: float, *, comparable: bool) -> str:
    """One number as `0.803 (0.799, +0.004)`."""
    if found is None:
        return f"{MISSING} ({paper:.3f})"
    difference = f", {found[0] - paper:+.3f}" if comparable else ""
    return f"{found[0]:.3f} ({paper:.3f}{difference})"


def _protocol_caption(part: TablePart, source: DataSource) -> str:
    from hbmp import protocols

    protocol = protocols.get(source.protocol)
    (measure,) = (measure for measure in protocol.measures if measure.name == part.score)
    return (
        f"{source.protocol}: {protocol.drawing} {protocol.neighbours} {measure.caption}; ties in database order; "
        "weighted Hamming distance where a method has bit weights."
    )
