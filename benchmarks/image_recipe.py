"""How to train a network for codes, judged on held-out training images: what size, how long, which tricks.

    python benchmarks/image_recipe.py --output results/benchmark-image-recipe.json          an H200, nine minutes
    python benchmarks/image_recipe.py --only "224 px" --seeds 0                                 of it, this alone
    python benchmarks/image_recipe.py --output results/benchmark-image-recipe.json --table  what is there, as Markdown

Of the 5,000 training images of cifar-1, 3,500 train HBMP with 48 bits and 1,500 are held out; these query all of them,
each itself too, by the weighted distance of their first bits. No image of the test is looked at. Each network encodes
twice: images as they are, and the mean of each with its mirror image.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np

from hbmp import hamming
from hbmp._core import machine
from hbmp._core.device import pick_device
from hbmp.experiments import Cell, Place
from hbmp.experiments.settings import LARGE_NETWORK, network
from hbmp.methods import make_method
from hbmp.metrics import mean_average_precision

LONGEST, LENGTHS = 48, (12, 16, 32, 48)
TRAINED = 3500
TRIALS: dict[str, dict] = {
    "160 px": {},
    "160 px, 100 epochs": {"epochs": 100},
    "160 px, averaged weights": {"ema": 0.99},
    "160 px, mixup": {"mixup": 0.2},
    "224 px": {"backbone": LARGE_NETWORK["backbone"]},
}


def scores_of(trial: str, seed: int, options) -> dict[str, list[float]]:
    """mAP of held-out images at each length, as they are and with mirror images."""
    cell = Cell("hbmp", "cifar-1", "cifar10", LONGEST, seed, network("cifar-1", **TRIALS[trial]))
    place = Place(cell, options.data_dir)
    rows = np.random.default_rng(seed).permutation(place.split.train)
    images, labels = place.data.images, place.data.labels
    trained, held = rows[:TRAINED], rows[TRAINED:]
    model = make_method("hbmp", LONGEST, cell.params, seed=seed, device=options.device)
    model.set_params(function__compile=options.device != "cpu").fit(images[trained], labels[trained])
    own = model.project(images[held])
    other = model.project(np.ascontiguousarray(images[held][:, :, ::-1]))
    return {
        views: [_retrieved(scores[:, :n], labels[held], model.weights_for(n)) for n in LENGTHS]
        for views, scores in (("alone", own), ("with mirror images", (own + other) / 2))
    }


def _retrieved(scores, labels, weights) -> float:
    codes = hamming.signs(scores)
    return float(mean_average_precision(codes, codes, labels, labels, bit_weights=weights))


def table(kept: dict) -> str:
    """Means over seeds as Markdown."""
    lines = ["| | " + " | ".join(f"{n} bits" for n in LENGTHS) + " |", "|:---|" + "---:|" * len(LENGTHS)]
    for trial, by_seed in kept["trials"].items():
        for views in next(iter(by_seed.values())):
            means = np.mean([found[views] for found in by_seed.values()], axis=0)
            name = trial if views == "alone" else f"{trial}, mirror images"
            lines.append(f"| {name} | " + " | ".join(f"{mean:.3f}" for mean in means) + " |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=TRIALS, default=list(TRIALS))
    parser.add_argument("--seeds", nargs="+", type=int, default=[0, 1])
    parser.add_argument("--data-dir", help="where cifar10 lies (default: $HBMP_DATA, or data)")
    parser.add_argument("--device", default="auto")
    parser.add_argument("--output", help="JSON to keep the numbers in, and to go on from")
    parser.add_argument("--table", action="store_true", help="print what is there as Markdown, and measure nothing")
    options = parser.parse_args()
    path = Path(options.output) if options.output else None
    kept = json.loads(path.read_text()) if path and path.exists() else {"trials": {}}
    if not options.table:
        options.device = pick_device(options.device)
        kept["machine"] = machine.describe(options.device)
        for trial in options.only:
            found = kept["trials"].setdefault(trial, {})
            for seed in map(str, options.seeds):
                if seed not in found:
                    found[seed] = scores_of(trial, int(seed), options)
                    print(trial, seed, found[seed], flush=True)
                    if path:
                        path.write_text(json.dumps(kept, indent=1) + "\n")
    print(table(kept))


if __name__ == "__main__":
    main()
