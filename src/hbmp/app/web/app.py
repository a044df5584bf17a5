"""The routes: JSON to queries, queries to a `Collection`, results to JSON; and the page.

    POST /encode /search /search/batch            GET /info /facets /codes /map
    GET /items/random /items/{id} /items/{id}/picture
    POST /items /items/remove  DELETE /items/{id}     only on a server with a token, see `changes`
    GET /healthz /metrics /openapi.json /docs     GET /  the page

Searches run in one thread per core, first come first served.
"""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import anyio
import anyio.to_thread
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse, Response
from fastapi.staticfiles import StaticFiles
from joblib import cpu_count
from pydantic import BaseModel, ValidationError
from starlette.datastructures import MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

import hbmp
from hbmp.app.web import schema
from hbmp.app.web.answers import Answer
from hbmp.app.web.changes import Changes, add_changes
from hbmp.app.web.codes import CodeMap, codes_tab
from hbmp.app.web.connections import log_full_handles_once
from hbmp.app.web.hosts import KnownHosts
from hbmp.app.web.limits import Gate, Limits, check_image, read_body, refusal
from hbmp.app.web.measures import MEDIA_TYPE, Measured, Measures
from hbmp.app.web.queries import Refused
from hbmp.app.web.search import Collection

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

STATIC = Path(__file__).parent / "static"
_HEADERS = {
    # Nothing is loaded from elsewhere, whatever a label or a file name contains.
    "Content-Security-Policy": "default-src 'self'; img-src 'self' blob: data:; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
}
_REFUSALS: dict[int | str, dict[str, Any]] = {
    status: {"model": schema.Refusal, "description": about}
    for status, about in {
        401: "Missing or wrong token",
        413: "Too many bytes or pixels",
        421: "An unknown Host header",
        422: "An invalid query",
        503: "Busy; Retry-After holds the seconds to wait",
    }.items()
}
_Body = TypeVar("_Body", bound=BaseModel)


def create_app(
    collection: Collection,
    *,
    limits: Limits | None = None,
    token: str | None = None,
    with_map: bool = True,
    host: str = "127.0.0.1",
    allowed_hosts: Sequence[str] = (),
) -> FastAPI:
    """The application of a collection.

    Requests need the `token`, if any. Their Host header must be a loopback name, `host`, or one of `allowed_hosts`.
    """
    limits = Limits() if limits is None else limits
    code_map = CodeMap(collection.database)
    threads = anyio.CapacityLimiter(max(1, cpu_count()))

    @asynccontextmanager
    async def life(_: FastAPI) -> AsyncIterator[None]:
        log_full_handles_once(asyncio.get_running_loop())
        if with_map:
            code_map.start()
        yield

    about = "Learned binary codes: encode vectors or images, and search by weighted Hamming distance."
    app = FastAPI(
        title="hbmp", version=hbmp.__version__, description=about, docs_url=None, redoc_url=None, lifespan=life
    )
    measures = Measures(lambda: len(collection.database))
    changes = Changes(collection, allowed=token is not None)
    app.add_middleware(Gate, limits=limits, token=token)
    app.add_middleware(KnownHosts, host=host, names=allowed_hosts)
    app.add_middleware(Measured, measures=measures)
    _add_errors(app)
    _add_page(app)

    async def in_thread(work: Callable[..., Any], *arguments: Any) -> Any:
        return await anyio.to_thread.run_sync(work, *arguments, limiter=threads)

    async def respond(
        request: Request, kind: type[_Body], answer: Callable[..., Any], *, images: bool = True
    ) -> Answer:
        query, image = await _read(request, kind, limits, images=images)
        return Answer(await in_thread(_with_file, answer, query, image))

    add_changes(app, changes, respond, in_thread, _REFUSALS)

    @app.post(
        "/encode", responses={200: {"model": schema.Encoded}, **_REFUSALS}, openapi_extra=schema.body(schema.Source)
    )
    async def encode(request: Request) -> Response:
        """The code of a vector, an image or an item."""
        return await respond(request, schema.Source, collection.encode)

    @app.post(
        "/search", responses={200: {"model": schema.Answer}, **_REFUSALS}, openapi_extra=schema.body(schema.Query)
    )
    async def search(request: Request) -> Response:
        """The nearest items to a vector, an image, an item or scores."""
        return await respond(request, schema.Query, collection.search)

    batch = schema.body(schema.Batch)

    @app.post("/search/batch", responses={200: {"model": schema.Answers}, **_REFUSALS}, openapi_extra=batch)
    async def search_batch(request: Request) -> Response:
        """The nearest items to many vectors, texts, items or scores."""
        return await respond(request, schema.Batch, collection.search_batch, images=False)

    @app.get("/items/random", response_model=schema.Item)
    async def random_item() -> Response:
        """A random item of the database."""
        return Answer(await in_thread(lambda: collection.item(collection.random_id())))

    @app.get("/items/{item_id:path}/picture", response_class=Response)
    async def picture(item_id: str) -> Response:
        """An item's thumbnail, or bars of its features or bits."""
        content, media_type = await in_thread(collection.draw, item_id)
        return Response(content, media_type=media_type, headers={"Cache-Control": "private, max-age=60"})

    @app.get("/items/{item_id:path}", responses={200: {"model": schema.Item}, 404: {"model": schema.Refusal}})
    async def item(item_id: str) -> Response:
        """An item: its label, its payload, its code, and its features if they are available."""
        return Answer(await in_thread(collection.item, item_id))

    @app.get("/info")
    async def info() -> Response:
        """The method, sizes, weights, and the limits of a request."""
        sizes = {"upload_bytes": limits.upload_bytes, "json_bytes": limits.json_bytes, "pixels": limits.pixels}
        about = await in_thread(collection.about)
        return Answer({**about, "limits": sizes, "map": with_map, "changes": changes.allowed})

    @app.get("/facets")
    async def facets() -> Response:
        """Columns with few values, for filters: each value with the number of its items."""
        return Answer(await in_thread(collection.facets))

    @app.get("/codes")
    async def codes() -> Response:
        """Codes of the classes, affinity and approximation, distances, residuals; what first results are like."""
        return Answer(await in_thread(codes_tab, collection.database))

    @app.get("/map")
    async def whole_map() -> Response:
        """t-SNE of the codes; `state` is "working" until it is computed."""
        return Answer(code_map.answer())

    @app.get("/healthz")
    async def healthz() -> dict[str, Any]:
        """Whether the server is up; needs no token."""
        return {"status": "ok", "items": await anyio.to_thread.run_sync(len, collection.database)}

    @app.get("/metrics", response_class=Response)
    async def metrics() -> Response:
        """Counters for Prometheus."""
        return Response(await anyio.to_thread.run_sync(measures.text), media_type=MEDIA_TYPE)

    return app


