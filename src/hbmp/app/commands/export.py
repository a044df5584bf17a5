"""Write codes or the encoder for other systems: bytes, hex, int8, SQL, FAISS, ONNX.

Codes come from a database (`hbmp index`), the ONNX encoder from a model or a database. docs/stores.md lists the formats
that each system accepts.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterable

    from hbmp.database import Database

EXAMPLE = "hbmp export digits-db --to hex -o codes.csv"
_FORMS = {
    "bytes": ".npz with ids and codes, uint8, first bit lowest: FAISS, NumPy, Milvus",
    "int8": ".npz with ids and codes, int8, first bit highest: Vespa",
    "hex": ".csv with id and code, first bit highest: Elasticsearch",
    "sql": "statements that create a pgvector table",
    "faiss": "a file for faiss.read_index",
    "onnx": "the encoder, features to codes",
}


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Source, form and output file."""
    forms = "; ".join(f"{form}: {about}" for form, about in _FORMS.items())
    parser.add_argument("source", metavar="SOURCE", help="a database; for onnx also a model directory")
    parser.add_argument("--to", required=True, choices=tuple(_FORMS), metavar="FORM", help=forms)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the file to write")
    parser.add_argument(
        "--table", default="hbmp_codes", metavar="NAME", help="name of the SQL table (default: hbmp_codes)"
    )
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")


def run(options: argparse.Namespace) -> None:
    """Write the file and print its size."""
    import json
    from pathlib import Path

    from hbmp._core.files import check_place
    from hbmp.database import is_database

    check_place(options.output)
    if is_database(options.output):
        raise ValueError(f"{options.output} is a database; choose another name.")
    if options.to == "onnx":
        _write_onnx(options)
    else:
        from hbmp import Database

        with Database.load(options.source) as database:
            _write_codes(database, options)
    size = Path(options.output).stat().st_size
    if options.json:
        print(json.dumps({"output": options.output, "form": options.to, "bytes": size}))
    else:
        print(f"{options.output}: {options.to}, {size:,} bytes.")


def _write_onnx(options: argparse.Namespace) -> None:
    from hbmp import Database, load
    from hbmp.database import is_database
    from hbmp.export import to_onnx

    if is_database(options.source):
        with Database.load(options.source) as database:
            model = database.model
    else:
        model = load(options.source)
    to_onnx(model, options.output)


def _write_codes(database: Database, options: argparse.Namespace) -> None:
    import numpy as np

    from hbmp import export
    from hbmp._core.files import beside

    with beside(options.output) as path:
        if options.to == "faiss":
            database.index.to_faiss(path)
        elif options.to in ("bytes", "int8"):
            codes = getattr(export, f"to_{options.to}")(database.codes())
            with open(path, "wb") as file:
                np.savez(file, ids=database.ids, codes=codes, n_bits=database.index.n_bits)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.writelines(_lines(database, options))


def _lines(database: Database, options: argparse.Namespace) -> Iterable[str]:
    from hbmp import export

    if options.to == "sql":
        return (f"{statement}\n" for statement in export.to_sql(database.codes(), database.ids, table=options.table))
    coded = zip(database.ids.tolist(), export.to_hex(database.codes()), strict=True)
    return ("id,code\n", *(f"{number},{code}\n" for number, code in coded))
