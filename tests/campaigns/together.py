"""Two processes write to one place while a third reads: every read finds one whole state, and nothing is lost."""

from __future__ import annotations

import os
import pickle
import tempfile
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import forking
import numpy as np
import writers
from counting import Broken

import hbmp

TITLE = "Two writers and a reader at one place"
PROMISE = "every read finds one whole state, no addition is lost, no writer fails"
GOAL = 3000
SLICE = 60
_TURNS = 4


class Alternating:
    """Both writers replace the whole: one writes the previous state of a writer, the other its new one."""

    def __init__(self, kind: type[writers.Writer], folder: Path):
        self.writer = kind(folder)
        self.writer.prepare()
        old = self.writer.read()
        self.writer.write()
        self.states = (old, self.writer.new)

    def write(self, who: int, turn: int) -> None:
        """One write of one process."""
        (self.writer.prepare if who else self.writer.write)()

    def read(self) -> str:
        """One read."""
        found = self.writer.read()
        if found not in self.states:
            raise Broken(f"read {found!r}, written were {self.states}")
        return "the previous" if found == self.states[0] else "the new"

    def check(self) -> None:
        """Check what is there at the end."""
        self.read()


class ReplacedDatabase(writers.ReplacedDatabase):
    """A database that both writers replace."""

    def prepare(self) -> None:
        """Build the smaller one."""
        self.build(8, 25, replace=True)

    def read(self) -> Any:
        """What one search finds: items, codes and model must belong together."""
        with hbmp.Database.load(self.place) as database:
            found, ids = database.search(writers.X[:1], 40)
        n_items = sum(name is not None for name in ids[0])
        n_bits = 16 if n_items == 40 else 8
        codes = writers.lsh(n_bits).transform(writers.X)
        rows = [int(name.split()[1]) for name in ids[0][:n_items]]
        right = np.array_equal(found[0, :n_items], (codes[rows] != codes[0]).sum(axis=1))
        return (n_bits, n_items), "right" if right else "wrong"


class Results:
    """Both writers append result lines."""

    def __init__(self, folder: Path):
        self.path, self.seen = folder / "results.jsonl", 0
        self.write(0, -1)

    def write(self, who: int, turn: int) -> None:
        """One line of one process."""
        from hbmp.experiments import store

        store.append(self.path, {"key": f"{who} {turn}", "filling": "x" * 3000})

    def read(self) -> str:
        """All lines are whole, and none is lost."""
        from hbmp.experiments import store

        found = store.read(self.path)
        n, keys = self.seen, {record["key"] for record in found}
        if len(keys) < max(1, n) or any(len(record["filling"]) != 3000 for record in found):
            raise Broken(f"{len(keys)} lines after {n}")
        self.seen = len(keys)
        return "as many" if len(keys) == n else "more"

    def check(self) -> None:
        """Every line is there."""
        self.read()
        if self.seen != 2 * _TURNS + 1:
            raise Broken(f"{self.seen} lines of {2 * _TURNS + 1}")


class Growing:
    """Both writers add five items at a time to one database, and remove one of them."""

    def __init__(self, folder: Path):
        self.path = folder / "shop.db"
        hbmp.Database.build(writers.lsh(16), writers.X[:5], ids=[f"0 -1 {n}" for n in range(5)], path=self.path).close()
        self.codes = writers.lsh(16).transform(writers.X[:5])

    def write(self, who: int, turn: int) -> None:
        """One addition and one removal, each a transaction."""
        with hbmp.Database.load(self.path) as database:
            database.add(writers.X[:5], ids=[f"{who} {turn} {n}" for n in range(5)])
            database.remove([f"{who} {turn} 4"])

    def read(self) -> str:
        """Each addition is there as a whole, with the right codes."""
        with hbmp.Database.load(self.path) as database:
            distances, ids = database.search_codes(self.codes[:1], 1000)
            names = [str(name) for name in ids[0] if name is not None]
            codes = database.index.codes(np.sort(database._contents.numbers))
        groups: dict[str, list[int]] = {}
        for name in names:
            group, _, number = name.rpartition(" ")
            groups.setdefault(group, []).append(int(number))
        if any(sorted(numbers) not in ([0, 1, 2, 3, 4], [0, 1, 2, 3]) for numbers in groups.values()):
            raise Broken(f"a part of an addition: {groups}")
        if not {tuple(code) for code in codes.tolist()} <= {tuple(code) for code in self.codes.tolist()}:
            raise Broken("a code that nobody wrote")
        if (np.diff(distances[0][: len(names)]) < 0).any():
            raise Broken("distances out of order")
        return f"{min(len(groups), 3)}{'+' * (len(groups) > 3)} additions"

    def check(self) -> None:
        """All additions and removals are there."""
        with hbmp.Database.load(self.path) as database:
            if len(database) != 5 + 2 * _TURNS * 4:
                raise Broken(f"{len(database)} items of {5 + 2 * _TURNS * 4}")


CASES: dict[str, Callable[[Path], Any]] = {
    "model": lambda folder: Alternating(writers.NextModel, folder),
    "index": lambda folder: Alternating(writers.SavedIndex, folder),
    "whole file": lambda folder: Alternating(writers.TextFile, folder),
    "replaced database": lambda folder: Alternating(ReplacedDatabase, folder),
    "result lines": Results,
    "growing database": Growing,
}


@contextmanager
def attacks(folder: Path) -> Iterator[Callable[..., Any]]:
    """Attacks of a process that forks two writers for each, and reads until they are done."""
    yield lambda number, rng: forking.SERVER.ask("together", number)


def answer(question: dict[str, Any]) -> list[tuple[str, str]]:
    """One episode; runs in the forking process."""
    name = list(CASES)[question["number"] % len(CASES)]
    with tempfile.TemporaryDirectory(prefix="hbmp-together-") as folder:
        try:
            return [(name, outcome) for outcome in forking.in_child(_episode, name, Path(folder))]
        except Broken as error:
            raise Broken(f"{name}: {error}") from error


def _episode(name: str, folder: Path) -> list[str]:
    case = CASES[name](folder)
    children = [_start(case, who) for who in (0, 1)]
    outcomes: list[str] = []
    while children:
        outcomes.append(case.read())
        children = [child for child in children if not _ended(*child)]
    case.check()
    return outcomes


def _start(case: Any, who: int) -> tuple[int, int]:
    """A child that writes some turns; its process and the pipe of its error."""
    read, write = os.pipe()
    child = os.fork()
    if child:
        os.close(write)
        return child, read
    try:
        for turn in range(_TURNS):
            case.write(who, turn)
        os.write(write, pickle.dumps(""))
    except BaseException:
        os.write(write, pickle.dumps(traceback.format_exc()))
    finally:
        os._exit(0)


def _ended(child: int, pipe: int) -> bool:
    if os.waitpid(child, os.WNOHANG)[0] == 0:
        return False
    with os.fdopen(pipe, "rb") as file:
        error = pickle.loads(file.read())
    if error:
        raise Broken(f"a writer failed: {error}")
    return True
