"""A comparison as text: two Markdown tables with a caption of all conventions, and CSV."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from hbmp._core.table import Table
from hbmp.evaluation.baselines import BaselineResult
from hbmp.evaluation.cells import MethodResult
from hbmp.evaluation.first_results import ABOUT, HEADINGS
from hbmp.evaluation.trial import TIES, drawn_words

if TYPE_CHECKING:
    from hbmp.evaluation.comparison import Comparison

_ALTERNATIVES = (
    "Without hashing: “floats” are the original vectors; “classifier” compares the probabilities of a logistic "
    "regression; “sign” keeps one bit per dimension; PQ and RaBitQ have float queries."
)
_BY_DEFAULT = "with defaults"
_NEARLY = 0.01  # below the best score, what shorter codes may lose
_HEADINGS = {"": "", ".tie-aware": " tie-aware", ".weighted": " weighted", ".weighted.tie-aware": " weighted tie-aware"}


def ranking(rows: Sequence[MethodResult], measure: str) -> list[str]:
    """Methods by descending mean score over code lengths; methods without a score last, in their own order."""
    means = {method: _mean(rows, method, measure) for method in dict.fromkeys(row.method for row in rows)}
    return sorted(means, key=lambda method: -means[method])


def markdown(found: Comparison) -> str:
    """Scores by code length, what to take, other search, all readings and costs, and the caption; columns are aligned
    as plain text too."""
    parts = [found.summary.text(), found.recommendation]
    if found.baselines:
        parts.append(found.alternatives.text())
    if any(row.first for row in found.rows):
        parts.append(found.first_results.text())
    return "\n\n".join(part for part in (*parts, found.details.text(), found.caption) if part)


def alternatives(baselines: Sequence[BaselineResult], measure: str) -> Table:
    """Search without hashing: bytes, score, the share of the true ten nearest that are found, and seconds."""
    failed = any(each.error for each in baselines)
    head = ("without hashing", "bytes", _heading(measure), "recall@10", "fit and encode, s")
    body = []
    for each in baselines:
        shown = (f"{each.bytes_per_item:,}", _score(each.score), _score(each.neighbours), _figure(each.fit_seconds))
        line = (each.name, *(("—",) * 4 if each.error else shown))
        body.append((*line, _one_line(each.error)) if failed else line)
    return Table((*head, "failed") if failed else head, tuple(body), n_notes=int(failed))


def recommendation(rows: Sequence[MethodResult], measure: str, baselines: Sequence[BaselineResult]) -> str:
    """The shortest codes within a hundredth of the best score, compared with the original vectors."""
    scored = [(row, score) for row in rows if (score := row.score(measure)) is not None and np.isfinite(score)]
    if not scored:
        return ""
    enough = max(score for _, score in scored) - _NEARLY
    row, score = min(
        ((row, score) for row, score in scored if score >= enough), key=lambda found: (found[0].bits, -found[1])
    )
    words = f"{row.bits} bits of {row.method} ({-(-row.bits // 8)} bytes per item) have {_heading(measure)} {score:.3f}"
    if not baselines or baselines[0].error:
        return f"{words}."
    floats, *others = [each for each in baselines if not each.error]
    kept = f", so {_percent(score / floats.score)} is kept" if score < floats.score else ""
    best = max(others, key=lambda each: each.score, default=floats)
    other = f"; {best.name} ({best.bytes_per_item:,} bytes) has {best.score:.3f}" if best.score > floats.score else ""
    return f"{words}; the original vectors ({floats.bytes_per_item:,} bytes) have {floats.score:.3f}{kept}{other}."


def recommended_neighbours(rows: Sequence[MethodResult], baselines: Sequence[BaselineResult]) -> str:
    """Without labels: the shortest codes within a hundredth of the best recall, beside the best other of their size."""
    found = [(row, row.first.best_recall) for row in rows if row.first and row.first.best_recall is not None]
    if not found:
        return ""
    enough = max(recall for _, recall in found) - _NEARLY
    row, recall = min((each for each in found if each[1] >= enough), key=lambda each: (each[0].bits, -each[1]))
    n_bytes = -(-row.bits // 8)
    words = (
        f"{row.bits} bits of {row.method} ({n_bytes} bytes per item) find {_percent(recall)} of the ten nearest, with "
        "real-valued queries"
    )
    others = [each for each in baselines[1:] if not each.error and each.bytes_per_item <= n_bytes + 8]
    if not others:
        return f"{words}."
    best = max(others, key=lambda each: each.neighbours)
    return f"{words}; {best.name} ({best.bytes_per_item:,} bytes) finds {_percent(best.neighbours)}."


def _percent(share: float) -> str:
    return f"{share:.0%}".replace("%", " %")


def csv_text(rows: Sequence[MethodResult], measure: str = "map") -> str:
    """One line per result, with a header; empty where a reading is missing."""
    names, tried = _readings(rows), any(row.tried for row in rows)
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator="\n")
    costs = ("fit_seconds", "encode_rows_per_second", "model_bytes")
    firsts = ("right_kind", "right_ones", "right_ones_float", "distinct", "tied")
    defaults = ["with_defaults"] if tried else []
    writer.writerow(["method", "bits", *names, *firsts, *costs, *defaults, "settings", "error"])
    for row in rows:
        scores = [row.scores.get(name, "") for name in names]
        first = ["" if (value := getattr(row.first, name, None)) is None else value for name in firsts]
        measured = ["" if getattr(row, cost) is None else getattr(row, cost) for cost in costs]
        settings = json.dumps(row.settings, default=str) if row.settings else ""
        if tried:
            default = row.default_score(measure)
            measured.append("" if default is None else default)
        writer.writerow([row.method, row.bits, *scores, *first, *measured, settings, row.error])
    return stream.getvalue()


def caption(facts: dict[str, Any], *, alternatives: bool = False, firsts: bool = False) -> str:
    """Data, split, conventions, settings and machine."""
    data, split, machine, versions = (facts[part] for part in ("data", "split", "machine", "versions"))
    measured = ". ".join(measure["about"] for measure in facts["measures"])
    sentences = [
        f"{data['name']}: {data['rows']:,} rows of {data['features']:,} features.",
        _drawing(split, data["labels"]),
        facts["neighbours"],
        f"{measured}. {TIES} The first table shows the tie-aware score by each method's own distance.",
        ABOUT if firsts else "",
        _ALTERNATIVES if alternatives else "",
        _settings(facts["validation"]),
        f"Left out, because they need labels: {', '.join(facts['left_out'])}." if facts["left_out"] else "",
        f"Fit: wall-clock seconds. Encode: database rows per second. Model: bytes on disk. Measured with "
        f"{_processes(facts['jobs'])} on {_machine(machine)}; "
        + ", ".join(f"{library} {version}" for library, version in versions.items())
        + ".",
    ]
    return " ".join(sentence for sentence in sentences if sentence)


def _processes(n: int) -> str:
    return "one process" if n == 1 else f"{n} processes"


def _drawing(split: dict[str, Any], kind: str) -> str:
    queries = drawn_words(split["queries"], kind, split["given_queries"])
    if split["unseen"]:
        rest = f"{split['train']:,} rows are used for training; the database is {split['database']:,} others"
    else:
        used = "all" if split["train"] == split["database"] else f"{split['train']:,} of them"
        others = "rows" if split["given_queries"] else "other rows"
        rest = f"the database is the {split['database']:,} {others}, {used} used for training"
    return f"{queries} and not used for training; {rest} (seed {split['seed']}, split {split['checksum']})."


def _settings(budget: int) -> str:
    if not budget:
        return "Settings: each method's defaults."
    return (
        f"Settings: up to {budget} per method from its own grid, the defaults first, validated at each code length on "
        f"a fifth of the training rows. Methods without a grid keep their defaults. “{_BY_DEFAULT}” is the tie-aware "
        "score of the defaults by the method's own distance."
    )


def _machine(machine: dict[str, Any]) -> str:
    return ", ".join(
        str(part) for part in (machine.get("gpu"), machine["cpu"], f"{machine['cores']} cores") if part is not None
    )


def summary(rows: Sequence[MethodResult], ordered: list[str], measure: str) -> Table:
    """Scores by code length, one line per method, the best of each length in bold."""
    lengths = sorted({row.bits for row in rows})
    scores = {(row.method, row.bits): row.score(measure) for row in rows}
    best = {
        n_bits: max((s for (_, b), s in scores.items() if b == n_bits and s is not None), default=None)
        for n_bits in lengths
    }
    body = []
    for method in ordered:
        values = [scores.get((method, n_bits)) for n_bits in lengths]
        shown = [_score(value, value == best[n_bits]) for value, n_bits in zip(values, lengths, strict=True)]
        body.append((method, *shown))
    return Table((f"{_heading(measure)}, tie-aware", *(f"{n_bits} bits" for n_bits in lengths)), tuple(body))


def details(rows: Sequence[MethodResult], ordered: list[str], measure: str = "map") -> Table:
    """All readings and costs, one line per method and code length; scores of the defaults where settings were tried."""
    names = _readings(rows)
    costs = ("fit, s", "encode, rows/s", "model, bytes")
    tried = any(row.tried for row in rows)
    extra = [heading for heading, has in _notes(rows).items() if has]
    body = []
    for row in sorted(rows, key=lambda row: (row.bits, ordered.index(row.method))):
        scores = [_score(row.scores.get(name)) for name in names]
        notes = {"settings": _words(row.settings), "failed": _one_line(row.error)}
        shown = (_figure(row.fit_seconds), _figure(row.encode_rows_per_second), _whole(row.model_bytes))
        if tried:
            scores.append(_score(row.default_score(measure)))
        sizes = (str(row.bits), f"{-(-row.bits // 8):,}")
        body.append((row.method, *sizes, *scores, *shown, *(notes[heading] for heading in extra)))
    headings = (*map(_heading, names), *([_BY_DEFAULT] if tried else ()))
    return Table(("method", "bits", "bytes per item", *headings, *costs, *extra), tuple(body), n_notes=len(extra))


def first_results(rows: Sequence[MethodResult], ordered: list[str]) -> Table:
    """The first ten results, one row per method and code length."""
    body = [
        (row.method, str(row.bits), *(row.first.cells() if row.first else ("—",) * len(HEADINGS)))
        for row in sorted(rows, key=lambda row: (row.bits, ordered.index(row.method)))
    ]
    return Table(("first ten results", "bits", *HEADINGS), tuple(body))


def _notes(rows: Sequence[MethodResult]) -> dict[str, bool]:
    return {"settings": any(row.settings for row in rows), "failed": any(row.error for row in rows)}


def _readings(rows: Sequence[MethodResult]) -> list[str]:
    """Every score that any result has, mAP first and plain before weighted."""
    found = {name for row in rows for name in row.scores}
    readings = list(_HEADINGS)

    def place(name: str) -> tuple[bool, str, int]:
        metric, _, reading = name.partition(".")
        return metric.startswith("ndcg"), metric, readings.index(f".{reading}" if reading else "")

    return sorted(found, key=place)


def _heading(name: str) -> str:
    metric, _, reading = name.partition(".")
    return metric.replace("map", "mAP") + _HEADINGS[f".{reading}" if reading else ""]


def _mean(rows: Sequence[MethodResult], method: str, measure: str) -> float:
    scores = [row.score(measure) for row in rows if row.method == method]
    kept = [score for score in scores if score is not None and np.isfinite(score)]
    return float(np.mean(kept)) if kept else -np.inf


def _score(value: float | None, best: bool = False) -> str:
    if value is None or not np.isfinite(value):
        return "—"
    return f"**{value:.3f}**" if best else f"{value:.3f}"


def _figure(value: float | None) -> str:
    """Thousands with commas, three figures below a hundred, none below a thousandth."""
    if value is None:
        return "—"
    return f"{value:,.0f}" if value >= 100 else f"{value:.1f}" if value >= 10 else f"{value:.3f}"


def _whole(value: int | None) -> str:
    return "—" if value is None else f"{value:,}"


def _words(settings: dict[str, Any]) -> str:
    return ", ".join(f"{name}={value}" for name, value in settings.items())


def _one_line(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
