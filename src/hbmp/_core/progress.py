"""Progress of long work: one bar with named stages and the time left.

`shown` opens the bar; code inside it reports by `stage`, `parts` and `steps`, and needs to know neither the bar nor the
work that encloses it. Where nothing is shown, reports cost next to nothing. The bar goes to stderr: to a terminal as
one line, to a notebook as its bar, and anywhere else as a line of text now and then.

    position    how much of the work is done, 0 to 1
    span        (from, to)    the positions that belong to the present stage
"""

from __future__ import annotations

import contextlib
import os
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any, Protocol, TypeVar

Item = TypeVar("Item")

SECONDS_BETWEEN_LINES = 10.0  # where there is neither a terminal nor a notebook; shorter work writes no line
_SURE = 0.5  # seconds of a stage after which its own pace is known

_present: ContextVar[_Work | None] = ContextVar("_present", default=None)


@contextlib.contextmanager
def shown(title: str, show: bool = True) -> Iterator[None]:
    """Show the progress of the work inside this context, unless work that encloses it is shown already."""
    if not show or _present.get() is not None or os.environ.get("RANK", "0") != "0":
        yield
        return
    work = _Work(title, _display(title))
    token = _present.set(work)
    try:
        yield
    finally:
        _present.reset(token)
        work.display.close()


@contextlib.contextmanager
def stage(name: str, until: float = 1.0) -> Iterator[None]:
    """A stage, from where the work stands to this share of the enclosing one. The outermost stage gives the name."""
    work = _reported()
    if work is None:
        yield
        return
    with work.within(work.position, work.at(until), name):
        yield


def parts(items: Sequence[Item]) -> Iterator[Item]:
    """The items, each of which is an equal part of the present stage."""
    work = _reported()
    if work is None:
        yield from items
        return
    start, end = work.position, work.span[1]
    for number, item in enumerate(items):
        low, high = (start + (end - start) * (number + more) / len(items) for more in (0, 1))
        with work.within(low, high):
            yield item


@contextlib.contextmanager
def steps(total: int, unit: str = "") -> Iterator[Callable[..., None]]:
    """Count equal steps of the present stage: `done(5, loss="0.12")` after five of them, with facts to show."""
    work = _reported()
    if work is None:
        yield _ignore
        return
    start, end, finished = work.position, work.span[1], 0
    known: dict[str, str] = {}

    def done(count: int = 1, **facts: str) -> None:
        nonlocal finished
        finished += count
        if unit:
            known[unit + "s"] = f"{finished:,} of {total:,}"
        known.update(facts)
        work.move(start + (end - start) * min(finished / max(total, 1), 1.0), known)

    work.counted = True
    try:
        yield done
    finally:
        work.counted = False


@contextlib.contextmanager
def counted(title: str, total: int, unit: str = "", *, show: bool = True) -> Iterator[Callable[..., None]]:
    """`shown` and `steps` of work that has a single stage."""
    with shown(title, show), steps(total, unit) as done:
        yield done


def tracked(title: str, items: Sequence[Item], *, show: bool = True) -> Iterator[Item]:
    """`shown` and `parts` of work that has a single stage."""
    with shown(title, show):
        yield from parts(items)


