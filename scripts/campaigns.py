"""Attack the package for a number of minutes and count the outcomes: the campaigns of tests/campaigns.

    python scripts/campaigns.py --minutes 30                          all campaigns, half an hour together
    python scripts/campaigns.py kills damage --attacks 200            two of them, 200 attacks each
    python scripts/campaigns.py kills --attacks 1 --first 513         one attack again, by its number
    python scripts/campaigns.py kills --minutes 9 --seed 2 --add -o results/campaigns.json     added to earlier counts
    python scripts/campaigns.py --table results/campaigns.json        the table of earlier runs
    python scripts/campaigns.py --page docs/reliability.md            put the table and the outcomes into a page

Prints a table, and every promise that did not hold with the number of its attack; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import datetime
import importlib
import json
import os
import sys
from collections import Counter
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")  # processes are forked, and threads would compete with the attacks
ROOT = Path(__file__).resolve().parent.parent
RESULTS = ROOT / "results" / "campaigns.json"
_BEGIN, _END = "<!-- campaigns: begin -->", "<!-- campaigns: end -->"
sys.path[:0] = [str(ROOT / "tests" / "campaigns"), str(ROOT / "tests" / "e2e")]

import counting  # noqa: E402


def table(results: list[dict[str, Any]]) -> str:
    """The counts as Markdown."""
    head = [
        "| campaign | attacks | goal of a night | lost, wrong or unclear | memory grew | promise |",
        "|:---|---:|---:|---:|---:|:---|",
    ]
    rows = [
        f"| {one['title']} | {one['attacks']:,} | {one['goal']:,} | {len(one['broken'])} "
        f"| {one['memory_growth_mb']:.0f} MB | {one['promise']} |"
        if not one["absent"]
        else f"| {one['title']} | left out: {one['absent']} | {one['goal']:,} | – | – | {one['promise']} |"
        for one in results
    ]
    return "\n".join(head + rows)


def filled(page: str, content: dict[str, Any]) -> str:
    """A page with the table, its date and its outcomes between the marks."""
    outcomes = [
        f"- **{one['title']}.** {'; '.join(f'{outcome}: {n:,}' for outcome, n in _by_outcome(one).items())}."
        for one in content["campaigns"]
        if not one["absent"]
    ]
    commands = "\n".join(content["commands"])
    runs = f"The commands, last run on {content['date']}:\n\n```text\n{commands}\n```"
    before, _, rest = page.partition(_BEGIN)
    _, _, after = rest.partition(_END)
    parts = [_BEGIN, table(content["campaigns"]), "\n".join(outcomes), runs, _END]
    return before + "\n\n".join(parts) + after


def _by_outcome(one: dict[str, Any]) -> dict[str, int]:
    """Counts of outcomes over all cases of a campaign, most frequent first."""
    counts: Counter[str] = Counter()
    for outcomes in one["outcomes"].values():
        counts.update(outcomes)
    return dict(counts.most_common())


def main() -> int:
    """Read the command line and run the campaigns."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(counting.CAMPAIGNS)} (default: all)")
    parser.add_argument("--minutes", type=float, default=float("inf"), help="for all campaigns together")
    parser.add_argument("--attacks", type=int, default=sys.maxsize, help="at most, for each campaign")
    parser.add_argument("--slice", action="store_true", help="the attacks that run with the tests")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, metavar="N", help="number of the first attack (default: 0)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="write the results as JSON")
    parser.add_argument("--table", type=Path, metavar="FILE", help="print the table of such a file and run nothing")
    parser.add_argument("--add", action="store_true", help="add to the counts that FILE of -o has; use another --seed")
    parser.add_argument("--page", type=Path, metavar="FILE", help=f"put the table of {RESULTS.name} into this page")
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(options.table.read_text(encoding="utf-8"))["campaigns"]))
        return 0
    if options.page:
        content = json.loads(RESULTS.read_text(encoding="utf-8"))
        options.page.write_text(filled(options.page.read_text(encoding="utf-8"), content), encoding="utf-8")
        return 0
    names = options.names or list(counting.CAMPAIGNS)
    unknown = sorted(set(names) - set(counting.CAMPAIGNS))
    if unknown or (options.minutes == float("inf") and options.attacks == sys.maxsize and not options.slice):
        parser.error(f"no campaign {unknown[0]}" if unknown else "give --minutes, --attacks or --slice")
    results = []
    for name in names:
        results.append(_run(name, options, 60 * options.minutes / len(names)))
        if options.output:
            _write(options.output, results[-1:], fresh=not options.add and len(results) == 1)
    print(table(results))
    return int(any(one["broken"] for one in results))


def _write(path: Path, results: list[dict[str, Any]], *, fresh: bool) -> None:
    """Put results into a file, added to those of the same campaigns that it has."""
    known = {} if fresh or not path.exists() else json.loads(path.read_text(encoding="utf-8"))
    command = " ".join(["python", "scripts/campaigns.py", *sys.argv[1:]])
    commands = list(dict.fromkeys([*known.get("commands", ()), command]))
    campaigns = {one["campaign"]: one for one in known.get("campaigns", ())}
    for one in results:
        name = one["campaign"]
        campaigns[name] = counting.added(campaigns[name], one) if name in campaigns else one
    ordered = [campaigns[name] for name in counting.CAMPAIGNS if name in campaigns]
    content = {"commands": commands, "date": _today(), "campaigns": ordered}
    path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


def _run(name: str, options: argparse.Namespace, seconds: float) -> dict[str, Any]:
    print(f"{name} …", file=sys.stderr, flush=True)
    most = min(options.attacks, importlib.import_module(name).SLICE if options.slice else sys.maxsize)
    tally = counting.run(name, seed=options.seed, most=most, seconds=seconds, first=options.first)
    for one in tally.broken:
        print(f"{name} --seed {options.seed} --first {one['number']}: {one['why']}\n", file=sys.stderr)
    return tally.as_json()


def _today() -> str:
    return datetime.datetime.now(datetime.UTC).date().isoformat()


if __name__ == "__main__":
    sys.exit(main())
