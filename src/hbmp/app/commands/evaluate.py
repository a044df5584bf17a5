"""Score a saved model on features or images and their labels: mAP, and NDCG where relevance has grades.

Queries are drawn from the data, or brought along; everything else is searched. Whether the model has seen those rows in
fitting only you can know: pass rows that it has not.
"""

from __future__ import annotations

from hbmp.app.commands.fit import DATA

EXAMPLE = "hbmp evaluate digits-16 digits --queries 300"


def add_arguments(parser) -> None:
    """A model, data, and the conventions."""
    parser.add_argument("model", metavar="MODEL", help="a model directory, from `hbmp fit`")
    parser.add_argument("data", metavar="DATA", help=DATA)
    parser.add_argument(
        "--labels", metavar="FILE", help="one class a row, 0/1 rows, or lists: .npy, .npz, .csv, .txt, …; file,label"
    )
    parser.add_argument("--query-data", metavar="FILE", help="queries of your own; then all of DATA is searched")
    parser.add_argument("--query-labels", metavar="FILE", help="their labels")
    parser.add_argument("--queries", metavar="N", help="how many to draw, or a share (default: a tenth, at most 1000)")
    parser.add_argument("--cutoff", type=int, metavar="K", help="only the first K ranks count (default: all)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="of the draw (default: 0)")
    parser.add_argument("--data-dir", metavar="DIR", help="where data sets lie (default: $HBMP_DATA, else ./data)")
    parser.add_argument("--json", action="store_true", help="print {scores, caption}")


def run(options) -> None:
    """Encode, rank, print."""
    import json

    from hbmp import evaluate, load
    from hbmp.app.inputs import inputs_for, read_with_queries, rows_or_share

    model = load(options.model)
    data, queries = read_with_queries(options, images=True)
    found = evaluate(
        model,
        inputs_for(model, data, options.data),
        data.labels,
        query_X=None if queries is None else inputs_for(model, queries, options.query_data),
        query_y=None if queries is None else queries.labels,
        queries=rows_or_share(options.queries),
        cutoff=options.cutoff,
        seed=options.seed,
        name=data.name,
    )
    print(json.dumps(found.to_json(), ensure_ascii=False) if options.json else found.to_markdown())
