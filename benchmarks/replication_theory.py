"""Verdicts on the theory of the paper, and on weights of equally distant classes."""

from __future__ import annotations

import numpy as np

from replication_verdicts import HOLDS, NOT, PART, Record, Rows, by, interval, markdown, shown


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
