"""Encode items and make them searchable: a database file with codes, ids, labels, payload and the model.

The payload of the items comes from a table: --payload items.csv, .parquet or .jsonl, one row per item, optionally with
the columns `id` and `label`. For texts, it is the other columns of their own table. With --vectors the database stores
the features, so that searches can rank by them (`hbmp search --rescore`). Images are indexed with their file names. Run
the command again to resume an interrupted run.

`hbmp search` searches the database, `hbmp add` and `hbmp remove` change it, `hbmp serve` shows it in the browser, and
`hbmp.Database.load` opens it in Python.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from hbmp.app.commands.fit import DATA

if TYPE_CHECKING:
    from hbmp.database import Database

EXAMPLE = "hbmp index digits-16 digits --vectors float16 -o digits-db"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A model, the items, and the output."""
    parser.add_argument("model", metavar="MODEL", help="a model directory, from `hbmp fit`")
    parser.add_argument("data", metavar="DATA", help=DATA)
    parser.add_argument("-o", "--output", required=True, metavar="FILE", help="the database to write")
    parser.add_argument("--replace", action="store_true", help="replace an existing database")
    add_item_arguments(parser)
    parser.add_argument(
        "--vectors", choices=("float32", "float16", "int8"), help="store the features too, for searches with --rescore"
    )
    parser.add_argument(
        "--on-error", choices=("refuse", "skip"), default="refuse", help="for images that cannot be read"
    )
    parser.add_argument("--kind", choices=("auto", "flat", "ivf"), default="auto", help="flat is exact (default: auto)")
    parser.add_argument("--data-dir", metavar="DIR", help="data directory (default: $HBMP_DATA, else ./data)")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")


def add_item_arguments(parser: argparse.ArgumentParser) -> None:
    """Options for the payload of items; `hbmp add` has the same ones."""
    parser.add_argument(
        "--payload", metavar="FILE", help="payload of the items, one row per item: .csv, .tsv, .parquet, .jsonl"
    )
    parser.add_argument("--columns", nargs="+", metavar="NAME", help="store only these columns of the payload")
    parser.add_argument(
        "--ids", metavar="NAME", help="ids, whole numbers or strings: a column, or a file (default: the column `id`)"
    )
    parser.add_argument("--labels", metavar="NAME", help="labels: a file (.npy, .csv, .txt, …) or a column")
    parser.add_argument("--column", metavar="NAME", help="the text column of DATA (default: text, or body)")


def run(options: argparse.Namespace) -> None:
    """Encode, index, save."""
    import json

    from hbmp import load
    from hbmp.app.carried import carried, labels_column
    from hbmp.app.indexing import check_database_place, index_data
    from hbmp.app.inputs import read_data

    check_database_place(options.output, replace=options.replace)
    model = load(options.model)
    column = labels_column(options.labels, options.payload)
    labels = None if column is not None else options.labels
    data = read_data(options.data, labels, column=options.column, data_dir=options.data_dir, images=True)
    items = carried(
        data,
        options.data,
        payload=options.payload,
        columns=options.columns,
        ids=options.ids,
        labels=column,
        read=labels,
    )
    settings = {"vectors": options.vectors, "kind": options.kind, "on_error": options.on_error}
    done = index_data(model, data, options.data, options.output, items=items, progress=True, **settings)
    with done.database as database:
        index = database.index
        about = {"database": options.output, "items": len(index), "bits": index.n_bits, "kind": index.kind}
        if options.json:
            more = {"images": database.has_files, "columns": database.columns, "vectors": database.vectors}
            about |= {"labels": database.label_kind is not None, **more, "skipped": list(done.skipped)}
            print(json.dumps({**about, "source": database.source}, ensure_ascii=False))
            return
        print(f"{options.output}: {len(index):,} items of {index.n_bits} bits, {index.kind}{_extras(database)}.")
    if done.n_resumed:
        print(f"{done.n_resumed:,} of them were encoded by an earlier run.")


def kept(options: argparse.Namespace) -> str:
    """Describe what an interrupted run has left."""
    from pathlib import Path

    resumable = Path(f"{options.output}.parts").is_dir()
    return "Run the same command again to continue." if resumable else f"{options.output} is as it was, or whole."


def _extras(database: Database) -> str:
    """The parts of a database other than ids and codes."""
    parts = [name for name, there in (("labels", database.label_kind), ("images", database.has_files)) if there]
    if database.columns:
        parts.append(f"payload ({', '.join(database.columns)})")
    if database.vectors:
        parts.append(f"vectors ({database.vectors})")
    listed = " and ".join(parts) if len(parts) < 3 else f"{', '.join(parts[:-1])} and {parts[-1]}"
    return f", with {listed}" if parts else ""
