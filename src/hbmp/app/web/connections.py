"""Limits on connections: a request head must arrive in time, and idle connections make room for new ones.

Uvicorn waits for a request head without a limit, so a few hundred senders that never finish theirs would hold every
file handle of the process. Here a head has `HEAD_SECONDS`, and beyond `Room.connections` the oldest connection without
a request under way is closed. Repeated warnings are logged once, those of libraries too.
"""

from __future__ import annotations

import asyncio
import errno
import json
import logging
from typing import Any, NamedTuple

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

HEAD_SECONDS = 10.0
_MOST = 10_000  # connections, however many handles there are
_OWN_HANDLES = 48  # for files, the listening socket, the event loop
_NO_HANDLES = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)
_log = logging.getLogger("uvicorn.error")


class Room(NamedTuple):
    """Largest number of connections, and of those accepted in one turn of the event loop."""

    connections: int
    backlog: int


def room(handles: int | None = None) -> Room:
    """The room within a number of file handles, by default the limit of this process."""
    if handles is None:
        try:
            import resource

            handles = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        except ImportError:  # Windows has no such limit
            handles = -1
    spare = max(16, handles - _OWN_HANDLES) if handles > 0 else _MOST
    backlog = min(128, spare // 4)
    return Room(min(_MOST, spare - backlog), backlog)


def limited_protocol(most: int, head_seconds: float = HEAD_SECONDS) -> type[H11Protocol]:
    """The HTTP protocol of a server with at most so many connections."""
    waiting: dict[LimitedProtocol, None] = {}  # connections without a request under way, oldest first

    class LimitedProtocol(H11Protocol):
        """Closes a connection whose head does not arrive, and idle ones where there are too many."""

        _deadline: asyncio.TimerHandle | None = None

        def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
            super().connection_made(transport)
            self._wait()
            if len(self.connections) > most:
                _log.warning("More than %d connections: the oldest idle ones are closed.", most)
                next(iter(waiting))._close()

        def data_received(self, data: bytes) -> None:
            super().data_received(data)
            if self._is_idle():
                self._wait()
            else:
                self._stop_waiting()

        def on_response_complete(self) -> None:
            super().on_response_complete()
            if self._is_idle() and not self.transport.is_closing():
                waiting[self] = None  # the keep-alive limit of uvicorn runs until the next byte

        def connection_lost(self, exc: Exception | None) -> None:
            self._stop_waiting()
            super().connection_lost(exc)

        def send_400_response(self, msg: str) -> None:
            """Answer a request that is not HTTP in the form of every other refusal."""
            if self.cycle is not None:
                self.cycle.disconnected = True  # its own answer can no longer be sent
                self.cycle.message_event.set()
            body = json.dumps({"detail": "The request is not valid HTTP; check its head."}).encode()
            headers = [
                ("content-type", "application/json"),
                ("content-length", str(len(body))),
                ("connection", "close"),
            ]
            try:
                for event in (h11.Response(status_code=400, headers=headers), h11.Data(body), h11.EndOfMessage()):
                    self.transport.write(self.conn.send(event) or b"")
            except h11.LocalProtocolError:  # an answer is under way already
                pass
            self._close()

        def _is_idle(self) -> bool:
            return self.cycle is None or self.cycle.response_complete

        def _wait(self) -> None:
            if self.transport.is_closing():
                return
            waiting.setdefault(self, None)
            if self._deadline is None:
                self._deadline = self.loop.call_later(head_seconds, self._give_up)

        def _stop_waiting(self) -> None:
            waiting.pop(self, None)
            if self._deadline is not None:
                self._deadline.cancel()
                self._deadline = None

        def _give_up(self) -> None:
            if self.conn.trailing_data[0]:
                _log.warning("A request head did not arrive within %g seconds: its connection is closed.", head_seconds)
            self._close()

        def _close(self) -> None:
            self._stop_waiting()
            self.transport.close()

    return LimitedProtocol


class Once(logging.Filter):
    """Passes the first warning of each line of code, and every error.

    The text does not count: libraries put bytes of a request into it, and a client would choose the size of the log.
    """

    def __init__(self) -> None:
        super().__init__()
        self._passed: set[tuple[str, int]] = set()

    def filter(self, record: logging.LogRecord) -> bool:
        """Whether the record is the first of its line, or an error."""
        line = (record.pathname, record.lineno)
        if record.levelno >= logging.ERROR or line not in self._passed:
            self._passed.add(line)
            return True
        return False


def log_warnings_once() -> None:
    """Log each warning of the server and of its libraries once, however often it is repeated.

    Libraries such as the parser of forms have loggers without handlers; the handler of last resort writes their lines.
    """
    for place in (_log, logging.lastResort):
        if place is not None and not any(isinstance(each, Once) for each in place.filters):
            place.addFilter(Once())


def log_full_handles_once(loop: asyncio.AbstractEventLoop) -> None:
    """Log a lack of file handles as one sentence; asyncio logs a traceback for every attempt."""

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _NO_HANDLES:
            _log.warning("No connection can be accepted for a second: %s.", error.strerror)
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)
