"""Data sets of the user's own, image folders and feature arrays, and the frame around all data sets."""

from __future__ import annotations

import csv
import hashlib
from pathlib import Path

import numpy as np
import pytest

import hbmp
from hbmp import datasets
from hbmp._core import catalog


def rng():
    return np.random.default_rng(0)


# --- image folders --------------------------------------------------------------------------------------------------


def touch(folder, *names):
    for name in names:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).touch()


def test_classes_by_folder(tmp_path):
    touch(tmp_path / "pets", "dog/b.JPG", "dog/a.png", "cat/deep/c.webp", "cat/notes.txt")
    data = datasets.load("pets", tmp_path)
    assert data.labels.tolist() == ["cat", "dog", "dog"]
    assert [Path(image).name for image in data.images] == ["c.webp", "a.png", "b.JPG"]
    assert (data.name, data.label_names, data.split) == ("pets", ("cat", "dog"), None)


def test_train_and_test_folders_become_the_split(tmp_path):
    touch(tmp_path / "pets", "train/dog/a.jpg", "test/dog/b.jpg", "database/cat/c.jpg")
    data = datasets.load("pets", tmp_path)
    assert data.split.tolist() == [2, 0, 1]
    assert data.labels.tolist() == ["cat", "dog", "dog"]


@pytest.mark.parametrize("header", [True, False])
def test_labels_by_table(tmp_path, header):
    folder = tmp_path / "pets"
    touch(folder, "a.jpg", "b, c.jpg")
    with (folder / "labels.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerows([["file", "label"]] if header else [])
        writer.writerows([["b, c.jpg", "dog"], ["a.jpg", "cat"]])
    data = datasets.load("pets", tmp_path)
    assert data.labels.tolist() == ["dog", "cat"]
    assert [Path(image).name for image in data.images] == ["b, c.jpg", "a.jpg"]


def test_label_sets_by_table(tmp_path):
    folder = tmp_path / "pets"
    touch(folder, "a.jpg", "b.jpg", "c.jpg")
    (folder / "labels.csv").write_text("file,labels\na.jpg,dog; grass\nb.jpg,grass\nc.jpg,\n")
    data = datasets.load("pets", tmp_path)
    assert data.label_names == ("dog", "grass")
    assert data.labels.tolist() == [[1, 1], [0, 1], [0, 0]]


@pytest.mark.parametrize(
    ("files", "table", "sentence"),
    [
        (["a.jpg"], None, "is outside every class"),
        (["a.jpg"], "a.jpg,dog,cat\n", "must hold lines of file,label"),
        (["a.jpg"], "a.jpg,dog\nb.jpg,cat\n", r"names .*b\.jpg, which does not exist \(1 such files\)"),
        (["a.jpg"], "file,label\n", "found no lines"),
        (["a.txt"], None, "lacks images"),
    ],
)
def test_wrong_image_folders_are_told(tmp_path, files, table, sentence):
    touch(tmp_path / "pets", *files)
    if table is not None:
        (tmp_path / "pets" / "labels.csv").write_text(table)
    with pytest.raises((ValueError, datasets.MissingData), match=sentence):
        datasets.load("pets", tmp_path)


# --- feature arrays -------------------------------------------------------------------------------------------------


def test_features_in_a_folder(tmp_path):
    folder = tmp_path / "mine"
    folder.mkdir()
    features = rng().random((5, 3)).astype(np.float16)
    np.save(folder / "features.npy", features)
    np.save(folder / "labels.npy", np.array([3, 1, 1, 2, 0]))
    data = datasets.load("mine", tmp_path)
    assert np.array_equal(data.features, features)
    assert isinstance(data.features, np.memmap)
    assert data.labels.tolist() == [3, 1, 1, 2, 0]


def test_label_sets_split_and_names_beside_features(tmp_path):
    folder = tmp_path / "coco"
    folder.mkdir()
    labels = rng().integers(0, 2, (5, 4))
    np.save(folder / "features.npy", rng().random((5, 3)))
    np.savez(folder / "labels.npz", labels=labels, split=np.uint8([0, 1, 2, 2, 1]), classes=np.array(list("abcd")))
    data = datasets.load("coco", tmp_path)
    assert data.features.dtype == np.float32
    assert np.array_equal(data.labels, labels)
    assert data.labels.dtype == np.uint8
    assert data.split.tolist() == [0, 1, 2, 2, 1]
    assert data.label_names == ("a", "b", "c", "d")


def test_voc_val_asks_and_train_answers(tmp_path):
    (tmp_path / "voc2007").mkdir()
    np.save(tmp_path / "voc2007" / "features.npy", np.zeros((3, 2), np.float32))
    np.savez(tmp_path / "voc2007" / "labels.npz", labels=np.eye(3, 20), split=np.uint8([0, 1, 1]))
    assert datasets.load("voc2007", tmp_path).split.tolist() == [1, 0, 0]


def test_gist22k_is_named_a_stand_in(tmp_path):
    (tmp_path / "gist22k").mkdir()
    np.save(tmp_path / "gist22k" / "gist.npy", np.zeros((3, 512), np.float16))
    np.save(tmp_path / "gist22k" / "classes.npy", np.uint8([0, 1, 199]))
    data = datasets.load("gist22k", tmp_path)
    assert data.stand_in_for == "22K LabelMe"
    assert data.labels.tolist() == [0, 1, 199]


@pytest.mark.parametrize("as_lists", [True, False])
@pytest.mark.parametrize("in_folder", [True, False])
def test_parquet(tmp_path, as_lists, in_folder):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    features = rng().random((4, 3)).astype(np.float32)
    columns = {"features": list(features)} if as_lists else {f"f{column}": features[:, column] for column in range(3)}
    path = tmp_path / ("mine/features.parquet" if in_folder else "mine.parquet")
    path.parent.mkdir(exist_ok=True)
    parquet.write_table(pyarrow.table({**columns, "labels": ["x", "y", "x", "z"], "split": [0, 1, 1, 2]}), path)
    data = datasets.load("mine" if in_folder else "mine.parquet", tmp_path)
    assert np.array_equal(data.features, features)
    assert data.labels.tolist() == ["x", "y", "x", "z"]
    assert data.split.tolist() == [0, 1, 1, 2]
    assert data.name == "mine"


def test_parquet_with_lists_of_labels(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    table = pyarrow.table({"features": [[1.0, 2.0], [3.0, 4.0], [5.0, 6.0]], "labels": [["b", "a"], [], ["b"]]})
    parquet.write_table(table, tmp_path / "mine.parquet")
    data = datasets.load("mine.parquet", tmp_path)
    assert data.labels.tolist() == [[1, 1], [0, 0], [0, 1]]
    assert data.label_names == ("a", "b")


def test_parquet_beyond_memory_is_read_a_batch_at_a_time_into_a_mapped_file(tmp_path, monkeypatch):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    from hbmp._core import parquet_rows

    X = np.arange(3000, dtype=np.float32).reshape(1000, 3)
    table = pyarrow.table({"features": X.tolist(), "labels": ["x", "y"] * 500}, schema=None)
    parquet.write_table(table, tmp_path / "mine.parquet", row_group_size=300)
    whole = datasets.load("mine.parquet", tmp_path)
    monkeypatch.setattr(parquet_rows, "_IN_MEMORY", 100)
    monkeypatch.setattr(parquet_rows, "_BATCH", 64)
    mapped = parquet_rows.read_rows(tmp_path / "mine.parquet", "features")
    assert isinstance(mapped, np.memmap)
    np.testing.assert_array_equal(mapped, X)
    np.testing.assert_array_equal(whole.features, X)
    assert list(whole.labels[:2]) == ["x", "y"]


def test_parquet_with_lists_of_unequal_length(tmp_path):
    pyarrow = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    parquet.write_table(pyarrow.table({"features": [[1.0], [2.0, 3.0, 4.0]]}), tmp_path / "mine.parquet")
    with pytest.raises(ValueError, match="must all be of one length"):
        datasets.load("mine.parquet", tmp_path)


def test_one_npz_file(tmp_path):
    np.savez(tmp_path / "mine.npz", features=np.eye(3), labels=np.arange(3))
    data = datasets.load("mine.npz", tmp_path)
    assert np.array_equal(data.features, np.eye(3))
    assert data.labels.tolist() == [0, 1, 2]


def test_pickles_are_never_read(tmp_path):
    (tmp_path / "mine").mkdir()
    np.save(tmp_path / "mine" / "features.npy", np.array([{"a": 1}], dtype=object), allow_pickle=True)
    with pytest.raises(ValueError, match="cannot be read as an array"):
        datasets.load("mine", tmp_path)
    np.savez(tmp_path / "mine.npz", features=np.array([{"a": 1}], dtype=object))
    with pytest.raises(ValueError, match="cannot be read as arrays"):
        datasets.load("mine.npz", tmp_path)


@pytest.mark.parametrize(
    ("features", "labels", "sentence"),
    [
        (np.zeros((3, 2)), np.zeros(4), "must have one row of each kind per item; found 4 rows of labels, 3 rows"),
        (np.zeros(3), np.zeros(3), r"Features must be an \(n, d\) array of numbers; .* shape \(3,\)"),
        (
            np.zeros((3, 2)),
            np.full((3, 2), 2),
            r"Labels must be \(n,\) classes, as numbers or texts, or an \(n, labels\) matrix of 0 and 1",
        ),
    ],
)
def test_arrays_that_do_not_fit_are_told(tmp_path, features, labels, sentence):
    (tmp_path / "mine").mkdir()
    np.save(tmp_path / "mine" / "features.npy", features)
    np.save(tmp_path / "mine" / "labels.npy", labels)
    with pytest.raises(ValueError, match=sentence):
        datasets.load("mine", tmp_path)


def test_an_array_cut_short_is_told(tmp_path):
    (tmp_path / "mine").mkdir()
    path = tmp_path / "mine" / "features.npy"
    np.save(path, np.zeros((30, 20)))
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(ValueError, match=r"features\.npy cannot be read as an array"):
        datasets.load("mine", tmp_path)


# --- the frame ------------------------------------------------------------------------------------------------------


def test_the_data_directory(monkeypatch):
    monkeypatch.delenv("HBMP_DATA", raising=False)
    assert datasets.data_dir() == Path("data")
    monkeypatch.setenv("HBMP_DATA", "/elsewhere")
    assert datasets.data_dir() == Path("/elsewhere")
    assert datasets.data_dir("here") == Path("here")


def test_an_unknown_name_gets_the_nearest(tmp_path):
    with pytest.raises(LookupError, match=r"No data set called 'cifar1'\. Did you mean 'cifar10'\? There are"):
        datasets.load("cifar1", tmp_path)
    with pytest.raises(LookupError, match="Did you mean 'fashion-mnist'"):
        datasets.get("fashion-mnst")


def test_the_checksum_is_of_labels_and_features():
    def data(labels=(0, 1), features=((1, 2), (3, 4)), **more):
        return datasets.Data("d", np.array(labels), np.array(features, dtype=np.float32), **more)

    assert data().checksum() == data(label_names=("a", "b"), split=np.zeros(2)).checksum()
    assert len({data().checksum(), data(labels=(1, 0)).checksum(), data(features=((1, 2), (3, 5))).checksum()}) == 3
    digest = hashlib.sha256()
    for array in (data().labels, data().features):
        digest.update(f"{array.shape}{array.dtype}".encode() + array.tobytes())
    assert data().checksum() == digest.hexdigest()[:16]


def test_digits_need_no_files(tmp_path):
    data = datasets.load("digits", tmp_path)
    assert data.features.shape == (1797, 64)
    assert data.images.shape == (1797, 8, 8, 3)
    assert (data.features.min(), data.features.max()) == (0, 1)
    assert (data.images.min(), data.images.max()) == (0, 255)


@pytest.mark.parametrize("name", datasets.names())
def test_every_data_set_carries_its_facts(name):
    dataset = datasets.get(name)
    assert dataset.name() == name
    assert dataset.title
    assert dataset.licence
    assert dataset.layout
    assert dataset.files or dataset.how_to_get
    for remote in dataset.files:
        assert remote.url.startswith(("http://", "https://"))
        assert remote.url.endswith(remote.filename)
        assert len(remote.sha256) in (0, 64)
        assert len(remote.md5) in (0, 32)
        assert bool(remote.bytes) == bool(remote.sha256 or remote.md5)


def test_the_guide_names_every_data_set():
    guide = (Path(hbmp.__file__).parents[2] / "docs" / "datasets.md").read_text(encoding="utf-8")
    assert all(f"`{name}`" in guide for name in datasets.names())
    assert set(catalog.names("datasets")) == {name.replace("-", "_") for name in datasets.names()}
