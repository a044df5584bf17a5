"""Data of the command line: features, images or texts, and labels, from files, folders or named data sets.

Features come as .npy (memory-mapped), .npz, Parquet or CSV, one row per item; images as a folder or in Parquet; texts
as a column of CSV, Parquet or JSON lines, or as the lines of a .txt file. Labels come with them, or in a separate file
as .npy, .npz, Parquet, CSV or plain text: one class per row, a matrix of 0 and 1, or lists like `sea;sand`.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np

from hbmp import datasets
from hbmp._core.arrays import as_features, as_labels, as_names, read_npy, read_npz
from hbmp.app.inputs.for_models import inputs_for, vectors_for
from hbmp.app.inputs.images import (
    files_as_images,
    folder_of_images,
    is_folder_of_images,
    is_parquet_of_images,
    parquet_of_images,
    with_images,
)
from hbmp.app.inputs.item_table import TEXT_ENDINGS, ItemTable
from hbmp.app.inputs.tables import LABEL_NAMES, csv_features, csv_labels, text_labels
from hbmp.app.inputs.texts import holds_texts, read_texts
from hbmp.datasets import Data
from hbmp.datasets.image_folder import names_files
from hbmp.hasher import Hasher
from hbmp.images.files import is_image_file

FEATURES = (".npy", ".npz", ".parquet", ".pq", ".csv", ".tsv")
LABELS = (*FEATURES, ".txt")
__all__ = [
    "in_the_same_columns",
    "inputs_for",
    "read_data",
    "read_features",
    "read_labels",
    "read_queries",
    "read_with_queries",
    "rows_or_share",
    "vectors_for",
]
_KINDS = ("no labels", "classes", "multi-label rows")
_FEATURE_NAMES = ("features", "X", "x", "embeddings", "data")


def read_data(
    source: str | Path,
    labels: str | Path | None = None,
    *,
    column: str | None = None,
    data_dir: str | Path | None = None,
    images: bool = False,
) -> Data:
    """Read features and their labels, if any; a file of labels has precedence over labels with the features.

    `source` is a file of features, a folder with `features.npy`, or the name of a data set (`hbmp list datasets`). With
    `images` it may be a folder of images, Parquet with a column `image`, or an image; these become `hbmp.Images`. It
    may also be a table of texts in `column`; `labels` may then name another column.
    """
    path = Path(source)
    if column is not None and not path.is_file():
        raise ValueError(f"--column names a text column, but {source} is not a file.")
    if path.is_file() and holds_texts(path, column):
        if not images:
            raise ValueError(_takes_features(path, "holds texts"))
        names = ItemTable(path).names
        in_table = labels is not None and str(labels) in names
        if labels is not None and not in_table and not Path(labels).exists():
            raise ValueError(
                f"--labels {labels} is neither a column of {path} nor a file. The columns are {', '.join(names)}."
            )
        data = read_texts(path, column, str(labels) if in_table else None)
        labels = None if in_table else labels
    elif not path.exists():
        data = _by_name(str(source), data_dir, images)
    elif path.is_dir():
        data = _folder(path, labels, images)
    else:
        data = _file(path, images)
    if labels is None or (data.features is None and names_files(Path(labels))):
        if labels is not None and path.exists() and is_parquet_of_images(path):
            raise ValueError(f"{labels} names image files, but {source} is Parquet: pass one label per row instead.")
        return data
    values, names = read_labels(labels)
    if len(values) != len(data):
        raise ValueError(f"{source} has {len(data)} rows but {labels} has {len(values)}; every row needs its label.")
    return replace(data, labels=values, label_names=names)


def read_features(source: str | Path, *, data_dir: str | Path | None = None) -> np.ndarray:
    """Read features without labels, (n, d) float32 or float16."""
    return np.asanyarray(read_data(source, data_dir=data_dir).features)


def read_queries(
    sources: Sequence[str],
    *,
    model: Hasher | None = None,
    column: str | None = None,
    data_dir: str | Path | None = None,
) -> Data:
    """Read queries: features, images or texts from one source, several image files, or, for a model of texts, words."""
    if not all(source.strip() for source in sources):
        raise ValueError("A query is empty. Pass words, or the name of a file.")
    takes_texts = getattr(getattr(model, "input_encoder_", None), "takes", "") == "texts"
    if takes_texts and not any(_names_a_place(source, data_dir) for source in sources):
        return Data(name="texts", labels=None, texts=list(sources))
    if len(sources) == 1:
        return read_data(sources[0], column=column, data_dir=data_dir, images=True)
    return files_as_images(sources)


def read_labels(path: str | Path) -> tuple[np.ndarray, tuple[str, ...]]:
    """Read labels: classes (n,) or 0/1 rows (n, c) uint8, and the names of the c labels where the file has them."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no labels file {path}.")
    ending = path.suffix.lower()
    if ending == ".npy":
        return as_labels(read_npy(path), path), ()
    if ending == ".npz":
        arrays = read_npz(path)
        return as_labels(_named(arrays, LABEL_NAMES, path, "labels"), path), as_names(arrays, path)
    if ending in (".parquet", ".pq"):
        from hbmp._core.parquet import read_parquet_labels

        arrays = read_parquet_labels(path, LABEL_NAMES)
        return as_labels(arrays["labels"], path), as_names(arrays, path)
    if ending in (".csv", ".tsv"):
        return csv_labels(path)
    if ending == ".txt":
        return text_labels(path)
    raise ValueError(f"{path} is not a file of labels; these end in {', '.join(LABELS)}.")


