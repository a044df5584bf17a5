"""Figure 3 (supplement): t-SNE of 48-bit codes of queries, HBMP and another method.

The paper shows ten classes of ImageNet100 and MIHash. Here: CIFAR-10, with codes of networks if a run on images kept
them (`hbmp reproduce images --keep-codes`), else of functions on features, or the digits if those are missing.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp import datasets, protocols
from hbmp._core import catalog
from hbmp.experiments import figures
from hbmp.experiments.running import Folder
from hbmp.experiments.settings import BEST_HBMP
from hbmp.experiments.store import Record

FEATURES = "cifar10-efficientnet-lite0"
RIVALS = ("mihash", "itq", "pca_sign")
DIGITS = {"train_per_class": 100, "query_per_class": 60}


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
    data, protocol, note = at_hand(data_dir)
    n_bits, seed = (bits or [48])[0], (seeds or [0])[0]
    rival = next(name for name in RIVALS if name in catalog.names("methods"))
    of_images = figures.from_images(results, "fig3", "tsne", ("hbmp", rival), n_bits, seed, data_dir, points_of_images)
    if of_images is not None:
        note = "Drawn from the codes of networks trained on the images of CIFAR-10."
        return "\n\n".join([note, figures.drawn(lambda: draw(of_images, results))])
    records = []
    for method, params in (("hbmp", BEST_HBMP), (rival, {})):
        what = {"method": method, "params": params, "data": data.name}
        settings = {"panel": "tsne", **what, "bits": n_bits, "seed": seed}
        compute = partial(points, data, protocol, settings, device)
        records.append(figures.measured(results, "fig3", settings, compute, device=device))
    return "\n\n".join([note, figures.drawn(lambda: draw(records, results))])


def at_hand(data_dir: Folder | None) -> Any:
    """(data: Any, protocol: Any, one sentence): CIFAR-10 features, or the digits of scikit-learn."""
    try:
        return datasets.load(FEATURES, data_dir), protocols.get("cifar-1"), f"Drawn from {FEATURES}."
    except FileNotFoundError as error:
        note = f"Drawn from the digits of scikit-learn. {error}"
        return datasets.load("digits", data_dir), protocols.get("cifar-1", **DIGITS), note


def points(data: Any, protocol: Any, settings: Record, device: str) -> Record:
    """Two-dimensional positions of the query codes, and their classes."""
    from hbmp.methods import make_method

    split = protocol.split(data, settings["seed"])
    method = make_method(settings["method"], settings["bits"], settings["params"], seed=settings["seed"], device=device)
    method.fit(np.asarray(data.features[split.train], dtype=np.float32), data.labels[split.train])
    codes = method.transform(np.asarray(data.features[split.query], dtype=np.float32))
    return {**places(codes, settings["seed"]), "classes": data.labels[split.query].tolist()}


def points_of_images(data: Any, codes: Record, seed: int) -> Record:
    """The same from codes that a run on images kept."""
    return {**places(codes["query"], seed), "classes": data.labels[codes["query_rows"]].tolist()}


def places(codes: NDArray[Any], seed: int) -> Record:
    """Two-dimensional positions "x" and "y" of codes (n, bits), by t-SNE."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    # Codes of one class are often identical; a little noise separates their positions.
    noise = np.random.default_rng(seed).normal(scale=0.05, size=codes.shape).astype(np.float32)
    near = min(30.0, (len(codes) - 1) / 3)
    with threadpool_limits(1):  # its threads would wait for each other on a busy machine
        plane = TSNE(init="pca", perplexity=near, random_state=seed).fit_transform(codes.astype(np.float32) + noise)
    plane = np.round(plane - plane.mean(axis=0), 1)
    return {"x": plane[:, 0].tolist(), "y": plane[:, 1].tolist()}


def draw(records: list[Record], results: Folder) -> Path:
    """One panel per method."""
    return figures.save(panels(records), results, "fig3")


def panels(records: list[Record], names: Sequence[str] = ()) -> Any:
    """The figure; `names` of the classes are written where most of their points are."""
    plt = figures.pyplot()
    figure, axes = plt.subplots(1, len(records), figsize=(4.6 * len(records), 4.6), squeeze=False)
    for axis, record in zip(axes[0], records, strict=True):
        classes = np.array(record["classes"])
        for value in np.unique(classes):
            chosen = classes == value
            colour = figures.PALETTE[int(value) % len(figures.PALETTE)]
            x, y = np.array(record["x"])[chosen], np.array(record["y"])[chosen]
            axis.scatter(x, y, s=7, color=colour, linewidths=0)
            if len(names):
                middle = (float(np.median(x)), float(np.median(y)))
                word = axis.annotate(names[int(value)], middle, (0, 10), textcoords="offset points", ha="center")
                word.set_bbox({"boxstyle": "round,pad=0.15", "facecolor": "white", "alpha": 0.75, "linewidth": 0})
        settings = record["settings"]
        axis.set_title(f"{settings['method']}, {settings['bits']} bits, {settings['data']}")
        reach = (1.13 if len(names) else 1.05) * max(np.abs(record["x"]).max(), np.abs(record["y"]).max())
        axis.set(xticks=[], yticks=[], aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach))
        axis.grid(visible=False)
        for side in axis.spines.values():
            side.set_visible(False)
    figure.tight_layout()
    return figure
