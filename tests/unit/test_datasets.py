"""Loaders on small files in the official layouts, written here; what is wrong with a file is told in one sentence."""

from __future__ import annotations

import csv
import gzip
import hashlib
import struct
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

import hbmp
from hbmp import catalog, datasets

SHARED = Path(hbmp.__file__).parents[3] / "shared" / "data"


def rng():
    return np.random.default_rng(0)


# --- CIFAR-10 -------------------------------------------------------------------------------------------------------


def write_cifar(folder, per_batch=4):
    """Six batches written byte by byte; the (n, 32, 32, 3) images and (n,) labels they stand for."""
    folder.mkdir(parents=True)
    images = rng().integers(0, 256, (6 * per_batch, 32, 32, 3), dtype=np.uint8)
    labels = rng().integers(0, 10, 6 * per_batch)
    names = [*(f"data_batch_{number}.bin" for number in range(1, 6)), "test_batch.bin"]
    for batch, name in enumerate(names):
        content = bytearray()
        for row in range(batch * per_batch, (batch + 1) * per_batch):
            content.append(labels[row])
            for channel in range(3):
                for y in range(32):
                    content.extend(int(images[row, y, x, channel]) for x in range(32))
        (folder / name).write_bytes(content)
    (folder / "batches.meta.txt").write_text("\n".join("abcdefghij") + "\n\n")
    return images, labels


@pytest.mark.parametrize("inside", ["", "cifar-10-batches-bin"])
def test_cifar10_is_read_byte_by_byte_in_official_order(tmp_path, inside):
    images, labels = write_cifar(tmp_path / "cifar10" / inside)
    data = datasets.load("cifar10", tmp_path)
    assert np.array_equal(data.images, images)
    assert data.images.dtype == np.uint8
    assert np.array_equal(data.labels, labels)
    assert data.label_names == tuple("abcdefghij")
    assert data.split.tolist() == [1] * 20 + [0] * 4
    assert (data.name, len(data), data.features) == ("cifar10", 24, None)


def test_a_truncated_cifar_batch_is_named(tmp_path):
    write_cifar(tmp_path / "cifar10")
    path = tmp_path / "cifar10" / "data_batch_3.bin"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ValueError, match=r"data_batch_3\.bin must hold whole records of 3073 bytes; found 12291 bytes"):
        datasets.load("cifar10", tmp_path)


def test_a_cifar_class_that_cannot_be_is_refused(tmp_path):
    write_cifar(tmp_path / "cifar10")
    path = tmp_path / "cifar10" / "test_batch.bin"
    path.write_bytes(bytes([77]) + path.read_bytes()[1:])
    with pytest.raises(ValueError, match="has class 77 where CIFAR-10 has 0 to 9"):
        datasets.load("cifar10", tmp_path)


def test_missing_data_say_how_to_get_them(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HBMP_DATA", raising=False)
    with pytest.raises(datasets.MissingData) as caught:
        datasets.load("cifar10")
    assert str(caught.value) == (
        "CIFAR-10 is not under data/cifar10. Run `hbmp fetch cifar10` (162 MB), or pass --data-dir."
    )
    write_cifar(tmp_path / "data" / "cifar10")
    (tmp_path / "data" / "cifar10" / "test_batch.bin").unlink()
    with pytest.raises(datasets.MissingData, match=r"CIFAR-10 under data/cifar10 lacks test_batch\.bin\. Run `hbmp"):
        datasets.load("cifar10")


# --- IDX ------------------------------------------------------------------------------------------------------------


def idx(array):
    header = struct.pack(f">BBBB{array.ndim}I", 0, 0, 8, array.ndim, *array.shape)
    return header + array.astype(np.uint8).tobytes()


def write_idx(folder, packed):
    folder.mkdir(parents=True)
    images = rng().integers(0, 256, (7, 28, 28), dtype=np.uint8)
    labels = np.arange(7) % 10
    for part, rows in (("train", slice(0, 5)), ("t10k", slice(5, 7))):
        for kind, content in (("images-idx3", images[rows]), ("labels-idx1", labels[rows])):
            path = folder / f"{part}-{kind}-ubyte{'.gz' if packed else ''}"
            path.write_bytes(gzip.compress(idx(content)) if packed else idx(content))
    return images, labels


@pytest.mark.parametrize("packed", [False, True])
@pytest.mark.parametrize("name", ["mnist", "fashion-mnist"])
def test_idx_files_packed_or_not(tmp_path, name, packed):
    images, labels = write_idx(tmp_path / name, packed)
    data = datasets.load(name, tmp_path)
    assert np.array_equal(data.labels, labels)
    assert data.images.shape == (7, 28, 28, 3)
    for channel in range(3):
        assert np.array_equal(data.images[..., channel], images)
    assert data.features.dtype == np.float32
    np.testing.assert_allclose(data.features[3, 29] * 255, images[3, 1, 1], rtol=1e-6)
    assert data.split.tolist() == [1, 1, 1, 1, 1, 0, 0]
    assert len(data.label_names) == 10


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (lambda content: b"\0\0\x0d\x03" + content[4:], "must begin with 00000803.*found 00000d03"),
        (lambda content: content[:-1], "announces 3920 bytes of content; found 3919"),
        (lambda content: content + b"x", "announces 3920 bytes of content; found 3921"),
        (lambda content: content[:9], "ends inside its header, after 9 bytes"),
        (lambda content: b"", "found nothing"),
    ],
)
def test_malformed_idx_files_are_told(tmp_path, change, sentence):
    write_idx(tmp_path / "mnist", packed=False)
    path = tmp_path / "mnist" / "train-images-idx3-ubyte"
    path.write_bytes(change(path.read_bytes()))
    with pytest.raises(ValueError, match=sentence):
        datasets.load("mnist", tmp_path)


