"""Long fits that continue after a kill: finished parts, and the state of loops and trainings, in a folder.

    with resumable("folder"):
        model.fit(X, y)

Code that works long asks for a result by `kept`, or for the state of a loop by `state`; outside such a block neither
keeps anything. An entry is named by a digest of everything that its work depends on, so that only the same work finds
it. A damaged entry counts as missing.

    NAME-…/model.json, arrays.safetensors    results and states of loops, written by `_core.storage`
    training-…/training.safetensors          states of trainings, written by `checkpoints`
"""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from pathlib import Path
from typing import Any

from hbmp._core import storage
from hbmp._training.fingerprint import fingerprint

_ENTRY = re.compile(r"(results|loop|training|vectors)-[0-9a-f]{32}(\..*)?|\.vectors-[0-9a-f]{32}\..*")
_SHORT = 1.0  # seconds of work whose result is not worth a file

_present: ContextVar[_Place | None] = ContextVar("_present", default=None)


@contextlib.contextmanager
def resumable(folder: str | os.PathLike[str], *, seconds: float = 30.0) -> Iterator[None]:
    """Keep the state of long fits in a folder; the same fit in such a block continues after a kill.

    What is kept: target codes of classes and label sets, trainings by gradient descent, and codes without labels while
    they are improved. A fit continues where its data, settings and seed are the same (a `random_state` is needed), and
    gives the model that it would have given. The folder is removed at the end of the block, so put what must not be
    lost, such as `model.save`, inside.

    Parameters
    ----------
    folder : path
        Where to keep the state. It is created when there is something to keep.
    seconds : float, default=30.0
        The most work that a kill may lose, apart from steps that are never kept.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> import hbmp
    >>> X, y = load_digits(return_X_y=True)
    >>> with tempfile.TemporaryDirectory() as folder, hbmp.resumable(f"{folder}/digits.parts"):
    ...     model = hbmp.HBMP(16, function=hbmp.functions.Linear(epochs=5), random_state=0).fit(X[:300], y[:300])
    ...     model.save(f"{folder}/digits")
    """
    place = _Place(Path(folder), seconds)
    token = _present.set(place)
    try:
        yield
    except (OSError, MemoryError):
        raise  # more room, and the same command continues
    except Exception:
        place.clear()
        raise
    else:
        place.clear()
    finally:
        _present.reset(token)


def kept(compute: Callable[[], Any], *facts: Any) -> Any:
    """What `compute()` gives, or what it gave to an earlier process for the same facts; None is no result."""
    place = _present.get()
    if place is None:
        return compute()
    entry = place.entry("results", *facts)
    found = _read(entry)
    if found is None:
        started = time.monotonic()
        found = compute()
        if time.monotonic() - started >= min(_SHORT, place.seconds):
            storage.save({"value": found}, entry)
    return found


def state(*facts: Any) -> LoopState:
    """The state of a loop that depends on these facts."""
    place = _present.get()
    return LoopState(None, 0.0) if place is None else LoopState(place.entry("loop", *facts), place.seconds)


def active() -> bool:
    """Whether this code runs in a `resumable` block."""
    return _present.get() is not None


def training_folder(about: Any) -> tuple[Path, float]:
    """Where a training in such a block keeps its checkpoint, and the seconds between two."""
    place = _present.get()
    assert place is not None
    return place.entry("training", about), place.seconds


def something_kept(folder: str | os.PathLike[str]) -> bool:
    """Whether a folder holds entries of an earlier process."""
    return any(_ENTRY.fullmatch(path.name) for path in Path(folder).glob("*"))


class LoopState:
    """State of a loop on disk; `entry` is None where nothing is kept."""

    def __init__(self, entry: Path | None, seconds: float):
        self._entry, self._seconds, self._last = entry, seconds, time.monotonic()

    @property
    def due(self) -> bool:
        """Whether the state was not saved for some time."""
        return self._entry is not None and time.monotonic() - self._last >= self._seconds

    def load(self) -> Any:
        """The saved state, or None."""
        return None if self._entry is None else _read(self._entry)

    def save(self, value: Any) -> None:
        """Write the state: arrays, numbers, strings, and lists, tuples and dicts of them."""
        storage.save({"value": value}, self._entry)
        self._last = time.monotonic()


class _Place:
    """The folder of a block."""

    def __init__(self, folder: Path, seconds: float):
        self.folder, self.seconds = folder, seconds

    def entry(self, kind: str, *facts: Any) -> Path:
        import hbmp

        return self.folder / f"{kind}-{fingerprint(hbmp.__version__, *facts)[:32]}"

    def clear(self) -> None:
        """Remove all entries, and the folder if nothing else is in it."""
        for path in self.folder.glob("*"):
            if _ENTRY.fullmatch(path.name) and path.is_dir():
                shutil.rmtree(path, ignore_errors=True)
            elif _ENTRY.fullmatch(path.name):
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            self.folder.rmdir()


def _read(entry: Path) -> Any:
    """The value of an entry; None where there is none that can be read."""
    try:
        return storage.load(entry)["value"]
    except (ValueError, TypeError, KeyError):
        return None
