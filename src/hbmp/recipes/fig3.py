"""Figure 3 (supplement): t-SNE of 48-bit codes of queries, HBMP beside another method.

The paper shows ten classes of ImageNet100 and MIHash; here CIFAR-10 features, or the digits where those are missing.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from hbmp import catalog, datasets, protocols
from hbmp.recipes import _figures
from hbmp.recipes._settings import BEST_HBMP

FEATURES = "cifar10-efficientnet-lite0"
RIVALS = ("mihash", "itq", "pca_sign")
DIGITS = {"train_per_class": 100, "query_per_class": 60}


def reproduce(*, data_dir=None, bits=None, seeds=None, results="results", device="auto") -> str:
    """Measure what is missing, draw, and say what was found."""
    data, protocol, note = at_hand(data_dir)
    n_bits, seed = (bits or [48])[0], (seeds or [0])[0]
    rival = next(name for name in RIVALS if name in catalog.names("methods"))
    records = []
    for method, params in (("hbmp", BEST_HBMP), (rival, {})):
        what = {"method": method, "params": params, "data": data.name}
        settings = {"panel": "tsne", **what, "bits": n_bits, "seed": seed}
        compute = partial(points, data, protocol, settings, device)
        records.append(_figures.measured(results, "fig3", settings, compute, device=device))
    return "\n\n".join([note, _figures.drawn(lambda: draw(records, results))])


def at_hand(data_dir):
    """(data, protocol, one sentence): CIFAR-10 features, or the digits that come along."""
    try:
        return datasets.load(FEATURES, data_dir), protocols.get("cifar-1"), f"Drawn from {FEATURES}."
    except FileNotFoundError as error:
        note = f"Drawn from the digits, which come along. {error}"
        return datasets.load("digits", data_dir), protocols.get("cifar-1", **DIGITS), note


def points(data, protocol, settings: dict, device: str) -> dict:
    """Two-dimensional places of the query codes, and their classes."""
    from sklearn.manifold import TSNE
    from threadpoolctl import threadpool_limits

    from hbmp._experiment_codes import make_method

    split = protocol.split(data, settings["seed"])
    method = make_method(settings["method"], settings["bits"], settings["params"], seed=settings["seed"], device=device)
    method.fit(np.asarray(data.features[split.train], dtype=np.float32), data.labels[split.train])
    codes = method.transform(np.asarray(data.features[split.query], dtype=np.float32)).astype(np.float32)
    # Codes of one class are often the same to the last bit: a touch of noise keeps their places apart.
    codes += np.random.default_rng(settings["seed"]).normal(scale=0.05, size=codes.shape).astype(np.float32)
    with threadpool_limits(1):  # its threads wait for each other where other work takes a core
        places = TSNE(init="pca", perplexity=30, random_state=settings["seed"]).fit_transform(codes)
    places = np.round(places - places.mean(axis=0), 1)
    return {"x": places[:, 0].tolist(), "y": places[:, 1].tolist(), "classes": data.labels[split.query].tolist()}


def draw(records: list[dict], results) -> Path:
    """One panel a method."""
    plt = _figures.pyplot()
    figure, axes = plt.subplots(1, len(records), figsize=(4.6 * len(records), 4.6), squeeze=False)
    for axis, record in zip(axes[0], records, strict=True):
        classes = np.array(record["classes"])
        for value in np.unique(classes):
            chosen = classes == value
            colour = _figures.PALETTE[int(value) % len(_figures.PALETTE)]
            axis.scatter(np.array(record["x"])[chosen], np.array(record["y"])[chosen], s=7, color=colour, linewidths=0)
        settings = record["settings"]
        axis.set_title(f"{settings['method']}, {settings['bits']} bits, {settings['data']}")
        reach = 1.05 * max(np.abs(record["x"]).max(), np.abs(record["y"]).max())
        axis.set(xticks=[], yticks=[], aspect="equal", xlim=(-reach, reach), ylim=(-reach, reach))
        axis.grid(visible=False)
        for side in axis.spines.values():
            side.set_visible(False)
    figure.tight_layout()
    return _figures.save(figure, results, "fig3")
