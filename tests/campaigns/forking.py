"""A process that forks a child for each piece of dangerous work, and answers questions over pipes in JSON lines."""

from __future__ import annotations

import atexit
import json
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any

from counting import Broken

_HERE = Path(__file__).parent


class Died(Exception):
    """A child that was ended by a signal."""

    def __init__(self, signal: int):
        super().__init__(f"signal {signal}")
        self.signal = signal


class Server:
    """The process of `attacked.py`, started when it is first asked and again where it has ended."""

    def __init__(self) -> None:
        self.process: Any = None
        self.library: str | None = None  # preloaded, to count file events

    def ask(self, campaign: str, number: int, **more: Any) -> list[tuple[str, str]]:
        """The outcomes of one question."""
        if self.process is None:
            self._start()
        question = {"campaign": campaign, "number": number, **more}
        self.process.stdin.write(json.dumps(question) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            ended, self.process = self.process.wait(), None
            raise Broken(f"the process ended with {ended} at {question}")
        found = json.loads(line)
        if "broken" in found:
            raise Broken(found["broken"])
        return [(case, outcome) for case, outcome in found["outcomes"]]

    def stop(self) -> None:
        """End the process."""
        if self.process is not None:
            self.process.stdin.close()
            self.process.wait(timeout=60)
            self.process.stdout.close()
            self.process = None

    def _start(self) -> None:
        words = [sys.executable, "-W", "ignore::DeprecationWarning", str(_HERE / "attacked.py")]
        variables = {**os.environ, "OMP_NUM_THREADS": "1"}
        if self.library is not None:
            variables["LD_PRELOAD"] = self.library
        pipe = subprocess.PIPE
        self.process = subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True, env=variables)


SERVER = Server()
atexit.register(SERVER.stop)


def serve(answer: Callable[[dict[str, Any]], list[tuple[str, str]]], warm_up: Callable[[], None]) -> None:
    """Answer questions until they end. What is printed in the meantime goes to stderr."""
    out = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    warm_up()
    for line in sys.stdin:
        try:
            found: dict[str, Any] = {"outcomes": answer(json.loads(line))}
        except Broken as error:
            found = {"broken": str(error)}
        except Exception:
            found = {"broken": traceback.format_exc()}
        out.write(json.dumps(found) + "\n")
        out.flush()


def in_child(work: Callable[..., Any], *arguments: Any) -> Any:
    """The result of work in a forked process; `Died` if a signal ended it."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(read)
        _work_and_leave(write, work, arguments)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        content = pipe.read()
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        raise Died(os.WTERMSIG(status))
    good, found = pickle.loads(content)  # from our own child
    if not good:
        raise Broken(found)
    return found


def _work_and_leave(write: int, work: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    try:
        try:
            content = pickle.dumps((True, work(*arguments)))
        except BaseException:
            content = pickle.dumps((False, traceback.format_exc()))
        with os.fdopen(write, "wb") as pipe:
            pipe.write(content)
    finally:
        os._exit(0)