def clock(seconds: float) -> str:
    """Minutes and seconds, with hours if there are any: 0:07, 12:30, 1:05:00."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _reported() -> _Work | None:
    """The work that takes reports: none where its steps are counted, and none in a process that was forked from it."""
    work = _present.get()
    return None if work is None or work.counted or work.process != os.getpid() else work


class _Display(Protocol):
    """Where progress is shown."""

    def update(self, name: str, position: float, left: float | None, facts: dict[str, str]) -> None:
        """Show a stage, the share that is done, the seconds left if they are known, and further facts."""

    def close(self) -> None:
        """The work has ended."""


class _Work:
    """What `shown` encloses: its position, and the span and the name of its present stage."""

    def __init__(self, title: str, display: _Display):
        self.display, self.title, self.name, self.process = display, title, title, os.getpid()
        self.position, self.span = 0.0, (0.0, 1.0)
        self.counted = False  # `steps` are counted, so that stages inside them do not show
        self.began = self.stage_began = time.monotonic()
        self.stage_start = 0.0

    def at(self, share: float) -> float:
        """The position of a share of the present span."""
        low, high = self.span
        return max(low + (high - low) * share, self.position)

    @contextlib.contextmanager
    def within(self, low: float, high: float, name: str = "") -> Iterator[None]:
        """A span that belongs to one stage or one part; afterwards it is done."""
        before = self.span, self.name
        self.span = (low, high)
        if name and self.name == self.title:
            self.name, self.stage_began, self.stage_start = name, time.monotonic(), low
        self.move(low, {})
        try:
            yield
        finally:
            self.span, self.name = before
        self.move(high, {})

    def move(self, position: float, facts: dict[str, str]) -> None:
        """Go to a position, and show it."""
        self.position = position
        self.display.update(self.name, position, self._left(), facts)

    def _left(self) -> float | None:
        """Seconds left: at the pace of the present stage once it is known, else at the pace so far."""
        now = time.monotonic()
        spent, covered = now - self.stage_began, self.position - self.stage_start
        if spent < _SURE or covered <= 0:
            spent, covered = now - self.began, self.position
        return spent / covered * (1 - self.position) if spent >= _SURE and covered > 0 else None


class _Bar:
    """One line that is written again and again, or the bar of a notebook."""

    def __init__(self, title: str, bar: Callable[..., Any]):
        layout = "{desc} {percentage:3.0f}%|{bar}| {elapsed}{postfix}"
        width = {"ncols": 80, "nrows": 24} if _of_no_width() else {"dynamic_ncols": True}
        self.title = title
        self.bar = bar(total=1.0, desc=title, bar_format=layout, leave=False, file=sys.stderr, **width)

    def update(self, name: str, position: float, left: float | None, facts: dict[str, str]) -> None:
        words = [f"{clock(left)} left"] if left is not None else []
        words += [f"{key} {value}" for key, value in facts.items()]
        title = self.title if name == self.title else f"{self.title}: {name}"
        fresh = title != self.bar.desc or position == 1  # shown at once, other changes ten times a second
        self.bar.set_postfix_str(", ".join(words), refresh=False)
        self.bar.set_description_str(title, refresh=False)
        self.bar.update(position - self.bar.n)
        if fresh:
            self.bar.refresh()

    def close(self) -> None:
        self.bar.close()


class _Lines:
    """A line now and then, as log files and pipes can hold them."""

    def __init__(self, title: str):
        self.title = title
        self.began = self.written = time.monotonic()

    def update(self, name: str, position: float, left: float | None, facts: dict[str, str]) -> None:
        now = time.monotonic()
        if now - self.written < SECONDS_BETWEEN_LINES:
            return
        self.written = now
        words = [] if name == self.title else [name]
        words += [f"{position:.0%}", f"{clock(now - self.began)} elapsed"]
        words += [f"{clock(left)} left"] if left is not None else []
        words += [f"{key} {value}" for key, value in facts.items()]
        print(f"{self.title}: {', '.join(words)}", file=sys.stderr, flush=True)

    def close(self) -> None:
        if self.written > self.began:
            print(f"{self.title}: ended after {clock(time.monotonic() - self.began)}", file=sys.stderr, flush=True)


def _display(title: str) -> _Display:
    """The display for the destination of stderr."""
    if _in_notebook():
        return _Bar(title, _notebook_bar())
    if sys.stderr.isatty():
        from tqdm import tqdm

        return _Bar(title, tqdm)
    return _Lines(title)


def _of_no_width() -> bool:
    """Whether stderr is a terminal of unknown width."""
    try:
        return os.get_terminal_size(sys.stderr.fileno()).columns == 0
    except (OSError, ValueError, AttributeError):
        return False


def _in_notebook() -> bool:
    shell = sys.modules["IPython"].get_ipython() if "IPython" in sys.modules else None
    return shell is not None and "IPKernelApp" in shell.config


def _notebook_bar() -> Callable[..., Any]:
    """The widget bar if widgets are installed, else a line of text."""
    import importlib.util

    from tqdm import tqdm

    if importlib.util.find_spec("ipywidgets") is None:
        return tqdm
    from tqdm.notebook import tqdm as bar_of_widgets

    return bar_of_widgets


def _ignore(count: int = 1, **facts: str) -> None:
    """Steps of work that is not shown."""
