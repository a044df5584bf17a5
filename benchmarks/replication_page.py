"""The tables of docs/replication.md from the lines in results/.

    python benchmarks/replication_page.py      fills docs/replication.md

Effects come with 95 % intervals over seeds by Student's t. A verdict about a difference follows from its interval, see
`of_difference`; one about a table's ranking follows from the rank of HBMP and the rank correlation, see `ranking`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from scipy import stats

from hbmp._core import catalog
from hbmp.experiments import Cell, load_results
from hbmp.experiments.scores import own_score, source_with_results
from hbmp.experiments.settings import SEEDS, STAGES_ALONE, hbmp, network

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "replication.md"
MARKED = re.compile(r"(<!-- replication:([\w-]+) -->\n)[\s\S]*?(<!-- /replication -->)")
HOLDS, PART, NOT, UNTESTED = "holds", "holds in part", "does not hold", "could not be tested"
EQUAL = 0.01  # differences of mAP or NDCG that count as none

Record = dict
Rows = list[tuple[str, ...]]


# --- statistics ------------------------------------------------------------------------------------------------------
def interval(values: Iterable[float]) -> tuple[float, float | None]:
    """Mean, and half of its 95 % interval by Student's t; None for one value."""
    values = np.asarray(list(values), dtype=float)
    if len(values) < 2:
        return float(values.mean()), None
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return float(values.mean()), float(half)


def shown(values: Iterable[float], digits: int = 3, *, signed: bool = False) -> str:
    """`+0.012 ± 0.004`, or `+0.012 (one seed)`."""
    mean, half = interval(values)
    text = f"{mean:+.{digits}f}" if signed else f"{mean:.{digits}f}"
    return f"{text} (one seed)" if half is None else f"{text} ± {half:.{digits}f}"


def of_difference(values: list[float], wanted: str) -> str:
    """Verdict on "positive" or "none" from the interval of a mean difference.

    "positive" holds if the interval lies above zero, and does not hold if it lies below. "none" holds if the interval
    lies within 0.01 of zero, and does not hold if it lies outside. All else, and a single seed, holds in part at most.
    """
    mean, half = interval(values)
    low, high = (mean - (half or 0), mean + (half or 0))
    if wanted == "positive":
        sure, against = low > 0, high < 0
    else:
        sure, against = low > -EQUAL and high < EQUAL, low > EQUAL or high < -EQUAL
    if against:
        return NOT
    return HOLDS if sure and half is not None else PART


def markdown(header: tuple[str, ...], rows: Rows) -> str:
    """A table of text."""
    lines = ["| " + " | ".join(row) + " |" for row in (header, tuple(":---" for _ in header), *rows)]
    return "\n".join(lines)


# --- the theory ------------------------------------------------------------------------------------------------------
def stored(name: str = "replication") -> list[Record]:
    """The lines of one file in results/."""
    return [json.loads(line) for line in (ROOT / "results" / f"{name}.jsonl").read_text(encoding="utf-8").splitlines()]


def by(lines: list[Record], **wanted: object) -> list[Record]:
    """The lines with these values."""
    return [line for line in lines if all(line.get(key) == value for key, value in wanted.items())]


def theory(lines: list[Record]) -> Rows:
    """Verdicts on Property 1, Theorem 2, Corollary 3 and Property 4."""
    one, two = by(lines, claim="property-1"), by(lines, claim="theorem-2")
    unit, floor = ([line[key] for line in one] for key in ("least_with_unit_steps", "floor"))
    pairs, at, after = (float(np.mean([line["free_weights"][place] for line in one])) for place in range(3))
    largest = max(line["factors"][2] for line in two)
    printed = [line["eta_as_printed"] for line in two]
    exact = max(line["identity_error"] for line in two)
    best, slow = ([line[key] for line in two] for key in ("norm_after", "norm_after_with_L"))
    strict = min(line["strictly_falling"] for line in two)
    refit, at_32 = (
        max(line["refitted_over_greedy"][0] for line in two),
        [line["refitted_over_greedy"][1] for line in two],
    )
    kinds = len({line["neighbourhood"] for line in two})
    data = f"{kinds} neighbourhoods × {len({line['seed'] for line in two})} seeds, 64 bits"
    return [
        (
            "Property 1: with unit steps some affinities are never fitted",
            f"noise on 12 items, {len(one)} seeds",
            f"least residual in 200 steps {shown(unit, 2)}, of any integers {shown(floor, 2)}; free weights: relative "
            f"residual {at:.0e} after {pairs:.0f} bits, {after:.0e} after twice as many",
            HOLDS if min(unit) >= min(floor) > 0 and after < 1e-6 else NOT,
        ),
        (
            "Theorem 2: with a free step the residual never rises",
            data,
            f"largest factor of one step {largest:.5f}",
            HOLDS if largest <= 1 + 1e-9 else NOT,
        ),
        (
            "Theorem 2 as printed: ‖Q_t‖ ≤ η^(t−1) ‖Q_(t−1)‖ with one η",
            data,
            f"the smallest η for which it is true is {min(printed):.5f} to {max(printed):.5f}",
            PART if max(printed) <= 1 + 1e-9 else NOT,
        ),
        (
            "Its proof: ‖Q_t‖² ≤ (1 − β²/L) ‖Q_(t−1)‖² needs a constant L > 1",
            data,
            f"with the best step ‖Q_t‖² = (1 − β²) ‖Q_(t−1)‖² to {exact:.0e}, so L = 1; with the step of the proof and "
            f"L = ‖R‖, {np.mean(slow):.2f} of the norm is left after 64 bits, with the best step {np.mean(best):.2f}",
            NOT if exact < 1e-9 else HOLDS,
        ),
        (
            "Corollary 3: the residual falls strictly unless vᵀQv = 0",
            data,
            f"{100 * strict:.0f} % of steps",
            HOLDS if strict == 1 else NOT,
        ),
        (
            "Property 4: refitting all weights never raises the residual",
            data,
            f"refitted over greedy at most {refit:.6f}, at 32 bits {np.mean(at_32):.3f} on average",
            HOLDS if refit <= 1 + 1e-6 else NOT,
        ),
    ]


