"""Search a database in the browser and over HTTP.

The page searches by items, vectors or images and shows the codes. POST /search and /encode return JSON; /docs describes
them. The server accepts connections only from this machine, unless --host sets another address; in that case set a
token (--token or $HBMP_TOKEN). Needs pip install 'hbmp[web]'.
"""

from __future__ import annotations

import argparse

EXAMPLE = "hbmp serve digits-16 --index digits-db --features digits"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A database, pictures of its items, and limits."""
    parser.add_argument("model", metavar="MODEL", nargs="?", help="a model directory (default: the database's own)")
    parser.add_argument("--index", required=True, metavar="DB", help="a database, from `hbmp index`")
    parser.add_argument("--features", metavar="DATA", help="features of the items, to show and to encode them")
    parser.add_argument("--data-dir", metavar="DIR", help="data directory (default: $HBMP_DATA, else ./data)")
    looks = parser.add_mutually_exclusive_group()
    looks.add_argument(
        "--images", metavar="DIR", help="folder of the items' images (default: the folder that was indexed)"
    )
    looks.add_argument(
        "--thumbnails", metavar="FILE", help="pixels of the items: .npy, uint8 (n, h, w) or (n, h, w, 3)"
    )
    parser.add_argument(
        "--host", default="127.0.0.1", metavar="ADDRESS", help="address to listen on (default: 127.0.0.1)"
    )
    parser.add_argument(
        "--allow-host",
        nargs="+",
        default=[],
        metavar="NAME",
        help="additional names of this server, for example behind a proxy",
    )
    parser.add_argument(
        "--port", type=int, default=8000, metavar="N", help="port, or 0 for any free one (default: 8000)"
    )
    parser.add_argument("--token", metavar="WORD", help="required in every request (default: $HBMP_TOKEN, else none)")
    parser.add_argument(
        "--max-k", type=int, default=1000, metavar="N", help="maximum number of neighbours per request (default: 1000)"
    )
    parser.add_argument(
        "--max-upload", type=float, default=10, metavar="MB", help="maximum size of an image file (default: 10)"
    )
    parser.add_argument(
        "--max-pixels",
        type=float,
        default=40,
        metavar="M",
        help="maximum size of an image, in millions of pixels (default: 40)",
    )
    parser.add_argument(
        "--max-concurrent",
        type=int,
        default=64,
        metavar="N",
        help="maximum number of concurrent requests (default: 64)",
    )
    parser.add_argument("--no-map", action="store_true", help="do not compute the map of the codes")


def run(options: argparse.Namespace) -> None:
    """Open the database and serve it until interrupted."""
    import os

    try:
        import uvicorn

        from hbmp.app.web.app import create_app
    except ImportError as error:
        raise ImportError(f"The server needs more packages ({error}): pip install 'hbmp[web]'.") from None

    from hbmp.app.web.connections import limited_protocol, log_warnings_once, room
    from hbmp.app.web.limits import Limits
    from hbmp.app.web.opening import listen, open_collection

    for name in ("max_k", "max_upload", "max_pixels", "max_concurrent"):
        if getattr(options, name) <= 0:
            raise ValueError(f"--{name.replace('_', '-')} must be above 0, found {getattr(options, name)}.")
    limits = Limits(
        upload_bytes=int(options.max_upload * 2**20),
        pixels=int(options.max_pixels * 1e6),
        k=options.max_k,
        concurrent=options.max_concurrent,
    )
    collection = open_collection(options, limits)
    token = options.token or os.environ.get("HBMP_TOKEN") or None
    names = {"host": options.host, "allowed_hosts": options.allow_host}
    app = create_app(collection, limits=limits, token=token, with_map=not options.no_map, **names)
    with listen(options.host, options.port) as socket:
        host, port = socket.getsockname()[:2]
        shown = f"[{host}]" if ":" in host else host
        print(f"{collection.database} at http://{shown}:{port}", flush=True)
        connections, backlog = room()
        config = uvicorn.Config(
            app,
            http=limited_protocol(connections),
            ws="none",
            backlog=backlog,
            log_level="warning",
            access_log=False,
            server_header=False,
        )
        log_warnings_once()
        uvicorn.Server(config).run([socket])
