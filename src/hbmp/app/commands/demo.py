"""HBMP against six methods on real data: a table, pictures, and a database to search.

Uses the digits that come with scikit-learn and, where the data directory has features or images of it, CIFAR-10. Takes
under two minutes on two cores. A second run replaces the files of the first and no others. Needs
pip install 'hbmp[plots]', and 'hbmp[web]' for the line it prints to open the database in the browser.
"""

from __future__ import annotations

EXAMPLE = "hbmp demo"


def add_arguments(parser) -> None:
    """Where files go, where data lie, and how long codes are."""
    parser.add_argument("-o", "--output", default="demo", metavar="DIR", help="the folder to write (default: demo)")
    parser.add_argument("--data-dir", metavar="DIR", help="where CIFAR-10 may lie (default: $HBMP_DATA, else ./data)")
    parser.add_argument("--bits", type=int, nargs="+", default=[12, 24, 48], metavar="N", help="default: 12 24 48")
    parser.add_argument("--rows", type=int, metavar="N", help="at most so many of each data set, for a quicker look")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    parser.add_argument("--json", action="store_true", help="print the numbers and where the files are as JSON")


def run(options) -> None:
    """Run it and say what was found and where it is."""
    import json

    from hbmp.app import demo

    chosen = {name: getattr(options, name) for name in ("data_dir", "bits", "rows", "device")}
    done = demo.run(options.output, **chosen)
    print(json.dumps(done, ensure_ascii=False) if options.json else demo.text(done))
