"""Size of an installation with and without extras, and CPU time of imports.

    python benchmarks/install.py                                 tables for docs/releasing.md
    PYTHONPATH=OLD/src python benchmarks/install.py --imports    import times of another checkout

Sizes are those of the files of all packages that `hbmp` and an extra need, as installed in this environment, with
compiled bytecode. CPU time (user and system) is the median of several fresh processes, after one to fill the caches.
"""

from __future__ import annotations

import argparse
import importlib.metadata
import os
import re
import statistics
import subprocess
import sys

EXTRAS = ("", "learn", "text", "web", "images")
PROGRAMS = {
    "no import": "pass",
    "`import hbmp`": "import hbmp",
    "`hbmp.Index`": "import hbmp; hbmp.Index",
    "`hbmp.Database`": "import hbmp; hbmp.Database",
    "`hbmp.HBMP`": "import hbmp; hbmp.HBMP",
    "`hbmp --help`": "from hbmp.app import cli; cli.main(['--help'])",
}


def needed(package: str, extra: str = "") -> set[str]:
    """Normalised names of the installed packages that a package needs, itself included."""
    found: set[str] = set()
    waiting = [(package, extra)]
    while waiting:
        name, extra = waiting.pop()
        try:
            requirements = importlib.metadata.requires(name) or []
        except importlib.metadata.PackageNotFoundError:
            continue
        found.add(normalised(name))
        for line in requirements:
            words, _, marker = line.partition(";")
            if not applies(marker, extra):
                continue
            other, extras = re.match(r"\s*([\w.-]+)(?:\[([\w,-]+)\])?", words).groups()
            for wanted in (extras or "").split(","):
                if normalised(other) not in found or wanted:
                    waiting.append((other, wanted))
    return found


def applies(marker: str, extra: str) -> bool:
    """Whether a requirement applies here, with an extra."""
    from packaging.markers import Marker

    return not marker.strip() or Marker(marker).evaluate({"extra": extra})


def normalised(name: str) -> str:
    """A package's name with the one spelling of the index."""
    return re.sub(r"[-_.]+", "-", name).lower()


def megabytes(package: str) -> float:
    """Size of the files of an installed package."""
    files = importlib.metadata.files(package) or []
    return sum(path.stat().st_size for path in (file.locate() for file in files) if path.is_file()) / 1e6


def cpu_seconds(program: str, runs: int) -> float:
    """Median CPU time of fresh processes that run a program."""
    times = []
    for _ in range(runs + 1):
        before = os.times()
        subprocess.run([sys.executable, "-c", program], check=True, stdout=subprocess.DEVNULL)
        after = os.times()
        times.append(after.children_user + after.children_system - before.children_user - before.children_system)
    return statistics.median(times[1:])


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--imports", action="store_true", help="only the import times")
    parser.add_argument("--runs", type=int, default=7, help="processes per import (default: 7)")
    options = parser.parse_args()
    if not options.imports:
        core = needed("hbmp")
        print("| install | packages | MB |\n|:---|---:|---:|")
        for extra in EXTRAS:
            names = needed("hbmp", extra)
            print(f"| `hbmp{f'[{extra}]' if extra else ''}` | {len(names)} | {sum(map(megabytes, names)):,.0f} |")
        numba = core - (core - needed("numba")) - {"numpy"}
        print(f"\nnumba and its own packages: {sum(map(megabytes, numba)):,.0f} MB of `hbmp`.\n")
    print("| Python runs | CPU time, ms |\n|:---|---:|")
    for name, program in PROGRAMS.items():
        print(f"| {name} | {1000 * cpu_seconds(program, options.runs):,.0f} |")


if __name__ == "__main__":
    main()
