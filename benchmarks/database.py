"""What a database costs: open, add 1,000, remove 1,000 and search, at one and ten million items of 64 random bits.

    python benchmarks/database.py --folder /tmp/database --items 1_000_000 10_000_000
    python benchmarks/database.py --folder /tmp/database --journals

The first command makes one file with integer ids alone, and one (of the first size) with text ids, a payload of three
columns and float16 vectors of 64 numbers. Seconds are of the wall clock, the median of three. `--journals` compares the
two journals of SQLite: what a reader waits while another process adds items.
"""

from __future__ import annotations

import argparse
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import hbmp
from hbmp._core.table import Table

N_BITS, DIMENSION, BRANDS = 64, 64, 40
CHANGED = 1000
_READER = """
import sqlite3, sys, time
connection = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=60)
waits, end = [], time.time() + 8
while time.time() < end:
    started = time.perf_counter()
    connection.execute("PRAGMA data_version").fetchone()
    connection.execute("SELECT * FROM items WHERE number IN (5, 77, 900)").fetchall()
    waits.append(time.perf_counter() - started)
    time.sleep(0.001)
waits.sort()
print(waits[len(waits) // 2] * 1000, waits[-1] * 1000)
"""


def median(work: Callable[[], object], times: int = 3) -> float:
    """Median seconds of a call."""
    taken = []
    for _ in range(times):
        started = time.perf_counter()
        work()
        taken.append(time.perf_counter() - started)
    return statistics.median(taken)


def features(n: int, seed: int) -> np.ndarray:
    """Random rows whose signs are random codes."""
    return np.random.default_rng(seed).standard_normal((n, DIMENSION), dtype=np.float32)


def payload(first: int, n: int) -> dict[str, list]:
    """A title, a brand and a price per row."""
    numbers = range(first, first + n)
    return {
        "title": [f"A thing with the number {number}, in a box" for number in numbers],
        "brand": [f"brand {number % BRANDS}" for number in numbers],
        "price": [number % 997 / 10 for number in numbers],
    }


def model() -> hbmp.Hasher:
    """A model whose codes of random rows are random."""
    return hbmp.get_method("lsh")(N_BITS, random_state=0).fit(features(200, 1))


def measured(path: Path, n: int, full: bool) -> tuple[str, ...]:
    """One row of the table."""
    rng = np.random.default_rng(0)
    made = model()
    started = time.perf_counter()
    if full:
        ids = [f"sku-{number:08d}" for number in range(n)]
        database = hbmp.Database.build(
            made, features(n, 2), ids=ids, payload=payload(0, n), vectors="float16", path=path, replace=True
        )
    else:
        codes = np.unpackbits(rng.integers(0, 256, (n, N_BITS // 8), np.uint8), axis=1).view(np.int8) * 2 - 1
        started = time.perf_counter()
        database = hbmp.Database.of_codes(made, codes, path=path, replace=True)
        del codes
    seconds = {"build": time.perf_counter() - started}
    database.close()
    size = path.stat().st_size / 1e6
    seconds["open"] = median(lambda: hbmp.Database.load(path).close())
    database = hbmp.Database.load(path)
    queries = features(100, 3)
    started = time.perf_counter()
    database.search(queries[:1], 10)
    seconds["first search"] = time.perf_counter() - started
    seconds["search"] = median(lambda: database.search(queries[:1], 10), 20)
    seconds["100 searches"] = median(lambda: database.search(queries, 10))
    new, count = features(CHANGED, 4), iter(range(10**9, 2 * 10**9, CHANGED))

    def add() -> None:
        first = next(count)
        ids = [f"new-{first + number}" for number in range(CHANGED)] if full else range(first, first + CHANGED)
        database.add(new, ids=ids, payload=payload(first, CHANGED) if full else None)

    def remove() -> None:
        numbers = rng.choice(n, CHANGED, replace=False).tolist()
        database.remove([f"sku-{number:08d}" for number in numbers] if full else numbers)

    seconds["add 1,000"] = median(add)
    seconds["remove 1,000"] = median(remove)
    seconds["search after"] = median(lambda: database.search(queries[:1], 10), 5)
    if full:
        where = {"brand": "brand 7"}
        started = time.perf_counter()
        database.search(queries[:1], 10, where=where)
        seconds["first where"] = time.perf_counter() - started
        seconds["where again"] = median(lambda: database.search(queries[:1], 10, where=where))
        seconds["rescore 100"] = median(lambda: database.search(queries[:1], 10, rescore=100), 10)
    database.close()
    path.unlink()
    kind = "text ids, payload, vectors" if full else "integer ids"
    return (
        f"{n:,}",
        kind,
        f"{size:,.0f} MB",
        ", ".join(f"{name} {_as_text(value)}" for name, value in seconds.items()),
    )


def _as_text(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 0.5 else f"{seconds * 1000:.1f} ms"


def journals(folder: Path) -> Table:
    """What a reader waits while 100,000 rows of 1,536 bytes are added, with each journal."""
    rng, rows = np.random.default_rng(0), []
    for mode in ("delete", "wal"):
        path = folder / f"journal-{mode}.db"
        path.unlink(missing_ok=True)
        connection = sqlite3.connect(path, isolation_level=None)
        connection.execute(f"PRAGMA journal_mode = {mode}")
        connection.execute("PRAGMA cache_size = -65536")
        connection.execute("CREATE TABLE items (number INTEGER PRIMARY KEY, value)")
        insert = "INSERT INTO items (value) VALUES (?)"
        connection.executemany(insert, ([f"item {number}"] for number in range(100_000)))
        reader = subprocess.Popen([sys.executable, "-c", _READER, path], stdout=subprocess.PIPE, text=True)
        time.sleep(1)

        def add(n: int, size: int, connection: sqlite3.Connection = connection, insert: str = insert) -> None:
            connection.execute("BEGIN IMMEDIATE")
            connection.executemany(insert, ([rng.bytes(size)] for _ in range(n)))
            connection.execute("COMMIT")

        few = median(lambda: add(CHANGED, 100), 9)
        many = median(lambda: add(100_000, 1536), 1)
        middle, worst = map(float, reader.communicate()[0].split())
        connection.close()
        path.unlink()
        rows.append((mode, f"{few * 1000:.1f}", f"{many:.2f}", f"{middle:.3f}", f"{worst:.1f}"))
    header = ("journal", "add 1,000, ms", "add 100,000, s", "reader waits, ms, median", "longest")
    return Table(header, tuple(rows))


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--folder", type=Path, required=True, help="where the files are made and removed")
    parser.add_argument("--items", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--journals", action="store_true")
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.journals:
        print(journals(options.folder).text())
        return
    for place, n in enumerate(options.items):
        for full in (False, True) if place == 0 else (False,):
            print("  ".join(measured(options.folder / "benchmark.db", n, full)), flush=True)


if __name__ == "__main__":
    main()
