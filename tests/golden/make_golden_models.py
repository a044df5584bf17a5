"""Write one small saved model of every kind, and two databases, in the storage format of this version.

    python tests/golden/make_golden_models.py

Run this once for each new storage format, before the release that introduces it, and commit the result. Models go to
`models/format-N/NAME/` and databases to `databases/format-N/NAME/`, where N is the format number that the version
writes. A directory that exists is never written again: it is the proof that later versions still read it. Each one
holds `answers.npz`: inputs, and the scores, codes, bit weights and label codes that the model must return for them.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from sklearn.datasets import make_blobs

import hbmp
from hbmp.affinities import Centred, ClassSimilarity, DistanceLevels, LabelOverlap, MeanFeatures
from hbmp.backbones import Module
from hbmp.database.database_file import FORMAT, DatabaseFile
from hbmp.functions import MLP, Kernel, Linear, Network, Trees

FOLDER = Path(__file__).parent
N_BITS, N_FEATURES, N_CLASSES = 8, 10, 4

SMALL_KERNEL = Kernel(n_anchors=40, linear=Linear(loss="smooth", lr=1e-2))
QUICK_NETWORK = {"epochs": 8, "batch_size": 16, "augmentation": "none", "device": "cpu"}

Make = Callable[[], tuple[hbmp.Hasher, object]]  # gives a fitted model, and what it takes: many rows to choose from


def features(n: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    """Feature vectors in four clusters, and their classes."""
    X, y = make_blobs(n, n_features=N_FEATURES, centers=N_CLASSES, cluster_std=2.0, random_state=seed)
    return X.astype(np.float32), y


def label_sets(classes: np.ndarray) -> np.ndarray:
    """0/1 labels, one or two per row."""
    labels = np.eye(N_CLASSES, dtype=np.int8)[classes]
    labels[::3, 0] = 1
    labels[1::5, 2] = 1
    return labels


def pictures(n: int, side: int) -> tuple[np.ndarray, np.ndarray]:
    """Noise brightened in one quarter, and which quarter it is."""
    rng = np.random.default_rng(0)
    pixels, quarters = rng.integers(0, 90, (n, side, side, 3)), rng.integers(0, 4, n)
    for image, quarter in zip(pixels, quarters, strict=True):
        row, column = divmod(int(quarter), 2)
        image[row * side // 2 :, column * side // 2 :][: side // 2, : side // 2] += 150
    return pixels.astype(np.uint8), quarters


def on_features(model: hbmp.Hasher, labels: str = "classes", n: int = 300) -> Make:
    """The model, fitted on n feature vectors with these labels: "classes", "names", "sets" or "none"."""

    def make():
        X, classes = features(n)
        names = np.array(["ant", "bee", "cat", "dog"], dtype=object)
        y = {"classes": classes, "names": names[classes], "sets": label_sets(classes), "none": None}[labels]
        return model.fit(X, y), X

    return make


def on_pictures(model: hbmp.Hasher, side: int) -> Make:
    """The model, fitted on 48 images of this side."""

    def make():
        pixels, quarters = pictures(200, side)
        return model.fit(hbmp.Images.from_array(pixels[:48]), quarters[:48]), pixels

    return make


def kinds() -> Iterator[tuple[str, Make]]:
    """Every kind of model, by name."""

    def estimator(**settings):
        return hbmp.HBMP(N_BITS, random_state=0, device="cpu", **settings)

    line = Linear(epochs=3)
    similarity = np.array([[1 - 0.5 * abs(i - j) for j in range(N_CLASSES)] for i in range(N_CLASSES)])
    yield "classes", on_features(estimator())
    yield "classes-by-name", on_features(estimator(function=line), "names")
    yield "classes-many", on_features(estimator(function=SMALL_KERNEL), n=2100)
    yield "label-sets", on_features(estimator(), "sets")
    yield "label-sets-many", on_features(estimator(function=SMALL_KERNEL), "sets", n=2100)
    yield "without-labels", on_features(estimator(), "none")
    yield "distance-levels", on_features(estimator(affinity=DistanceLevels(), function=line), "none", n=120)
    yield "paper", on_features(hbmp.HBMP.paper(N_BITS, random_state=0, device="cpu"))
    yield "paper-label-sets", on_features(hbmp.HBMP.paper(N_BITS, random_state=0, device="cpu"), "sets")
    yield "function-mlp", on_features(estimator(function=MLP(hidden=(16, 8), dropout=0.0, epochs=30)))
    yield "function-trees", on_features(estimator(function=Trees(n_trees=3)))
    yield "scheme-constant", on_features(estimator(function=line, scheme="constant"))
    yield "class-similarity", on_features(estimator(affinity=ClassSimilarity(similarity), function=line))
    yield "label-overlap", on_features(estimator(affinity=LabelOverlap(), function=line), "sets")
    yield "mean-features", on_features(estimator(affinity=MeanFeatures(share=0.3), function=line), "sets")
    yield "centred", on_features(estimator(affinity=Centred(share=0.3), function=line), "sets")
    yield "network", on_pictures(estimator(function=Network("tiny", **QUICK_NETWORK)), 32)
    own = Network(Module(_layers_without_code(), size=16), **QUICK_NETWORK)
    yield "network-of-the-user", on_pictures(estimator(function=own), 16)
    deep = hbmp.get_method("csq")(N_BITS, function=Network("tiny", **QUICK_NETWORK), random_state=0)
    yield "network-csq", on_pictures(deep, 32)
    for name in hbmp.list_methods():
        if name != "hbmp":
            yield f"method-{name}", on_features(_smallest(name), n=120)


def _layers_without_code():
    from torch import nn

    return nn.AdaptiveAvgPool2d(4)


def _smallest(name: str) -> hbmp.Hasher:
    method = hbmp.get_method(name)
    known = method().get_params()
    settings = {"random_state": 0, "device": "cpu"}
    return method(N_BITS, **{**method.smoke, **{key: value for key, value in settings.items() if key in known}})


def answers_of(model: hbmp.Hasher, X: np.ndarray, n_rows: int) -> dict[str, np.ndarray]:
    """What a model returns for the rows whose scores are furthest from zero, so that no sign depends on rounding."""
    taken = hbmp.Images.from_array if X.dtype == np.uint8 else np.asarray
    scores = model.project(taken(X))
    margins = (np.abs(scores) / np.abs(scores).max(axis=0)).min(axis=1)
    _, groups = np.unique(model.transform(taken(X)), axis=0, return_inverse=True)
    rank_in_group = np.empty(len(X))
    for group in np.unique(groups):
        rows = np.flatnonzero(groups == group)
        rank_in_group[rows[np.argsort(-margins[rows])]] = np.arange(len(rows))
    sound = margins > 1e-3
    rows = np.flatnonzero(sound)[np.lexsort((-margins[sound], rank_in_group[sound]))][:n_rows]
    inputs = X[np.sort(rows)]
    found = {"inputs": inputs, "scores": model.project(taken(inputs)), "codes": model.transform(taken(inputs))}
    return {**found, "bit_weights": model.bit_weights_, **_label_codes(model)}


def _label_codes(model: hbmp.Hasher) -> dict[str, np.ndarray]:
    """Codes of labels, for the models that give them."""
    tried = [np.arange(N_CLASSES), np.array(["ant", "bee", "dog"]), 1 - np.tri(N_CLASSES, dtype=np.int8, k=-1)]
    if hasattr(model, "codes_for"):
        for labels in tried:
            try:
                return {"labels": labels, "label_codes": model.codes_for(labels)}
            except (ValueError, LookupError):
                continue
    return {}


def format_number() -> int:
    """The format that this version writes."""
    with tempfile.TemporaryDirectory(dir=FOLDER) as scratch:
        _smallest("lsh").fit(features(20)[0]).save(Path(scratch) / "model")
        return json.loads((Path(scratch) / "model" / "model.json").read_text(encoding="utf-8"))["format"]


def save_model(make: Make, folder: Path) -> None:
    """Fit, save and record one model."""
    model, X = make()
    answers = answers_of(model, np.asarray(X), 6 if np.asarray(X).dtype == np.uint8 else 20)
    folder.parent.mkdir(parents=True, exist_ok=True)
    model.save(folder)
    np.savez_compressed(folder / "answers.npz", **answers)


def save_database(name: str, model: hbmp.Hasher, X, queries: np.ndarray, **more) -> None:
    """Build, save and record one database."""
    database = hbmp.Database.build(model, X, **more)
    folder = FOLDER / "databases" / f"format-{FORMAT}" / name
    if folder.exists():
        return
    folder.mkdir(parents=True)
    database.save(folder / "db")
    _forget_this_machine(folder / "db")
    taken = hbmp.Images.from_array(queries) if queries.dtype == np.uint8 else queries
    distances, ids = database.search(taken, 5)
    labels = np.array([database.labels_of(row) for row in ids])
    np.savez_compressed(
        folder / "answers.npz", inputs=queries, distances=distances, ids=ids, labels=labels, codes=database.codes()
    )


def _forget_this_machine(path: Path) -> None:
    file = DatabaseFile(path)
    facts = file.get("facts")
    if facts["images"] is not None:
        with file.transaction():
            file.put("facts", {**facts, "images": {**facts["images"], "absolute": "/photographs"}})
    file.close()


def save_databases() -> None:
    """One of feature vectors with label sets, one of image files."""
    X, classes = features(120)
    model = _smallest("itq").fit(X, classes)
    ids = np.random.default_rng(1).permutation(1000)[: len(X)]
    labels = {"labels": label_sets(classes), "label_names": ("ant", "bee", "cat", "dog")}
    save_database("features", model, X, X[:4], ids=ids, source={"name": "blobs"}, **labels)

    from PIL import Image

    pixels, quarters = pictures(48, 16)
    network = Network(Module(_layers_without_code(), size=16), **QUICK_NETWORK)
    model = hbmp.HBMP(N_BITS, function=network, random_state=0, device="cpu")
    model.fit(hbmp.Images.from_array(pixels), quarters)
    folder = FOLDER / "pictures"
    for number, (image, quarter) in enumerate(zip(pixels[:8], quarters, strict=False)):
        path = folder / f"quarter {quarter}" / f"{number}.png"
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists():
            Image.fromarray(image).save(path)
    save_database("images", model, hbmp.Images.from_folder(folder), pixels[:2])


def main() -> None:
    """Write what is missing."""
    models = FOLDER / "models" / f"format-{format_number()}"
    for name, make in kinds():
        if not (models / name / "answers.npz").exists():
            print(name, flush=True)
            save_model(make, models / name)
    save_databases()


if __name__ == "__main__":
    main()
