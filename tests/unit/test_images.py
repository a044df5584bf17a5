"""Images from every source against pixels computed in the test, and what broken files do."""

import io
import pickle
import struct
import threading
import time
import zlib

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from PIL import Image

import hbmp
from hbmp.images import Images, UnreadableImage, as_images, is_images
from hbmp.images import batches as image_batches
from hbmp.images import sources as image_sources


@pytest.fixture
def generator():
    return np.random.default_rng(11)


@pytest.fixture
def pixels(generator):
    return generator.integers(0, 256, (7, 12, 12, 3), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path, pixels):
    for number, image in enumerate(pixels):
        place = tmp_path / "photos" / ("cat" if number < 4 else "dog") / "deeper"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place / f"{number}.png")
    return tmp_path / "photos"


def encoded(image, kind="PNG", **options):
    stream = io.BytesIO()
    (image if isinstance(image, Image.Image) else Image.fromarray(image)).save(stream, kind, **options)
    return stream.getvalue()


# --- the same pixels from everywhere ---------------------------------------------------------------------------------
def everywhere(tmp_path, pixels, folder):
    files = [folder / ("cat" if i < 4 else "dog") / "deeper" / f"{i}.png" for i in range(7)]
    contents = [encoded(image) for image in pixels]
    pq.write_table(pa.table({"image": contents}), tmp_path / "bytes.parquet", row_group_size=3)
    column = [{"bytes": content, "path": f"{i}.png"} for i, content in enumerate(contents)]
    pq.write_table(pa.table({"image": column, "label": range(7)}), tmp_path / "hf.parquet", row_group_size=2)
    shards = tmp_path / "shards"
    shards.mkdir()
    large = pa.array(contents, pa.large_binary())
    pq.write_table(pa.table({"photo": large[:5]}), shards / "0.parquet", row_group_size=2)
    pq.write_table(pa.table({"photo": large[5:]}), shards / "1.parquet")
    beside = [{"bytes": None, "path": str(file.relative_to(tmp_path))} for file in files]
    kind = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    pq.write_table(pa.table({"image": pa.array(beside, kind)}), tmp_path / "paths.parquet")
    np.save(tmp_path / "x.npy", pixels)
    return {
        "array": Images.from_array(pixels),
        "mapped": Images.from_array(np.load(tmp_path / "x.npy", mmap_mode="r")),
        "paths": Images.from_paths(files),
        "strings": Images.from_paths([str(file) for file in files]),
        "folder": Images.from_folder(folder),
        "bytes": Images.from_parquet(tmp_path / "bytes.parquet"),
        "huggingface": Images.from_parquet(tmp_path / "hf.parquet"),
        "shards": Images.from_parquet(shards, column="photo"),
        "paths in Parquet": Images.from_parquet(tmp_path / "paths.parquet"),
    }


def test_every_source_gives_the_same_pixels_also_indexed_and_pickled(tmp_path, pixels, folder, monkeypatch):
    monkeypatch.setattr(image_sources, "_CACHED_BYTES", 1000)  # row groups come and go
    for name, images in everywhere(tmp_path, pixels, folder).items():
        assert len(images) == 7, name
        np.testing.assert_array_equal(images.decode(slice(None), 12), pixels, err_msg=name)
        np.testing.assert_array_equal(images.decode([5, 0, -1], 12), pixels[[5, 0, 6]], err_msg=name)
        chosen = pickle.loads(pickle.dumps(images[np.array([6, 2, 2, 4])]))[1:]
        np.testing.assert_array_equal(chosen.decode(np.arange(3), 12), pixels[[2, 2, 4]], err_msg=name)
        mask = np.arange(7) % 2 == 0
        np.testing.assert_array_equal(images[mask].decode(slice(None), 12), pixels[mask], err_msg=name)
        assert len(images[[]]) == 0
        assert len(images[3]) == 1
        assert images[1:3].names == images.names[1:3]
        for workers in (0, 1, 3):
            rows, batches = zip(*images.batches(3, 12, workers=workers), strict=True)
            assert [len(batch) for batch in batches] == [3, 3, 1]
            assert np.concatenate(rows).tolist() == list(range(7))
            np.testing.assert_array_equal(np.concatenate(batches), pixels, err_msg=name)
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("hbmp-images")]


def test_names_and_labels_say_which_image_is_which(tmp_path, pixels, folder):
    sources = everywhere(tmp_path, pixels, folder)
    assert sources["array"].names[2] == "2"
    assert sources["folder"].names[0] == "cat/deeper/0.png"
    assert sources["huggingface"].names[3] == "3.png"
    assert sources["shards"].names[4:] == ["0.parquet row 4", "1.parquet row 0", "1.parquet row 1"]
    assert sources["folder"].labels.tolist() == ["cat"] * 4 + ["dog"] * 3
    assert sources["folder"][[5, 1]].labels.tolist() == ["dog", "cat"]
    assert sources["array"].labels is None
    assert repr(sources["folder"][:2]) == f"<2 images from the folder {folder}>"
    assert "column 'photo'" in repr(sources["shards"])


