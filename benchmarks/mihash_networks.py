"""Why MIHash is weak on whole networks: bins, learning rate, batch, steps and slope, on the images of VOC 2007.

    python benchmarks/mihash_networks.py run --data-dir DATA [--minutes 5] [--bits 12 32]
    python benchmarks/mihash_networks.py table

Each variant trains the network of `hbmp reproduce images` (EfficientNet-Lite0, 40 epochs), needs a GPU, and adds a line
to results/mihash-networks.jsonl. Queries are those of the protocol: this is a diagnosis, no method is chosen by it.
`rate` multiplies both learning rates of the network.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

from hbmp._core.table import Table
from hbmp.experiments import Cell, measure
from hbmp.experiments.settings import IMAGE_EPOCHS, IMAGE_NETWORK, network

PROTOCOL = "voc2007"
RESULTS = Path(__file__).parents[1] / "results" / "mihash-networks.jsonl"
VARIANTS: dict[str, dict] = {
    "default": {},
    "bins 2": {"n_bins": 2},
    "bins 4": {"n_bins": 4},
    "bins 6": {"n_bins": 6},
    "bins 16": {"n_bins": 16},
    "rate × 3": {"rate": 3},
    "rate × 1/3": {"rate": 1 / 3},
    "batch 32": {"batch_size": 32},
    "batch 512": {"batch_size": 512},
    "epochs × 3": {"epochs": 3 * IMAGE_EPOCHS[PROTOCOL]},
    "slope 2": {"slope": 2.0},
    "bins 2, slope 2": {"n_bins": 2, "slope": 2.0},
    "bins 2, batch 512, epochs × 3": {"n_bins": 2, "batch_size": 512, "epochs": 3 * IMAGE_EPOCHS[PROTOCOL]},
    "bins 2, slope 2, rate × 3": {"n_bins": 2, "slope": 2.0, "rate": 3},
}


def cell_of(name: str, bits: int, seed: int) -> Cell:
    """The cell of a variant."""
    changes = dict(VARIANTS[name])
    rate = changes.pop("rate", 1)
    own = {key: changes.pop(key) for key in ("n_bins", "slope") if key in changes}
    rates = {key: rate * IMAGE_NETWORK[key] for key in ("lr", "backbone_lr")}
    return Cell(
        "mihash", PROTOCOL, PROTOCOL, bits, seed, {**network(PROTOCOL, **rates, **changes), **own}, {}, "function"
    )


def lines() -> list[dict]:
    """What was measured."""
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def run(options: argparse.Namespace) -> None:
    """Measure the variants that have no line yet, until the minutes are spent."""
    deadline = time.monotonic() + 60 * options.minutes
    done = {(line["name"], line["bits"], line["seed"]) for line in lines()}
    for bits in options.bits:
        for name in VARIANTS:
            if (name, bits, options.seed) in done or time.monotonic() > deadline:
                continue
            found = measure(cell_of(name, bits, options.seed), data_dir=options.data_dir, device=options.device)
            kept = {key: found[key] for key in ("scores", "seconds", "machine", "versions", "device")}
            with RESULTS.open("a") as file:
                file.write(json.dumps({"name": name, "bits": bits, "seed": options.seed, **kept}) + "\n")
            print(name, bits, found["scores"]["map"], flush=True)


def table() -> str:
    """Rows are variants."""
    measured = lines()
    lengths = sorted({line["bits"] for line in measured})
    scores = {(line["name"], line["bits"]): line["scores"]["map"] for line in measured}
    rows = [
        (name, *(f"{scores[name, bits]:.3f}" if (name, bits) in scores else "" for bits in lengths))
        for name in VARIANTS
        if any((name, bits) in scores for bits in lengths)
    ]
    return Table(("variant", *(f"{bits} bits" for bits in lengths)), tuple(rows)).markdown()


def main() -> None:
    root = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    root.add_argument("action", choices=("run", "table"))
    root.add_argument("--data-dir", type=Path)
    root.add_argument("--bits", nargs="+", type=int, default=[12, 32])
    root.add_argument("--seed", type=int, default=0)
    root.add_argument("--minutes", type=float, default=10)
    root.add_argument("--device", default="cuda")
    options = root.parse_args()
    if options.action == "run":
        run(options)
    else:
        print(table())


if __name__ == "__main__":
    main()