def test_a_truncated_gzip_file_is_told(tmp_path):
    write_idx(tmp_path / "mnist", packed=True)
    path = tmp_path / "mnist" / "t10k-labels-idx1-ubyte.gz"
    path.write_bytes(path.read_bytes()[:-6])
    with pytest.raises(ValueError, match="is not a whole gzip file"):
        datasets.load("mnist", tmp_path)


def test_as_many_labels_as_images(tmp_path):
    write_idx(tmp_path / "mnist", packed=False)
    (tmp_path / "mnist" / "train-labels-idx1-ubyte").write_bytes(idx(np.zeros(4)))
    with pytest.raises(ValueError, match="5 train images but 4 labels"):
        datasets.load("mnist", tmp_path)


# --- NUS-WIDE -------------------------------------------------------------------------------------------------------


def nus_labels(count=60):
    """Labels in which concept k of 81 is on about 81 - k of 81 images; some images carry only rare concepts."""
    labels = (rng().random((count, 81)) < np.linspace(0.3, 0.01, 81)).astype(np.uint8)
    labels[:5, :60] = 0
    return labels[:, rng().permutation(81)]


def expected_top21(labels):
    """The definition, slowly: the columns with most ones, then the rows that have one of them."""
    order = sorted(range(81), key=lambda column: (-int(labels[:, column].sum()), column))[:21]
    rows = [row for row in range(len(labels)) if any(labels[row, column] for column in order)]
    return rows, order


def nus_concepts():
    from hbmp.datasets.nuswide import _CONCEPTS

    return _CONCEPTS


def write_nus(folder, labels, form):
    folder.mkdir(parents=True)
    if form == "npz":
        np.savez(folder / "labels81.npz", labels=labels, concepts=np.array(nus_concepts()), top21=np.arange(21))
    elif form == "matrix":
        np.savetxt(folder / "AllLabels81.txt", labels, fmt="%d")
    else:
        place = folder / "Groundtruth" / "AllLabels"
        place.mkdir(parents=True)
        for column, concept in enumerate(nus_concepts()):
            (place / f"Labels_{concept}.txt").write_text(
                "\r\n".join(str(value) for value in labels[:, column]) + "\r\n"
            )


@pytest.mark.parametrize("form", ["files", "matrix", "npz"])
def test_nuswide_keeps_the_21_most_frequent_concepts(tmp_path, form):
    labels = nus_labels()
    write_nus(tmp_path / "nuswide", labels, form)
    data = datasets.load("nuswide", tmp_path)
    rows, order = expected_top21(labels)
    assert 0 < len(rows) < len(labels)
    assert np.array_equal(data.labels, labels[np.ix_(rows, order)])
    assert data.labels.dtype == np.uint8
    assert data.label_names == tuple(nus_concepts()[column] for column in order)
    assert data.images is None