def test_folders_are_sorted_and_classes_are_their_first_folders(tmp_path):
    content = encoded(np.zeros((4, 4, 3), np.uint8))
    names = ["test/b/1.jpg", "train/a b/2.PNG", "train/a/10.jpeg", "train/a/9.jpeg", "train/a/.x.png", "train/b/1.txt"]
    for name in [*names, "train/.hidden/1.png"]:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(content)
    (tmp_path / "train" / "linked").symlink_to(tmp_path / "test" / "b")
    (tmp_path / "train" / "circle").symlink_to(tmp_path)
    images = Images.from_folder(tmp_path)
    expected = ["test/b/1.jpg", "train/a/10.jpeg", "train/a/9.jpeg", "train/a b/2.PNG"]
    assert sorted(images.names) == sorted(expected)
    assert images.names == expected
    assert images.labels.tolist() == ["b", "a", "a", "a b"]
    (tmp_path / "loose.png").write_bytes(content)
    assert Images.from_folder(tmp_path).labels is None
    assert len(Images.from_folder(tmp_path)) == 5


# --- what cannot be read ---------------------------------------------------------------------------------------------
def claimed_size(width, height):
    """A PNG of a few bytes that says it is this large."""

    def chunk(kind, data):
        return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )


@pytest.fixture
def broken(folder, pixels):
    """Seven sound images and six: cut short, not an image, empty, missing, above Pillow's limit, above twice that."""
    place = folder / "cat" / "deeper"
    whole = encoded(pixels[0], "JPEG", quality=95)
    contents = {
        "a-short.jpg": whole[: len(whole) // 2],
        "b-text.png": b"not an image",
        "c-empty.gif": b"",
        "d-large.png": claimed_size(10_000, 10_000),
        "e-larger.png": claimed_size(100_000, 100_000),
    }
    for name, content in contents.items():
        (place / name).write_bytes(content)
    (place / "f-missing.jpg").symlink_to(place / "nowhere")
    return folder


# Pillow warns of a large picture before this package refuses it.
LARGE = pytest.mark.filterwarnings("ignore::PIL.Image.DecompressionBombWarning")


@LARGE
def test_broken_images_are_refused_by_name(broken):
    images = Images.from_folder(broken)
    assert len(images) == 13
    for row in images.unreadable():
        name = images.names[row]
        with pytest.raises(UnreadableImage, match=f"{broken}/{name} cannot be read .* repair or remove it"):
            images.decode([row], 12)
        with pytest.raises(ValueError, match="on_error='skip'"):
            list(images[row:].batches(4, 12))
    assert len(images.unreadable()) == 6
    large = [row for row in images.unreadable() if "large.png" in images.names[row]]
    with pytest.raises(UnreadableImage, match=r"10000 × 10000 pixels are above Pillow's limit of 89,478,485"):
        images.decode(large, 12)


@LARGE
@pytest.mark.parametrize("workers", [0, 2])
def test_skipped_images_are_told_once_at_the_end(broken, pixels, workers):
    images = Images.from_folder(broken)
    found = images.batches(3, 12, workers=workers, on_error="skip")
    with pytest.warns(
        UserWarning, match=r"^6 of 13 images could not be read and were left out: .* and 3 more\.$"
    ) as told:
        rows, batches = zip(*found, strict=True)
    assert len([warning for warning in told if warning.category is UserWarning]) == 1
    rows = np.concatenate(rows)
    assert all(len(batch) for batch in batches)
    assert sorted({*range(13)} - {*rows.tolist()}) == images.unreadable()
    order = [int(images.names[row].split("/")[-1][0]) for row in rows]
    np.testing.assert_array_equal(np.concatenate(batches), pixels[order])


def test_the_warning_of_a_limit_taken_as_an_error_is_told_too(broken):
    images = Images.from_folder(broken)
    (row,) = [row for row, name in enumerate(images.names) if "d-large" in name]
    with pytest.raises(UnreadableImage, match="could be decompression bomb DOS attack"):
        images.decode([row], 12)  # warnings are errors in these tests


# --- memory, order, leaving early ------------------------------------------------------------------------------------
def test_only_a_few_batches_are_decoded_ahead_and_slow_ones_keep_their_place():
    begun = []

    def fill(pixels, rows):
        begun.extend(rows)
        time.sleep(0.02 if rows[0] < 8 else 0)  # the first are the slowest
        pixels[:] = rows[:, None, None, None]
        return [None] * len(rows)

    seen = []
    for rows, pixels, _ in image_batches.decoded_batches(fill, 80, 8, 2, workers=4):
        seen += rows.tolist()
        assert (pixels[:, 0, 0, 0] == rows).all()
        assert len(begun) <= len(seen) + 8 * 2
    assert seen == list(range(80))


def test_an_error_of_another_kind_is_raised_and_the_threads_end():
    def fill(pixels, rows):
        if 20 in rows:
            raise MemoryError
        return [None] * len(rows)

    with pytest.raises(MemoryError):
        list(image_batches.decoded_batches(fill, 1000, 8, 2, workers=2))
    early = image_batches.decoded_batches(lambda pixels, rows: [None] * len(rows), 1000, 8, 2, workers=2)
    next(early)
    early.close()
    assert not [thread for thread in threading.enumerate() if thread.name.startswith("hbmp-images")]


# --- what counts as images -------------------------------------------------------------------------------------------
def test_what_are_images_and_what_are_not(tmp_path, pixels, folder):
    sources = everywhere(tmp_path, pixels, folder)
    features = tmp_path / "features.parquet"
    pq.write_table(pa.table({"features": [[1.0, 2.0]], "thumbnail": [b"x"]}), features)
    (tmp_path / "empty").mkdir()
    images = [sources["array"], pixels, folder, str(folder), tmp_path / "hf.parquet", [folder / "a.png", "b.JPG"]]
    others = [pixels[0], pixels.astype(float), features, tmp_path / "empty", "nowhere", [], ["a.txt"], [1], None, 3]
    for value in images:
        assert is_images(value), value
    for value in others:
        assert not is_images(value), value
        with pytest.raises(ValueError, match=r"Images come as a uint8 array .*; found "):
            as_images(value)
    assert as_images(sources["array"]) is sources["array"]
    for value in images[1:5]:
        np.testing.assert_array_equal(as_images(value).decode(slice(None), 12), pixels)
    assert as_images(images[5]).names == [str(folder / "a.png"), "b.JPG"]
    pq.write_table(pa.table({"image": [encoded(pixels[0])]}), tmp_path / "empty" / "0.parquet")
    assert len(as_images(tmp_path / "empty")) == 1
    assert hbmp.Images is Images


def test_wrong_sources_say_why(tmp_path, pixels, folder):
    (tmp_path / "text.parquet").write_text("no table")
    pq.write_table(pa.table({"photo": [b"x"], "n": [1]}), tmp_path / "photo.parquet")
    (tmp_path / "nothing").mkdir()
    for make, message in [
        (lambda: Images.from_array(pixels.astype(float)), r"channels last.*found float64 of shape \(7, 12, 12, 3\)"),
        (
            lambda: Images.from_array(pixels.transpose(0, 3, 1, 2)),
            r"channels last.*found uint8 of shape \(7, 3, 12, 12\)",
        ),
        (lambda: Images.from_array(pixels[:, :0]), "at least one pixel"),
        (lambda: Images.from_paths("a.png"), "takes a list of files, found the one path a.png"),
        (lambda: Images.from_folder(tmp_path / "nowhere"), "There is no folder .*nowhere"),
        (lambda: Images.from_folder(tmp_path / "nothing"), "holds no images"),
        (lambda: Images.from_parquet(tmp_path / "nowhere.parquet"), "There is nothing at .*nowhere.parquet"),
        (lambda: Images.from_parquet(tmp_path / "nothing"), "without .parquet files"),
        (lambda: Images.from_parquet(tmp_path / "text.parquet"), "cannot be read as Parquet"),
        (lambda: Images.from_parquet(tmp_path / "photo.parquet"), "no column 'image' .*columns of bytes are: photo"),
        (lambda: Images.from_folder(folder).decode([0], 0), "size must be a whole number, at least 1, found 0"),
        (lambda: Images.from_folder(folder).batches(0, 8), "batch_size must be"),
        (lambda: Images.from_folder(folder).batches(2, 8.5), "size must be"),
        (lambda: Images.from_folder(folder).batches(2, 8, workers=-1), "workers must be a whole number, at least 0"),
        (lambda: Images.from_folder(folder).batches(2, 8, on_error="ignore"), "'refuse' or 'skip', found 'ignore'"),
    ]:
        with pytest.raises(ValueError, match=message):
            make()
    with pytest.raises(IndexError):
        Images.from_folder(folder)[7]
    with pytest.raises(TypeError, match="not an array of features; use decode or batches"):
        np.asarray(Images.from_folder(folder))
