"""Mutation testing: change one place of a source file at a time, and see whether its tests notice.

    python scripts/mutants.py make --sample 300 -o mutants.jsonl      needs `pip install cosmic-ray==8.7.0`
    python scripts/mutants.py run mutants.jsonl --jobs 2 -o outcomes.jsonl
    python scripts/mutants.py report outcomes.jsonl                   score per folder and the mutants that survive

A mutant is caught when a test fails or the tests take ten times as long as on unchanged code. `make` samples each
folder in proportion to its number of mutants, the same sample for the same seed. `run` resumes: mutants with an
outcome are not run again. Tests that fail on unchanged code are reported and end the run.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue

ROOT = Path(__file__).resolve().parent.parent
TESTS = {
    "pursuit": [
        "unit/test_pursuit*.py",
        "unit/test_feature_pursuit.py",
        "unit/test_sweeps.py",
        "claims/test_pursuit_claims.py",
    ],
    "metrics": ["unit/test_metrics*.py", "claims/test_metrics_claims.py"],
    "index": ["unit/test_index*.py"],
    "methods/hbmp": [
        "unit/test_hbmp*.py",
        "unit/test_label_queries.py",
        "unit/test_objective*.py",
        "unit/test_plan*.py",
        "unit/test_detail*.py",
        "unit/test_dither.py",
        "unit/test_unlabelled*.py",
        "unit/test_recall_estimate.py",
        "claims/test_detail_claims.py",
        "claims/test_unlabelled_claims.py",
    ],
}
# Replacements that stay within the types at hand: an operator for sets and bits on floats would fail at once.
OPERATORS = (
    "ReplaceBinaryOperator_Add_Sub",
    "ReplaceBinaryOperator_Sub_Add",
    "ReplaceBinaryOperator_Mul_Div",
    "ReplaceBinaryOperator_Div_Mul",
    "ReplaceBinaryOperator_Pow_Mul",
    "ReplaceBinaryOperator_FloorDiv_Mul",
    "ReplaceComparisonOperator_Lt_LtE",
    "ReplaceComparisonOperator_LtE_Lt",
    "ReplaceComparisonOperator_Gt_GtE",
    "ReplaceComparisonOperator_GtE_Gt",
    "ReplaceComparisonOperator_Eq_NotEq",
    "ReplaceComparisonOperator_NotEq_Eq",
    "ReplaceUnaryOperator_Delete_USub",
    "ReplaceAndWithOr",
    "ReplaceOrWithAnd",
    "ReplaceTrueWithFalse",
    "ReplaceFalseWithTrue",
    "NumberReplacer",
    "AddNot",
)


def make(options) -> None:
    """Write a sample of mutants as JSON lines: folder, file, operator, line, old and new text of that line, source."""
    found = {folder: _places(folder) for folder in TESTS}
    total = sum(map(len, found.values()))
    rng = random.Random(options.seed)
    with options.output.open("w") as file:
        for folder, places in found.items():
            count = min(len(places), round(options.sample * len(places) / total))
            print(f"{folder}: {count} of {len(places)} mutants", file=sys.stderr)
            file.writelines(json.dumps(_mutant(folder, *place)) + "\n" for place in rng.sample(places, count))


def _places(folder: str) -> list[tuple[str, str, int]]:
    """(file, operator, occurrence) of every mutant of a folder."""
    from cosmic_ray.ast import ast_nodes, get_ast
    from cosmic_ray.plugins import get_operator

    return [
        (f"{folder}/{path.name}", name, occurrence)
        for path in sorted((ROOT / "src/hbmp" / folder).glob("*.py"))
        for nodes in [list(ast_nodes(get_ast(path.read_text())))]
        for name in OPERATORS
        for operator in [get_operator(f"core/{name}")()]
        for occurrence in range(sum(len(list(operator.mutation_positions(node))) for node in nodes))
    ]


def _mutant(folder: str, file: str, name: str, occurrence: int) -> dict:
    from cosmic_ray.mutating import mutate_code
    from cosmic_ray.plugins import get_operator

    source = (ROOT / "src/hbmp" / file).read_text()
    changed = str(mutate_code(source, get_operator(f"core/{name}")(), occurrence))
    place = {"folder": folder, "file": file, "operator": name, "occurrence": occurrence}
    return {**place, **_difference(source, changed), "source": changed}


def _difference(before: str, after: str) -> dict:
    pairs = zip(before.splitlines(), after.splitlines(), strict=False)
    number, old, new = next(((n, a, b) for n, (a, b) in enumerate(pairs, 1) if a != b), (0, "", ""))
    return {"line": number, "old": old.strip(), "new": new.strip()}


def run(options) -> None:
    """Run the tests of each mutant's folder in copies of the package, one per job."""
    mutants = [json.loads(line) for line in options.mutants.read_text().splitlines()]
    done = {_key(json.loads(line)) for line in _lines(options.output)}
    mutants = [mutant for mutant in mutants if _key(mutant) not in done]
    end = time.monotonic() + options.seconds
    with tempfile.TemporaryDirectory() as temporary, options.output.open("a") as file:
        copies: Queue[Path] = Queue()
        for number in range(options.jobs):
            copies.put(Path(shutil.copytree(ROOT / "src", Path(temporary) / str(number))))
        limits = {folder: _baseline(folder, copies) for folder in {mutant["folder"] for mutant in mutants}}
        with ThreadPoolExecutor(options.jobs) as pool:
            for outcome in pool.map(lambda mutant: _try(mutant, copies, limits, end), mutants):
                if outcome is not None:
                    file.write(json.dumps(outcome) + "\n")
                    file.flush()
    report(argparse.Namespace(outcomes=options.output))


