"""Compare methods on your own data with one split: scores, times and sizes.

Every method is fitted on the same rows and searched with the same held-out queries. If a method fails, its row shows
the reason and the others continue. docs/compare.md explains each column.
"""

from __future__ import annotations

import argparse
from typing import Any

EXAMPLE = "hbmp compare digits --methods hbmp pca_sign --bits 16 32"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Data, methods, the split, and what to write."""
    data = parser.add_argument_group("data")
    data.add_argument("features", nargs="?", metavar="DATA", help=".npy, .npz, .parquet, .csv, a folder, or a data set")
    data.add_argument("--data", metavar="FILE", help="the same as DATA")
    data.add_argument(
        "--labels", metavar="FILE", help="one class per row, 0/1 rows, or lists: .npy, .npz, .csv, .txt, …"
    )
    data.add_argument("--query-data", metavar="FILE", help="your own queries, instead of rows of DATA")
    data.add_argument("--query-labels", metavar="FILE", help="labels of the queries")
    data.add_argument("--data-dir", metavar="DIR", help="data directory (default: $HBMP_DATA, else ./data)")
    what = parser.add_argument_group("comparison")
    what.add_argument("--methods", nargs="+", metavar="NAME", help="default: all; `hbmp list methods` shows them")
    what.add_argument("--bits", type=int, nargs="+", default=[16, 32, 64], metavar="N", help="default: 16 32 64")
    what.add_argument(
        "--validation", type=int, default=0, metavar="K", help="settings to try per method (default: only the defaults)"
    )
    what.add_argument(
        "--no-baselines", action="store_true", help="leave out search without hashing: floats, sign, PQ, …"
    )
    how = parser.add_argument_group("evaluation")
    how.add_argument("--queries", metavar="N", help="number or fraction of rows (default: a tenth, at most 1000)")
    how.add_argument("--train", metavar="N", help="number or fraction of rows to fit on (default: all but the queries)")
    how.add_argument("--unseen", action="store_true", help="search only rows outside the training set")
    how.add_argument("--cutoff", type=int, metavar="K", help="count only the first K ranks (default: all)")
    how.add_argument("--seed", type=int, default=0, metavar="N", help="seed of the split and the methods (default: 0)")
    how.add_argument("--jobs", type=int, default=1, metavar="N", help="number of processes (default: 1)")
    how.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    out = parser.add_argument_group("output")
    out.add_argument("--json", action="store_true", help="print JSON instead of the table")
    out.add_argument("--csv", metavar="FILE", help="write all scores and costs as CSV")
    out.add_argument("--plot", metavar="FILE", help="plot scores against bits: .png, .svg or .pdf")


def run(options: argparse.Namespace) -> None:
    """Compare, write the files, print the table."""
    from hbmp import compare
    from hbmp._core.files import check_place, write_into_place
    from hbmp.app.inputs import read_with_queries, rows_or_share

    if (options.features is None) == (options.data is None):
        given = "none" if options.data is None else f"{options.features} and --data {options.data}"
        raise ValueError(f"hbmp compare takes one set of features, found {given}. See `hbmp compare --help`.")
    options.data = options.data or options.features
    for path in (options.csv, options.plot):
        check_place(path)
    if options.plot:
        from hbmp.evaluation.plot import check_picture

        check_picture(options.plot)
    drawn: dict[str, Any] = {part: rows_or_share(getattr(options, part)) for part in ("queries", "train")}
    data, queries = read_with_queries(options)
    chosen = ("methods", "bits", "unseen", "cutoff", "validation", "seed", "jobs", "device")
    found = compare(
        data.features,
        data.labels,
        query_X=None if queries is None else queries.features,
        query_y=None if queries is None else queries.labels,
        name=data.name,
        baselines=not options.no_baselines,
        **drawn,
        **{option: getattr(options, option) for option in chosen},
    )
    if options.csv:
        write_into_place(options.csv, found.to_csv())
    if options.plot:
        found.plot(options.plot)
    print(found.to_json() if options.json else found.to_markdown())