def constants(lines: list[Record]) -> str:
    """The constants of Theorem 2, one row per neighbourhood."""
    two, rows = by(lines, claim="theorem-2"), []
    for name in dict.fromkeys(line["neighbourhood"] for line in two):
        mine = by(two, neighbourhood=name)
        factors = [[line["factors"][place] for line in mine] for place in range(3)]
        rows.append(
            (
                name,
                f"{min(factors[0]):.4f}",
                shown(factors[1], 4),
                f"{max(factors[2]):.5f}",
                shown([line["norm_after"] for line in mine]),
                shown([line["norm_after_with_L"] for line in mine]),
                shown([line["refitted_over_greedy"][1] for line in mine]),
            )
        )
    header = (
        "neighbourhood",
        "least η_t",
        "mean η_t",
        "largest η_t",
        "left after 64 bits",
        "with step 1/L",
        "refitted, 32 bits",
    )
    return markdown(header, rows)


def weight_rows(lines: list[Record]) -> Rows:
    """Whether regressed weights of equally distant classes are one scaling factor."""
    rows = []
    for count in (10, 100):
        mine = by(lines, claim="weights", classes=count)
        spreads = {bits: [line["by_bits"][bits][0] for line in mine] for bits in ("12", "32", "64")}
        negative = np.mean([line["by_bits"]["64"][1] for line in mine])
        text = ", ".join(f"{bits} bits {shown(values, 2)}" for bits, values in spreads.items())
        least = min(interval(values)[0] for values in spreads.values())
        rows.append(
            (
                f"Equally distant classes: weights are a common factor ({count} classes)",
                f"regressed weights, {len(mine)} seeds",
                f"deviation over mean: {text}; negative at 64 bits: {negative:.1f}",
                HOLDS
                if max(interval(values)[0] for values in spreads.values()) < 0.1
                else PART
                if least < 0.1
                else NOT,
            )
        )
    return rows


# --- figures ---------------------------------------------------------------------------------------------------------
def curves(quantity: str, items: str, improve: str) -> tuple[list[int], np.ndarray]:
    """Code lengths and values (seeds, lengths) of Figure 1."""
    mine = [
        line
        for line in stored("fig1")
        if (line["settings"].get("items"), line["settings"].get("improve")) == (items, improve)
    ]
    return mine[0]["settings"]["bits"], np.array([line[quantity] for line in mine])


