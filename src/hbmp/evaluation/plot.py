"""A comparison as a picture: score against code length, every line labelled at its end, best on top.

With one code length it has one bar per method. Overlapping labels are moved apart and connected to their lines. If most
scores are close to one, heights show the distance to one on a logarithmic scale.
"""

from __future__ import annotations

import colorsys
import io
import os
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hbmp._core.files import write_into_place

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from hbmp.evaluation.comparison import Comparison

_LOOK = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#8a8f98",
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e8eb",
    "grid.linewidth": 0.7,
    "xtick.color": "#444a52",
    "ytick.color": "#444a52",
    "svg.hashsalt": "hbmp",
}
_COLOURS = {
    "hbmp": "#1f5fa8",
    "orthohash": "#c8402f",
    "greedyhash": "#2b8a3e",
    "itq": "#e08e0b",
    "pca_sign": "#8a8f98",
    "csq": "#7a4fa3",
    "hashnet": "#0f8b8d",
    "sdh": "#b5578e",
    "sdr": "#6b4f2a",
    "cca_itq": "#a5a12b",
}
_MARKERS = "osD^vPX"
_CROWDED = 0.9  # above this median score
_CROWDED_TICKS = (0, 0.2, 0.4, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999)
_LEAST_MISSING = 5e-4
_LABEL_POINTS = 12.5  # height that one label needs


def draw(comparison: Comparison, path: str | os.PathLike[str] | None = None) -> Figure:
    """The figure; also written to `path`, in the format of its suffix."""
    plt = need_matplotlib()
    with plt.rc_context(_LOOK):
        lengths = sorted({row.bits for row in comparison.rows})
        figure = _bars(comparison) if len(lengths) == 1 else _lines(comparison, lengths)
        if path is not None:
            _write(figure, Path(path))
    return figure


def need_matplotlib() -> Any:
    """matplotlib, or an error with the command that installs it."""
    try:
        import matplotlib as mpl
        import matplotlib.figure
    except ImportError:
        raise ImportError("Drawing needs matplotlib: pip install 'hbmp[plots]'.") from None
    return mpl


def check_picture(path: str | os.PathLike[str]) -> str:
    """The kind of picture that a file's suffix names, or an error of one sentence."""
    need_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    kind = Path(path).suffix.lstrip(".").lower()
    if kind not in FigureCanvasAgg.get_supported_filetypes():
        raise ValueError(f"{Path(path).name} has no suffix of a picture format; use .png, .svg or .pdf.")
    return kind


def spread(wanted: NDArray[Any], gap: float, low: float, high: float) -> NDArray[Any]:
    """Positions at least `gap` apart within [low, high], in the order of `wanted` (ascending) and close to it.

    The least-squares solution: positions minus rank times gap must not fall, which is isotonic regression.
    """
    from sklearn.isotonic import isotonic_regression

    ranks = gap * np.arange(len(wanted))
    top = max(low, high - ranks[-1]) if len(wanted) else low
    heights: NDArray[Any] = np.clip(isotonic_regression(np.asarray(wanted, dtype=float) - ranks), low, top) + ranks
    return heights


def _lines(comparison: Comparison, lengths: list[int]) -> Figure:
    from matplotlib.figure import Figure

    points = _points(comparison)
    height = max(3.8, 0.9 + len(points) * _LABEL_POINTS * 1.15 / 72)
    figure = Figure(figsize=(7.6, height))
    axis = figure.add_axes((0.09, 0.5 / height, 0.57, 1 - 0.8 / height))  # fixed, so that labels keep their positions
    crowded = _is_crowded(points)
    heights = {method: _heights(list(scores.values()), crowded) for method, scores in points.items()}
    drawn = colours(points)
    for place, (method, scores) in enumerate(points.items()):
        axis.plot(
            [np.log2(n_bits) for n_bits in scores],
            heights[method],
            color=drawn[method],
            marker=_MARKERS[place % len(_MARKERS)],
            linestyle="-" if place % 2 == 0 else (0, (5, 1.4)),
            markersize=4,
            linewidth=2.4 if place == 0 else 1.5,
            zorder=3 + (place == 0),
            label=method,
        )
    axis.set_xticks(np.log2(lengths), [str(n_bits) for n_bits in lengths])
    axis.set_xlim(np.log2(lengths[0]) - 0.12, np.log2(lengths[-1]) + 0.06)
    _frame(comparison, axis, crowded)
    _label_lines(figure, axis, points, {method: height[-1] for method, height in heights.items()}, comparison)
    return figure


def _is_crowded(points: dict[str, dict[int, float]]) -> bool:
    return bool(np.median([list(scores.values())[-1] for scores in points.values()]) > _CROWDED)


def _heights(scores: Any, crowded: bool) -> NDArray[Any]:
    """Heights of scores: the scores, or the number of powers of ten by which their distance to one is below one."""
    values = np.asarray(scores, dtype=float)
    return -np.log10(np.maximum(1 - values, _LEAST_MISSING)) if crowded else values


