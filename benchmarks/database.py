"""What a database costs: open, add 1,000, remove 1,000 and search, at one and ten million items of 64 random bits.

    python benchmarks/database.py --folder /tmp/db --items 1_000_000 10_000_000 --peers --out RESULTS
    python benchmarks/database.py --table
    python benchmarks/database.py --folder /tmp/db --journals

The first command makes one file with integer ids alone, one with text ids, a payload of three columns and float16
vectors of 64 numbers, and the same codes in sqlite-vec and LanceDB, through `hbmp.stores`; of ten million items the
first file only. Seconds are processor time of the process, all threads together, because other programs run on the same
machine; waiting for the disk does not count. Each is the median of three. `--journals` compares the two journals of
SQLite: what a reader waits while another process adds items.
"""

from __future__ import annotations

import argparse
import json
import shlex
import shutil
import sqlite3
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import hbmp
from hbmp._core.machine import describe
from hbmp._core.table import Table

RESULTS = Path(__file__).parents[1] / "results" / "benchmark-database.json"
N_BITS, DIMENSION, BRANDS = 64, 64, 40
CHANGED = 1000
PEERS = {"SQLiteVec": "sqlite-vec, by hbmp.stores", "LanceDB": "LanceDB, by hbmp.stores"}
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
    """Median processor seconds of a call."""
    return statistics.median(once(work) for _ in range(times))


def once(work: Callable[[], object]) -> float:
    """Processor seconds of a call."""
    started = time.process_time()
    work()
    return time.process_time() - started


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


