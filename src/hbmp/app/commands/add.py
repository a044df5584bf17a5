"""Add items to a database: either all of them or, on any error, none.

New items have the same form as the existing ones: features, texts or images, with ids, labels and a payload as for
`hbmp index`. The model of the database encodes them. Concurrent searches see either none of the new items or all of
them.
"""

from __future__ import annotations

import argparse

from hbmp.app.commands.fit import DATA
from hbmp.app.commands.index import add_item_arguments

EXAMPLE = "hbmp add digits-db digits"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A database and the new items."""
    parser.add_argument("database", metavar="DB", help="a database, from `hbmp index`")
    parser.add_argument("data", metavar="DATA", help=DATA)
    parser.add_argument("--replace", action="store_true", help="replace existing items with the same ids")
    add_item_arguments(parser)
    parser.add_argument(
        "--on-error", choices=("refuse", "skip"), default="refuse", help="for images that cannot be read"
    )
    parser.add_argument("--data-dir", metavar="DIR", help="data directory (default: $HBMP_DATA, else ./data)")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")


def kept(options: argparse.Namespace) -> str:
    """Describe what an interrupted run has left."""
    return f"Either all of the items are in {options.database}, or none."


def run(options: argparse.Namespace) -> None:
    """Encode and add."""
    import json
    from dataclasses import replace

    from hbmp import Database
    from hbmp.app.carried import carried, labels_column
    from hbmp.app.indexing import add_data
    from hbmp.app.inputs import read_data
    from hbmp.app.inputs.images import without_unreadable
    from hbmp.app.wheres import ids_of_kind

    with Database.load(options.database) as database:
        column = labels_column(options.labels, options.payload)
        labels = None if column is not None else options.labels
        data = read_data(options.data, labels, column=options.column, data_dir=options.data_dir, images=True)
        data = without_unreadable(data, options.on_error)
        items = carried(
            data,
            options.data,
            payload=options.payload,
            columns=options.columns,
            ids=options.ids,
            labels=column,
            read=labels,
        )
        if options.replace and items.ids is None:
            raise ValueError("--replace finds items by their ids: pass --ids, or a payload with a column 'id'.")
        if items.ids is not None and len(database):
            items = replace(items, ids=ids_of_kind(items.ids, database.id_type))
        before = len(database)
        added = add_data(database, data, options.data, items=items, replace=options.replace, progress=True)
        n_items = len(database)
    replaced = before + added - n_items
    if options.json:
        print(json.dumps({"database": options.database, "added": added, "replaced": replaced, "items": n_items}))
        return
    said = f", {replaced:,} of them replacing existing items" if replaced else ""
    print(f"{options.database}: {added:,} items added{said}; it now has {n_items:,} items.")
