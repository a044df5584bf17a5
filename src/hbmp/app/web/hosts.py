"""The Host headers that the server accepts, so that a web page cannot reach it under a foreign name (DNS rebinding).

Loopback names and the name of `--host` are accepted. A server that listens on every address also accepts any IP
address, which no DNS record can forge, and the name of the machine.
"""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Iterable

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from hbmp.app.web.limits import refusal

_EVERY_ADDRESS = ("", "0.0.0.0", "::")  # nosec B104 - recognised, never bound by default


class KnownHosts:
    """ASGI middleware: refuse requests with an unknown Host header.

    `host` is the address of `--host`; `names` are further names of the server.
    """

    def __init__(self, app: ASGIApp, host: str = "127.0.0.1", names: Iterable[str] = ()):
        self.app = app
        self.everywhere = host in _EVERY_ADDRESS
        machine = (socket.gethostname(), socket.getfqdn()) if self.everywhere else ()
        self.names = {name.lower().rstrip(".") for name in ("localhost", host, *machine, *names) if name}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check one request."""
        if scope["type"] != "http" or self.accepts(Headers(scope=scope).get("host", "")):
            await self.app(scope, receive, send)
            return
        sentence = "Unknown host name: use the address that the server printed, or start it with --allow-host NAME."
        await refusal(sentence, 421)(scope, receive, send)

    def accepts(self, header: str) -> bool:
        """Whether a Host header, with or without a port, names this server."""
        name = _without_port(header).lower().rstrip(".")
        if name in self.names:
            return True
        try:
            address = ipaddress.ip_address(name)
        except ValueError:
            return False
        return self.everywhere or address.is_loopback


def _without_port(header: str) -> str:
    if header.startswith("["):  # an IPv6 address
        return header[1:].partition("]")[0]
    return header.partition(":")[0]