def test_nuswide_images_and_features_follow_the_kept_rows(tmp_path):
    labels = nus_labels()
    folder = tmp_path / "nuswide"
    write_nus(folder, labels, "matrix")
    (folder / "ImageList").mkdir()
    (folder / "Flickr").mkdir()
    names = [f"actor\\{row:04}_1.jpg" for row in range(len(labels))]
    (folder / "ImageList" / "Imagelist.txt").write_text("\r\n".join(names) + "\r\n")
    np.save(folder / "features.npy", np.arange(len(labels), dtype=np.float16)[:, None])
    data = datasets.load("nuswide", tmp_path)
    rows, _ = expected_top21(labels)
    assert data.images == [str(folder / "Flickr" / f"actor/{row:04}_1.jpg") for row in rows]
    assert data.features[:, 0].tolist() == rows


@pytest.mark.parametrize(
    ("path", "content", "sentence"),
    [
        ("AllLabels81.txt", "0 1 2 " * 27, "must hold zeros and ones between blanks"),
        ("AllLabels81.txt", "01 " * 81, "must hold zeros and ones between blanks"),
        ("AllLabels81.txt", "0 " * 80, "must hold 81 values a line; found 80 values"),
        ("AllLabels/Labels_sky.txt", "0\n1\n", "it lacks airport, animal, beach"),
    ],
)
def test_malformed_nuswide_files_are_told(tmp_path, path, content, sentence):
    file = tmp_path / "nuswide" / path
    file.parent.mkdir(parents=True)
    file.write_text(content)
    with pytest.raises(ValueError, match=sentence):
        datasets.load("nuswide", tmp_path)


def test_nuswide_label_files_of_unequal_length(tmp_path):
    write_nus(tmp_path / "nuswide", nus_labels(), "files")
    (tmp_path / "nuswide" / "Groundtruth" / "AllLabels" / "Labels_sky.txt").write_text("0\n1\n")
    with pytest.raises(ValueError, match=r"equally long; found \[2, 60\], shortest Labels_sky\.txt"):
        datasets.load("nuswide", tmp_path)


@pytest.mark.shared
@pytest.mark.skipif(not (SHARED / "nuswide").is_dir(), reason="the real labels are not beside the checkout")
def test_the_real_nuswide_labels():
    data = datasets.load("nuswide", SHARED)
    assert data.labels.shape == (195_834, 21)
    assert len({row.tobytes() for row in data.labels}) == 4_580
    assert data.label_names[:3] == ("sky", "clouds", "person")


# --- 22K LabelMe ----------------------------------------------------------------------------------------------------


def test_labelme_gist_and_images(tmp_path):
    (tmp_path / "labelme").mkdir()
    gist = rng().random((6, 512))
    img = rng().integers(0, 256, (32, 32, 3, 6), dtype=np.uint8)
    savemat(tmp_path / "labelme" / "LabelMe_gist.mat", {"gist": gist, "img": img, "nmat": np.zeros((2, 2))})
    data = datasets.load("labelme", tmp_path)
    np.testing.assert_allclose(data.features, gist, rtol=1e-6)
    assert data.features.dtype == np.float32
    assert data.labels is None
    for row in range(6):
        assert np.array_equal(data.images[row], img[:, :, :, row])


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        (b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(512), r"MATLAB 7\.3 \(HDF5\).*'-v7'"),
        (b"nothing of the kind" * 20, "cannot be read as a MATLAB file"),
        (b"", "cannot be read as a MATLAB file"),
    ],
)
def test_other_files_instead_of_labelme_are_told(tmp_path, content, sentence):
    (tmp_path / "labelme").mkdir()
    (tmp_path / "labelme" / "LabelMe_gist.mat").write_bytes(content)
    with pytest.raises(ValueError, match=sentence):
        datasets.load("labelme", tmp_path)


def test_labelme_cut_short_or_without_gist(tmp_path):
    path = tmp_path / "labelme" / "LabelMe_gist.mat"
    path.parent.mkdir()
    savemat(path, {"gist": rng().random((6, 512))})
    path.write_bytes(path.read_bytes()[:3000])
    with pytest.raises(ValueError, match="cannot be read as a MATLAB file"):
        datasets.load("labelme", tmp_path)
    savemat(path, {"img": np.zeros((2, 2))})
    with pytest.raises(ValueError, match="must hold a matrix called gist"):
        datasets.load("labelme", tmp_path)