def _baseline(folder: str, copies: Queue) -> float:
    """Seconds after which a mutant of this folder counts as caught."""
    copy = copies.get()
    start = time.monotonic()
    status, output = _pytest(folder, copy, 600)
    copies.put(copy)
    if status != 0:
        raise SystemExit(f"The tests of {folder} fail on unchanged code:\n{output[-3000:]}")
    return 10 * (time.monotonic() - start) + 10


def _try(mutant: dict, copies: Queue, limits: dict, end: float) -> dict | None:
    if time.monotonic() > end:
        return None
    copy = copies.get()
    path = copy / "hbmp" / mutant["file"]
    original = path.read_text()
    path.write_text(mutant["source"])
    try:
        status, _ = _pytest(mutant["folder"], copy, limits[mutant["folder"]])
    finally:
        path.write_text(original)
        copies.put(copy)
    outcome = {0: "survived", None: "timeout"}.get(status, "caught")
    return {**{name: mutant[name] for name in mutant if name != "source"}, "outcome": outcome}


def _pytest(folder: str, copy: Path, seconds: float) -> tuple[int | None, str]:
    """(exit status, output) of a folder's tests against a copy of the package; None for the status after too long."""
    tests = [str(path) for pattern in TESTS[folder] for path in sorted((ROOT / "tests").glob(pattern))]
    words = [sys.executable, "-B", "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider", "-p", "no:warnings", *tests]
    path = os.pathsep.join([str(copy), os.environ.get("PYTHONPATH", "")])
    threads = {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1", "HYPOTHESIS_STORAGE_DIRECTORY": str(copy / "hypothesis")}
    try:
        done = subprocess.run(
            words,
            cwd=ROOT,
            env={**os.environ, **threads, "PYTHONPATH": path},
            capture_output=True,
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return None, ""
    return done.returncode, done.stdout.decode(errors="replace")


def report(options) -> None:
    """Print the share caught per folder, then every survivor."""
    outcomes = [json.loads(line) for line in _lines(options.outcomes)]
    for folder in TESTS:
        counts = Counter(outcome["outcome"] for outcome in outcomes if outcome["folder"] == folder)
        total = sum(counts.values())
        if total:
            caught = total - counts["survived"]
            print(f"{folder}: {caught} of {total} mutants caught ({caught / total:.0%}), {counts['timeout']} by time")
    for outcome in outcomes:
        if outcome["outcome"] == "survived":
            print(f"survived {outcome['file']}:{outcome['line']} {outcome['old']}  →  {outcome['new']}")


def _key(mutant: dict) -> tuple:
    return mutant["file"], mutant["operator"], mutant["occurrence"]


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []


def main() -> None:
    """Read the command line and run its verb."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    verbs = parser.add_subparsers(required=True)
    making = verbs.add_parser("make", help="sample mutants")
    making.add_argument("--sample", type=int, default=300, help="how many mutants (default: 300)")
    making.add_argument("--seed", type=int, default=0)
    making.add_argument("-o", "--output", type=Path, required=True)
    making.set_defaults(command=make)
    running = verbs.add_parser("run", help="run the tests of every mutant")
    running.add_argument("mutants", type=Path)
    running.add_argument("--jobs", type=int, default=1, help="mutants at a time (default: 1)")
    running.add_argument("--seconds", type=float, default=float("inf"), help="start no mutant after so many seconds")
    running.add_argument("-o", "--output", type=Path, required=True)
    running.set_defaults(command=run)
    showing = verbs.add_parser("report", help="print scores and survivors")
    showing.add_argument("outcomes", type=Path)
    showing.set_defaults(command=report)
    options = parser.parse_args()
    options.command(options)


if __name__ == "__main__":
    main()
