"""Plots of the report as inline SVG: scores against code length, and precision–recall curves."""

from __future__ import annotations

import io
import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from hbmp import protocols
from hbmp.experiments import figures, scores
from hbmp.experiments.report.tables import by_setting
from hbmp.experiments.store import Record

_MOST_LINES = 8


def score_plot(records: list[Record]) -> str:
    """The protocol's own score against code length, one line per setting, best settings first."""
    measure = protocols.get(records[0]["cell"]["protocol"]).measures[0].name
    lines = {}
    for setting, lengths in by_setting(records).items():
        means = {
            n_bits: scores.mean_and_spread(scores.own_score(record, measure) for record in cells)
            for n_bits, cells in sorted(lengths.items())
        }
        lines[setting] = {n_bits: mean[0] for n_bits, mean in means.items() if mean}
    lines = {setting: points for setting, points in lines.items() if points}
    best = sorted(lines, key=lambda setting: -np.mean(list(lines[setting].values())))[:_MOST_LINES]
    plt = figures.pyplot()
    figure, axis = plt.subplots(figsize=(5.6, 3.4))
    for place, setting in enumerate(best):
        points = lines[setting]
        colour = figures.PALETTE[place % len(figures.PALETTE)]
        axis.plot(list(points), list(points.values()), marker="o", markersize=3.5, color=colour, label=setting)
    axis.set(xlabel="bits", ylabel=measure)
    axis.set_xticks(sorted({n_bits for points in lines.values() for n_bits in points}))
    return _with_legend(figure, axis, len(best))


def precision_recall_plot(records: list[Record]) -> str:
    """Precision against recall at the most common code length, first seed."""
    lengths = [record["cell"]["bits"] for record in records]
    n_bits = max(set(lengths), key=lambda n: (lengths.count(n), n == 32, -n))
    chosen = {}
    for setting, cells in by_setting(records).items():
        if n_bits in cells:
            chosen[setting] = min(cells[n_bits], key=lambda record: record["cell"]["seed"])["curve"]
    return curves_plot(chosen, n_bits)


def curves_plot(curves: dict[str, Record], n_bits: int, colours: Mapping[str, Any] | None = None) -> str:
    """Curves of "recall" and "precision" by name, those with the largest area first; colours: by name."""
    best = sorted(curves, key=lambda name: -float(np.trapezoid(curves[name]["precision"], curves[name]["recall"])))
    plt = figures.pyplot()
    figure, axis = plt.subplots(figsize=(5.6, 3.4))
    for place, name in enumerate(best[:_MOST_LINES]):
        curve = curves[name]
        axis.plot(
            curve["recall"], curve["precision"], color=(colours or {}).get(name, figures.PALETTE[place]), label=name
        )
    axis.set(xlabel=f"recall ({n_bits} bits)", ylabel="precision", xlim=(0, 1), ylim=(0, 1.02))
    return _with_legend(figure, axis, len(best[:_MOST_LINES]))


def _with_legend(figure: Any, axis: Any, n_lines: int) -> str:
    if n_lines:
        axis.legend(loc="upper left", bbox_to_anchor=(0, -0.2), fontsize=7.5, borderaxespad=0)
    return as_svg(figure)


def as_svg(figure: Any) -> str:
    """The figure as an SVG element with real text; closes the figure."""
    plt = figures.pyplot()
    stream = io.StringIO()
    with plt.rc_context({"svg.fonttype": "none", "svg.hashsalt": "hbmp", "font.family": "sans-serif"}):
        figure.savefig(stream, format="svg", bbox_inches="tight", metadata={"Date": None, "Creator": None})
    plt.close(figure)
    text = stream.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg") :], flags=re.S)
    return re.sub(r'<svg ([^>]*?)width="[\d.]+pt" height="[\d.]+pt"', r"<svg \1", svg, count=1, flags=re.S)
