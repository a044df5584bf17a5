"""Find the items of a database that are nearest to each query, and show their payload.

Queries are features, images or texts, like the items of the database: files, image files, or words if the model has a
text encoder. --like uses items of the database as queries. --where and --ids restrict the search. --rescore re-ranks
that many nearest items by the vectors stored in the database.
"""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from hbmp.app.commands.fit import DATA
from hbmp.app.commands.remove import WHERE

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from hbmp.database import Database

EXAMPLE = "hbmp search digits-db digits --rows 0 1 2 -k 5"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A database, queries, and how many results."""
    parser.add_argument("database", metavar="DB", help="a database, from `hbmp index`")
    parser.add_argument(
        "queries", metavar="QUERIES", nargs="*", help="words; image files; or one of: " + DATA.replace("; or", ",")
    )
    parser.add_argument("--like", nargs="+", metavar="ID", help="use these items of the database as queries")
    parser.add_argument("-k", type=int, default=10, metavar="N", help="results per query (default: 10)")
    parser.add_argument(
        "--rows", type=int, nargs="+", metavar="N", help="use only these rows of QUERIES (default: all)"
    )
    parser.add_argument("--column", metavar="NAME", help="the text column of QUERIES (default: text, or body)")
    parser.add_argument("--where", nargs="+", metavar="CONDITION", default=[], help=WHERE)
    parser.add_argument("--ids", nargs="+", metavar="ID", help="search only among these items")
    parser.add_argument("--rescore", type=int, metavar="N", help="re-rank the N nearest items by the original vectors")
    parser.add_argument("--bits", type=int, metavar="N", help="compare only the first N bits")
    parser.add_argument(
        "--real-valued",
        action=argparse.BooleanOptionalAction,
        help="use the query's scores before the sign, for finer distances (default: with --rescore)",
    )
    parser.add_argument("--columns", nargs="+", metavar="NAME", help="columns to show (default: the first six)")
    parser.add_argument("--data-dir", metavar="DIR", help="data directory (default: $HBMP_DATA, else ./data)")
    parser.add_argument("--json", action="store_true", help="print [{query, results: [{id, distance, …, payload}]}]")


def run(options: argparse.Namespace) -> None:
    """Search and print one line per result."""
    import json

    from hbmp import Database
    from hbmp._core.finite import finite
    from hbmp.app.results import as_table, hits

    if bool(options.queries) == (options.like is not None):
        raise ValueError("Pass either queries, or --like with ids of items in the database.")
    with Database.load(options.database) as database:
        queries, distances, ids = (_like if options.like else _search)(database, options)
        found = [
            (query, hits(database, row_ids, row_distances)[: options.k])
            for query, row_ids, row_distances in zip(queries, ids, distances, strict=True)
        ]
        if options.json:
            told = [{"query": query, "results": results} for query, results in found]
            print(json.dumps(finite(told), ensure_ascii=False))
            return
        _remark(options, found, database)
        print(as_table(found, database, options.columns))


def _remark(options: argparse.Namespace, found: list[tuple[Any, list[Any]]], database: Database) -> None:
    """Remarks on stderr: a sentence without quotes, and conditions that no item meets."""
    import sys

    words = options.queries
    texts = getattr(getattr(database.model, "input_encoder_", None), "takes", "") == "texts"
    if texts and len(words) > 1 and [query for query, _ in found] == words and not any(" " in word for word in words):
        print(
            f"{len(words)} queries of one word each. To search for a sentence, quote it: "
            f'hbmp search {options.database} "{" ".join(words)}"',
            file=sys.stderr,
        )
    if (options.where or options.ids) and not any(results for _, results in found):
        print("No item meets the conditions.", file=sys.stderr)


def _how(database: Database, options: argparse.Namespace) -> dict[str, Any]:
    """The settings of a search that are common to both kinds of queries."""
    from hbmp.app.wheres import ids_of_kind, where_from_words

    return {
        "where": where_from_words(options.where, database.filterable),
        "ids": None if options.ids is None else ids_of_kind(options.ids, database.id_type),
        "n_bits": options.bits,
    }


def _search(database: Database, options: argparse.Namespace) -> tuple[list[Any], NDArray[Any], NDArray[Any]]:
    """Queries, distances and ids for data from outside."""
    import numpy as np

    from hbmp.app.inputs import inputs_for, read_queries
    from hbmp.images import Images, UnreadableImage

    data = read_queries(options.queries, model=database.model, column=options.column, data_dir=options.data_dir)
    inputs = inputs_for(database.model, data, ", ".join(options.queries))
    rows = np.arange(len(inputs)) if options.rows is None else np.array(options.rows)
    if len(rows) and (rows.min() < 0 or rows.max() >= len(inputs)):
        raise ValueError(f"{options.queries[0]} has rows 0 to {len(inputs) - 1}, found {options.rows} in --rows.")
    wanted = inputs[rows]
    how = {**_how(database, options), "real_valued": options.real_valued, "rescore": options.rescore}
    try:
        distances, ids = database.search(wanted, options.k, **how)
    except UnreadableImage as error:
        broken = wanted[wanted.unreadable()].names
        raise ValueError(f"{', '.join(broken)} cannot be read as an image; use another file.") from error
    names = wanted.names if isinstance(wanted, Images) else wanted.tolist() if data.texts is not None else rows.tolist()
    return names, distances, ids


def _like(database: Database, options: argparse.Namespace) -> tuple[list[Any], NDArray[Any], NDArray[Any]]:
    """The same for items of the database; an item is not among its own results."""
    import numpy as np

    from hbmp.app.wheres import ids_of_kind

    queries = ids_of_kind(options.like, database.id_type)
    how = _how(database, options)
    if options.rescore is not None or options.real_valued:
        vectors = database.vectors_of(queries)
        more = {"real_valued": options.real_valued, "rescore": options.rescore}
        distances, ids = database.search(vectors, options.k + 1, **how, **more)
    else:
        codes = database.codes(queries)
        bits = codes if options.bits is None else codes[:, : options.bits]
        distances, ids = database.search_codes(bits, options.k + 1, **how)
    own = np.array(queries, dtype=object)[:, None] == ids
    return queries, np.where(own, np.inf, distances), ids
