"""Files with damaged bytes: the same answer, one clear sentence, and never another answer where a checksum exists."""

from __future__ import annotations

import pickle
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import forking
import numpy as np
from counting import Broken, generator, sentence
from formats import FORMATS, Format
from more_formats import MORE

TITLE = "Files with damaged bytes"
PROMISE = "the same answer or one sentence; never another answer where a checksum exists; no crash"
GOAL = 100_000
SLICE = 500
ALL = {**FORMATS, **MORE}
_BATCH = 25  # files damaged by one child
_EDGE = 400  # bytes at both ends that are damaged more often: there are the headers


@contextmanager
def attacks(folder: Path) -> Iterator[Callable[..., Any]]:
    """Attacks of a process that damages files of one format in a child."""
    yield lambda number, rng: forking.SERVER.ask("damage", number, seed=rng.integers(2**31, size=4).tolist())


def answer(question: dict[str, Any]) -> list[tuple[str, str]]:
    """One batch of damages of one format; runs in the forking process."""
    name = list(ALL)[question["number"] % len(ALL)]
    try:
        return [(name, outcome) for outcome in forking.in_child(_batch, ALL[name], question["seed"])]
    except forking.Died as error:
        raise Broken(f"{name}: the reader died of signal {error.signal}") from error
    except Broken as error:
        raise Broken(f"{name}: {error}") from error


def _batch(format: Format, seed: list[int]) -> list[str]:
    warnings.simplefilter("ignore")
    outcomes = []
    with tempfile.TemporaryDirectory(prefix="hbmp-damage-") as folder:
        path = format.write(Path(folder))
        whole, expected = path.read_bytes(), _frozen(format.read(path))
        for turn in range(_BATCH):
            damaged, how = damage(whole, generator(sum(seed), turn))
            path.write_bytes(damaged)
            try:
                outcomes.append(_outcome(format, path, expected, same_bytes=damaged == whole))
            except Broken as error:
                raise Broken(f"{how}: {error}") from error
    return outcomes


def _outcome(format: Format, path: Path, expected: bytes, *, same_bytes: bool) -> str:
    try:
        found = _frozen(format.read(path))
    except Exception as error:
        text = sentence(error)
        if not any(name in text for name in path.parts[-3:]):
            raise Broken(f"a sentence without the file: {text[:300]!r}") from error
        if same_bytes:
            raise Broken(f"a whole file was refused: {text[:300]!r}") from error
        return "sentence"
    if found == expected:
        return "same answer"
    if format.checked:
        raise Broken("another answer in spite of a checksum")
    return "other answer, no checksum"


def _frozen(answer: Any) -> bytes:
    return pickle.dumps(answer)


def damage(whole: bytes, rng: np.random.Generator) -> tuple[bytes, str]:
    """The bytes with one damage, and its description."""
    n = len(whole)

    def place() -> int:
        edge = min(_EDGE, n)
        return int([rng.integers(n), rng.integers(edge), n - 1 - rng.integers(edge)][rng.choice(3, p=[0.5, 0.3, 0.2])])

    at, length = place(), int(2 ** rng.uniform(0, 7))
    kind = ("flips", "flips", "flips", "cut", "zeros", "noise", "inserted", "deleted", "twice", "appended")[
        rng.integers(10)
    ]
    damaged = bytearray(whole)
    if kind == "flips":
        for where in [at, *(place() for _ in range(rng.integers(3)))]:
            damaged[where] ^= 1 << rng.integers(8)
    elif kind == "cut":
        del damaged[at:]
    elif kind == "zeros":
        damaged[at : at + length] = bytes(len(damaged[at : at + length]))
    elif kind == "noise":
        damaged[at : at + length] = rng.bytes(len(damaged[at : at + length]))
    elif kind == "inserted":
        damaged[at:at] = rng.bytes(length)
    elif kind == "deleted":
        del damaged[at : at + length]
    elif kind == "twice":
        damaged[at:at] = damaged[at : at + length]
    else:
        damaged += rng.bytes(length)
    return bytes(damaged), f"{kind} at {at}"
