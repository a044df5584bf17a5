"""Encode features or images with a saved model.

An output that ends in .npy contains signs of shape (n, bits), or bytes with --packed. Any other output is a folder of
Parquet files with a column `code`, written part by part. Run the command again to resume an interrupted run.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hbmp.app.commands.fit import DATA

if TYPE_CHECKING:
    from hbmp.hasher import Hasher

EXAMPLE = "hbmp encode digits-16 digits -o codes.npy --packed"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A model, data, and the output."""
    parser.add_argument("model", metavar="MODEL", help="a model directory, from `hbmp fit`")
    parser.add_argument("data", metavar="DATA", help=DATA)
    parser.add_argument(
        "-o", "--output", required=True, metavar="FILE", help="codes.npy, or a folder for Parquet parts"
    )
    parser.add_argument("--packed", action="store_true", help="eight bits per byte, first bit lowest, instead of signs")
    parser.add_argument(
        "--column", default="features", metavar="NAME", help="Parquet column of features (default: features)"
    )
    parser.add_argument(
        "--engine", choices=("local", "ray"), default="local", help="engine that writes Parquet parts (default: local)"
    )
    parser.add_argument(
        "--on-error", choices=("refuse", "skip"), default="refuse", help="for images that cannot be read"
    )
    parser.add_argument("--data-dir", metavar="DIR", help="data directory (default: $HBMP_DATA, else ./data)")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")


def run(options: argparse.Namespace) -> None:
    """Encode and print the number of codes."""
    import json

    from hbmp import load
    from hbmp._core.files import check_place
    from hbmp.app.outputs import check_folder

    is_array = options.output.endswith(".npy")
    (check_place if is_array else check_folder)(options.output)
    model = load(options.model)
    if is_array:
        n_rows, kind = _to_npy(model, options)
    else:
        from hbmp import encode_dataset

        settings = {"column": options.column, "engine": options.engine, "on_error": options.on_error}
        encoded = encode_dataset(model, options.data, options.output, **settings)
        n_rows, kind = (
            encoded.n_rows,
            f"{encoded.n_parts} Parquet parts, {encoded.n_resumed} of them from an earlier run",
        )
    if options.json:
        print(json.dumps({"output": options.output, "rows": n_rows, "bits": model.n_bits, "kind": kind}))
    else:
        print(f"{options.output}: {n_rows:,} codes of {model.n_bits} bits, {kind}.")


def kept(options: argparse.Namespace) -> str:
    """Describe what an interrupted run has left."""
    if options.output.endswith(".npy"):
        return f"{options.output} is as it was, or whole. Parquet parts can be continued: -o with another ending."
    return "Run the same command again to continue."


def _to_npy(model: Hasher, options: argparse.Namespace) -> tuple[int, str]:
    """Write codes into one mapped file; memory holds one block of rows."""
    import numpy as np

    from hbmp import hamming
    from hbmp._core.files import beside
    from hbmp.app.inputs import inputs_for, read_data
    from hbmp.app.inputs.images import without_unreadable
    from hbmp.app.outputs import new_npy
    from hbmp.database import encode

    data = without_unreadable(read_data(options.data, data_dir=options.data_dir, images=True), options.on_error)
    inputs = inputs_for(model, data, options.data)
    width, dtype = (hamming.bytes_for(model.n_bits), np.uint8) if options.packed else (model.n_bits, np.int8)
    with beside(options.output) as path:
        codes = new_npy(path, dtype, (len(inputs), width), options.output)
        encode(model, inputs, progress=True, out=codes)
        codes.flush()  # type: ignore[attr-defined]
    return len(inputs), "packed little-endian" if options.packed else "signs"
