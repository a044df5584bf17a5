"""The suite's page in the documentation, docs/suite.md: a function of the lines alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from suite_scores import mean_scores, ranks, summary, with_seeds
from suite_tables import method_table, points, regret_tables, table

MEASURES = {"own": "own distance", "real": "real-valued queries", "new_own": "new rows only"}
IDEAS = {  # what is measured without each: the variant that lacks it, and where it is in use
    "mean features in the affinity": ("labels alone", "all sets"),
    "choice of their weight on held-out rows": ("feature share 0.5", "classes"),
    "free constant": ("no intercept", "multi-label"),
    "label scores": ("no label scores", "all sets"),
    "label votes": ("votes 0", "all sets"),
    "balanced prior of the votes": ("prior 0", "classes"),
    "label-aware queries": ("plain queries", "multi-label"),
    "contrastive loss": ("no contrast", "all sets"),
    "weights of bits": ("equal weights", "all sets"),
    "dither": ("no dither", "where bits are spare"),
}
INTRODUCTION = """\
# The development suite

<!-- Written by `python benchmarks/suite.py page`; edits here are lost. -->

{n} real sets on which settings are chosen and methods are compared. They differ in the number of classes, rows per \
class, balance, how far classes overlap, single and multi-label, images and texts, and dimensions. `--validation` and \
`regret` choose settings on splits of the training rows by leave-one-set-out regret; the last sections have that table \
for the defaults of HBMP. Some of the defaults were first found on test queries of these sets, in an earlier \
development version, so margins on them may be optimistic.

```bash
python benchmarks/suite_data.py suite-data --shared DATA
python benchmarks/suite.py run suite-data --jobs 16 --seeds 0 1 2
python benchmarks/suite.py run suite-data --jobs 16 --validation --methods hbmp --name default \\
    --readings --bits 64 16 --output results/suite-variants.jsonl
python benchmarks/suite.py run suite-data --jobs 16 --validation --methods hbmp --bits 64 \\
    --variants benchmarks/suite_variants.json --output results/suite-variants.jsonl
python benchmarks/suite.py page
```

{sets}

## How to read the tables

mAP covers the full ranking of the database, which holds the training rows and new rows; ties are averaged. "New rows \
only" leaves the training rows out of the database. A multi-label row is relevant when it shares a label with the \
query. The margin is the difference to the best other method in points. Methods that take one class per row have no \
scores on multi-label sets, so that their means cover fewer sets. The fits ran on two Linux machines; rounding \
differs between them.
"""
README = """\
On {sets} other real sets ([docs/suite.md](docs/suite.md)), codes of {bits} bits are first of {methods} methods on \
{first}, and on {first_real} with real-valued queries. The mean margin over the best other method is {mean} points of \
mAP; the worst is {worst}. If only rows that were not used for training are searched, they are first on {first_new}, \
by {mean_new} points on average. The defaults were chosen on these sets, so the margins are optimistic."""
MORE = """\
## More methods

Points of mAP by which HBMP leads other methods by own distance, seed 0: the mean over the sets that were measured, \
and the worst set.
"""
ABLATION = """\
## What each idea brings

