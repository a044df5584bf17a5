"""Verdicts on regressed weights against constant ones, and on codes of classes against codes of instances."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hbmp.experiments.scores import own_score
from hbmp.experiments.settings import STAGES_ALONE, hbmp, network
from replication_verdicts import Record, Rows, by, of_difference, shown


def scores_of(
    records: list[Record], chosen: Callable[[dict], bool], score: str, own: bool = True
) -> dict[tuple, float]:
    """{(bits, seed): score} of the chosen cells."""
    found = {}
    for record in records:
        if chosen(record["cell"]):
            value = own_score(record, score) if own else record["scores"].get(score)
            if value is not None:
                found[record["cell"]["bits"], record["cell"]["seed"]] = value
    return found


def by_seed(first: dict[tuple, float], second: dict[tuple, float]) -> list[float]:
    """Mean difference over the code lengths that both have, one number per seed."""
    seeds: dict[int, list[float]] = {}
    for key in first.keys() & second.keys():
        seeds.setdefault(key[1], []).append(first[key] - second[key])
    return [float(np.mean(values)) for _, values in sorted(seeds.items())]


def exactly(method: str, protocol: str, data: str, params: dict, codes: str = "function") -> Callable[[dict], bool]:
    """A condition on cells: all of these, at any code length and seed."""
    wanted = (method, protocol, data, {}, codes)

    def chosen(cell: dict) -> bool:
        mine = (cell["method"], cell["protocol"], cell["data"], cell["protocol_params"], cell["codes"])
        return mine == wanted and cell["params"] == params

    return chosen


CIFAR = "cifar10-efficientnet-lite0"
MLP = {**STAGES_ALONE, "function": ["mlp", {}]}
BY_SHARED = {**STAGES_ALONE, "affinity": "label_overlap"}
EQUAL_SETS = {"item_weights": None}
OVERLAP = {"affinity": "label_overlap"}
LEVELS = {
    "affinity": ["distance_levels", {"percentiles": [2, 5, 10, 20], "levels": [10, 5, 2, 1]}],
    "function": ["linear", {}],
}
SCHEMES = (  # words, protocol, data, score, settings, codes, what the paper finds
    ("CIFAR-10 features, cifar-1, kernel", "cifar-1", CIFAR, "map", STAGES_ALONE, "function", "none"),
    ("CIFAR-10 features, cifar-1, mlp", "cifar-1", CIFAR, "map", MLP, "function", "none"),
    ("CIFAR-10 features, cifar-2, mlp", "cifar-2", CIFAR, "map", MLP, "function", "none"),
    ("CIFAR-10 networks, cifar-1, our defaults", "cifar-1", "cifar10", "map", network("cifar-1"), "function", "none"),
    ("CIFAR-10 networks, cifar-2, our defaults", "cifar-2", "cifar10", "map", network("cifar-2"), "function", "none"),
    ("MS-COCO features for NUS-WIDE", "coco", "coco", "map@5000", STAGES_ALONE, "function", "positive"),
    ("VOC 2007 features for NUS-WIDE", "voc2007", "voc2007", "map", STAGES_ALONE, "function", "positive"),
    ("VOC 2007 networks, our defaults", "voc2007", "voc2007", "map", network("voc2007"), "function", "positive"),
    ("NUS-WIDE labels, target codes, nus-1", "nus-1", "nuswide", "map@5000", EQUAL_SETS, "target", "positive"),
    ("NUS-WIDE labels, target codes, nus-2", "nus-2", "nuswide", "map@50000", EQUAL_SETS, "target", "positive"),
    ("MS-COCO, NDCG by shared labels", "coco", "coco", "ndcg-binary", BY_SHARED, "function", "positive"),
    ("VOC 2007, NDCG by shared labels", "voc2007", "voc2007", "ndcg-binary", BY_SHARED, "function", "positive"),
    ("NUS-WIDE labels, target codes, NDCG", "nus-1", "nuswide", "ndcg-binary", OVERLAP, "target", "positive"),
)  # fmt: skip


def schemes(records: list[Record]) -> Rows:
    """Regress less constant in each setting: by own distance, and by plain Hamming distance."""
    rows = []
    for words, protocol, data, score, base, codes, wanted in SCHEMES:
        regress, constant = (
            scores_of(records, chosen, score)
            for chosen in (
                _regress(protocol, data, base, codes),
                exactly("hbmp", protocol, data, hbmp(base, {"scheme": "constant"}), codes),
            )
        )
        plain = scores_of(records, _regress(protocol, data, base, codes), score, own=False)
        differences, of_codes = by_seed(regress, constant), by_seed(plain, constant)
        weights = by_seed(regress, plain)
        rows.append(
            (
                words,
                ", ".join(map(str, sorted({bits for bits, _ in regress.keys() & constant.keys()}))),
                shown(differences, signed=True),
                shown(of_codes, signed=True),
                shown(weights, signed=True),
                "the same" if wanted == "none" else "regress",
                of_difference(differences, wanted),
            )
        )
    return rows + _levels(records)


def _regress(protocol: str, data: str, base: dict, codes: str) -> Callable[[dict], bool]:
    """The cells of regress; of whole networks also the first bits of longer codes, which are what those cells train."""
    alone = exactly("hbmp", protocol, data, hbmp(base), codes)
    prefix = exactly("hbmp", protocol, data, hbmp(base), "prefix of 48")
    images = "network" in str(base.get("function", ""))
    return (lambda cell: alone(cell) or prefix(cell)) if images else alone


def _levels(records: list[Record]) -> Rows:
    """LabelMe's neighbourhood, short and long codes apart, because the paper finds opposite signs."""
    rows = []
    for words, chosen_bits, wanted in (("16 to 32", (16, 24, 32), "constant"), ("48 to 96", (48, 64, 96), "regress")):
        kept = [record for record in records if record["cell"]["bits"] in chosen_bits]
        regress, plain = (
            scores_of(kept, exactly("hbmp", "labelme", "gist22k", LEVELS), "ndcg-scaled", own) for own in (True, False)
        )
        constant = scores_of(
            kept, exactly("hbmp", "labelme", "gist22k", hbmp(LEVELS, {"scheme": "constant"})), "ndcg-scaled"
        )
        differences = by_seed(regress, constant)
        signed = differences if wanted == "regress" else [-value for value in differences]
        rows.append(
            (
                "GIST of other images for 22K LabelMe, NDCG",
                words,
                shown(differences, signed=True),
                shown(by_seed(plain, constant), signed=True),
                shown(by_seed(regress, plain), signed=True),
                wanted,
                of_difference(signed, "positive"),
            )
        )
    return rows


