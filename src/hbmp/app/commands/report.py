"""Write all results into one self-contained HTML file, or into the marked tables of Markdown files."""

from __future__ import annotations

import argparse

EXAMPLE = "hbmp report -o report.html --results results"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Where the results are and where the report goes."""
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="default: report.html")
    parser.add_argument("--results", default="results", metavar="DIR", help="folder of results (default: results)")
    parser.add_argument(
        "--fill", nargs="+", metavar="FILE", help="fill the tables between <!-- results:NAME --> marks of these files"
    )


def run(options: argparse.Namespace) -> None:
    """Write the report and print its path, or fill the files."""
    from hbmp.experiments import report

    if options.fill:
        changed = report.fill_files(options.fill, options.results)
        print(f"Filled {', '.join(map(str, changed))}." if changed else "Every table is up to date.")
        return
    report.write(options.results, options.output)
    print(options.output)
