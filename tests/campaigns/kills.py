"""A writer is stopped at one of its file events: killed, torn, interrupted, out of space, or on a read-only disk.

Events are counted below Python (`file_events.c`), so that SQLite's are among them. Afterwards a reader must find the
previous state or the new one, the next write must succeed, and it must remove what the stopped one left.

Kills of a process are tested, not power failures: the operating system still writes what it was given.
"""

from __future__ import annotations

import ctypes
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import forking
import writers
from counting import Absent, Broken, sentence

TITLE = "A writer is stopped at any of its file events"
PROMISE = "the previous state or the new one, and the next write succeeds and leaves nothing over"
GOAL = 1000
SLICE = 17
MODES = ("KILL", "TORN", "INTERRUPT", "FULL", "READ_ONLY")  # numbered from 2 in file_events.c
_SOURCE = Path(__file__).with_name("file_events.c")


def compiled(folder: Path) -> Path:
    """The library that counts events."""
    library = folder / "file_events.so"
    compiler = shutil.which("cc") or shutil.which("gcc")
    if compiler is None or not sys.platform.startswith("linux"):
        raise Absent("needs Linux and a C compiler")
    words = [compiler, "-std=gnu11", "-shared", "-fPIC", "-w", "-o", library, _SOURCE, "-ldl"]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    if done.returncode:
        raise Absent(f"the C compiler failed: {done.stderr[:200]}")
    return library


@contextmanager
def attacks(folder: Path) -> Iterator[Callable[..., Any]]:
    """Attacks of a process with the library preloaded, which forks one writer for each."""
    if forking.SERVER.library is None:
        forking.SERVER.stop()
        forking.SERVER.library = str(compiled(folder))
    yield lambda number, rng: forking.SERVER.ask("kills", number, choice=rng.integers(2**31, size=3).tolist())


def answer(question: dict[str, Any]) -> list[tuple[str, str]]:
    """Make one attack; runs in the forking process."""
    names = list(writers.WRITERS)
    name = names[question["number"] % len(names)]
    mode = question["choice"][0] % len(MODES)
    with tempfile.TemporaryDirectory(prefix="hbmp-kill-") as folder:
        writer = writers.WRITERS[name](Path(folder))
        before = forking.in_child(_prepared, writer)
        n_events = _events_of(name, writer, Path(folder))
        event = 1 + question["choice"][1] % n_events
        outcome, said = _attacked(writer, mode, event)
        where = f"{name}, {MODES[mode]} at event {event} of {n_events}"
        after, found = forking.in_child(_afterwards, writer)
        if after not in (before, writer.new, *writer.between):
            raise Broken(f"{where} ({outcome}): found {after!r}, neither {before!r} nor {writer.new!r}")
        if not writer.is_true(said, after):
            raise Broken(f"{where}: it said {said!r}, and there is {after!r}")
        left = sorted(str(path.relative_to(folder)) for path in Path(folder).rglob("*") if path.is_file())
        if found != writer.new:
            raise Broken(f"{where} ({outcome}): the next write gave {found!r}; there are {left}")
        if left != sorted(writer.files):
            raise Broken(f"{where} ({outcome}): the next write left {left}, expected {writer.files}")
    state = "new" if after == writer.new else "previous" if after == before else "part"
    return [(f"{name}, {MODES[mode]}", f"{outcome}, then {state}")]


def warm_up() -> None:
    """Let every writer import what it needs, so that no child has to."""
    writers.warm_up()
    for kind in writers.WRITERS.values():
        with tempfile.TemporaryDirectory(prefix="hbmp-kill-") as folder:
            writer = kind(Path(folder))
            writer.prepare()
            writer.write()
            writer.read()


_EVENTS: dict[str, int] = {}


def _events_of(name: str, writer: Any, folder: Path) -> int:
    """How many events the writer has, counted once in a copy of the folder."""
    if name not in _EVENTS:
        kept = Path(tempfile.mkdtemp(prefix="hbmp-kept-"))
        shutil.copytree(folder, kept, dirs_exist_ok=True)
        _EVENTS[name] = forking.in_child(_count, writer)
        shutil.rmtree(folder)
        shutil.move(kept, folder)
    return _EVENTS[name]


def _library() -> Any:
    library = ctypes.CDLL(None)
    library.arm.argtypes, library.events.restype = [ctypes.c_char_p, ctypes.c_int, ctypes.c_long], ctypes.c_long
    return library


def _count(writer: Any) -> int:
    library = _library()
    library.arm(os.fsencode(writer.folder), 1, 0)
    writer.write()
    return int(library.events())


def _attacked(writer: Any, mode: int, event: int) -> tuple[str, str]:
    """How the writer ended, and what it said to an interrupt."""
    try:
        outcome, said = forking.in_child(_write_under_attack, writer, mode, event)
        return outcome, said
    except forking.Died as error:
        if error.signal != signal.SIGKILL:
            raise Broken(f"the writer died of signal {error.signal}") from error
        return "killed", ""


def _write_under_attack(writer: Any, mode: int, event: int) -> tuple[str, str]:
    library = _library()
    library.arm(os.fsencode(writer.folder), mode + 2, event)
    try:
        writer.write()
    except KeyboardInterrupt as error:
        return "interrupted", str(error)
    except Exception as error:
        library.arm(b"", 0, 0)
        if not isinstance(error, OSError) or error.filename is None:  # else: "[Errno 28] No space left: FILE"
            sentence(error)
        return "refused", ""
    finally:
        library.arm(b"", 0, 0)
    return "finished", ""


def _prepared(writer: Any) -> Any:
    """What a reader finds before the attack."""
    writer.prepare()
    return writer.read()


def _afterwards(writer: Any) -> tuple[Any, Any]:
    """What a reader finds after the attack, and after the next write."""
    return tuple(_or_error(step) for step in (writer.read, writer.again))  # type: ignore[return-value]


def _or_error(step: Callable[[], Any]) -> Any:
    try:
        return step()
    except Exception as error:
        return f"{type(error).__name__}: {error}"
