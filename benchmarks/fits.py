"""How long every method takes to fit 50,000 × 512 features with 32 bits, and how much memory it takes.

    python benchmarks/fits.py --output results/benchmark-fits.json
    python benchmarks/fits.py --methods hbmp itq --rows 5000
    python benchmarks/fits.py --output results/benchmark-fits.json --table    what is there, as docs/compare.md shows it

Each method is fitted in a process of its own, one after the other, so that its peak of memory is its own. The features
are made: ten classes, each around a few centres of its own in 64 directions, with noise in all 512. Times are also
given as multiples of ITQ's in the same run. Methods in the output already are not run again.
"""

from __future__ import annotations

import argparse
import json
import multiprocessing
import resource
import time
from pathlib import Path

import numpy as np

import hbmp
from hbmp._core import catalog, machine

PEER = "itq"


def features(rows: int, dimensions: int, n_classes: int = 10, centres: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Made features with classes that overlap, float32."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, rows)
    kind = y * centres + rng.integers(0, centres, rows)
    latent = rng.standard_normal((n_classes * centres, 64))[kind] + rng.standard_normal((rows, 64))
    X = latent @ rng.standard_normal((64, dimensions)) / 8 + 0.5 * rng.standard_normal((rows, dimensions))
    return X.astype(np.float32), y


def fit(name: str, bits: int, rows: int, dimensions: int, answer) -> None:
    """Fit one method and send (seconds, gigabytes at the peak, of which before the fit), or the reason why not."""
    X, y = features(rows, dimensions)
    method = hbmp.get_method(name)
    model = method(bits, random_state=0)
    before, start = peak(), time.perf_counter()
    try:
        model.fit(X, y if method.supervised or name == "hbmp" else None)
        answer.send({"seconds": round(time.perf_counter() - start, 2), "peak_gb": peak(), "before_gb": before})
    except Exception as error:  # the others go on
        answer.send({"failed": f"{type(error).__name__}: {error}"})


def peak() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)


def measured(name: str, options) -> dict:
    """`fit` in a fresh process."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=fit, args=(name, options.bits, options.rows, options.dimensions, there))
    process.start()
    there.close()
    if not here.poll(options.most_seconds):
        process.kill()
        process.join()
        return {"failed": f"over {options.most_seconds} s"}
    try:
        return here.recv()
    except EOFError:
        return {"failed": "the process ended, most likely for want of memory"}
    finally:
        process.join()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--methods", nargs="+", default=list(catalog.names("methods")))
    parser.add_argument("--rows", type=int, default=50_000)
    parser.add_argument("--dimensions", type=int, default=512)
    parser.add_argument("--bits", type=int, default=32)
    parser.add_argument("--most-seconds", type=int, default=1200, help="give up a method after so long")
    parser.add_argument("--output", help="JSON to keep the numbers in, and to go on from")
    parser.add_argument("--table", action="store_true", help="print what is there as Markdown, and measure nothing")
    options = parser.parse_args()
    setting = {"rows": options.rows, "dimensions": options.dimensions, "bits": options.bits}
    path = Path(options.output) if options.output else None
    kept = json.loads(path.read_text()) if path and path.exists() else {"setting": setting, "methods": {}}
    if kept["setting"] != setting:
        parser.error(f"{path} was measured with {kept['setting']}; name another file.")
    if options.table:
        print(table(kept))
        return
    found = kept["methods"]
    for name in dict.fromkeys([PEER, *options.methods]):
        if name not in found:
            found[name] = measured(name, options)
            if path:
                about = {"machine": machine.describe("cpu"), "versions": machine.versions()}
                path.write_text(json.dumps({"setting": setting, **about, "methods": found}, indent=1) + "\n")
        print(line(name, found[name], found[PEER]), flush=True)


def line(name: str, facts: dict, peer: dict) -> str:
    if "failed" in facts:
        return f"{name:14} {facts['failed']}"
    ratio = facts["seconds"] / peer["seconds"] if peer.get("seconds") else float("nan")
    return f"{name:14} {facts['seconds']:8.1f} s  {ratio:8.1f} x {PEER}  {facts['peak_gb']:5.2f} GB"


def table(kept: dict) -> str:
    """The numbers as Markdown, fastest first."""
    setting, about, found = kept["setting"], kept["machine"], kept["methods"]
    peer = found[PEER]["seconds"]
    lines = [
        f"Fitting {setting['rows']:,} × {setting['dimensions']} synthetic features, {setting['bits']} bits, on "
        f"{about['cpu']}, {about['cores']} cores; memory is the peak of the whole process.",
        "",
        f"| method | seconds | × `{PEER}` | memory |",
        "|:---|---:|---:|---:|",
    ]
    for name, facts in sorted(found.items(), key=lambda item: item[1].get("seconds", float("inf"))):
        if "failed" in facts:
            lines.append(f"| `{name}` | {facts['failed']} | | |")
        else:
            seconds = facts["seconds"]
            lines.append(f"| `{name}` | {seconds:.1f} | {seconds / peer:.1f} | {facts['peak_gb']:.1f} GB |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
