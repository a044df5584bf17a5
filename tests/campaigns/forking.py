"""A process that forks a child for each piece of dangerous work, and answers questions over pipes in JSON lines."""

from __future__ import annotations

import json
import os
import pickle
import subprocess
import sys
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from counting import Broken

_HERE = Path(__file__).parent


class Died(Exception):
    """A child that was ended by a signal."""

    def __init__(self, signal: int):
        super().__init__(f"signal {signal}")
        self.signal = signal


@contextmanager
def server(module: str, environment: dict[str, str] | None = None) -> Iterator[Callable[[dict[str, Any]], Any]]:
    """Start a module of this folder as a process that calls `serve`; gives a function from question to answer."""
    words = [sys.executable, "-W", "ignore::DeprecationWarning", str(_HERE / f"{module}.py")]
    variables = {**os.environ, "OMP_NUM_THREADS": "1", **(environment or {})}
    with subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=variables) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def ask(question: dict[str, Any]) -> list[tuple[str, str]]:
            process.stdin.write(json.dumps(question) + "\n")
            process.stdin.flush()
            line = process.stdout.readline()
            if not line:
                raise Broken(f"the process ended with {process.wait()} at {question}")
            found = json.loads(line)
            if "broken" in found:
                raise Broken(found["broken"])
            return [(case, outcome) for case, outcome in found["outcomes"]]

        try:
            yield ask
        finally:
            process.stdin.close()
            process.wait(timeout=60)


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
