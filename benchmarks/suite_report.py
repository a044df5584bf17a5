"""Tables of the development suite, and its page in the documentation: functions of the lines alone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from suite_scores import OURS, complete, mean_scores, per_variant, ranks, regret

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "suite.jsonl"
VARIANTS = ROOT / "results" / "suite-variants.jsonl"
SETS = ROOT / "results" / "suite-sets.json"
PAGE = ROOT / "docs" / "suite.md"
REGRET = (
    "Each setting is scored by the mean of both mAPs on queries split from the training rows. Regret is what a set "
    "loses when the other sets choose its setting: the setting that is best on average over them, against the best "
    "setting for the set itself."
)


def table(head: list[str], rows: Iterable[Iterable]) -> str:
    """Markdown; numbers to the right."""
    cells = [[text if isinstance(text, str) else f"{text}" for text in row] for row in rows]
    right = [bool(cells) and all(_is_number(row[at]) for row in cells) for at in range(len(head))]
    rule = ["---:" if numeric else ":---" for numeric in right]
    return "\n".join("| " + " | ".join(row) + " |" for row in [head, rule, *cells])


def _is_number(text: str) -> bool:
    return text.lstrip("+−-").replace(".", "", 1).replace(",", "").isdigit() or text == "—"


def points(value: float) -> str:
    return f"{value:+.1f}"


def rank_table(lines: list[dict], measure: str, bits: int | None = None) -> str:
    """Rank and margin of hbmp on every set, then mean and worst."""
    rows = ranks(mean_scores(lines, measure, None if bits is None else [bits]))
    if not rows:
        return "No set has both hbmp and another method.\n"
    shown = [[r["set"], f"{r['score']:.3f}", f"{r['rank']} of {r['of']}", r["best"], points(r["margin"])] for r in rows]
    margins = [row["margin"] for row in rows]
    first = sum(margin >= 0 for margin in margins)
    near = sum(margin >= -0.3 for margin in margins)
    return (
        table(["set", "mAP", "rank", "best other", "margin"], shown)
        + f"\n\nFirst on {first} of {len(rows)} sets, within 0.3 points of the first on {near}; "
        + f"margin {points(np.mean(margins))} on average, {points(min(margins))} at worst.\n"
    )


def method_table(lines: list[dict], measure: str, bits: int) -> str:
    """All methods, the best mean rank first: rank, first places, and points behind the best method of each set."""
    scores = mean_scores(lines, measure, [bits])
    rows = []
    for name in {name for found in scores.values() for name in found}:
        sets = [found for found in scores.values() if name in found and OURS in found]
        if not sets:
            continue
        places = [1 + sum(value > found[name] for value in found.values()) for found in sets]
        behind = [100 * (max(found.values()) - found[name]) for found in sets]
        lead = [100 * (found[OURS] - found[name]) for found in sets]
        rows.append((np.mean(places), name, places.count(1), len(sets), np.mean(behind), max(behind), np.mean(lead)))
    head = ["method", "sets", "mean rank", "first", "behind the best", "at worst", f"{OURS} leads by"]
    shown = [
        [name, n_sets, f"{rank:.1f}", first, f"{behind:.1f}", f"{worst:.1f}", "—" if name == OURS else points(lead)]
        for rank, name, first, n_sets, behind, worst, lead in sorted(rows)
    ]
    return table(head, shown) + "\n"


def regret_tables(lines: list[dict], measure: str, base: str | None = None, bits: Iterable[int] | None = None) -> str:
    """Gains of the variants over the first one, then the regret of choosing among them."""
    found = mean_scores(lines, measure, bits)
    scores = complete(found)
    if len(scores) < 2:
        return "Regret needs at least two sets with a score of every variant.\n"
    names = list(dict.fromkeys(line["name"] for line in lines))
    scores = {held: {name: by[name] for name in names if name in by} for held, by in scores.items()}
    base = base or next(iter(next(iter(scores.values()))))
    head = ["variant", "mean mAP", "gain", "worst", "on", "best", "on", "mean regret", "worst regret"]
    gains = [
        [
            *(r["variant"], f"{100 * r['score']:.2f}", f"{r['gain']:+.2f}", points(r["worst"]), r["worst_set"]),
            *(points(r["best"]), r["best_set"], f"{r['mean_regret']:.2f}", f"{r['worst_regret']:.1f}"),
        ]
        for r in per_variant(scores, base)
    ]
    rows = regret(scores)
    lost = [row["regret"] for row in rows]
    left_out = sorted(set(found) - set(scores))
    return (
        f"Gains over {base}, in points of mAP:\n\n"
        + table(head, gains)
        + "\n\nLeave-one-set-out regret:\n\n"
        + table(
            ["set", "chosen by the others", "best here", "regret"],
            [[row["set"], row["choice"], row["best"], f"{row['regret']:.1f}"] for row in rows],
        )
        + f"\n\nRegret {np.mean(lost):.2f} points on average, {max(lost):.1f} at worst, over {len(rows)} sets.\n"
        + (f"Left out, because variants are missing: {', '.join(left_out)}.\n" if left_out else "")
    )


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


def page(lines: list[dict], variants: list[dict], facts: dict[str, dict]) -> str:
    """docs/suite.md."""
    lines = [line for line in lines if line["split"] == "test"]
    bits = sorted({line["bits"] for line in lines})
    seeds = sorted({line["seed"] for line in lines})
    sections = [f"## {n_bits} bits, all methods\n\n{method_table(lines, 'own', n_bits)}" for n_bits in bits] + [
        f"## {n_bits} bits, {name}\n\n{rank_table(lines, measure, n_bits)}"
        for n_bits in bits
        for measure, name in (("own", "own distance"), ("real", "real-valued queries"), ("new_own", "new rows only"))
    ]
    if variants:
        read = [line for line in variants if not line["settings"]]  # "default", and readings of its fits
        trained = [line for line in variants if line["settings"] or line["name"] == read[0]["name"]]
        for title, found in (("Settings of training", trained), ("Settings of reading", read)):
            sections += [f"## {title}: gains and regret", "", REGRET, "", regret_tables(found, "score")]
    return "\n".join(
        [
            "# The development suite",
            "",
            "<!-- Written by `python benchmarks/suite.py page`; edits here are lost. -->",
            "",
            f"{len(facts)} real sets on which settings are chosen and methods are compared. They differ in the number "
            "of classes, rows per class, balance, how far classes overlap, single and multi-label, images and texts, "
            "and dimensions. `--validation` and `regret` choose settings on splits of the training rows by "
            "leave-one-set-out regret; the last section has that table for the defaults of HBMP. Some of the defaults "
            "were first found on test queries of these sets, in an earlier development version, so margins on them may "
            "be optimistic.",
            "",
            "```bash",
            "python benchmarks/suite_data.py suite-data --shared DATA",
            "python benchmarks/suite.py run suite-data --jobs 16 --seeds 0 1 2",
            "python benchmarks/suite.py run suite-data --jobs 16 --validation --methods hbmp --name default \\",
            "    --readings --bits 64 16 --output results/suite-variants.jsonl",
            "python benchmarks/suite.py run suite-data --jobs 16 --validation --methods hbmp --bits 64 \\",
            "    --variants benchmarks/suite_variants.json --output results/suite-variants.jsonl",
            "python benchmarks/suite.py page",
            "```",
            "",
            set_table(facts),
            "",
            "## How to read the tables",
            "",
            "mAP covers the full ranking of the database, which holds the training rows and new rows; ties are "
            "averaged. A multi-label row is relevant when it shares a label with the query. The margin is the "
            "difference to the best other method in points. Methods that take one class per row have no scores on "
            "multi-label sets, so that their means cover fewer sets. "
            f"Seeds: {', '.join(map(str, seeds)) or 'none yet'}.",
            "",
            *sections,
        ]
    )


def add_commands(commands, read_lines: Callable[[Path], list[dict]]) -> None:
    """The subcommands that read lines."""

    def lines_of(options) -> list[dict]:
        kept = [line for path in options.files for line in read_lines(path)]
        kept = [line for line in kept if not options.sets or line["set"] in options.sets]
        return [line for line in kept if not options.only or line["name"] in options.only]

    def report(options) -> None:
        lines = lines_of(options)
        for n_bits in options.bits or sorted({line["bits"] for line in lines}):
            for measure in options.measure:
                print(f"{n_bits} bits, {measure}\n\n{rank_table(lines, measure, n_bits)}")
                print(method_table(lines, measure, n_bits))
        for line in lines:
            if "failed" in line:
                print(f"failed: {line['key']}: {line['failed']}")

    def show_regret(options) -> None:
        for measure in options.measure:
            print(f"{measure}\n\n{regret_tables(lines_of(options), measure, options.base, options.bits)}")

    def write_page(options) -> None:
        options.output.write_text(page(lines_of(options), read_lines(VARIANTS), json.loads(SETS.read_text())))

    for name, command, help_text, measures in (
        ("report", report, "rank and margin of hbmp on every set", ["own", "real"]),
        ("regret", show_regret, "leave-one-set-out regret over variants", ["score"]),
        ("page", write_page, "write the page of the documentation", ["own"]),
    ):
        one = commands.add_parser(name, help=help_text)
        one.add_argument("files", nargs="*", type=Path, default=[RESULTS])
        one.add_argument("--measure", nargs="+", default=measures, help="own, real, score, new_own, new_real")
        one.add_argument("--bits", nargs="+", type=int)
        one.add_argument("--sets", nargs="+")
        one.add_argument("--only", nargs="+", help="names of methods or variants")
        one.add_argument("--base", help="the variant that gains are counted from; the first one without")
        one.add_argument("--output", type=Path, default=PAGE)
        one.set_defaults(command=command)
