"""Two pictures of the gallery: what codes look like, and how scores grow with bits. Called by make_pictures.py."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import numpy as np

from hbmp.evaluation.plot import colours, spread

ROOT = Path(__file__).parents[1]
INK, FAINT = "#1c1f23", "#6a717b"
CLASSES, EACH = 6, 6  # rows of the picture of codes


def draw_codes(path: Path, codes, labels, n_detail: int) -> None:
    """Codes (n, b) of six texts of each of six classes: the bits of the labels, and those that tell texts apart."""
    plt = _pyplot()
    kinds, counts = np.unique(labels, return_counts=True)
    chosen = sorted(kinds[np.argsort(-counts, kind="stable")[:CLASSES]])
    rows = np.concatenate([np.flatnonzero(labels == kind)[:EACH] for kind in chosen])
    n_label = codes.shape[1] - n_detail
    figure, axes = plt.subplots(
        1, 2, figsize=(10, 5.6), dpi=120, width_ratios=(n_label, n_detail), gridspec_kw={"wspace": 0.06}
    )
    for axis, part, title in zip(
        axes,
        (codes[rows, :n_label], codes[rows, n_label:]),
        (f"{n_label} label bits", f"{n_detail} detail bits"),
        strict=True,
    ):
        axis.imshow(part, cmap="Blues", vmin=-1.4, vmax=1.4, aspect="auto", interpolation="nearest")
        axis.set_title(title, fontsize=15, color=INK, loc="left")
        axis.set(xticks=[], yticks=[])
        axis.hlines(np.arange(EACH, len(rows), EACH) - 0.5, -0.5, part.shape[1] - 0.5, color="white", linewidth=5)
        axis.spines[:].set_visible(False)
    places = np.arange(len(chosen)) * EACH + (EACH - 1) / 2
    axes[0].set_yticks(places, chosen, fontsize=13, color=INK)
    axes[0].tick_params(length=0)
    figure.savefig(path, metadata={"Software": None}, bbox_inches="tight", facecolor="white")


def draw_curves(path: Path, lines: list[dict]) -> None:
    """Mean mAP against bits over the sets that all methods have, in the whole database and among new rows."""
    plt = _pyplot()
    figure, axes = plt.subplots(1, 2, figsize=(10, 4.9), dpi=120, sharey=True, layout="constrained")
    for axis, measure, title in zip(axes, ("own", "new_own"), ("whole database", "new rows only"), strict=True):
        means, n_sets = _means(lines, measure)
        drawn = colours(sorted(means))
        ends = []
        for method, by_bits in means.items():
            width = 3.2 if method == "hbmp" else 1.8
            axis.plot(range(len(by_bits)), list(by_bits.values()), color=drawn[method], linewidth=width, marker="o")
            ends.append((list(by_bits.values())[-1], method))
        axis.set_xticks(range(len(by_bits)), [f"{n} bits" for n in by_bits], fontsize=13)
        axis.tick_params(axis="y", labelsize=12)
        axis.set_title(f"{title}, {n_sets} sets", fontsize=15, color=INK, loc="left")
        axis.spines[["top", "right"]].set_visible(False)
        axis.grid(axis="y", color="#e6e8eb")
        _label_ends(axis, sorted(ends), drawn)
    axes[0].set_ylabel("mean mAP", fontsize=13)
    figure.savefig(path, metadata={"Software": None}, facecolor="white")


def _label_ends(axis, ends, drawn) -> None:
    """Names at the ends of lines, moved apart."""
    low, high = axis.get_ylim()
    heights = spread(np.array([value for value, _ in ends]), (high - low) / 17, low, high)
    for height, (_, method) in zip(heights, ends, strict=True):
        weight = "bold" if method == "hbmp" else "normal"
        axis.text(2.08, height, method, color=drawn[method], fontsize=13, va="center", fontweight=weight)
    axis.set_xlim(-0.1, 3.0)


def _means(lines: list[dict], measure: str) -> tuple[dict[str, dict[int, float]], int]:
    """{method: {bits: mean over sets}} over the sets that have every method at every length; and how many these are."""
    found: dict[str, dict] = defaultdict(dict)
    for line in lines:
        if line["split"] == "test" and "failed" not in line:
            found[line["set"]][line["name"], line["bits"], line["seed"]] = line[measure]
    every = set().union(*found.values())
    cells = {(name, bits) for name, bits, seed in every if seed == 0}
    methods = {
        name for name, _ in cells if sum(other == name for other, _ in cells) == len({bits for _, bits in cells})
    }
    cells = {cell for cell in cells if cell[0] in methods}
    complete = [scores for scores in found.values() if all((*cell, 0) in scores for cell in cells)]
    lengths = sorted({bits for _, bits in cells})
    return {
        name: {bits: float(np.mean([scores[name, bits, 0] for scores in complete])) for bits in lengths}
        for name in sorted(methods)
    }, len(complete)


def suite_lines() -> list[dict]:
    """The measurements of the suite."""
    return [json.loads(line) for line in (ROOT / "results" / "suite.jsonl").read_text(encoding="utf-8").splitlines()]


def _pyplot():
    import matplotlib as mpl

    mpl.use("Agg")
    import matplotlib.pyplot as plt

    return plt