def models(lines: list[Record], value: str = "map", **wanted: str) -> dict[tuple, float]:
    """{(bits, seed): value} of the models that were fitted as published but for these settings."""
    settings = {"items": "classes", "improve": "resample", "scheme": "regress", **wanted}
    return {(line["bits"], line["seed"]): line[value] for line in by(lines, claim="learned", **settings)}


def published(lines: list[Record]) -> Rows:
    """Constant against regress, and regressed weights against none, of HBMP as published on ten classes."""
    rows, regress = [], models(lines)
    for n_bits in sorted({bits for bits, _ in regress}):
        mine = {key: value for key, value in regress.items() if key[0] == n_bits}
        differences = by_seed(mine, models(lines, scheme="constant"))
        rows.append(
            (
                "CIFAR-10 features, cifar-1, HBMP as published",
                str(n_bits),
                shown(differences, signed=True),
                shown(
                    by_seed({key: models(lines, "plain")[key] for key in mine}, models(lines, scheme="constant")),
                    signed=True,
                ),
                shown(by_seed(mine, models(lines, "plain")), signed=True),
                "the same",
                of_difference(differences, "none"),
            )
        )
    return rows


def items(lines: list[Record], records: list[Record]) -> Rows:
    """Codes of classes less codes of instances, once a function has learned them."""
    rows = []
    solvers = (("resample", "the paper's solver"), ("one-flip", "one-flip search")) if models(lines) else ()
    for improve, solver in solvers:
        settings = [{"improve": improve, "items": kind} for kind in ("classes", "instances")]
        differences = by_seed(*(models(lines, **each) for each in settings))
        missed = [100 * np.mean(list(models(lines, "unmatched", **each).values())) for each in settings]
        rows.append(
            (
                f"Codes of classes retrieve better than codes of instances ({solver})",
                f"CIFAR-10 features, cifar-1, HBMP as published, 12, 32 and 48 bits, {len(differences)} seeds",
                f"mAP {shown(differences, signed=True)}; bit errors {missed[0]:.1f} % and {missed[1]:.1f} %",
                of_difference(differences, "positive"),
            )
        )
    for protocol, kind, words in (("cifar-1", "same_class", "CIFAR-10"), ("voc2007", "shared_labels", "VOC 2007")):
        data = "cifar10" if protocol == "cifar-1" else protocol
        base = network(protocol)
        of_instances = exactly("hbmp", protocol, data, {**base, "affinity": [kind, {"items": "instances"}]})
        pair = [
            scores_of(records, chosen, "map") for chosen in (_regress(protocol, data, base, "function"), of_instances)
        ]
        differences = by_seed(*pair)
        rows.append(
            (
                "Codes of classes retrieve better than codes of instances (networks, one-flip search)",
                f"{words} images, 12 and 32 bits",
                f"mAP {shown(differences, signed=True)}",
                of_difference(differences, "positive"),
            )
        )
    return rows
