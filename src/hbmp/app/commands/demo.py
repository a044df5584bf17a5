"""From raw texts to a search by sentences: compare methods on real data, build a database, write a report.

The texts are the docstrings of the installed scientific Python packages, so nothing is downloaded. Takes less than two
minutes on two idle cores. A second run replaces only the files of the first. Needs
pip install 'hbmp[learn,plots,text]', and 'hbmp[web]' for the command that opens the database in the browser.
"""

from __future__ import annotations

import argparse

EXAMPLE = "hbmp demo"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Output folder and code lengths."""
    parser.add_argument("-o", "--output", default="demo", metavar="DIR", help="the folder to write (default: demo)")
    parser.add_argument("--bits", type=int, nargs="+", default=[16, 32, 64], metavar="N", help="default: 16 32 64")
    parser.add_argument("--rows", type=int, metavar="N", help="maximum number of texts, for a quicker run")
    parser.add_argument("--device", default="auto", help="auto, cpu or cuda (default: auto)")
    parser.add_argument("--json", action="store_true", help="print scores and file names as JSON")


def run(options: argparse.Namespace) -> None:
    """Run the demo and print its results."""
    import json

    from hbmp.app import demo

    done = demo.run(options.output, bits=options.bits, rows=options.rows, device=options.device)
    print(json.dumps(done, ensure_ascii=False) if options.json else demo.text(done))
