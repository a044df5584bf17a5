"""Score a saved model on features, texts or images with labels: mAP, and NDCG if relevance is graded.

Queries are drawn from the data, or passed with --query-data; all other rows form the database. Pass data that the model
was not fitted on: the command cannot check this.
"""

from __future__ import annotations

import argparse

from hbmp.app.commands.fit import COLUMN, DATA

EXAMPLE = "hbmp evaluate digits-16 digits --queries 300"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """A model, data, and the evaluation settings."""
    parser.add_argument("model", metavar="MODEL", help="a model directory, from `hbmp fit`")
    parser.add_argument("data", metavar="DATA", help=DATA)
    parser.add_argument("--column", metavar="NAME", help=COLUMN)
    parser.add_argument(
        "--labels",
        metavar="FILE",
        help="one class per row, 0/1 rows, or lists: .npy, .npz, .csv, .txt, …; file,label; a column beside texts",
    )
    parser.add_argument("--query-data", metavar="FILE", help="your own queries; the database is then all of DATA")
    parser.add_argument("--query-labels", metavar="FILE", help="labels of the queries")
    parser.add_argument(
        "--queries", metavar="N", help="number or fraction of rows to draw (default: a tenth, at most 1000)"
    )
    parser.add_argument(
        "--on-error", choices=("refuse", "skip"), default="refuse", help="for images that cannot be read"
    )
    parser.add_argument("--cutoff", type=int, metavar="K", help="count only the first K ranks (default: all)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the draw (default: 0)")
    parser.add_argument("--data-dir", metavar="DIR", help="data directory (default: $HBMP_DATA, else ./data)")
    parser.add_argument("--json", action="store_true", help="print {scores, caption}")


def run(options: argparse.Namespace) -> None:
    """Encode, rank, print."""
    import json

    from hbmp import evaluate, load
    from hbmp.app.inputs import read_with_queries, rows_or_share, vectors_for
    from hbmp.app.inputs.images import without_unreadable

    model = load(options.model)
    data, queries = read_with_queries(options, images=True)
    data = without_unreadable(data, options.on_error)
    queries = None if queries is None else without_unreadable(queries, options.on_error)
    found = evaluate(
        model,
        vectors_for(model, data, options.data),
        data.labels,
        query_X=None if queries is None else vectors_for(model, queries, options.query_data),
        query_y=None if queries is None else queries.labels,
        queries=rows_or_share(options.queries),
        cutoff=options.cutoff,
        seed=options.seed,
        name=data.name,
    )
    print(json.dumps(found.to_json(), ensure_ascii=False) if options.json else found.to_markdown())