# --- ImageNet100 ----------------------------------------------------------------------------------------------------


def one_hot(label, count=100):
    return " ".join("1" if column == label else "0" for column in range(count))


def write_imagenet(folder, pieces=False):
    """Three classes, lists with the paths of another machine; training images are in the database list again."""
    train = [(f"n{label:08}/n{label:08}_{number}.JPEG", label) for label in range(3) for number in range(2)]
    further = [(f"n{label:08}/n{label:08}_{number}.JPEG", label) for label in range(3) for number in range(2, 4)]
    queries = [(f"ILSVRC2012_val_{label:08}.JPEG", label) for label in range(3)]
    for name, _ in (*train, *further):
        (folder / "train" / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / "train" / name).touch()
    (folder / "val_image").mkdir()
    for name, _ in queries:
        (folder / "val_image" / name).touch()
    texts = {
        "train": [f"/home/them/imagenet/image/{name} {one_hot(label)}" for name, label in train],
        "test": [f"./data/imagenet/val_image/{name} {one_hot(label)}" for name, label in queries],
        "database": [f"/home/them/imagenet/image/{name} {one_hot(label)}" for name, label in (*train, *further)],
    }
    (folder / "test").mkdir()
    for part, lines in texts.items():
        if pieces and part != "train":
            (folder / "test" / f"{part}0.txt").write_text("\n".join(lines[:2]) + "\n")
            (folder / "test" / f"{part}1.txt").write_text("\n".join(lines[2:]) + "\n")
        else:
            (folder / f"{part}.txt").write_text("\n".join(lines) + "\n")


@pytest.mark.parametrize("pieces", [False, True])
def test_imagenet100_lists(tmp_path, pieces):
    folder = tmp_path / "imagenet100"
    write_imagenet(folder, pieces)
    data = datasets.load("imagenet100", tmp_path)
    assert data.split.tolist() == [1] * 6 + [0] * 3 + [2] * 6
    assert data.labels.tolist() == [0, 0, 1, 1, 2, 2, 0, 1, 2, 0, 0, 1, 1, 2, 2]
    assert data.images[0] == str(folder / "train/n00000000/n00000000_0.JPEG")
    assert data.images[6] == str(folder / "val_image/ILSVRC2012_val_00000000.JPEG")
    assert all(Path(image).is_file() for image in data.images)


def test_imagenet100_says_what_is_missing_or_wrong(tmp_path):
    with pytest.raises(datasets.MissingData, match=r"ImageNet100 is not under .*Ask for ImageNet .*image-net\.org"):
        datasets.load("imagenet100", tmp_path)
    folder = tmp_path / "imagenet100"
    write_imagenet(folder)
    (folder / "train/n00000000/n00000000_0.JPEG").unlink()
    with pytest.raises(datasets.MissingData, match=r"lacks .*n00000000_0\.JPEG and 0 more images"):
        datasets.load("imagenet100", tmp_path)
    (folder / "train.txt").write_text("image/a.JPEG 0 1 1 0\n")
    with pytest.raises(ValueError, match="class number or 0/1 columns with one 1; found '0 1 1 0'"):
        datasets.load("imagenet100", tmp_path)
    (folder / "train.txt").write_text("image/a.JPEG 3\nimage/b.JPEG\n")
    with pytest.raises(ValueError, match=r"Line 2 of .*train\.txt must hold an image path and its labels"):
        datasets.load("imagenet100", tmp_path)


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
        (["a.jpg"], None, "lies outside every class"),
        (["a.jpg"], "a.jpg,dog,cat\n", "must hold lines of file,label"),
        (["a.jpg"], "a.jpg,dog\nb.jpg,cat\n", r"names .*b\.jpg, which is not there \(1 such files\)"),
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
        (np.zeros((3, 2)), np.zeros(4), "must have one row of each kind an item; found 4 rows of labels, 3 rows"),
        (np.zeros(3), np.zeros(3), r"Features must be an \(n, d\) array of numbers; .* shape \(3,\)"),
        (np.zeros((3, 2)), np.full((3, 2), 2), r"Labels must be \(n,\) classes or an \(n, labels\) matrix of 0 and 1"),
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
