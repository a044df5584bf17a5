"""How evenly the server answers a crowd: `/search` on a million 64-bit codes, many clients at once.

    python benchmarks/serve.py                     # 100,000 requests by 32 clients
    python benchmarks/serve.py --requests 3000

The real `hbmp serve` runs in a process of its own; clients are threads here that ask again as soon as they are
answered, each over one connection. Printed: the median and the 99th percentile of the latency, their ratio, errors, and
the server's resident memory before and after. Clients and server share the machine, so compare ratios, not times.
"""

from __future__ import annotations

import argparse
import http.client
import json
import os
import re
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np

import hbmp

N_BITS, K = 64, 10


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--items", type=int, default=1_000_000)
    parser.add_argument("--requests", type=int, default=100_000)
    parser.add_argument("--clients", type=int, default=32)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hbmp-") as folder:
        make_database(Path(folder) / "db", arguments.items)
        command = [sys.executable, "-m", "hbmp", "serve", "--index", f"{folder}/db", "--port", "0", "--no-map"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            try:
                found = re.search(r"http://([\d.]+):(\d+)", server.stdout.readline())
                address = (found.group(1), int(found.group(2)))
                ask(address, 4 * arguments.clients, arguments.clients, arguments.items)  # warm
                before = resident(server.pid)
                started = time.perf_counter()
                seconds, errors = ask(address, arguments.requests, arguments.clients, arguments.items)
                wall = time.perf_counter() - started
                after = resident(server.pid)
            finally:
                server.terminate()
    p50, p99 = np.percentile(seconds, [50, 99]) * 1000
    print(f"{arguments.items:,} codes of {N_BITS} bits, {arguments.clients} clients, {os.cpu_count()} cores")
    print(f"requests {len(seconds):,} in {wall:.1f} s, {len(seconds) / wall:.0f} a second")
    print(f"p50 {p50:.1f} ms   p99 {p99:.1f} ms   ratio {p99 / p50:.2f}   errors {errors}")
    print(f"memory before {before:.0f} MB, after {after:.0f} MB, grown {100 * (after / before - 1):.1f} %")


def make_database(path: Path, n_items: int) -> None:
    """Codes of random features under random planes."""
    random = np.random.default_rng(0)
    model = hbmp.get_method("lsh")(N_BITS, random_state=0).fit(random.standard_normal((2000, 32)))
    codes = np.empty((n_items, N_BITS), np.int8)
    for start in range(0, n_items, 100_000):
        codes[start : start + 100_000] = model.transform(random.standard_normal((min(100_000, n_items - start), 32)))
    hbmp.Database.of_codes(model, codes, path=path)


def ask(address, n_requests: int, n_clients: int, n_items: int) -> tuple[np.ndarray, int]:
    """The seconds of every answer, and how many were no answer."""
    seconds: list[list[float]] = [[] for _ in range(n_clients)]
    errors = [0] * n_clients
    shares = [len(part) for part in np.array_split(np.arange(n_requests), n_clients)]

    def client(number: int) -> None:
        random = np.random.default_rng(number)
        connection = http.client.HTTPConnection(*address, timeout=60)
        for item in random.integers(n_items, size=shares[number]).tolist():
            body = json.dumps({"id": item, "k": K})
            started = time.perf_counter()
            try:
                connection.request("POST", "/search", body)
                response = connection.getresponse()
                answer = json.loads(response.read())
                errors[number] += response.status != 200 or len(answer["results"]) != K
            except (OSError, http.client.HTTPException, ValueError, KeyError):
                errors[number] += 1
                connection.close()
            seconds[number].append(time.perf_counter() - started)
        connection.close()

    threads = [threading.Thread(target=client, args=(number,)) for number in range(n_clients)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return np.concatenate(seconds), sum(errors)


def resident(pid: int) -> float:
    """Resident memory of a process, MB."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


if __name__ == "__main__":
    main()