async def _read(request: Request, kind: type[_Body], limits: Limits, *, images: bool) -> tuple[_Body, bytes | None]:
    """The content of a request, checked, and its image."""
    content, image = await read_body(request, limits)
    if not images and not isinstance(content, bytes):
        raise Refused("This route takes JSON, not a form.", 415)
    if image is not None:
        check_image(image, limits)
    elif isinstance(content, dict):
        raise Refused("The form contains no file; put the image into the field `image`.")
    try:
        return (
            kind.model_validate_json(content) if isinstance(content, bytes) else kind.model_validate(content)
        ), image
    except ValidationError as error:
        raise Refused(_sentence(error.errors())) from None


def _with_file(answer: Callable[..., Any], query: BaseModel, image: bytes | None) -> dict[str, Any]:
    """Pass an image on as a file, so that the model decodes it as in training."""
    if image is None:
        return answer(query)
    with tempfile.TemporaryDirectory(prefix="hbmp-") as folder:
        path = Path(folder) / "query.img"
        path.write_bytes(image)
        return answer(query, path)


def _sentence(errors: Any) -> str:
    first = errors[0]
    place = ".".join(str(part) for part in first["loc"] if part not in ("int", "str", "bool", "float")) or "the body"
    found = repr(first.get("input"))
    what = first["msg"][:1].lower() + first["msg"][1:]
    return f"In {place}: {what}, found {found if len(found) <= 60 else found[:57] + '…'}."


def _add_errors(app: FastAPI) -> None:
    @app.exception_handler(Refused)
    async def refused(_: Request, error: Refused) -> Response:
        return refusal(str(error), error.status)

    @app.exception_handler(RequestValidationError)
    async def invalid(_: Request, error: RequestValidationError) -> Response:
        return refusal(_sentence(error.errors()), 422)

    @app.exception_handler(404)
    async def missing(request: Request, error: Exception) -> Response:
        return refusal(f"There is nothing at {request.url.path}; see /docs.", 404)

    @app.exception_handler(Exception)
    async def broken(_: Request, error: Exception) -> Response:
        return refusal("Internal server error; see the server's log.", 500)


class _Guarded:
    """ASGI middleware: headers that stop a browser from loading other content and from guessing types."""

    def __init__(self, app: ASGIApp):
        self.app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        async def guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                MutableHeaders(scope=message).update(_HEADERS)
            await send(message)

        await self.app(scope, receive, guarded)


def _add_page(app: FastAPI) -> None:
    app.add_middleware(_Guarded)

    @app.get("/", include_in_schema=False)
    async def page() -> Response:
        return FileResponse(STATIC / "index.html")

    @app.get("/docs", include_in_schema=False)
    async def docs() -> Response:
        return FileResponse(STATIC / "docs.html")

    app.mount("/static", StaticFiles(directory=STATIC), name="static")
