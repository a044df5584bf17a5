"""Write all results into one self-contained HTML file: tables, figures, settings."""

from __future__ import annotations

EXAMPLE = "hbmp report -o report.html --results results"


def add_arguments(parser) -> None:
    """Where results come from and where the report goes."""
    parser.add_argument("-o", "--output", default="report.html", metavar="FILE", help="default: report.html")
    parser.add_argument("--results", default="results", metavar="DIR", help="where results are kept (default: results)")


def run(options) -> None:
    """Write the report and print where it is."""
    from hbmp.experiments import report

    report.write(options.results, options.output)
    print(options.output)