def figure_1() -> Rows:
    """Verdicts on Figure 1 (c) to (f)."""
    bits, of_classes = curves("map", "classes", "resample")
    gap = of_classes - curves("map", "instances", "resample")[1]
    searched = of_classes - curves("map", "instances", "one-flip")[1]
    place = int(np.argmax(gap.mean(axis=0)))
    residual = curves("residual", "classes", "resample")[1]
    instances = curves("residual", "instances", "one-flip")[1][:, -1]
    seconds = [curves("seconds", kind, "resample")[1][:, -1] for kind in ("instances", "classes")]
    from_12 = bits.index(12)
    data = f"the paper's 10 classes and 1,000 instances, {len(gap)} seeds"
    errors = {
        line["settings"]["name"].replace("\n", " "): line["unmatched"] for line in stored("fig1") if "unmatched" in line
    }
    falling = list(errors.values())
    return [
        (
            "Fig. 1 (c): 40 bits fit the class affinity; instances need more",
            data,
            f"relative residual of classes at 40 bits {shown(residual[:, bits.index(40)])}, at 48 bits "
            f"{shown(residual[:, bits.index(48)])}; of instances at {bits[-1]} bits {shown(instances)} with our search",
            HOLDS if residual[:, bits.index(40)].mean() < 0.05 and instances.mean() > 0.1 else PART,
        ),
        (
            "Fig. 1 (d): codes of classes have up to 0.40 more mAP than codes of instances",
            data,
            f"gap with the paper's solver {shown(gap[:, place])} at {bits[place]} bits; with one-flip search "
            f"{shown(searched[:, 0])} at {bits[0]} bits, {shown(searched[:, from_12:].mean(axis=1))} from 12 bits on",
            PART if interval(gap[:, place])[0] > 0.2 > interval(searched[:, 0])[0] else HOLDS,
        ),
        (
            "Fig. 1 (e): inference for instances is much slower",
            data,
            f"{shown(seconds[0] / seconds[1], 0)} times at {bits[-1]} bits",
            HOLDS if (seconds[0] / seconds[1]).min() > 2 else NOT,
        ),
        (
            "Fig. 1 (f): functions of more capacity miss fewer bits",
            "stand-in: EfficientNet-Lite0 features of CIFAR-10 for GIST, fc7 and VGG-F; one seed",
            "; ".join(f"{name} {100 * value:.1f} %" for name, value in errors.items()),
            PART if falling == sorted(falling, reverse=True) else NOT,
        ),
    ]


def figure_2() -> Rows:
    """Verdicts on the supplement's residual plots, and the number of label sets."""
    lines = stored("fig2")
    few, all_items = (
        {scheme: [line for line in lines if _panel(line) == (kind, scheme)] for scheme in ("regress", "constant")}
        for kind in (True, False)
    )
    sets = next(line["items"] for line in all_items["regress"] if line["settings"]["panel"] == "label-sets")
    left = {line["items"]: line["residuals"][-1] for line in all_items["regress"]}
    worst = max(line["residuals"][-1] for line in few["regress"])
    constant = min(line["residuals"][-1] for line in few["constant"])
    return [
        (
            "Supplement C: regress fits every neighbourhood perfectly, constant does not",
            "ten sampled items as in the paper; LabelMe: GIST of other images",
            f"relative residual after 60 bits: regress at most {worst:.3f}, constant at least {constant:.3f}",
            HOLDS if worst < 1e-3 < constant else NOT,
        ),
        (
            "The same for all items, which the text of the paper suggests",
            "all classes, label sets and images",
            "relative residual of regress after 64 bits: "
            + ", ".join(f"{value:.3f} ({items:,} items)" for items, value in left.items()),
            PART if min(left.values()) < 1e-3 < max(left.values()) else NOT,
        ),
        (
            "NUS-WIDE has 4,850 label sets",
            "NUS-WIDE, the official labels",
            f"{sets:,} distinct sets of the 21 concepts in all images",
            HOLDS if sets == 4850 else NOT,
        ),
    ]


def _panel(line: Record) -> tuple[bool, str]:
    return line["settings"]["few"], line["settings"]["scheme"]


# --- experiments -----------------------------------------------------------------------------------------------------
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


# --- rankings --------------------------------------------------------------------------------------------------------
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


# --- the page --------------------------------------------------------------------------------------------------------
def tables() -> dict[str, str]:
    """Every marked table by name."""
    lines, records = stored(), load_results(ROOT / "results")
    claims = ("claim", "data", "effect, 95 % interval over seeds", "verdict")
    differences = ("setting", "bits", "regress less constant", "of the codes", "of the weights", "the paper", "verdict")
    ranks = ("part", "ours", "rank in the paper → here", "first here", "verdict")
    of_theory, of_figures = theory(lines), figure_1() + figure_2() + weight_rows(lines)
    of_items, of_tables = items(lines, records), rankings(records)
    of_schemes = published(lines) + schemes(records)
    verdicts = [row[-1] for row in (*of_theory, *of_figures, *of_items, *of_schemes, *of_tables)]
    counts = ", ".join(
        f"{verdicts.count(verdict)} {verdict.replace('holds', 'hold').replace('does', 'do')}"
        for verdict in (HOLDS, PART, NOT)
    )
    return {
        "summary": f"Of {len(verdicts)} checks, {counts}, and {verdicts.count(UNTESTED)} {UNTESTED}.",
        "theory": markdown(claims, of_theory),
        "constants": constants(lines),
        "figures": markdown(claims, of_figures),
        "items": markdown(claims, of_items),
        "schemes": markdown(differences, of_schemes),
        "rankings": markdown(ranks, of_tables),
    }


def fill(text: str, found: dict[str, str]) -> str:
    """The page with its marked places filled."""
    return MARKED.sub(lambda match: f"{match[1]}\n{found[match[2]]}\n\n{match[3]}", text)


if __name__ == "__main__":
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8"), tables()), encoding="utf-8")
