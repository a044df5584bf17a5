"""Files that an attacker makes: well-formed, with right checksums, and contents that no version of hbmp writes.

Nothing in them may run code, write outside, end the process, or take its time and memory. A reader gives one sentence,
or an answer. A model whose settings and arrays are odd may also fail when it is used.
"""

from __future__ import annotations

import os
import resource
import signal
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import forking
import numpy as np
from counting import Broken, generator, sentence
from forgers import FORGERS

TITLE = "Forged files with right checksums"
PROMISE = "an answer or one sentence; no code runs, nothing outside is written, no crash, no hang"
GOAL = 20_000
SLICE = 70
_BATCH = 10  # files forged in one child
_SECONDS = 60  # for one file
_MEMORY = 6 << 30


@contextmanager
def attacks(folder: Path) -> Iterator[Callable[..., Any]]:
    """Attacks of a process that forges files of one kind in a child."""
    yield lambda number, rng: forking.SERVER.ask("forged", number, seed=rng.integers(2**31, size=4).tolist())


def answer(question: dict[str, Any]) -> list[tuple[str, str]]:
    """One batch of one kind; runs in the forking process."""
    name = list(FORGERS)[question["number"] % len(FORGERS)]
    try:
        return [(name, outcome) for outcome in forking.in_child(_batch, name, question["seed"])]
    except forking.Died as error:
        raise Broken(f"{name}: the reader died of signal {error.signal}") from error
    except Broken as error:
        raise Broken(f"{name}: {error}") from error


def _batch(name: str, seed: list[int]) -> list[str]:
    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    signal.signal(signal.SIGALRM, signal.default_int_handler)
    return [_one(name, generator(sum(seed), turn)) for turn in range(_BATCH)]


def _one(name: str, rng: np.random.Generator) -> str:
    with tempfile.TemporaryDirectory(prefix="hbmp-forged-") as place:
        folder = Path(place) / "box"
        folder.mkdir()
        try:
            use = FORGERS[name](folder, rng)
        except (ValueError, TypeError, OverflowError, UnicodeError, RecursionError):
            return "could not be made"
        signal.alarm(_SECONDS)
        try:
            use()
            outcome = "an answer"
        except KeyboardInterrupt:
            raise Broken(f"{name}: no answer in {_SECONDS} seconds") from None
        except Exception as error:
            sentence(error)
            outcome = "sentence"
        finally:
            signal.alarm(0)
        if os.listdir(place) != ["box"] or (folder / "PWNED").exists():
            raise Broken(f"{name}: code ran, or a file was written outside")
        return outcome
