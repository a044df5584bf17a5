"""Remove items from a database by their ids, by conditions, or by both.

A condition compares a column of the payload, or the label: brand=sony, 'price<20', 'brand=["sony", "canon"]'. All
conditions must hold. Unknown ids are ignored. The file keeps its size; its space is used for later items.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from hbmp.database import Database

EXAMPLE = "hbmp remove digits-db 3 5 8"
WHERE = "conditions that must all hold: brand=sony, 'price<20', 'brand=[\"sony\", \"canon\"]'"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A database, and the items to remove."""
    parser.add_argument("database", metavar="DB", help="a database, from `hbmp index`")
    parser.add_argument("ids", metavar="ID", nargs="*", help="ids of items")
    parser.add_argument("--ids", dest="ids_file", metavar="FILE", help="ids, one per row or line: .txt, .csv, .npy")
    parser.add_argument("--where", nargs="+", metavar="CONDITION", default=[], help=WHERE)
    parser.add_argument("--dry-run", action="store_true", help="print how many items would be removed, and remove none")
    parser.add_argument("--json", action="store_true", help="print a summary as JSON")


def kept(options: argparse.Namespace) -> str:
    """Describe what an interrupted run has left."""
    return f"Either all of these items are removed from {options.database}, or none."


def run(options: argparse.Namespace) -> None:
    """Remove in one transaction."""
    import json

    from hbmp import Database
    from hbmp.app.carried import read_ids
    from hbmp.app.wheres import ids_of_kind, where_from_words

    with Database.load(options.database) as database:
        given = [*options.ids, *(() if options.ids_file is None else read_ids(options.ids_file))]
        ids = ids_of_kind(given, database.id_type) if options.ids or options.ids_file is not None else None
        where = where_from_words(options.where, database.filterable)
        if ids is None and where is None:
            raise ValueError("No items given: pass ids, --ids FILE or --where.")
        if options.dry_run:
            removed, n_items = _found(database, ids, where), len(database)
        else:
            removed = database.remove(ids, where=where)
            n_items = len(database)
    if options.json:
        about = {"database": options.database, "removed": removed, "items": n_items, "dry_run": options.dry_run}
        print(json.dumps(about))
        return
    if options.dry_run:
        print(f"{options.database}: {removed:,} of {n_items:,} items would be removed.")
    else:
        print(f"{options.database}: {removed:,} items removed; it now has {n_items:,} items.")


def _found(database: Database, ids: Any, where: Any) -> int:
    """The number of items with these ids that meet the conditions."""
    met = set(database.find(where or {}).tolist())
    return len(met if ids is None else met & set(ids))
