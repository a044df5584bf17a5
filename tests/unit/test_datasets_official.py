"""Loaders of public data sets on small files in their official layouts, written here."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path

import numpy as np
import pytest
from scipy.io import savemat

import hbmp
from hbmp import datasets

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
    with pytest.raises(ValueError, match=r"data_batch_3\.bin must contain whole records of 3073 bytes; found 12291"):
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
        ("AllLabels81.txt", "0 " * 80, "must hold 81 values per line; found 80 values"),
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
