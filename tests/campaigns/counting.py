"""What all campaigns share: numbered attacks, each with a seed of its own, counts of outcomes, and broken promises.

A campaign is a module with a `TITLE`, a `PROMISE`, a `GOAL` (attacks of a nightly run), a `SLICE` (attacks with the
tests) and a context manager `attacks(folder)` that gives a function: number of the attack and its generator in, pairs
of case and outcome out. It raises `Broken` where a promise does not hold, and `Absent` where the machine lacks a part.
"""

from __future__ import annotations

import importlib
import resource
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

CAMPAIGNS = ("kills", "together", "damage", "forged", "brute_force", "threads", "crowd", "hostile", "lines")


class Broken(AssertionError):
    """A promise that did not hold."""


class Absent(Exception):
    """A part that this machine does not have; the campaign is left out."""


@dataclass
class Tally:
    """The outcomes of one campaign."""

    name: str
    seed: int
    first: int = 0  # number of the first attack
    numbers: int = 0  # how many numbers were used; one attack may have several outcomes
    counts: Counter[tuple[str, str]] = field(default_factory=Counter)
    broken: list[dict[str, Any]] = field(default_factory=list)
    seconds: float = 0.0
    absent: str = ""
    megabytes: float = 0.0  # growth of the process over the second half

    @property
    def attacks(self) -> int:
        """How many attacks were made."""
        return sum(self.counts.values())

    def as_json(self) -> dict[str, Any]:
        """The tally as values for JSON."""
        outcomes: dict[str, dict[str, int]] = {}
        for (case, outcome), n in sorted(self.counts.items()):
            outcomes.setdefault(case, {})[outcome] = n
        module = importlib.import_module(self.name)
        return {
            "campaign": self.name,
            "title": module.TITLE,
            "promise": module.PROMISE,
            "goal": module.GOAL,
            "slice": module.SLICE,
            "seed": self.seed,
            "attacks": self.attacks,
            "seconds": round(self.seconds, 1),
            "memory_growth_mb": round(self.megabytes, 1),
            "absent": self.absent,
            "broken": self.broken,
            "made": [self.first, self.first + self.numbers],
            "outcomes": outcomes,
        }


def added(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    """The results of two runs of one campaign as one; they must have had different seeds or numbers.

    A broken attack that the other run repeated is no longer listed, unless it broke again; its outcomes stay counted.
    """
    outcomes = {case: Counter(counts) for case, counts in one["outcomes"].items()}
    for case, counts in other["outcomes"].items():
        outcomes.setdefault(case, Counter()).update(counts)
    sums = {name: round(one[name] + other[name], 1) for name in ("attacks", "seconds")}
    most = max(one["memory_growth_mb"], other["memory_growth_mb"])
    seeds = sorted({*_listed(one["seed"]), *_listed(other["seed"])})
    kept = {"outcomes": {case: dict(sorted(outcomes[case].items())) for case in sorted(outcomes)}, "seed": seeds}
    repeated = {(other["seed"], number) for number in range(*other.get("made", (0,)))}
    broken = [each for each in one["broken"] if (each.get("seed"), each["number"]) not in repeated] + other["broken"]
    absent = other["absent"] if one["absent"] else ""
    other = {key: value for key, value in other.items() if key != "made"}
    return {**other, **sums, **kept, "memory_growth_mb": most, "broken": broken, "absent": absent}


def _listed(seed: int | list[int]) -> list[int]:
    return seed if isinstance(seed, list) else [seed]


def run(name: str, *, seed: int = 0, most: int = sys.maxsize, seconds: float = float("inf"), first: int = 0) -> Tally:
    """Make attacks of one campaign until there are `most` or the time is over."""
    module = importlib.import_module(name)
    tally = Tally(name, seed, first)
    started = time.monotonic()
    memory: list[float] = []
    with tempfile.TemporaryDirectory(prefix="hbmp-campaign-") as folder:
        try:
            with module.attacks(Path(folder)) as attack:
                number = first
                while tally.attacks < most and time.monotonic() - started < seconds:
                    tally.counts.update(_outcomes(attack, number, tally))
                    number += 1
                    tally.numbers += 1
                    memory.append(megabytes())
        except Absent as error:
            tally.absent = str(error)
    tally.seconds = time.monotonic() - started
    if memory:
        tally.megabytes = max(0.0, memory[-1] - memory[len(memory) // 2])
    return tally


def _outcomes(attack: Any, number: int, tally: Tally) -> Iterable[tuple[str, str]]:
    try:
        return list(attack(number, generator(tally.seed, number)))
    except Broken as error:
        why = str(error)
    except Absent:
        raise
    except Exception:  # of the campaign itself; its other attacks go on
        why = traceback.format_exc()
    tally.broken.append({"seed": tally.seed, "number": number, "why": why[-2000:]})
    return [("all", "BROKEN")]


def generator(seed: int, number: int) -> np.random.Generator:
    """The generator of one attack: it can be repeated alone."""
    return np.random.default_rng([seed, number])


def megabytes() -> float:
    """Resident memory of this process and of the one that forks children."""
    forking = sys.modules.get("forking")
    process = None if forking is None else forking.SERVER.process
    pages = 0
    for name in ("self", *(() if process is None else (process.pid,))):
        with suppress(OSError):
            pages += int(Path(f"/proc/{name}/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize() / 2**20


def sentence(error: BaseException) -> str:
    """The message of an error if it is one clear sentence for users, else `Broken`."""
    text = str(error).strip()
    clear = isinstance(error, (ValueError, LookupError, OSError)) and type(error) not in (KeyError, IndexError)
    if not clear or not text or "\n" in text or not text.endswith((".", "?")):
        raise Broken(f"not a sentence: {type(error).__name__}: {text[:500]!r}") from error
    return text
