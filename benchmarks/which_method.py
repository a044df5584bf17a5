"""Which method when: tables from the measurements of the suite, between the marks of documentation pages.

    python benchmarks/which_method.py docs/which-method.md

The lines are those of results/suite.jsonl at 32 bits. A set counts if it has hbmp and at least three other methods on
the same seeds; "own" is mAP over the whole database, "new" over its rows that did not train, both tie-aware by each
method's own distance. Sets with traits in common form a row. One command writes everything; nobody types a number.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path

import numpy as np

from parallel_cells import read_lines
from suite_report import RESULTS, SETS
from suite_scores import OURS, mean_scores
from suite_tables import table

BITS, FEWEST, NEAR = 32, 3, 0.3
TRAITS: dict[str, Callable[[dict], bool]] = {
    "two classes": lambda facts: not facts["multi_label"] and facts["labels"] == 2,
    "up to 30 classes": lambda facts: not facts["multi_label"] and 2 < facts["labels"] <= 30,
    "more than 30 classes": lambda facts: not facts["multi_label"] and facts["labels"] > 30,
    "several labels per item": lambda facts: facts["multi_label"],
    "uneven: a class has 20 times the rows of another": lambda facts: facts["most"] >= 20 * max(facts["fewest"], 1),
    "at most 20 training rows per class": lambda facts: not facts["multi_label"] and facts["most"] <= 20,
}


def cells(lines: list[dict], measure: str) -> dict[str, dict[str, float]]:
    """{set: {method: mAP}} of the sets that count."""
    found = mean_scores((line for line in lines if line["split"] == "test"), measure, [BITS])
    return {name: one for name, one in found.items() if OURS in one and len(one) > FEWEST}


def by_trait(lines: list[dict], facts: dict[str, dict]) -> str:
    """One row per trait: margins of hbmp over the best other method, in points of mAP."""
    own, new = cells(lines, "own"), cells(lines, "new_own")
    rows = []
    for trait, holds in TRAITS.items():
        names = [name for name in own if name in facts and holds(facts[name])]
        if names:
            margins, unseen = ([margin(scores[name]) for name in names] for scores in (own, new))
            first = sum(value >= 0 for value in margins)
            best = np.mean(margins)
            take = OURS if best > NEAR else most_often(own, names) if best < -NEAR else "either"
            rows.append([trait, f"{len(names)}", f"{first}", f"{best:+.1f}", f"{np.mean(unseen):+.1f}", take])
    return table(["labels", "sets", "hbmp first on", "margin", "margin, new rows only", "use"], rows)


def margin(scores: dict[str, float]) -> float:
    """Points between hbmp and the best other method."""
    return 100 * (scores[OURS] - max(value for name, value in scores.items() if name != OURS))


def most_often(scores: dict[str, dict[str, float]], names: list[str]) -> str:
    """The method with the best mean over the sets that all methods have."""
    common = set.intersection(*(set(scores[name]) for name in names))
    return max(sorted(common), key=lambda method: np.mean([scores[name][method] for name in names]))


def by_method(lines: list[dict]) -> str:
    """One row per method: mean mAP and rank on the sets that all methods have, and what a fit takes."""
    own, new = cells(lines, "own"), cells(lines, "new_own")
    methods = {method for scores in own.values() for method in scores}
    common = [
        name for name, scores in own.items() if len(scores) >= len(methods) - 1 and set(scores) >= methods - {"sdr"}
    ]
    methods = set.intersection(*(set(own[name]) for name in common))
    seconds: dict[str, list[float]] = {}
    for line in lines:
        if line["split"] == "test" and line["bits"] == BITS and "failed" not in line and line["set"] in common:
            seconds.setdefault(line["name"], []).append(line["seconds"])
    rows = []
    for method in sorted(methods, key=lambda name: -np.mean([own[each][name] for each in common])):
        ranks = [1 + sum(value > own[name][method] for value in own[name].values()) for name in common]
        scores = [np.mean([found[name][method] for name in common]) for found in (own, new)]
        rows.append(
            [
                method,
                *(f"{score:.3f}" for score in scores),
                f"{np.mean(ranks):.1f}",
                f"{np.median(seconds[method]):.1f}",
            ]
        )
    head = ["method", "mAP", "mAP, new rows only", "mean rank", "fit, s (median)"]
    return table(head, rows) + f"\n\nMeans over {len(common)} sets, {BITS} bits, one thread per fit."


def fill(text: str) -> str:
    """A page with today's tables between its marks."""
    lines, facts = read_lines(RESULTS), json.loads(SETS.read_text(encoding="utf-8"))
    made = {"traits": by_trait(lines, facts), "methods": by_method(lines)}
    for name, content in made.items():
        mark = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
        text = re.sub(mark, lambda match, content=content: f"{match[1]}\n{content}\n\n{match[2]}", text, flags=re.S)
    return text


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", nargs="+", type=Path)
    for page in parser.parse_args().pages:
        page.write_text(fill(page.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
