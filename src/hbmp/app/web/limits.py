"""Refusals: too many requests at a time, too large bodies and images, a wrong token.

A request counts from its first byte to its last, so that slow senders count too; a body that does not arrive within
`seconds` is refused. Every refusal is JSON, `{"detail": sentence}`.
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

from hbmp.app.web.queries import Refused

FORMATS = ("JPEG", "PNG", "WEBP", "GIF", "BMP")  # decoders that an uploaded file may reach
_OPEN = ("/", "/healthz", "/docs")  # the page holds no data and has a form for the token
_FREE = ("/healthz", "/metrics")  # answered even when the server is busy


@dataclass(frozen=True)
class Limits:
    """Limits of one request, and of all together."""

    upload_bytes: int = 10 * 2**20
    json_bytes: int = 2**20
    pixels: int = 40_000_000
    k: int = 1000
    concurrent: int = 64
    seconds: float = 30.0


class Gate:
    """ASGI middleware: admits `concurrent` requests at a time, and checks the token."""

    def __init__(self, app: ASGIApp, limits: Limits, token: str | None = None):
        self.app, self.limits, self.token = app, limits, token
        self.inside = 0

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse or pass on one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"]
        if self.token and path not in _OPEN and not path.startswith("/static/") and not self._has_token(scope):
            answer = refusal("This server needs a token: send `Authorization: Bearer TOKEN`.", 401)
            answer.headers["WWW-Authenticate"] = "Bearer"
            await answer(scope, receive, send)
            return
        if path in _FREE:
            await self.app(scope, receive, send)
            return
        if self.inside >= self.limits.concurrent:
            answer = refusal(f"{self.inside} requests are being processed; try again in a second.", 503)
            answer.headers["Retry-After"] = "1"
            await answer(scope, receive, send)
            return
        self.inside += 1
        try:
            await self.app(scope, receive, send)
        finally:
            self.inside -= 1

    def _has_token(self, scope: Scope) -> bool:
        scheme, _, given = Headers(scope=scope).get("authorization", "").partition(" ")
        # Headers are decoded as latin-1; a token is sent as UTF-8.
        return scheme.lower() == "bearer" and secrets.compare_digest(
            given.encode("latin-1"), (self.token or "").encode()
        )


def refusal(sentence: str, status: int) -> JSONResponse:
    """The JSON of every refusal."""
    return JSONResponse({"detail": sentence}, status_code=status)


async def read_body(request: Request, limits: Limits) -> tuple[bytes | dict[str, str], bytes | None]:
    """The bytes of a JSON body, or the fields and the image of a form; reads no more bytes than allowed."""
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
        raise Refused("The connection closed before the request was complete.", 400) from None


async def _form(headers: Headers, stream: AsyncIterator[bytes]) -> tuple[dict[str, str], bytes | None]:
    try:
        form = await MultiPartParser(headers, stream, max_files=1, max_fields=8, max_part_size=65_536).parse()  # type: ignore[arg-type]
    except MultiPartException as error:
        raise Refused(
            f"The form cannot be read ({error.message.rstrip('.')}); send one image and at most a few fields."
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
    sentence = f"A request may have at most {most:,} bytes; send a smaller one."
    announced = request.headers.get("content-length", "0")
    if not announced.isdecimal():  # servers other than uvicorn may pass it on
        raise Refused("The Content-Length is not a number.", 400)
    if int(announced) > most:
        raise Refused(sentence, 413)
    seen = 0
    async for chunk in request.stream():
        seen += len(chunk)
        if seen > most:
            raise Refused(sentence, 413)
        yield chunk


def check_image(content: bytes, limits: Limits) -> None:
    """Read only the header of an image file: its format must be known and its size within the limit."""
    from PIL import Image, UnidentifiedImageError

    most = f"An image may have {limits.pixels:,} pixels at most"
    try:
        with Image.open(io.BytesIO(content), formats=FORMATS) as image:
            width, height = image.size
    except (Image.DecompressionBombError, Image.DecompressionBombWarning):
        raise Refused(f"{most}, found many more; send a smaller image.", 413) from None
    except (UnidentifiedImageError, OSError, ValueError, SyntaxError):
        raise Refused(f"The file is not a readable image; send {', '.join(FORMATS)}.", 415) from None
    if width * height > limits.pixels:
        raise Refused(f"{most}, found {width} × {height}; send a smaller one.", 413)