def read_with_queries(options: argparse.Namespace, *, images: bool = False) -> tuple[Data, Data | None]:
    """Read the data of a command line and those of `--query-data`, with labels in the same columns."""
    settings = {"column": getattr(options, "column", None), "data_dir": options.data_dir, "images": images}
    data = read_data(options.data, options.labels, **settings)
    if options.query_data is None:
        if options.query_labels is not None:
            raise ValueError("--query-labels needs --query-data.")
        return data, None
    queries = read_data(options.query_data, options.query_labels, **settings)
    return in_the_same_columns(data, queries)


def rows_or_share(text: str | None) -> float | None:
    """A number of rows from `500`, a fraction from `0.1`."""
    if text is None:
        return None
    try:
        return int(text) if text.isdecimal() else float(text)
    except ValueError:
        raise ValueError(f"{text!r} is neither a number of rows nor a fraction below 1.") from None


def in_the_same_columns(first: Data, second: Data) -> tuple[Data, Data]:
    """Both data sets with label matrices over the union of their label names, if they have names."""
    kinds = [_KINDS[0 if data.labels is None else data.labels.ndim] for data in (first, second)]
    if kinds[0] != kinds[1]:
        raise ValueError(f"{first.name} has {kinds[0]} and {second.name} has {kinds[1]}; both need the same kind.")
    shapes = [() if data.labels is None else data.labels.shape for data in (first, second)]
    named = shapes == [(len(data), len(data.label_names)) for data in (first, second)]
    if not named or first.label_names == second.label_names:
        return first, second
    union = tuple(sorted({*first.label_names, *second.label_names}))
    return _over(union, first), _over(union, second)


def _names_a_place(source: str, data_dir: str | Path | None) -> bool:
    """Whether a query is the name of a file, a folder or a data set rather than a text."""
    known = Path(source).suffix.lower() in (*LABELS, *TEXT_ENDINGS) or is_image_file(source)
    return (known and " " not in source) or Path(source).exists() or source in datasets.names()


def _over(names: tuple[str, ...], data: Data) -> Data:
    column_of = {name: column for column, name in enumerate(names)}
    labels = np.zeros((len(data), len(names)), dtype=np.uint8)
    labels[:, [column_of[name] for name in data.label_names]] = np.asarray(data.labels)
    return replace(data, labels=labels, label_names=names)


def _by_name(name: str, data_dir: str | Path | None, images: bool) -> Data:
    if Path(name).suffix.lower() in LABELS or is_image_file(name):
        raise ValueError(f"There is no file {name}.")
    data = datasets.load(name, data_dir)
    if data.features is None and not images:
        raise ValueError(_takes_features(name, "holds images"))
    return with_images(data) if data.features is None else data


def _folder(folder: Path, labels: str | Path | None, images: bool) -> Data:
    if any(folder.glob("features.*")):
        return datasets.get("feature-arrays").load(folder)
    in_parquet = is_parquet_of_images(folder)
    if not in_parquet and not is_folder_of_images(folder):
        raise ValueError(f"{folder} holds neither images nor features.npy, features.npz or features.parquet.")
    if not images:
        raise ValueError(_takes_features(folder, "is a folder of images"))
    if in_parquet:
        return parquet_of_images(folder, LABEL_NAMES)
    return folder_of_images(folder, None if labels is None else Path(labels))


def _file(path: Path, images: bool) -> Data:
    ending = path.suffix.lower()
    if is_image_file(path):
        if not images:
            raise ValueError(_takes_features(path, "is an image"))
        return files_as_images([path])
    if is_parquet_of_images(path):
        if not images:
            raise ValueError(_takes_features(path, "holds images"))
        return parquet_of_images(path, LABEL_NAMES)
    if ending in (".csv", ".tsv"):
        features, labels, names = csv_features(path)
        return Data(name=path.stem, features=features, labels=labels, label_names=names)
    if ending == ".npz":
        arrays = read_npz(path)
        label_key = next((name for name in LABEL_NAMES if name in arrays), None)
        return Data(
            name=path.stem,
            features=as_features(_named(arrays, _FEATURE_NAMES, path, "features"), path),
            labels=None if label_key is None else as_labels(arrays[label_key], path),
            label_names=as_names(arrays, path),
        )
    if ending in FEATURES:
        return datasets.get("feature-arrays").load(path)
    raise ValueError(f"{path} is not a feature file; feature files end in {', '.join(FEATURES)}.")


def _named(arrays: dict[str, np.ndarray], names: tuple[str, ...], path: Path, what: str) -> np.ndarray:
    """The array with one of these names, or the only array."""
    found = next((name for name in names if name in arrays), None)
    if found is None and len(arrays) == 1:
        (found,) = arrays
    if found is None:
        raise ValueError(f"{path} holds {', '.join(arrays)}; rename the array of {what} to '{names[0]}'.")
    return arrays[found]


def _takes_features(place: str | Path, what: str) -> str:
    return (
        f"{place} {what}, but this command needs features: compute them with `hbmp features`. `hbmp fit`, `index`, "
        "`search`, `evaluate` and `serve` take texts and images."
    )
