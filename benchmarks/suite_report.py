"""What the development suite says of its lines: commands that print tables and write the page of the documentation."""

from __future__ import annotations

import json
from pathlib import Path

from parallel_cells import read_lines
from suite_page import page, readme_part
from suite_tables import method_table, rank_table, regret_tables

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "results" / "suite.jsonl"
VARIANTS = ROOT / "results" / "suite-variants.jsonl"
MORE = ROOT / "results" / "suite-peers.jsonl"
SETS = ROOT / "results" / "suite-sets.json"
PAGE = ROOT / "docs" / "suite.md"
README, MARKS = ROOT / "README.md", ("<!-- suite -->", "<!-- /suite -->")


def filled(text: str, shown: str) -> str:
    """The README with this paragraph between its marks."""
    begin, end = MARKS
    return f"{text.split(begin, maxsplit=1)[0]}{begin}\n\n{shown}\n\n{end}{text.split(end)[1]}"


def add_commands(commands) -> None:
    """The subcommands that read lines."""

    def lines_of(options) -> list[dict]:
        kept = [line for path in options.files for line in read_lines(path)]
        kept = [line for line in kept if not options.sets or line["set"] in options.sets]
        return [line for line in kept if not options.only or line["name"] in options.only]

    def report(options) -> None:
        lines = lines_of(options)
        for n_bits in options.bits or sorted({line["bits"] for line in lines}):
            for measure in options.measure:
                print(f"{n_bits} bits, {measure}\n\n{rank_table(lines, measure, n_bits)}")
                print(method_table(lines, measure, n_bits))
        for line in lines:
            if "failed" in line:
                print(f"failed: {line['key']}: {line['failed']}")

    def show_regret(options) -> None:
        for measure in options.measure:
            print(f"{measure}\n\n{regret_tables(lines_of(options), measure, options.base, options.bits)}")

    def write_page(options) -> None:
        facts = json.loads(SETS.read_text())
        options.output.write_text(page(lines_of(options), read_lines(VARIANTS), facts, read_lines(MORE)))
        if options.output == PAGE:
            README.write_text(filled(README.read_text(), readme_part(lines_of(options))))

    for name, command, help_text, measures in (
        ("report", report, "rank and margin of hbmp on every set", ["own", "real"]),
        ("regret", show_regret, "leave-one-set-out regret over variants", ["score"]),
        ("page", write_page, "write the page of the documentation and the paragraph of the README", ["own"]),
    ):
        one = commands.add_parser(name, help=help_text)
        one.add_argument("files", nargs="*", type=Path, default=[RESULTS])
        one.add_argument("--measure", nargs="+", default=measures, help="own, real, score, new_own, new_real")
        one.add_argument("--bits", nargs="+", type=int)
        one.add_argument("--sets", nargs="+")
        one.add_argument("--only", nargs="+", help="names of methods or variants")
        one.add_argument("--base", help="the variant that gains are counted from; the first one without")
        one.add_argument("--output", type=Path, default=PAGE)
        one.set_defaults(command=command)
