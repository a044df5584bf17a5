"""The tables of docs/replication.md from the lines in results/.

    python benchmarks/replication_page.py      fills docs/replication.md

Effects come with 95 % intervals over seeds by Student's t. A verdict about a difference follows from its interval, see
`replication_verdicts.of_difference`. One about a table's ranking follows from the rank of HBMP and the rank
correlation, see `replication_rankings.ranking`.
"""

from __future__ import annotations

import re

from hbmp.experiments import load_results
from replication_figures import figure_1, figure_2
from replication_rankings import rankings
from replication_schemes import items, published, schemes
from replication_theory import constants, theory, weight_rows
from replication_verdicts import HOLDS, NOT, PART, ROOT, UNTESTED, markdown, stored

PAGE = ROOT / "docs" / "replication.md"
MARKED = re.compile(r"(<!-- replication:([\w-]+) -->\n)[\s\S]*?(<!-- /replication -->)")


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
