"""Tables of our numbers and the paper's, as pure functions of the records."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from hbmp._core.table import Table
from hbmp.experiments.paper import DataSource, TablePart, TableRow
from hbmp.experiments.provenance import is_stale
from hbmp.experiments.settings import SEEDS
from hbmp.experiments.store import Record

MISSING = "—"
STALE = "†"
STALE_NOTE = f"{STALE} The method's source has changed since; `hbmp reproduce NAME --refresh` runs it again."


def own_score(record: Record, name: str) -> float | None:
    """The score by the method's own distance: weighted if it has bit weights.

    Parameters
    ----------
    record : dict
        A result line.
    name : str
        Name of the measure.

    Returns
    -------
    float or None
        The score, or None without one.

    Examples
    --------
    >>> from hbmp.experiments.scores import own_score
    >>> own_score({"scores": {"map": 0.4, "map.weighted": 0.5}}, "map")
    0.5
    """
    scores: dict[str, float] = record["scores"]
    return scores.get(f"{name}.weighted", scores.get(name))


def mean_and_spread(values: Iterable[float | None]) -> tuple[float, float] | None:
    """Mean and standard deviation over seeds.

    Parameters
    ----------
    values : iterable of float or None
        Scores; None is left out.

    Returns
    -------
    tuple of float, or None
        Mean and standard deviation, or None without values.

    Examples
    --------
    >>> from hbmp.experiments.scores import mean_and_spread
    >>> mean_and_spread([0.5, None])
    (0.5, 0.0)
    """
    known = [value for value in values if value is not None]
    if not known:
        return None
    return float(np.mean(known)), float(np.std(known, ddof=1)) if len(known) > 1 else 0.0


def ours(
    part: TablePart,
    row: TableRow,
    source: DataSource,
    n_bits: int,
    by_key: Mapping[str, Record],
    seeds: Sequence[int] | None = None,
) -> tuple[float, float] | None:
    """Our mean and spread for one number of the paper."""
    records = _records(part, row, source, n_bits, by_key, seeds)
    return mean_and_spread(own_score(record, part.score) for record in records)


def _records(
    part: TablePart,
    row: TableRow,
    source: DataSource,
    n_bits: int,
    by_key: Mapping[str, Record],
    seeds: Sequence[int] | None,
) -> list[Record]:
    """The records behind one number."""
    keys = [part.cell(row, source, n_bits, seed).key for seed in seeds or SEEDS]
    return [by_key[key] for key in keys if key in by_key]


def source_with_results(
    part: TablePart, by_key: Mapping[str, Record], seeds: Sequence[int] | None = None
) -> DataSource | None:
    """The best data of the part with any result."""
    for source in part.sources:
        if any(ours(part, row, source, n_bits, by_key, seeds) for row in part.rows for n_bits in part.bits):
            return source
    return None


def part_table(
    part: TablePart,
    source: DataSource | None,
    by_key: Mapping[str, Record],
    *,
    bits: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
) -> Table:
    """One row per method and one column per code length; numbers as `ours (the paper's, difference)`.

    Parameters
    ----------
    part : TablePart
        The part.
    source : DataSource or None
        The data.
    by_key : dict of str to dict
        Result lines by key.
    bits : sequence of int, default=None
        Only these code lengths.
    seeds : sequence of int, default=None
        Only these seeds.

    Returns
    -------
    Table
        The table.

    Examples
    --------
    >>> from hbmp.experiments.recipes import table3
    >>> from hbmp.experiments.scores import part_table
    >>> part_table(table3.PARTS[0], None, {}, bits=[16]).rows[0]
    ('HashNet', '— (0.506)')
    """
    columns = [(place, n_bits) for place, n_bits in enumerate(part.bits) if not bits or n_bits in bits]
    comparable = source is not None and not source.other_items
    rows = []
    for row in part.rows:
        texts = []
        for place, n_bits in columns:
            found = ours(part, row, source, n_bits, by_key, seeds) if source else None
            stale = source is not None and any(map(is_stale, _records(part, row, source, n_bits, by_key, seeds)))
            texts.append(compared(found, row.paper[place], comparable=comparable) + (STALE if found and stale else ""))
        rows.append((row.name, *texts))
    header = ("method", *(f"{n_bits} bits" for _, n_bits in columns))
    note = f" {STALE_NOTE}" if any(STALE in text for row in rows for text in row) else ""
    return Table(header, tuple(rows), part.title, part_caption(part, source) + note)


def part_caption(part: TablePart, source: DataSource | None) -> str:
    """The caption of a part: data, scores and remarks."""
    sentences = [f"Ours (the paper's, difference). The paper: {part.features}." if part.features else ""]
    if source is None:
        names = " or ".join((each.setting and each.setting.needs) or f"`{each.data}`" for each in part.sources)
        sentences.append(f"Ours is missing: it needs {names}.")
    else:
        own = f"the paper's own setting, {source.setting.words}" if source.setting else "the paper's data"
        what = source.stand_in or own
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
