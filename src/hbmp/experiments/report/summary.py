"""The summary: HBMP beside the best other method at one code length, and HBMP alone at every code length.

Every row compares like with like: all methods at their defaults, on the seeds that all of them share.
"""

from __future__ import annotations

from collections import defaultdict

import numpy as np

from hbmp import protocols
from hbmp._core.table import Table
from hbmp.experiments import scores
from hbmp.experiments.report.tables import LARGE_IMAGES, at_defaults, group_name
from hbmp.experiments.store import Record

BITS = 32
FEWEST = 5  # other methods that a row needs
MOST = 8  # rows
_WORDS = {
    "cifar-1 on cifar10-efficientnet-lite0": "CIFAR-10, features, 5,000 training images",
    "cifar-1, images": "CIFAR-10, whole networks, 5,000 training images",
    "cifar-1, large images": "CIFAR-10, whole networks, large images, 5,000 training images",
    "cifar-2, large images": "CIFAR-10, whole networks, large images, 50,000 training images",
    "voc2007, large images": "PASCAL VOC 2007, whole networks, large images, 20 labels",
    "cifar-2 on cifar10-efficientnet-lite0": "CIFAR-10, features, 50,000 training images",
    "cifar-2, images": "CIFAR-10, whole networks, 50,000 training images",
    "coco": "MS-COCO, features, 80 labels",
    "labelme on gist22k": "GIST descriptors, no labels",
    "voc2007": "PASCAL VOC 2007, features, 20 labels",
    "voc2007, images": "PASCAL VOC 2007, whole networks, 20 labels",
}

Group = dict[str, dict[int, dict[int, float]]]  # method → code length → seed → score


def summary_table(records: list[Record]) -> Table:
    """One row per protocol: HBMP and the best other method, both on the same seeds."""
    rows = []
    for (name, measure), methods in _groups(records).items():
        found = {method: lengths[BITS] for method, lengths in methods.items() if BITS in lengths}
        ours = found.pop("hbmp", {})
        shared = sorted(set(ours).intersection(*map(set, found.values())))
        if len(found) < FEWEST or not shared:
            continue
        means = {method: _mean(by_seed, shared) for method, by_seed in found.items()}
        best = max(means, key=means.__getitem__)
        mine = _mean(ours, shared)
        texts = [f"**{value:.3f}**" if value >= other else f"{value:.3f}" for value, other in _pairs(mine, means[best])]
        rows.append((_WORDS.get(name, name), measure, *texts, best, str(len(found)), str(len(shared))))
    caption = (
        f"Codes have {BITS} bits ({BITS // 8} bytes per item). All methods use their defaults and their own distance. "
        "Scores are means over the seeds that all methods of a row have."
    )
    header = ("data", "score", "HBMP", "best other", "method", "others", "seeds")
    return Table(header, tuple(rows[:MOST]), caption=caption, n_names=2)


def lengths_table(records: list[Record]) -> Table:
    """HBMP at its defaults: one row per protocol, one column per code length."""
    groups = {place: methods["hbmp"] for place, methods in _groups(records).items() if "hbmp" in methods}
    lengths = sorted({n_bits for cells in groups.values() for n_bits in cells})
    rows = tuple(
        (_WORDS.get(name, name), measure, *(_text(cells.get(n, {})) for n in lengths))
        for (name, measure), cells in groups.items()
    )
    caption = (
        "HBMP with its defaults, mean over seeds; docs/results.md has standard deviations. On images, HBMP trains one "
        f"network with 48 bits, and shorter codes are its first bits. {LARGE_IMAGES} A dash means not run."
    )
    return Table(("data", "score", *(f"{n} bits" for n in lengths)), rows, caption=caption, n_names=2)


def _groups(records: list[Record]) -> dict[tuple[str, str], Group]:
    """Scores of the cells at default settings by protocol and measure."""
    groups: dict[tuple[str, str], Group] = {}
    for record in records:
        cell = record["cell"]
        if at_defaults(cell):
            measure = protocols.get(cell["protocol"]).measures[0].name
            place = group_name(record), measure
            methods = groups.setdefault(place, defaultdict(lambda: defaultdict(dict)))
            methods[cell["method"]][cell["bits"]][cell["seed"]] = scores.own_score(record, measure) or 0.0
    return dict(sorted(groups.items()))


def _mean(by_seed: dict[int, float], seeds: list[int]) -> float:
    return float(np.mean([by_seed[seed] for seed in seeds]))


def _text(by_seed: dict[int, float]) -> str:
    return f"{_mean(by_seed, list(by_seed)):.3f}" if by_seed else scores.MISSING


def _pairs(first: float, second: float) -> list[tuple[float, float]]:
    """Each of two rounded scores with the other."""
    a, b = round(first, 3), round(second, 3)
    return [(a, b), (b, a)]
