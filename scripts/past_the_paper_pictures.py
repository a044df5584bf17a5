"""Pictures of docs/lab-log.md, drawn from the lines in results/.

    python scripts/past_the_paper_pictures.py       writes docs/pictures/weights.png and docs/pictures/queries.png

weights: what weighted distance gains over plain distance, ties averaged, by the pursuit's weights as they are and by
HBMP's defaults. queries: mAP by codes and by real-valued queries, HBMP and the best other method of each.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import numpy as np

from hbmp import protocols
from hbmp.experiments import load_results
from hbmp.experiments.figures import BLUE, GREY
from hbmp.experiments.report.tables import at_defaults, group_name
from hbmp.experiments.scores import own_score
from hbmp.experiments.settings import STAGES_ALONE, hbmp

ROOT = Path(__file__).parent.parent
PLACES = {
    "cifar-1 on cifar10-efficientnet-lite0": ("cifar-1", "CIFAR-10 features, cifar-1"),
    "voc2007": ("voc2007", "VOC 2007 features"),
    "coco": ("coco", "MS-COCO features, first 5,000"),
}
"""Groups of results, each with its protocol and a title."""


def learned(records, place: str) -> list[dict]:
    """The records of codes that functions of features gave in a group."""
    return [record for record in records if record["cell"]["codes"] == "function" and group_name(record) == place]


def by_length(records, value) -> dict[int, float]:
    """Means over seeds of value(record) at every code length that has any."""
    found = defaultdict(list)
    for record in records:
        score = value(record)
        if score is not None:
            found[record["cell"]["bits"]].append(score)
    return {bits: float(np.mean(scores)) for bits, scores in sorted(found.items())}


def gain(measure: str):
    """Points that weights gain over plain distance, as a function of a record."""

    def points(record) -> float | None:
        plain, weighted = (record["scores"].get(f"{measure}{kind}.tie-aware") for kind in ("", ".weighted"))
        return None if plain is None else 100 * ((weighted or plain) - plain)

    return points


def draw_weights(records, path: Path) -> None:
    """A panel a protocol: points gained by weights, against bits."""
    figure, panels = panels_of("points of mAP over plain distance")
    as_they_are = hbmp(STAGES_ALONE)
    for panel, (place, (protocol, _)) in zip(panels, PLACES.items(), strict=True):
        measure = protocols.get(protocol).measures[0].name
        here = [record for record in learned(records, place) if record["cell"]["method"] == "hbmp"]
        kinds = {
            "the pursuit's weights, labels alone": ([r for r in here if r["cell"]["params"] == as_they_are], GREY),
            "defaults": ([r for r in here if at_defaults(r["cell"])], BLUE),
        }
        for name, (chosen, colour) in kinds.items():
            line = by_length(chosen, gain(measure))
            panel.plot(list(line), list(line.values()), "o-", color=colour, label=name)
        panel.axhline(0, color="black", linewidth=0.8)
    finish(figure, panels, path)


def reading(measure: str, kind: str):
    """The score of a record by codes, weighted where they are, or by real-valued queries."""
    if kind == "codes":
        return lambda record: own_score(record, measure)
    return lambda record: record["scores"].get(f"{measure}.real-valued")


def draw_queries(records, path: Path) -> None:
    """A panel a protocol: mAP against bits, by codes and by real-valued queries."""
    figure, panels = panels_of("mAP")
    for panel, (place, (protocol, _)) in zip(panels, PLACES.items(), strict=True):
        measure = protocols.get(protocol).measures[0].name
        here = [record for record in learned(records, place) if at_defaults(record["cell"])]
        methods = {record["cell"]["method"] for record in here}
        for kind, mark in (("real-valued queries", "o-"), ("codes", "s--")):
            score = reading(measure, kind)
            lines = {name: by_length([r for r in here if r["cell"]["method"] == name], score) for name in methods}
            mine = lines.pop("hbmp")
            best = {bits: max((line[bits] for line in lines.values() if bits in line), default=np.nan) for bits in mine}
            panel.plot(list(mine), list(mine.values()), mark, color=BLUE, label=f"HBMP, {kind}")
            panel.plot(list(best), list(best.values()), mark, color=GREY, label=f"best other, {kind}")
    finish(figure, panels, path)


def panels_of(ylabel: str):
    """A figure with a panel a protocol."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, panels = plt.subplots(1, len(PLACES), figsize=(11, 3.4), layout="constrained")
    for panel, (_, title) in zip(panels, PLACES.values(), strict=True):
        panel.set_title(title, fontsize=10)
        panel.set_xlabel("bits")
        panel.grid(alpha=0.3)
        panel.spines[["top", "right"]].set_visible(False)
    panels[0].set_ylabel(ylabel)
    return figure, panels


def finish(figure, panels, path: Path) -> None:
    """Ticks at the code lengths, a legend, and the file."""
    for panel in panels:
        lengths = sorted({bits for line in panel.get_lines() for bits in line.get_xdata() if bits > 1})
        panel.set_xticks(lengths, [str(bits) for bits in lengths])
    panels[-1].legend(fontsize=8, frameon=False)
    figure.savefig(path, dpi=120)


def main() -> None:
    """Draw both."""
    records = load_results(ROOT / "results")
    pictures = ROOT / "docs" / "pictures"
    draw_weights(records, pictures / "weights.png")
    draw_queries(records, pictures / "queries.png")


if __name__ == "__main__":
    main()
