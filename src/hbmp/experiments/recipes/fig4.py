"""Figure 4 (supplement): the ten nearest images of three queries, neighbours framed green, others red.

The paper shows ImageNet100 and MIHash. Here: CIFAR-10, retrieved by codes of networks if a run on images kept them
(`hbmp reproduce images --keep-codes`), else of functions on features, or the digits if those are missing.
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
from hbmp.experiments.recipes.fig3 import DIGITS, FEATURES, RIVALS
from hbmp.experiments.running import Folder
from hbmp.experiments.settings import BEST_HBMP
from hbmp.experiments.store import Record

N_SHOWN = 10


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
    data, images, protocol, note = at_hand(data_dir)
    n_bits, seed = (bits or [48])[0], (seeds or [0])[0]
    rival = next(name for name in RIVALS if name in catalog.names("methods"))
    methods = ("hbmp", rival)
    records = figures.from_images(results, "fig4", "retrieval", methods, n_bits, seed, data_dir, retrieve_images)
    if records is not None:
        images = datasets.load("cifar10", data_dir).images
        return _told("Drawn from CIFAR-10 and the codes of networks trained on its images.", records, images, results)
    records = []
    for method, params in (("hbmp", BEST_HBMP), (rival, {})):
        what = {"method": method, "params": params, "data": data.name}
        settings = {"panel": "retrieval", **what, "bits": n_bits, "seed": seed}
        compute = partial(retrieve, data, protocol, settings, device)
        records.append(figures.measured(results, "fig4", settings, compute, device=device))
    return _told(note, records, images, results)


def _told(note: str, records: list[Record], images: Any, results: Folder) -> str:
    found = [f"{_title(record)}: {_n_hits(record)} of {3 * N_SHOWN} are neighbours." for record in records]
    return "\n\n".join([note, *found, figures.drawn(lambda: draw(records, images, results))])


def at_hand(data_dir: Folder | None) -> Any:
    """(features with labels, images in the same order, protocol, one sentence)."""
    try:
        data, images = datasets.load(FEATURES, data_dir), datasets.load("cifar10", data_dir).images
        return data, images, protocols.get("cifar-1"), f"Drawn from the images of CIFAR-10 and {FEATURES}."
    except FileNotFoundError as error:
        digits = datasets.load("digits", data_dir)
        note = f"Drawn from the digits of scikit-learn. {error}"
        return digits, digits.images, protocols.get("cifar-1", **DIGITS), note


def retrieve(data: Any, protocol: Any, settings: Record, device: str) -> Record:
    """The nearest database rows of one query of each of three classes, by the method's own distance."""
    from hbmp.methods import make_method

    split = protocol.split(data, settings["seed"])
    method = make_method(settings["method"], settings["bits"], settings["params"], seed=settings["seed"], device=device)
    method.fit(np.asarray(data.features[split.train], dtype=np.float32), data.labels[split.train])
    chosen = _three(data.labels[split.query], settings["seed"])
    signs = method.transform(np.asarray(data.features[split.query[chosen]], dtype=np.float32))
    database = method.transform(np.asarray(data.features[split.database], dtype=np.float32))
    return _nearest(signs, database, method.bit_weights_, data.labels, split.query[chosen], split.database)


def retrieve_images(data: Any, codes: Record, seed: int) -> Record:
    """The same from codes that a run on images kept."""
    labels = data.labels
    chosen = _three(labels[codes["query_rows"]], seed)
    queries = codes["query_rows"][chosen]
    signs, weights = codes["query"][chosen], codes["bit_weights"]
    return _nearest(signs, codes["database"], weights, labels, queries, codes["database_rows"])


def _three(classes: NDArray[Any], seed: int) -> NDArray[Any]:
    """The position of the first query of each of three classes."""
    values = np.random.default_rng(seed).choice(np.unique(classes), 3, replace=False)
    return np.array([np.flatnonzero(classes == value)[0] for value in values])


def _nearest(signs: Any, database: Any, weights: Any, labels: Any, queries: Any, rows: Any) -> Record:
    """The rows of the data nearest to each query (3, bits) by weighted distance, and whether they are neighbours."""
    from hbmp import hamming

    distances = hamming.distances(signs, database, weights)
    nearest = rows[np.argsort(distances, axis=1, kind="stable")[:, :N_SHOWN]]
    hits = labels[nearest] == labels[queries][:, None]
    return {"queries": queries.tolist(), "nearest": nearest.tolist(), "hits": hits.tolist()}


def draw(records: list[Record], images: Any, results: Folder) -> Path:
    """One row per query and method: the query, then its nearest images in coloured frames."""
    # Photographs: a sharper file is a much larger one.
    return figures.save(framed_rows(records, images), results, "fig4", dpi=90)


def framed_rows(records: list[Record], images: Any) -> Any:
    """The figure; `images` holds pixels or words for every row of the data."""
    plt = figures.pyplot()
    rows = [(record, place) for place in range(3) for record in records]
    figure, axes = plt.subplots(len(rows), N_SHOWN + 1, figsize=(0.85 * (N_SHOWN + 2), 0.92 * len(rows)))
    for row, (record, place) in zip(axes, rows, strict=True):
        row[0].set_ylabel(record["settings"]["method"], rotation=0, ha="right", va="center", labelpad=8)
        _show(row[0], images[record["queries"][place]], "#1c1f23")
        for axis, item, hit in zip(row[1:], record["nearest"][place], record["hits"][place], strict=True):
            _show(axis, images[item], figures.GREEN if hit else figures.RED)
    axes[0, 0].set_title("query", fontsize=9)
    axes[0, 1].set_title("nearest first →", fontsize=9, loc="left")
    figure.subplots_adjust(wspace=0.08, hspace=0.12)
    return figure


def _show(axis: Any, image: Any, colour: str) -> None:
    if isinstance(image, str):
        axis.text(0.5, 0.5, image, ha="center", va="center", fontsize=6.5, transform=axis.transAxes)
    else:
        pixels = np.asarray(image)
        axis.imshow(pixels, interpolation="nearest" if pixels.shape[0] < 16 else "bilinear")
    axis.set(xticks=[], yticks=[])
    axis.grid(visible=False)
    for side in axis.spines.values():
        side.set(visible=True, color=colour, linewidth=2.6)


def _title(record: Record) -> str:
    return f"{record['settings']['method']}, {record['settings']['bits']} bits"


def _n_hits(record: Record) -> int:
    return int(np.sum(record["hits"]))
