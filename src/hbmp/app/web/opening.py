"""From command-line options to a collection and a listening socket; the files are checked against each other."""

from __future__ import annotations

import argparse
import socket
import sys
from pathlib import Path
from typing import Any

import numpy as np

from hbmp._core.arrays import read_npy
from hbmp.app.web.limits import Limits
from hbmp.app.web.pictures import Pictures
from hbmp.app.web.search import Collection
from hbmp.database import Database
from hbmp.hasher import Hasher, load


def open_collection(options: argparse.Namespace, limits: Limits) -> Collection:
    """The database with its pictures, from the options of `hbmp serve`."""
    from hbmp.app.inputs import read_features

    database = Database.load(options.index)
    if options.model is not None:
        model = load(options.model)
        check_same(database.model, model, f"{options.model} and {options.index}")
        database.model = model
    features = None if options.features is None else read_features(options.features, data_dir=options.data_dir)
    pictures = Pictures(database, images=_images(options, database), features=features, files=_has_files(database))
    return Collection(database, pictures, max_k=limits.k)


def check_same(mine: Hasher, given: Hasher, names: str) -> None:
    """Reject a model whose codes differ from the codes of the database's model."""
    sizes = [(model.n_bits, getattr(model, "n_features_in_", None)) for model in (mine, given)]
    same = sizes[0] == sizes[1]
    if same:
        random = np.random.default_rng(0)
        n_features = sizes[0][1]
        probe = (
            random.integers(0, 256, (2, 32, 32, 3), dtype=np.uint8)
            if n_features is None
            else random.standard_normal((8, n_features)).astype(np.float32)
        )
        same = bool(np.allclose(mine.project(probe), given.project(probe), rtol=1e-3, atol=1e-4))
    if not same:
        raise ValueError(f"{names} contain different models; pass the model that produced the codes, or none.")


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one."""
    if not 0 <= port <= 65_535:  # some systems would take the remainder
        raise ValueError(f"The port must lie between 0 and 65535, found {port}; choose another --port.")
    try:
        family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)[0]
        bound = socket.socket(family, socket.SOCK_STREAM)
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(address)
        bound.listen(2048)  # clients may connect as soon as the address is printed
    except OSError as error:
        raise ValueError(f"Cannot listen at {host}:{port} ({error}); choose another --host or --port.") from error
    return bound


def _images(options: argparse.Namespace, database: Database) -> Any:
    """Pictures of the items from the options; None if there are none, or where the database's own files are used."""
    if options.thumbnails is not None:
        path = Path(options.thumbnails)
        if not path.is_file():
            raise ValueError(f"The thumbnail file {path} does not exist.")
        return read_npy(path)
    if options.images is not None and not Path(options.images).exists():
        raise ValueError(f"The image folder {options.images} does not exist.")
    if database.files is None:
        return options.images
    if options.images is not None:
        database.files = database.files.moved(options.images)
    elif not database.files.folder.is_dir():
        print(
            f"The images of {options.index} are no longer in {database.files.folder}, so items are drawn as bits. "
            "Pass their folder with --images.",
            file=sys.stderr,
        )
    return None


def _has_files(database: Database) -> bool:
    return database.files is not None and database.files.folder.is_dir()
