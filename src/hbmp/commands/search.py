"""Find the nearest items of a database to each query.

Queries are features, as the database's items were; the model in it encodes them.
"""

from __future__ import annotations

EXAMPLE = "hbmp search digits-db digits --rows 0 1 2 -k 5"


def add_arguments(parser) -> None:
    """A database, queries, and how many results."""
    parser.add_argument("database", metavar="DB", help="a database directory, from `hbmp index`")
    parser.add_argument(
        "queries", metavar="QUERIES", help="features: .npy, .npz, .parquet, .csv, a folder, or a data set"
    )
    parser.add_argument("-k", type=int, default=10, metavar="N", help="results a query (default: 10)")
    parser.add_argument("--rows", type=int, nargs="+", metavar="N", help="only these rows of QUERIES (default: all)")
    parser.add_argument("--real-valued", action="store_true", help="ask with scores before the sign: finer distances")
    parser.add_argument("--data-dir", metavar="DIR", help="where data sets lie (default: $HBMP_DATA, else ./data)")
    parser.add_argument("--json", action="store_true", help="print a list of {query, results: [{id, distance, label}]}")


def run(options) -> None:
    """Search and print a line a result."""
    import json

    import numpy as np

    from hbmp import Database
    from hbmp._inputs import read_features
    from hbmp._table import Table

    database = Database.load(options.database)
    features = read_features(options.queries, data_dir=options.data_dir)
    rows = np.arange(len(features)) if options.rows is None else np.array(options.rows)
    if len(rows) and (rows.min() < 0 or rows.max() >= len(features)):
        raise ValueError(f"{options.queries} has rows 0 to {len(features) - 1}, found {options.rows} in --rows.")
    distances, ids = database.search(np.asarray(features[rows]), options.k, real_valued=options.real_valued)
    found = []
    for row, row_distances, row_ids in zip(rows.tolist(), distances.tolist(), ids.tolist(), strict=True):
        labels = database.labels_of(row_ids)
        hits = [
            {"id": number, "distance": distance, "label": label}
            for number, distance, label in zip(row_ids, row_distances, labels, strict=True)
            if number >= 0  # a database smaller than k pads with -1
        ]
        found.append({"query": row, "results": hits})
    if options.json:
        print(json.dumps(found, ensure_ascii=False))
        return
    lines = [
        (str(query["query"]), str(rank), str(hit["id"]), f"{hit['distance']:.6g}", hit["label"] or "")
        for query in found
        for rank, hit in enumerate(query["results"], start=1)
    ]
    print(Table(("query", "rank", "id", "distance", "label"), tuple(lines), n_names=0, n_notes=1).text())
