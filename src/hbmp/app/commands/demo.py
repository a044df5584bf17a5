"""Compare HBMP with six methods on real data: a table, figures, and a database to search.

Uses the digits of scikit-learn, and CIFAR-10 where the data directory has its features or images. Takes under two
minutes on two cores. A second run replaces only the files of the first. Needs pip install 'hbmp[plots]', and
'hbmp[web]' for the command that opens the database in the browser.
"""

from __future__ import annotations

EXAMPLE = "hbmp demo"


def add_arguments(parser) -> None:
    """Output folder, data directory and code lengths."""
    parser.add_argument("-o", "--output", default="demo", metavar="DIR", help="the folder to write (default: demo)")
    parser.add_argument(
        "--data-dir", metavar="DIR", help="data directory, for CIFAR-10 (default: $HBMP_DATA, else ./data)"
    )
    parser.add_argument("--bits", type=int, nargs="+", default=[12, 24, 48], metavar="N", help="default: 12 24 48")
    parser.add_argument("--rows", type=int, metavar="N", help="largest number of rows per data set, for a quicker run")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    parser.add_argument("--json", action="store_true", help="print scores and file names as JSON")


def run(options) -> None:
    """Run the demo and print its results."""
    import json

    from hbmp.app import demo

    chosen = {name: getattr(options, name) for name in ("data_dir", "bits", "rows", "device")}
    done = demo.run(options.output, **chosen)
    print(json.dumps(done, ensure_ascii=False) if options.json else demo.text(done))
