"""Figure 1: codes for ten classes against codes for a thousand instances of them, and functions that fit the codes.

(a), (b) the two affinities, with classes of instances drawn at random. (c) residual, (d) mAP and (e) inference time by
code length, five repeats, with the paper's pursuit (sign of the eigenvector, redrawn until it helps). For instances our
local search is shown too: the solver causes most of the loss there. (f) bit errors of functions of growing capacity:
one layer on GIST, one layer on fc7 and the whole VGG-F with CIFAR-10 and its weights, as in the paper; else functions
on features of another network, and a whole network on images if the results hold one (cifar-2).
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp import datasets
from hbmp.experiments import Cell, figures, load_results
from hbmp.experiments.recipes._shared import capacity
from hbmp.experiments.running import Folder
from hbmp.experiments.settings import network
from hbmp.experiments.store import Record
from hbmp.methods.hbmp.plan import LEAST_BITS

BITS = (4, 8, 12, 16, 24, 32, 40, 48, 64)
N_CLASSES, N_INSTANCES, N_QUERIES, REPEATS = 10, 1000, 100, 5
CURVES = {
    ("classes", "resample"): ("classes", figures.BLUE, "-"),
    ("instances", "resample"): ("instances", figures.RED, ":"),
    ("instances", "one-flip"): ("instances, one-flip search", figures.GREY, "--"),
}
FEATURES = "cifar10-efficientnet-lite0"
FUNCTIONS = {
    "linear,\n8 features": (8, ["linear", {}]),
    "linear,\n64 features": (64, ["linear", {}]),
    "linear,\nall features": (None, ["linear", {}]),
    "mlp, 256": (None, ["mlp", {"hidden": [256], "dropout": 0.0}]),
    "mlp, 1024 × 2": (None, ["mlp", {"hidden": [1024, 1024], "dropout": 0.0}]),
}
NETWORK = "whole network,\non images (48 bits)"


def reproduce(
    *,
    data_dir: Folder | None = None,
    bits: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    results: Folder = "results",
    device: str = "auto",
) -> str:
    """Run missing measurements, draw the figure, and describe the result.

    Parameters
    ----------
    data_dir : str or Path, default=None
        Data directory.
    bits : sequence of int, default=None
        Code lengths instead of the figure's own.
    seeds : sequence of int, default=None
        Seeds instead of the figure's own.
    results : str or Path, default="results"
        Folder of results.
    device : str, default="auto"
        "auto", "cpu" or "cuda".

    Returns
    -------
    str
        A description of the result, and the path of the picture.
    """
    repeats = tuple(seeds) if seeds else tuple(range(REPEATS))
    lengths = tuple(bits) if bits else BITS
    of_codes = []
    for items, improve in CURVES:
        for seed in repeats:
            settings = {"panel": "codes", "items": items, "improve": improve, "seed": seed, "bits": list(lengths)}
            compute = partial(codes, items, lengths, seed, improve)
            of_codes.append(figures.measured(results, "fig1", settings, compute))
    of_functions, missing = _measure_functions(data_dir, results, device)
    picture = figures.drawn(lambda: draw(of_codes, of_functions, results))
    return "\n\n".join(part for part in (summary(of_codes), missing, picture) if part)


def codes(items: str, lengths: tuple[int, ...], seed: int, improve: str = "resample") -> Record:
    """Residual, mAP and seconds at each code length, from codes of the classes or of every instance."""
    from hbmp import infer_codes, metrics

    rng = np.random.default_rng(seed)
    classes = rng.integers(N_CLASSES, size=N_INSTANCES)
    labels = np.arange(N_CLASSES) if items == "classes" else classes
    affinity = np.where(labels[:, None] == labels, 1.0, -1.0)
    is_query = np.zeros(N_INSTANCES, dtype=bool)
    is_query[rng.choice(N_INSTANCES, N_QUERIES, replace=False)] = True
    found: dict[str, list[float]] = {"residual": [], "map": [], "seconds": []}
    for n_bits in lengths:
        start = time.perf_counter()
        book = infer_codes(affinity, n_bits, improve=improve, restarts=1, tol=0, random_state=seed, device="cpu")
        found["seconds"].append(round(time.perf_counter() - start, 4))
        found["residual"].append(float(book.relative_residuals[-1]))
        signs = book.codes[classes] if items == "classes" else book.codes
        score = metrics.mean_average_precision(
            signs[is_query], signs[~is_query], classes[is_query], classes[~is_query], bit_weights=book.weights
        )
        found["map"].append(score)
    return found


def unmatched(data: Any, n_features: int | None, function: list[Any], device: str) -> Record:
    """Bit errors of a function on the training images of CIFAR-10, 32 bits, as a fraction."""
    from hbmp.methods import make_method

    rows = slice(0, 50_000)
    X = np.asarray(data.features[rows, :n_features], dtype=np.float32)
    params = {"function": [function[0], {**function[1], "epochs": 20}]}
    method = make_method("hbmp", 32, params, seed=0, device=device)
    method.fit(X, data.labels[rows])
    return {"unmatched": float(method.unmatched_)}


def _measure_functions(data_dir: Folder | None, results: Folder, device: str) -> tuple[list[Record], str]:
    records, missing = capacity.measure(results, data_dir, device)
    if not missing:
        return records, ""
    try:
        data = datasets.load(FEATURES, data_dir)
    except FileNotFoundError as error:
        return records, f"{missing}\nIn their place, part (f) takes CIFAR-10 features of another network. {error}"
    for name, (n_features, function) in FUNCTIONS.items():
        settings = {"panel": "functions", "name": name, "features": FEATURES, "function": function, "first": n_features}
        compute = partial(unmatched, data, n_features, function, device)
        records.append(figures.measured(results, "fig1", settings, compute, device=device))
    return records + _network(results), missing


def _network(results: Folder) -> list[Record]:
    """The bit errors of a network trained on all images of CIFAR-10 except the queries, if it was run."""
    wanted = Cell("hbmp", "cifar-2", "cifar10", LEAST_BITS, 0, network("cifar-2")).key
    found = [record for record in load_results(results) if record["key"] == wanted]
    return [{"settings": {"name": NETWORK}, "unmatched": record["unmatched_bits"]} for record in found]


def summary(records: list[Record]) -> str:
    """The largest gap of mAP, as a sentence with its numbers."""
    lengths, of_classes, _ = curve(records, ("classes", "resample"), "map")
    of_instances = curve(records, ("instances", "resample"), "map")[1]
    searched = curve(records, ("instances", "one-flip"), "map")[1]
    place = int(np.argmax(of_classes - of_instances))
    return (
        f"Largest gap of mAP at {lengths[place]} bits: codes of the classes {of_classes[place]:.3f}, of the instances "
        f"{of_instances[place]:.3f} (the paper: a difference of up to 0.40), of the instances with one-flip search "
        f"{searched[place]:.3f}."
    )


def curve(records: list[Record], which: tuple[str, str], quantity: str) -> tuple[list[int], NDArray[Any], NDArray[Any]]:
    """(code lengths, mean, spread) over the repeats."""
    mine = [record for record in records if (record["settings"]["items"], record["settings"]["improve"]) == which]
    values = np.array([record[quantity] for record in mine])
    return mine[0]["settings"]["bits"], values.mean(axis=0), values.std(axis=0)


def draw(records: list[Record], of_functions: list[Record], results: Folder) -> Path:
    """Six panels, as in the paper."""
    plt = figures.pyplot()
    figure, axes = plt.subplots(2, 3, figsize=(10, 6.2))
    _draw_matrices(axes[0, 0], axes[0, 1])
    panels = (
        (axes[0, 2], "residual", "(c) relative residual"),
        (axes[1, 0], "map", "(d) mAP of the codes"),
        (axes[1, 1], "seconds", "(e) inference time (s)"),
    )
    for axis, quantity, title in panels:
        for which, (words, colour, style) in CURVES.items():
            lengths, mean, spread = curve(records, which, quantity)
            axis.plot(lengths, mean, style, color=colour, marker="o", markersize=3.5, label=words)
            if quantity != "seconds":
                axis.fill_between(lengths, mean - spread, mean + spread, color=colour, alpha=0.15, linewidth=0)
        axis.set(title=title, xlabel="bits")
    axes[1, 1].set_yscale("log")
    place = {"loc": "center", "bbox_to_anchor": (0.55, 0.6)}
    axes[1, 0].legend(title="codes inferred for", fontsize=8, title_fontsize=8, **place)
    axes[0, 2].set_ylim(-0.04, 1.04)
    axes[1, 0].set_ylim(0, 1.04)
    _draw_functions(axes[1, 2], of_functions)
    figure.tight_layout(h_pad=2.0, w_pad=2.0)
    return figures.save(figure, results, "fig1")


def _draw_matrices(class_axis: Any, instance_axis: Any) -> None:
    classes = np.sort(np.random.default_rng(0).integers(N_CLASSES, size=N_INSTANCES))
    for axis, labels, title in (
        (class_axis, np.arange(N_CLASSES), "(a) affinity of 10 classes"),
        (instance_axis, classes, "(b) affinity of 1,000 instances"),
    ):
        axis.imshow(labels[:, None] == labels, cmap="Blues", vmin=-0.15, vmax=1.1, interpolation="nearest")
        axis.set_title(title)
        axis.set(xticks=[], yticks=[])
        axis.grid(visible=False)


def _draw_functions(axis: Any, records: list[Record]) -> None:
    axis.set_title("(f) unmatched bits, CIFAR-10")
    if not records:
        axis.text(0.5, 0.5, "needs CIFAR-10 features", ha="center", va="center", transform=axis.transAxes)
        axis.set(xticks=[], yticks=[])
        return
    shares = {record["settings"]["name"]: 100 * record["unmatched"] for record in records}
    order = (capacity.ON_GIST, capacity.ON_FC7, *FUNCTIONS, NETWORK, capacity.WHOLE)
    names = [name for name in order if name in shares]
    bars = axis.barh(names[::-1], [shares[name] for name in names[::-1]], color=figures.BLUE, height=0.6)
    axis.bar_label(bars, fmt="%.1f %%", padding=3, fontsize=8)
    axis.set_xlim(0, 1.25 * max(shares.values()))
    axis.set_xlabel("share of the target bits of 50,000 images")
    axis.grid(visible=False, axis="y")
