"""What is refused, and with which sentence: too many requests at once, too large bodies and images, a wrong token.

A request is counted from its first byte to its last, so that slow senders take a place too; a body that does not come
within `seconds` is given up. Every refusal is JSON, `{"detail": sentence}`, with a status of its own.
"""

from __future__ import annotations

import asyncio
import io
import secrets
from collections.abc import AsyncIterator
from dataclasses import dataclass

from starlette.datastructures import Headers, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse
from starlette.types import ASGIApp, Receive, Scope, Send

from hbmp.app.web.search import Refused

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")  # decoders that a stranger's file may reach
_OPEN = ("/", "/healthz", "/docs")  # the page itself holds no data and asks for the token
_FREE = ("/healthz", "/metrics")  # answered also when everything is busy


@dataclass(frozen=True)
class Limits:
    """How much one request, and all together, may ask for."""

    upload_bytes: int = 10 * 2**20
    json_bytes: int = 2**20
    pixels: int = 40_000_000
    k: int = 1000
    concurrent: int = 64
    seconds: float = 30.0


class Gate:
    """ASGI middleware: a place for `concurrent` requests, and the token where one is set."""

    def __init__(self, app: ASGIApp, limits: Limits, token: str | None = None):
        self.app, self.limits, self.token = app, limits, token
        self.inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse, or let in."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"]
        if self.token and path not in _OPEN and not path.startswith("/static/") and not self._knows(scope):
            answer = refusal("This server asks for a token: send `Authorization: Bearer TOKEN`.", 401)
            answer.headers["WWW-Authenticate"] = "Bearer"
            await answer(scope, receive, send)
            return
        if path in _FREE:
            await self.app(scope, receive, send)
            return
        if self.inside >= self.limits.concurrent:
            answer = refusal(f"{self.inside} requests are being answered already; try again in a second.", 503)
            answer.headers["Retry-After"] = "1"
            await answer(scope, receive, send)
            return
        self.inside += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.inside -= 1

    def _knows(self, scope: Scope) -> bool:
        scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        # Heads are bytes, read as latin-1; a token is those bytes, in UTF-8.
        return scheme.lower() == "bearer" and secrets.compare_digest(
            given.encode("latin-1"), (self.token or "").encode()
        )


def refusal(sentence: str, status: int) -> JSONResponse:
    """The JSON of every refusal."""
    return JSONResponse({"detail": sentence}, status_code=status)


async def read_body(request: Request, limits: Limits) -> tuple[bytes | dict[str, str], bytes | None]:
    """A JSON body's bytes, or a form's fields and its image; never more bytes than allowed are held."""
    is_form = request.headers.get("content-type", "").startswith("multipart/form-data")
    most = limits.upload_bytes if is_form else limits.json_bytes
    try:
        async with asyncio.timeout(limits.seconds):
            stream = _counted(request, most)
            if is_form:
                return await _form(request.headers, stream)
            return b"".join([chunk async for chunk in stream]), None
    except TimeoutError:
        raise Refused(f"The request did not arrive within {limits.seconds:g} seconds; send it again.", 408) from None
    except ClientDisconnect:
        raise Refused("The sender went away before the request was whole.", 400) from None


async def _form(headers: Headers, stream: AsyncIterator[bytes]) -> tuple[dict[str, str], bytes | None]:
    try:
        form = await MultiPartParser(headers, stream, max_files=1, max_fields=8, max_part_size=65_536).parse()  # type: ignore[arg-type]
    except MultiPartException as error:
        raise Refused(
            f"The form cannot be read ({error.message.rstrip('.')}); send one image and few fields."
        ) from None
    try:
        fields: dict[str, str] = {}
        image = None
        for name, value in form.multi_items():
            if isinstance(value, UploadFile):
                image = await value.read()
            else:
                fields[name] = value
        return fields, image
    finally:
        await form.close()


async def _counted(request: Request, most: int) -> AsyncIterator[bytes]:
    sentence = f"The request may hold {most:,} bytes at most; send a smaller one."
    announced = request.headers.get("content-length", "0")
    if announced.isdigit() and int(announced) > most:
        raise Refused(sentence, 413)
    seen = 0
    async for chunk in request.stream():
        seen += len(chunk)
        if seen > most:
            raise Refused(sentence, 413)
        yield chunk


def check_image(content: bytes, limits: Limits) -> None:
    """Read the head of an image file alone: its format must be known and its pixels few enough to decode."""
    from PIL import Image, UnidentifiedImageError

    most = f"An image may have {limits.pixels:,} pixels at most"
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            width, height = image.size
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise Refused(f"{most}, found many more; send a smaller one.", 413) from None
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError):
        raise Refused(f"The file is no image that can be read here; send {', '.join(FORMATS)}.", 415) from None
    if width * height > limits.pixels:
        raise Refused(f"{most}, found {width} × {height}; send a smaller one.", 413)
