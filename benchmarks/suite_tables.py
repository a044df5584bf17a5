"""Tables of the development suite: functions of the lines alone."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from suite_scores import OURS, complete, mean_scores, per_variant, ranks, regret


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