def random_codes(n: int, seed: int = 0) -> np.ndarray:
    """Random signs (n, 64)."""
    packed = np.random.default_rng(seed).integers(0, 256, (n, N_BITS // 8), np.uint8)
    return np.unpackbits(packed, axis=1).view(np.int8) * 2 - 1


def measured(path: Path, n: int, full: bool) -> dict[str, Any]:
    """Seconds of one kind of database."""
    rng, made = np.random.default_rng(0), model()
    if full:
        X, ids, carried = features(n, 2), [f"sku-{number:08d}" for number in range(n)], payload(0, n)
        settings = {"ids": ids, "payload": carried, "vectors": "float16", "path": path, "replace": True}
        seconds = {"build": once(lambda: hbmp.Database.build(made, X, **settings).close())}
        del X, ids, carried, settings
    else:
        codes = random_codes(n)
        seconds = {"build": once(lambda: hbmp.Database.of_codes(made, codes, path=path, replace=True).close())}
        del codes
    size = path.stat().st_size / 1e6
    seconds["open"] = median(lambda: hbmp.Database.load(path).close())
    database = hbmp.Database.load(path)
    queries = features(100, 3)
    seconds["first search"] = once(lambda: database.search(queries[:1], 10))
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
        seconds["first where"] = once(lambda: database.search(queries[:1], 10, where=where))
        seconds["where again"] = median(lambda: database.search(queries[:1], 10, where=where))
        seconds["rescore 100"] = median(lambda: database.search(queries[:1], 10, rescore=100), 10)
    database.close()
    path.unlink()
    kind = "text ids, payload, vectors" if full else "integer ids"
    return _row(n, f"hbmp.Database, {kind}", size, seconds)


def peer(name: str, path: Path, n: int) -> dict[str, Any]:
    """The same for a store of codes with integer ids."""
    rng, codes = np.random.default_rng(0), random_codes(n)
    queries, new = codes[:100], random_codes(CHANGED, 4)
    count = iter(range(10**9, 2 * 10**9, CHANGED))

    def opened() -> hbmp.stores.Store:
        return getattr(hbmp.stores, name)(N_BITS, path)

    def build() -> None:
        with opened() as store:
            store.add(codes, np.arange(n), batch_size=100_000)

    seconds = {"build": once(build)}
    seconds["open"] = median(lambda: opened().close())
    with opened() as store:
        seconds["first search"] = once(lambda: store.search(queries[:1], 10))
        seconds["search"] = median(lambda: store.search(queries[:1], 10), 5)
        seconds["100 searches"] = once(lambda: store.search(queries, 10))

        def add() -> None:
            first = next(count)
            store.add(new, np.arange(first, first + CHANGED))

        seconds["add 1,000"] = median(add)
        seconds["remove 1,000"] = median(lambda: store.remove(rng.choice(n, CHANGED, replace=False)))
        seconds["search after"] = median(lambda: store.search(queries[:1], 10), 5)
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    size = sum(file.stat().st_size for file in files) / 1e6
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    return _row(n, PEERS[name], size, seconds)


def _row(n: int, what: str, size: float, seconds: dict[str, float]) -> dict[str, Any]:
    kept = {name: round(value, 6) for name, value in seconds.items()}
    return {"items": n, "database": what, "megabytes": round(size, 1), "cpu_seconds": kept}


def table(found: dict[str, Any]) -> str:
    """The results in Markdown."""
    machine = found["settings"]["machine"]
    where = f"{machine['cores']} shared cores ({machine['cpu']})"
    intro = f"`{found['command']}` on {where}. Codes have {N_BITS} bits. Times are processor time."
    names = ("build", "open", "first search", "search", "100 searches", "add 1,000", "remove 1,000")
    lines = [
        (
            row["database"],
            f"{row['items']:,}",
            f"{row['megabytes']:,.0f}",
            *(_text(row["cpu_seconds"][name]) for name in names),
        )
        for row in found["rows"]
    ]
    shown = Table(("database", "items", "MB", *names), tuple(lines)).markdown()
    full = next(row["cpu_seconds"] for row in found["rows"] if "payload" in row["database"])
    again, rescored = _text(full["where again"]), _text(full["rescore 100"])
    more = (
        "With text ids, payload and vectors, a search with a condition that 2.5 % of the items meet costs "
        f"{_text(full['first where'])} the first time and {again} until the next change; rescoring 100 candidates "
        f"costs {rescored}."
    )
    return f"{intro}\n\n{shown}\n\n{_ratios(found['rows'])} {more}"


def _ratios(rows: list[dict[str, Any]]) -> str:
    """How many times the processor time of the first row the peers take."""
    own = rows[0]["cpu_seconds"]
    parts = []
    for row in rows:
        if not row["database"].startswith("hbmp"):
            search, add, remove = (
                f"{row['cpu_seconds'][name] / own[name]:.0f} times" for name in ("search", "add 1,000", "remove 1,000")
            )
            name = row["database"].partition(",")[0]
            parts.append(f"{name} takes {search} as long for a search, {add} for an addition, {remove} for a removal")
    return f"At one million codes, {'; '.join(parts)}." if parts else ""


def _text(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.{0 if seconds >= 0.1 else 1}f} ms"


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
    parser.add_argument(
        "--folder", type=Path, default=Path("benchmark-databases"), help="where the files are made and removed"
    )
    parser.add_argument("--items", type=int, nargs="+", default=[1_000_000])
    parser.add_argument("--peers", action="store_true", help="sqlite-vec and LanceDB with the same codes")
    parser.add_argument("--out", type=Path, help="where to write the results")
    parser.add_argument("--table", action="store_true", help="print the table of the last results")
    parser.add_argument("--journals", action="store_true")
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(RESULTS.read_text())))
        return
    options.folder.mkdir(parents=True, exist_ok=True)
    if options.journals:
        print(journals(options.folder).text())
        return
    rows = []
    for place, n in enumerate(options.items):
        for full in (False, True) if place == 0 else (False,):
            rows.append(measured(options.folder / "benchmark.db", n, full))
            print(json.dumps(rows[-1]), flush=True)
        for name in PEERS if options.peers and place == 0 else ():
            rows.append(peer(name, options.folder / f"benchmark-{name}", n))
            print(json.dumps(rows[-1]), flush=True)
    if options.out is not None:
        command = f"python benchmarks/database.py {shlex.join(sys.argv[1:])}"
        settings = {"bits": N_BITS, "vectors": f"{DIMENSION} x float16", "machine": describe("cpu")}
        options.out.write_text(json.dumps({"command": command, "settings": settings, "rows": rows}, indent=1) + "\n")
        print(table(json.loads(options.out.read_text())))


if __name__ == "__main__":
    main()
