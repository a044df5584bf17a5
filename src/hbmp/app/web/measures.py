"""Metrics for Prometheus: requests by route and status, their seconds, requests in flight, and items."""

from __future__ import annotations

import time
from collections.abc import Callable

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest
from starlette.types import ASGIApp, Message, Receive, Scope, Send

_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 10)
MEDIA_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Measures:
    """The metrics of one server, in its own registry."""

    def __init__(self, n_items: Callable[[], int]):
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "hbmp_requests", "Requests answered.", ("method", "route", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "hbmp_request_seconds",
            "Seconds from head to last byte.",
            ("route",),
            buckets=_BOUNDS,
            registry=self.registry,
        )
        self.inside = Gauge("hbmp_requests_in_flight", "Requests being answered.", registry=self.registry)
        Gauge("hbmp_items", "Items in the database.", registry=self.registry).set_function(n_items)

    def text(self) -> bytes:
        """All metrics in the text format of Prometheus."""
        return generate_latest(self.registry)


class Measured:
    """ASGI middleware that counts requests; routes are named by their pattern, so ids make no new series."""

    def __init__(self, app: ASGIApp, measures: Measures):
        self.app, self.measures = app, measures

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Count one request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        started = time.perf_counter()
        status = 500

        async def watch(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
            await send(message)

        self.measures.inside.inc()
        try:
            await self.app(scope, receive, watch)
        finally:
            self.measures.inside.dec()
            route = getattr(scope.get("route"), "path", "other")
            method = scope["method"] if scope["method"] in ("GET", "POST", "DELETE", "HEAD") else "other"
            self.measures.requests.labels(method, route, str(status)).inc()
            self.measures.seconds.labels(route).observe(time.perf_counter() - started)
