"""Find the nearest items of a database to each query.

Queries are features or images, like the items of the database; its model encodes them.
"""

from __future__ import annotations

from hbmp.app.commands.fit import DATA

EXAMPLE = "hbmp search digits-db digits --rows 0 1 2 -k 5"


def add_arguments(parser) -> None:
    """A database, queries, and how many results."""
    parser.add_argument("database", metavar="DB", help="a database directory, from `hbmp index`")
    parser.add_argument(
        "queries", metavar="QUERIES", nargs="+", help="image files; or one of: " + DATA.replace("; or", ",")
    )
    parser.add_argument("-k", type=int, default=10, metavar="N", help="results per query (default: 10)")
    parser.add_argument("--rows", type=int, nargs="+", metavar="N", help="only these rows of QUERIES (default: all)")
    parser.add_argument(
        "--real-valued", action="store_true", help="compare the scores of a query before the sign: finer distances"
    )
    parser.add_argument("--data-dir", metavar="DIR", help="data directory (default: $HBMP_DATA, else ./data)")
    parser.add_argument("--json", action="store_true", help="print [{query, results: [{id, distance, label}]}]")


def run(options) -> None:
    """Search and print one line per result."""
    from hbmp import Database

    with Database.load(options.database) as database:
        _search(database, options)


def _search(database, options) -> None:
    import json

    import numpy as np

    from hbmp._core.table import Table
    from hbmp.app.inputs import inputs_for, read_queries
    from hbmp.images import Images, UnreadableImage

    data = read_queries(options.queries, model=database.model, data_dir=options.data_dir)
    inputs = inputs_for(database.model, data, ", ".join(options.queries))
    rows = np.arange(len(inputs)) if options.rows is None else np.array(options.rows)
    if len(rows) and (rows.min() < 0 or rows.max() >= len(inputs)):
        raise ValueError(f"{options.queries[0]} has rows 0 to {len(inputs) - 1}, found {options.rows} in --rows.")
    wanted = inputs[rows]
    try:
        distances, ids = database.search(wanted, options.k, real_valued=options.real_valued)
    except UnreadableImage as error:
        broken = wanted[wanted.unreadable()].names
        raise ValueError(f"{', '.join(broken)} cannot be read as an image; use another file.") from error
    queries = wanted.names if isinstance(wanted, Images) else rows.tolist()
    found = [
        {"query": query, "results": _hits(database, row_ids, row_distances)}
        for query, row_ids, row_distances in zip(queries, ids, distances, strict=True)
    ]
    if options.json:
        print(json.dumps(found, ensure_ascii=False))
        return
    columns = ("id", "distance", "label", *(["path"] if database.files is not None else []))
    lines = [
        (str(query["query"]), str(rank), *(_cell(hit[column]) for column in columns))
        for query in found
        for rank, hit in enumerate(query["results"], start=1)
    ]
    names = int(isinstance(wanted, Images))
    print(Table(("query", "rank", *columns), tuple(lines), n_names=names, n_notes=len(columns) - 2).text())


def _hits(database, ids, distances) -> list[dict]:
    """Id, distance, label and path of each item found, without the padding id -1."""
    found = zip(ids.tolist(), distances.tolist(), database.labels_of(ids), database.paths_of(ids), strict=True)
    hits = [{"id": i, "distance": d, "label": label, "path": path} for i, d, label, path in found if i >= 0]
    if database.files is None:
        for hit in hits:
            del hit["path"]
    return hits


def _cell(value) -> str:
    return "" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value)