def _label_lines(figure: Any, axis: Any, points: Any, height_of: dict[str, float], comparison: Comparison) -> None:
    """Name, score and seconds at the end of each line, stacked in the order of the line ends."""
    figure.draw_without_rendering()
    low, high = axis.get_ylim()
    gap = (high - low) * _LABEL_POINTS * figure.dpi / 72 / axis.get_window_extent().height
    order = sorted(points, key=lambda method: (height_of[method], -list(points).index(method)))
    ends = np.array([height_of[method] for method in order])
    heights = spread(ends, gap, low, high - gap)  # room for a heading
    left, edge = axis.get_xlim()
    reach = edge - left
    drawn = colours(points)
    for method, end, height in zip(order, ends, heights, strict=True):
        steps = [np.log2(list(points[method])[-1]), edge, edge + 0.045 * reach, edge + 0.06 * reach]
        axis.plot(steps, [end, end, height, height], color=drawn[method], linewidth=0.7, alpha=0.7, clip_on=False)
    columns = _columns(comparison, points)
    at = edge + 0.07 * reach
    for heading, texts in columns.items():
        labels = [
            axis.text(at, height, texts[method], color=_darker(drawn[method]), va="center", fontsize=8.5)
            for method, height in zip(order, heights, strict=True)
        ]
        labels.append(axis.text(at, max(heights) + gap, heading, color="#8a8f98", va="center", fontsize=8))
        figure.draw_without_rendering()
        furthest = max(label.get_window_extent().x1 for label in labels)
        at = axis.transData.inverted().transform((furthest, 0))[0] + 0.02 * reach
    axis.set_xlim(left, edge)


def _columns(comparison: Comparison, points: dict[str, dict[int, float]]) -> dict[str, dict[str, str]]:
    """Texts behind each line: by heading, the text of each method."""
    longest = max(row.bits for row in comparison.rows)
    seconds = {(row.method, row.bits): row.fit_seconds for row in comparison.rows}
    names, scores, fits = {}, {}, {}
    for method, by_length in points.items():
        n_bits, score = list(by_length.items())[-1]
        names[method] = method
        scores[method] = f"{score:.3f}" + ("" if n_bits == longest else f" ({n_bits} bits)")
        fits[method] = _seconds(seconds[method, n_bits])
    return {"": names, f"at {longest} bits": scores, "fitted in": fits}


def _bars(comparison: Comparison) -> Figure:
    from matplotlib.figure import Figure

    points = _points(comparison)
    figure = Figure(figsize=(7.6, 0.9 + 0.24 * len(points)), layout="constrained")
    axis = figure.add_subplot()
    values = [next(iter(scores.values())) for scores in points.values()]
    heights = [-float(place) for place in range(len(points))]
    axis.barh(heights, values, height=0.72, color=list(colours(points).values()))
    columns = list(_columns(comparison, points).values())[1:]
    for method, height, value in zip(points, heights, values, strict=True):
        text = "   ".join(column[method] for column in columns)
        axis.text(value + 0.006, height, text, va="center", fontsize=8.5, color="#444a52")
    axis.set_yticks(heights, list(points))
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="y", visible=False)
    axis.margins(y=0.01)
    axis.set_xlim(0, 1.16 * max(values))
    axis.set_xticks([tick for tick in axis.get_xticks() if tick <= 1])
    bits = comparison.rows[0].bits
    axis.set_xlabel(f"{_name(comparison)} at {bits} bits, and the time to fit", color="#444a52")
    axis.set_title(_title(comparison), loc="left", fontsize=9.5)
    return figure


def _frame(comparison: Comparison, axis: Any, crowded: bool) -> None:
    axis.set_xlabel("bits", color="#444a52")
    axis.set_ylabel(_name(comparison) + (" (distance to 1, logarithmic)" if crowded else ""), color="#444a52")
    axis.set_title(_title(comparison), loc="left", fontsize=9.5)
    low, high = axis.get_ylim()
    if crowded:
        ticks = [tick for tick in _CROWDED_TICKS if low <= _heights(tick, True) <= high]
        axis.set_yticks(_heights(ticks, True), [f"{tick:g}" for tick in ticks])
    axis.set_ylim(max(low, 0), high if crowded else min(high, 1.01))


def _name(comparison: Comparison) -> str:
    return f"{comparison.measure.replace('map', 'mAP')}, tie-aware"


def _title(comparison: Comparison) -> str:
    data, split = comparison.facts["data"], comparison.facts["split"]
    return f"{data['name']}: {split['queries']:,} queries, {split['database']:,} in the database"


def _points(comparison: Comparison) -> dict[str, dict[int, float]]:
    """Scores by code length of every method that has one, best method first."""
    points: dict[str, dict[int, float]] = {method: {} for method in comparison.ranking}
    for row in sorted(comparison.rows, key=lambda row: row.bits):
        score = row.score(comparison.measure)
        if score is not None and np.isfinite(score):
            points[row.method][row.bits] = score
    drawn = {method: scores for method, scores in points.items() if scores}
    if not drawn:
        raise ValueError("Nothing to draw: no method has a score.")
    return drawn


def colours(methods: Iterable[str]) -> dict[str, tuple[float, float, float]]:
    """The colour of each method: its own in every plot for the usual ones, for others by their place among them."""
    from matplotlib.colors import to_rgb

    names = list(methods)
    others = [name for name in names if name not in _COLOURS]
    return {name: to_rgb(_COLOURS[name]) if name in _COLOURS else _hue(others.index(name)) for name in names}


def _hue(place: int) -> tuple[float, float, float]:
    """Hues around the circle in steps of the golden angle, so that neighbours in rank differ most."""
    return colorsys.hls_to_rgb((0.3 + place * 0.381966) % 1.0, (0.42, 0.52, 0.34)[place % 3], 0.5)


def _darker(colour: tuple[float, float, float]) -> tuple[float, float, float]:
    red, green, blue = (0.8 * part for part in colour)
    return red, green, blue


def _seconds(value: float | None) -> str:
    if value is None:
        return ""
    if value < 1:
        return f"{1000 * value:.0f} ms"
    return f"{value:.1f} s" if value < 100 else f"{value / 60:.1f} min"


def _write(figure: Figure, path: Path) -> None:
    stream = io.BytesIO()
    figure.savefig(stream, format=check_picture(path), dpi=160, facecolor="white", bbox_inches="tight")
    path.parent.mkdir(parents=True, exist_ok=True)
    write_into_place(path, stream.getvalue())
