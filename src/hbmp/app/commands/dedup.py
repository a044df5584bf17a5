"""Find groups of near-duplicates among texts, pictures or features.

Two items are near-duplicates if they are more similar than unrelated items ever are. The threshold is estimated from
the data for a rate of false positives. A report shows each group side by side: .html for people, .json and .csv for
programs. With --against, new items are also compared with an existing collection without duplicates.
"""

from __future__ import annotations

import argparse

from hbmp.app.commands.features import ENCODER

EXAMPLE = "hbmp dedup pictures/ -o groups.html groups.csv"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Items, how strict to be, and the reports."""
    parser.add_argument(
        "data", metavar="DATA", help="pictures: a folder or .parquet; texts: .csv, .parquet, .jsonl, .txt; or features"
    )
    parser.add_argument(
        "-o", "--output", nargs="+", default=[], metavar="FILE", help="reports to write: .html, .json, .csv"
    )
    parser.add_argument("--unique", metavar="FILE", help="write the remaining items, one name or row number per line")
    parser.add_argument(
        "--against", metavar="OLD", help="an existing collection of the same kind; only items of DATA are removed"
    )
    parser.add_argument(
        "--false-positives",
        type=float,
        metavar="RATE",
        help="accepted false positive rate over unrelated pairs (default: 0.01 / number of items)",
    )
    parser.add_argument("--threshold", type=float, metavar="S", help="minimum similarity, instead of an estimated one")
    parser.add_argument(
        "--keep",
        choices=("first", "largest"),
        default="first",
        help="which item of a group to keep; largest: most pixels or characters (default: first)",
    )
    parser.add_argument("--column", metavar="NAME", help="the text column (default: text, or body)")
    parser.add_argument("--encoder", metavar="NAME", help=ENCODER)
    parser.add_argument("--backbone", metavar="NAME", help="network for pictures (default: efficientnet_lite0)")
    parser.add_argument(
        "--on-error", choices=("refuse", "skip"), default="refuse", help="for pictures that cannot be read"
    )
    parser.add_argument("--bits", type=int, metavar="N", help="length of the codes (default: depends on the threshold)")
    parser.add_argument("--shown", type=int, default=200, metavar="N", help="groups in an .html report (default: 200)")
    parser.add_argument("--seed", type=int, default=0, metavar="N", help="seed of samples and codes (default: 0)")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda, for backbones (default: auto)")
    parser.add_argument("--json", action="store_true", help="print the .json report")


def run(options: argparse.Namespace) -> None:
    """Read, encode, compare, report."""
    from hbmp import deduplicate
    from hbmp._core.files import check_place, write_into_place
    from hbmp.app.duplicates import reports
    from hbmp.app.duplicates.collections import read_collections

    for path in options.output:
        reports.check_ending(path)
    for path in (*options.output, options.unique):
        check_place(path)
    items = read_collections(options)
    found = deduplicate(
        items.vectors[-1],
        against=items.vectors[0] if options.against else None,
        false_positives=options.false_positives,
        threshold=options.threshold,
        keep=options.keep,
        sizes=items.sizes() if options.keep == "largest" else None,
        n_bits=options.bits,
        random_state=options.seed,
        progress=True,
    )
    for path in options.output:
        write_into_place(path, reports.render(path, found, items, shown=options.shown))
    if options.unique is not None:
        write_into_place(options.unique, "".join(f"{items.name(row)}\n" for row in found.unique.tolist()))
    if options.json:
        print(reports.as_json(found, items))
        return
    print(reports.as_text(found, items, options.data))