Points of mAP that HBMP loses without an idea, on queries split from the training rows: the mean over the sets where \
the idea is in use, and the set that loses most. "Seeds" is the number of fits per set. An idea stays if it brings \
0.3 points on average by any measure, or if some set would lose more than 2 points without it.
"""
REGRET = """\
Each setting is scored by the mean of both mAPs on queries split from the training rows. Regret is what a set loses \
when the other sets choose its setting: the setting that is best on average over them, against the best setting for \
the set itself.
"""


def page(lines: list[dict], variants: list[dict], facts: dict[str, dict], more: list[dict]) -> str:
    """docs/suite.md."""
    lines = [line for line in lines if line["split"] == "test" and "failed" not in line]
    several = sorted({line["seed"] for line in lines if line["name"] == "hbmp"})
    lengths = sorted({line["bits"] for line in lines})
    sections = [INTRODUCTION.format(n=len(facts), sets=set_table(facts)), "## Summary", "", summaries(lines, several)]
    for bits in lengths:
        seeds = whole_seeds(lines, bits, several)
        shown = with_seeds([line for line in lines if line["bits"] == bits], seeds)
        sections += [f"## {bits} bits", "", _seeds_of(shown, seeds), "", margin_table(shown, bits), ""]
    for bits in lengths:
        sections += [f"## {bits} bits, all methods", "", method_table(with_seeds(lines, several[:1]), "own", bits)]
    if more:
        sections += [MORE, lead_table(with_seeds(lines, several[:1]), more), ""]
    if variants:
        multi_label = {name for name, one in facts.items() if one["multi_label"]}
        sections += [ABLATION, ablation_table(variants, multi_label), ""]
        read = [line for line in variants if not line["settings"]]  # "default", and readings of its fits
        trained = [line for line in variants if line["settings"] or line["name"] == read[0]["name"]]
        for title, found in (("Settings of training", trained), ("Settings of reading", read)):
            sections += [f"## {title}: gains and regret", "", REGRET, regret_tables(found, "score")]
    return "\n".join(sections)


def set_table(facts: dict[str, dict]) -> str:
    """What the sets are."""
    head = ["set", "labels", "rows per label", "dimensions", "train", "new", "query", "what it is"]
    rows = [
        [
            *(name, f"{one['labels']}{' (multi-label)' if one['multi_label'] else ''}"),
            *(
                f"{one['fewest']:,} to {one['most']:,}",
                *(f"{one[key]:,}" for key in ("dimensions", "train", "new", "query")),
            ),
            one["description"],
        ]
        for name, one in facts.items()
    ]
    return table(head, rows)


def whole_seeds(lines: list[dict], bits: int, seeds: list[int]) -> list[int]:
    """The most seeds, from the first on, with which as many sets can be compared as with the first alone."""
    of_length = [line for line in lines if line["bits"] == bits]
    compared = [len(ranks(mean_scores(with_seeds(of_length, seeds[:n]), "own"))) for n in range(1, len(seeds) + 1)]
    return seeds[: max((n for n, found in enumerate(compared, 1) if found == compared[0]), default=1)]


def summaries(lines: list[dict], seeds: list[int]) -> str:
    """How often hbmp is first: among all methods at the first seed, and among those with several seeds."""
    first = with_seeds(lines, seeds[:1])
    parts = [_seeds_of(first, seeds[:1]), "", summary_table(first), ""]
    groups: dict[tuple[int, ...], list[int]] = {}
    for bits in sorted({line["bits"] for line in lines}):
        groups.setdefault(tuple(whole_seeds(lines, bits, seeds)), []).append(bits)
    for group, lengths in groups.items():
        if len(group) > 1:
            found = with_seeds([line for line in lines if line["bits"] in lengths], group)
            parts += [_seeds_of(found, group), "", summary_table(found), ""]
    return "\n".join(parts)


def readme_part(lines: list[dict], bits: int = 32) -> str:
    """The paragraph of the README: how often codes of one length are first, by all seeds that the sets share."""
    lines = [line for line in lines if line["split"] == "test" and "failed" not in line and line["bits"] == bits]
    several = sorted({line["seed"] for line in lines if line["name"] == "hbmp"})
    lines = with_seeds(lines, whole_seeds(lines, bits, several))
    own, real, new = (summary(lines, measure, bits) or {} for measure in MEASURES)
    return README.format(
        bits=bits,
        sets=own["sets"],
        methods=len({line["name"] for line in lines}),
        first=own["first"],
        first_real=real["first"],
        first_new=new["first"],
        mean=points(own["mean"]),
        worst=points(own["worst"]),
        mean_new=points(new["mean"]),
    )


def _seeds_of(lines: list[dict], seeds: Iterable[int]) -> str:
    """Seeds and methods of a table, with the number of sets of methods that have fewer than others."""
    sets: dict[str, set[str]] = {}
    for line in lines:
        sets.setdefault(line["name"], set()).add(line["set"])
    most = max(map(len, sets.values()), default=0)
    names = [name if len(found) == most else f"{name} ({len(found)} sets)" for name, found in sets.items()]
    listed = ", ".join(str(seed) for seed in seeds)
    return f"Seed{'s' * (listed.count(',') > 0)} {listed}; {', '.join(names)}."


def summary_table(lines: list[dict]) -> str:
    """One row for each code length and measure."""
    head = ["bits", "distance", "sets", "first", "within 0.3", "mean margin", "worst", "on"]
    rows = []
    for bits in sorted({line["bits"] for line in lines}):
        for measure, name in MEASURES.items():
            if (one := summary(lines, measure, bits)) is not None:
                counts = [one[key] for key in ("sets", "first", "near")]
                rows.append([bits, name, *counts, points(one["mean"]), points(one["worst"]), one["worst_set"]])
    return table(head, rows)


def margin_table(lines: list[dict], bits: int) -> str:
    """One row for each set: mAP, the best other method and the margin, for every measure."""
    found = {measure: {r["set"]: r for r in ranks(mean_scores(lines, measure, [bits]))} for measure in MEASURES}
    head = ["set", *(title for name in MEASURES.values() for title in (name, "best other", "margin"))]
    rows = []
    for name in found["own"]:
        cells = [found[measure][name] for measure in MEASURES]
        rows.append([name, *(text for r in cells for text in (f"{r['score']:.3f}", r["best"], points(r["margin"])))])
    return table(head, rows)


def lead_table(lines: list[dict], more: list[dict]) -> str:
    """One row for each other method and code length that at least half of the sets were measured with."""
    own = {(line["set"], line["bits"]): line["own"] for line in lines if line["name"] == "hbmp"}
    leads: dict[tuple[int, str], dict[str, float]] = {}
    for line in more:
        if "own" in line and line["seed"] == 0 and (line["set"], line["bits"]) in own:
            lead = 100 * (own[line["set"], line["bits"]] - line["own"])
            leads.setdefault((line["bits"], line["name"]), {})[line["set"]] = lead
    half = len({line["set"] for line in lines}) / 2
    rows = []
    for (bits, name), found in sorted(leads.items(), key=lambda each: (each[0][0], np.mean(list(each[1].values())))):
        if len(found) >= half:
            worst = min(found, key=found.__getitem__)
            ahead = sum(lead >= 0 for lead in found.values())
            mean = points(float(np.mean(list(found.values()))))
            rows.append([bits, name, len(found), ahead, mean, points(found[worst]), worst])
    return table(["bits", "method", "sets", "HBMP ahead", "mean lead", "worst", "on"], rows)


def ablation_table(variants: list[dict], multi_label: set[str]) -> str:
    """One row for each idea: what is lost without it by each measure, on average and at worst."""
    titles = [title for name in MEASURES.values() for title in (name, "worst", "on")]
    head = ["idea", "used on", "bits", "seeds", *titles]
    rows = []
    for idea, (variant, where) in IDEAS.items():
        for bits in sorted({line["bits"] for line in variants if line["name"] == variant}):
            losses = [_losses(variants, variant, bits, measure, where, multi_label) for measure in MEASURES]
            if not all(losses) or not _on_most_sets(variants, variant, bits):
                continue
            cells = []
            for lost in losses:
                worst = max(lost, key=lost.__getitem__)
                cells += [points(float(np.mean(list(lost.values())))), points(lost[worst]), worst]
            rows.append([idea, where, bits, _n_seeds(variants, variant, bits), *cells])
    return table(head, rows)


def _n_seeds(variants: list[dict], variant: str, bits: int) -> int:
    """Seeds that a variant was measured with, on any set."""
    return len({line["seed"] for line in variants if line["name"] == variant and line["bits"] == bits})


def _on_most_sets(variants: list[dict], variant: str, bits: int) -> bool:
    """Whether a variant was measured on at least half of the sets."""
    found = {
        name: {line["set"] for line in variants if (line["name"], line["bits"]) == (name, bits)}
        for name in ("default", variant)
    }
    return 2 * len(found[variant]) >= len(found["default"])


def _losses(variants, variant, bits, measure, where, multi_label) -> dict[str, float]:
    """{set: points lost without an idea} over the sets where it is in use."""
    scores = mean_scores([line for line in variants if line["name"] in ("default", variant)], measure, [bits])
    lost = {name: 100 * (by["default"] - by[variant]) for name, by in scores.items() if len(by) == 2}
    if where == "where bits are spare":
        return {name: value for name, value in lost.items() if value}
    if where == "all sets":
        return lost
    return {name: value for name, value in lost.items() if (name in multi_label) == (where == "multi-label")}
