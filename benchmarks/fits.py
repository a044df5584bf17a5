"""How long every method takes to fit 50,000 × 512 features with 32 bits, and how much memory it takes.

    python benchmarks/fits.py --output results/benchmark-fits.json
    python benchmarks/fits.py --methods hbmp itq --rows 5000
    python benchmarks/fits.py --output results/benchmark-fits.json --table    what is there, as docs/compare.md shows it
    python benchmarks/fits.py --methods hbmp --peer orthohash --rows 4000 --classes 100 --output FILE
    python benchmarks/fits.py --methods hbmp --peer orthohash --rows 4000 --labels 80 --output FILE

Each method is fitted in a process of its own, one after the other, so that its peak of memory is its own. The features
are made: ten classes, each around a few centres of its own in 64 directions, with noise in all 512. Times are also
given as multiples of a peer's in the same run. Methods in the output already are not run again. With `--labels` the
classes are sets of labels, four for each label. CPU time of all threads is what a busy machine can be compared by. An
output that was begun with other data keeps these under "more".
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


def features(rows: int, dimensions: int, n_classes: int = 10, centres: int = 5) -> tuple[np.ndarray, np.ndarray]:
    """Made features with classes that overlap, float32."""
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_classes, rows)
    kind = y * centres + rng.integers(0, centres, rows)
    latent = rng.standard_normal((n_classes * centres, 64))[kind] + rng.standard_normal((rows, 64))
    X = latent @ rng.standard_normal((64, dimensions)) / 8 + 0.5 * rng.standard_normal((rows, dimensions))
    return X.astype(np.float32), y


def label_sets(y: np.ndarray, n_labels: int) -> np.ndarray:
    """Rows of 0/1 labels, one to three of them for each class."""
    rng = np.random.default_rng(1)
    sets = rng.random((y.max() + 1, n_labels)).argsort(axis=1) < rng.integers(1, 4, (y.max() + 1, 1))
    return sets[y].astype(np.uint8)


def fit(name: str, options, answer) -> None:
    """Fit one method and send (seconds, gigabytes at the peak, of which before the fit), or the reason why not."""
    n_classes = 4 * options.labels or options.classes
    X, y = features(options.rows, options.dimensions, n_classes, centres=max(1, 50 // n_classes))
    y = label_sets(y, options.labels) if options.labels else y
    method = hbmp.get_method(name)
    model = method(options.bits, random_state=0)
    labelled = method.supervised or name == "hbmp"
    try:
        method(8, random_state=0).fit(X[:300], y[:300] if labelled else None)  # imports, and loops that are compiled
        before, start, cpu = peak(), time.perf_counter(), time.process_time()
        model.fit(X, y if labelled else None)
        spent = {"seconds": time.perf_counter() - start, "cpu_seconds": time.process_time() - cpu}
        answer.send({**{key: round(value, 2) for key, value in spent.items()}, "peak_gb": peak(), "before_gb": before})
    except Exception as error:  # the others go on
        answer.send({"failed": f"{type(error).__name__}: {error}"})


def peak() -> float:
    return round(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20, 2)


def measured(name: str, options) -> dict:
    """`fit` in a fresh process."""
    context = multiprocessing.get_context("spawn")
    here, there = context.Pipe()
    process = context.Process(target=fit, args=(name, options, there))
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
    parser.add_argument("--classes", type=int, default=10)
    parser.add_argument("--labels", type=int, default=0, help="multi-label data with so many labels")
    parser.add_argument("--peer", default="itq", help="whose time is 1")
    parser.add_argument("--most-seconds", type=int, default=1200, help="give up a method after so long")
    parser.add_argument("--output", help="JSON to keep the numbers in, and to go on from")
    parser.add_argument("--table", action="store_true", help="print what is there as Markdown, and measure nothing")
    options = parser.parse_args()
    setting = {"rows": options.rows, "dimensions": options.dimensions, "bits": options.bits}
    more = {"classes": options.classes, "labels": options.labels}
    setting |= {name: value for name, value in more.items() if value != parser.get_default(name)}
    path = Path(options.output) if options.output else None
    kept = json.loads(path.read_text()) if path and path.exists() else {"setting": setting, "methods": {}}
    if options.table:
        print(table(kept, options.peer))
        return
    found = methods_of(kept, setting)
    for name in dict.fromkeys([options.peer, *options.methods]):
        if name not in found:
            found[name] = measured(name, options)
            if path:
                kept = {"machine": machine.describe("cpu"), "versions": machine.versions(), **kept}
                path.write_text(json.dumps(kept, indent=1) + "\n")
        print(line(name, found[name], options.peer, found[options.peer]), flush=True)


def methods_of(kept: dict, setting: dict) -> dict:
    """What was measured on data of this setting."""
    if kept["setting"] == setting:
        return kept["methods"]
    for one in kept.setdefault("more", []):
        if one["setting"] == setting:
            return one["methods"]
    kept["more"].append({"setting": setting, "methods": {}})
    return kept["more"][-1]["methods"]


def line(name: str, facts: dict, peer_name: str, peer: dict) -> str:
    if "failed" in facts:
        return f"{name:14} {facts['failed']}"
    ratio, cpu_ratio = (
        facts.get(key, np.nan) / peer[key] if peer.get(key) else np.nan for key in ("seconds", "cpu_seconds")
    )
    return (
        f"{name:14} {facts['seconds']:8.1f} s  {ratio:8.2f} x {peer_name}  {facts['peak_gb']:5.2f} GB  "
        f"CPU {facts.get('cpu_seconds', np.nan):8.1f} s  {cpu_ratio:8.2f} x {peer_name}"
    )


def table(kept: dict, peer_name: str = "itq") -> str:
    """The numbers as Markdown, fastest first."""
    setting, about, found = kept["setting"], kept["machine"], kept["methods"]
    peer = found[peer_name]["seconds"]
    lines = [
        f"Fitting {setting['rows']:,} × {setting['dimensions']} synthetic features, {setting['bits']} bits, on "
        f"{about['cpu']}, {about['cores']} cores; memory is the peak of the whole process.",
        "",
        f"| method | seconds | × `{peer_name}` | memory |",
        "|:---|---:|---:|---:|",
    ]
    for name, facts in sorted(found.items(), key=lambda item: item[1].get("seconds", float("inf"))):
        if "failed" in facts:
            lines.append(f"| `{name}` | {facts['failed']} | | |")
        else:
            seconds = facts["seconds"]
            lines.append(f"| `{name}` | {seconds:.1f} | {seconds / peer:.1f} | {facts['peak_gb']:.1f} GB |")
    return "\n".join([*lines, *ratios(kept.get("more", []))])


def ratios(more: list[dict], ours: str = "hbmp", peer: str = "orthohash") -> list[str]:
    """CPU time of a fit of HBMP over that of a method that trains the same function once."""
    rows = []
    for one in more:
        setting, found = one["setting"], one["methods"]
        if ours in found and peer in found:
            spent = [found[name]["cpu_seconds"] for name in (ours, peer)]
            what = f"{setting['labels']} labels" if "labels" in setting else f"{setting.get('classes', 10)} classes"
            rows.append(
                f"| {setting['rows']:,} | {what} | {spent[0]:.1f} | {spent[1]:.1f} | {spent[0] / spent[1]:.1f} |"
            )
    head = ["", f"| rows | labels | `{ours}`, CPU seconds | `{peer}` | ratio |", "|---:|:---|---:|---:|---:|"]
    return [*head, *rows] if rows else []


if __name__ == "__main__":
    main()
