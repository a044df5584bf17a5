"""Attack the package for a number of minutes and count the outcomes: the campaigns of tests/campaigns.

    python scripts/campaigns.py --minutes 30                          all campaigns, half an hour together
    python scripts/campaigns.py kills damage --attacks 200            two of them, 200 attacks each
    python scripts/campaigns.py kills --attacks 1 --first 513         one attack again, by its number
    python scripts/campaigns.py --table results/campaigns.json        the table of an earlier run

Prints a table, and every promise that did not hold with the number of its attack; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # processes are forked, and threads would compete with the attacks
ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "campaigns"), str(ROOT / "tests" / "e2e")]

import counting  # noqa: E402


def table(results: list[dict[str, Any]]) -> str:
    """The counts as Markdown."""
    head = [
        "| campaign | attacks | goal of a night | lost, wrong or unclear | memory grew | promise |",
        "|---|---|---|---|---|---|",
    ]
    rows = [
        f"| {one['title']} | {one['attacks']:,} | {one['goal']:,} | {len(one['broken'])} "
        f"| {one['memory_growth_mb']:.0f} MB | {one['promise']} |"
        if not one["absent"]
        else f"| {one['title']} | left out: {one['absent']} | {one['goal']:,} | – | – | {one['promise']} |"
        for one in results
    ]
    return "\n".join(head + rows)


def main() -> int:
    """Read the command line and run the campaigns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(counting.CAMPAIGNS)} (default: all)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for all campaigns together")
    parser.add_argument("--attacks", type=int, default=sys.maxsize, help="at most, for each campaign")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first attack (default: 0)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the results as JSON")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print the table of such a file and run nothing")
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(options.table.read_text(encoding="utf-8"))["campaigns"]))
        return 0
    names = options.names or list(counting.CAMPAIGNS)
    unknown = sorted(set(names) - set(counting.CAMPAIGNS))
    if unknown or (options.minutes == float("inf") and options.attacks == sys.maxsize):
        parser.error(f"no campaign {unknown[0]}" if unknown else "give --minutes, --attacks or both")
    results = [_run(name, options, 60 * options.minutes / len(names)) for name in names]
    print(table(results))
    if options.output:
        about = {"command": " ".join(["python", "scripts/campaigns.py", *sys.argv[1:]]), "date": _today()}
        options.output.write_text(json.dumps({**about, "campaigns": results}, indent=1) + "\n", encoding="utf-8")
    return int(any(one["broken"] for one in results))


def _run(name: str, options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    print(f"{name} …", file=sys.stderr, flush=True)
    tally = counting.run(name, seed=options.seed, most=options.attacks, seconds=seconds, first=options.first)
    for one in tally.broken:
        print(f"{name} --seed {options.seed} --first {one['number']}: {one['why']}\n", file=sys.stderr)
    return tally.as_json()


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


if __name__ == "__main__":
    sys.exit(main())
