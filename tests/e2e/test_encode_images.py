"""`hbmp.encode_dataset` on images: a folder and Parquet through a real network, stopped, broken and started again."""

from __future__ import annotations

import io
import os
import tracemalloc

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

import hbmp
from hbmp._training.loop import seeded


class Signs:
    """Which side of random planes the features of a small network lie: a model that takes `Images`."""

    def __init__(self, n_bits=13, batches=None):
        self.backbone = hbmp.backbones.Tiny()
        with seeded(0):
            self.module = self.backbone.build().eval()
        self.planes = np.random.default_rng(0).standard_normal((self.module.n_features, n_bits)).astype(np.float32)
        self.batches_left = batches

    def transform(self, images):
        if not isinstance(images, hbmp.Images):
            raise ValueError("This model takes images.")
        if self.batches_left is not None:
            if self.batches_left == 0:
                raise KeyboardInterrupt
            self.batches_left -= 1
        codes = []
        for _, pixels in images.batches(16, 32, workers=2):
            with torch.no_grad():
                features = self.module(self.backbone.normalise(torch.from_numpy(pixels))).numpy()
            codes.append(np.where((features - features.mean(axis=1, keepdims=True)) @ self.planes >= 0, 1, -1))
        return np.concatenate(codes).astype(np.int8)


@pytest.fixture
def pixels():
    return np.random.default_rng(3).integers(0, 256, (50, 40, 48, 3), dtype=np.uint8)


@pytest.fixture
def folder(tmp_path, pixels):
    for number, image in enumerate(pixels):
        place = tmp_path / "photos" / f"class {number % 3}"
        place.mkdir(parents=True, exist_ok=True)
        Image.fromarray(image).save(place / f"{number:02d}.png")
    (tmp_path / "photos" / "notes.txt").write_text("no image")
    return tmp_path / "photos"


def encoded(image):
    stream = io.BytesIO()
    Image.fromarray(image).save(stream, "PNG")
    return stream.getvalue()


def read_back(folder):
    tables, codes = zip(*hbmp.encode.read_codes(folder), strict=True)
    return pa.concat_tables(tables), np.concatenate(codes)


def test_a_folder_equals_transform_in_one_piece_and_ids_are_relative_paths(tmp_path, folder):
    done = hbmp.encode_dataset(Signs(), folder, tmp_path / "codes", batch_size=7, rows_per_part=20)
    images = hbmp.Images.from_folder(folder)
    assert (done.n_rows, done.n_parts, done.n_resumed, done.skipped) == (50, 3, 0, ())
    table, codes = read_back(tmp_path / "codes")
    np.testing.assert_array_equal(codes, Signs().transform(images))
    assert len(np.unique(codes, axis=0)) > 10
    assert table["id"].to_pylist() == images.names
    assert table["id"][0].as_py() == "class 0/00.png"


def test_a_stopped_run_goes_on_and_a_changed_folder_is_refused(tmp_path, folder):
    def run(model):
        return hbmp.encode_dataset(model, folder, tmp_path / "codes", batch_size=10, rows_per_part=20)

    with pytest.raises(KeyboardInterrupt):
        run(Signs(batches=4))  # the sample, one part of two batches, and a batch of the next
    assert sorted(path.name for path in (tmp_path / "codes").iterdir()) == ["_hbmp.json", "part-000000.parquet"]
    done = run(Signs())
    assert (done.n_rows, done.n_parts, done.n_resumed) == (50, 3, 1)
    np.testing.assert_array_equal(read_back(tmp_path / "codes")[1], Signs().transform(hbmp.Images.from_folder(folder)))
    assert run(Signs()).n_resumed == 3
    file = folder / "class 2" / "47.png"
    content, before = file.read_bytes(), file.stat().st_mtime_ns
    file.write_bytes(content + b"more")
    with pytest.raises(ValueError, match="begun with another source"):
        run(Signs())
    file.unlink()
    with pytest.raises(ValueError, match="begun with another source"):
        run(Signs())
    file.write_bytes(content)
    with pytest.raises(ValueError, match="begun with another source"):  # rewritten, with whatever content
        run(Signs())
    os.utime(file, ns=(before, before))
    assert run(Signs()).n_resumed == 3
    with pytest.raises(ValueError, match="begun with another n_bits and model"):
        run(Signs(n_bits=14))


def test_broken_images_stop_the_run_or_are_left_out_and_named(tmp_path, folder):
    sound = hbmp.Images.from_folder(folder)
    broken = [
        "class 0/00.png",
        "class 1/25.png",
        "class 1/28.png",
        "class 2/35.png",
        "class 2/44.png",
        "class 2/47.png",
    ]
    for name in broken:  # the last two are the whole last part
        (folder / name).write_bytes(b"broken")

    def run(**options):
        return hbmp.encode_dataset(Signs(), folder, tmp_path / "codes", batch_size=4, rows_per_part=12, **options)

    with pytest.raises(ValueError, match=r"class 0/00\.png cannot be read as an image .*on_error='skip'"):
        run()
    assert not (tmp_path / "codes").exists()
    with pytest.warns(UserWarning, match=r"6 of 50 images could not be read and were left out: class 0/00\.png.* more"):
        done = run(on_error="skip")
    assert (done.n_rows, done.n_parts, len(done.skipped)) == (44, 5, 6)
    table, codes = read_back(tmp_path / "codes")
    assert list(done.skipped) == broken
    left = [name for name in sound.names if name not in broken]
    assert table["id"].to_pylist() == left
    images = hbmp.Images.from_paths([folder / name for name in left])
    np.testing.assert_array_equal(codes, Signs().transform(images))
    with pytest.warns(UserWarning, match="6 of 50 images"):  # a run that finds all parts there says it again
        assert run(on_error="skip").n_resumed == 5


@pytest.mark.parametrize("kind", ["bytes", "huggingface", "alone"])
def test_a_parquet_column_of_images_carries_the_others_along(tmp_path, pixels, kind):
    column = [encoded(image) for image in pixels]
    names = [f"{number}.png" for number in range(50)]
    if kind == "huggingface":
        column = [{"bytes": content, "path": name} for content, name in zip(column, names, strict=True)]
    table = {"image": column} if kind == "alone" else {"label": range(50), "image": column, "title": names}
    pq.write_table(pa.table(table), tmp_path / "x.parquet", row_group_size=8)
    done = hbmp.encode_dataset(
        Signs(), tmp_path / "x.parquet", tmp_path / "codes", column="image", batch_size=5, rows_per_part=16
    )
    assert (done.n_rows, done.n_parts) == (50, 4)
    found, codes = read_back(tmp_path / "codes")
    np.testing.assert_array_equal(codes, Signs().transform(hbmp.Images.from_array(pixels)))
    if kind == "alone":
        assert found["id"].to_pylist() == list(range(50))
    else:
        assert found.column_names == ["label", "title", "code"]
        assert found["title"].to_pylist() == names


def test_broken_images_of_a_parquet_file_lose_their_row(tmp_path, pixels):
    column = [encoded(image) for image in pixels[:10]]
    column[3], column[7] = b"broken", None
    pq.write_table(pa.table({"image": column, "label": range(10)}), tmp_path / "x.parquet", row_group_size=5)
    with pytest.warns(UserWarning, match=r"2 of 10 images .*: x\.parquet row 3, x\.parquet row 7\."):
        hbmp.encode_dataset(Signs(), tmp_path / "x.parquet", tmp_path / "codes", column="image", on_error="skip")
    assert read_back(tmp_path / "codes")[0]["label"].to_pylist() == [0, 1, 2, 4, 5, 6, 8, 9]


def test_memory_does_not_grow_with_the_folder(tmp_path):
    peaks = []
    large = np.random.default_rng(4).integers(0, 256, (256, 256, 3), dtype=np.uint8)  # 0.2 MB of pixels each
    for n_images in (40, 160):
        folder = tmp_path / f"photos-{n_images}"
        folder.mkdir()
        for number in range(n_images):
            Image.fromarray(large).save(folder / f"{number:03d}.bmp")
        tracemalloc.start()
        hbmp.encode_dataset(Signs(), folder, tmp_path / f"codes-{n_images}", batch_size=40)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert peaks[1] < peaks[0] + 1e6  # 120 more images are 23 MB of pixels


def test_wrong_models_and_settings_say_why(tmp_path, folder, pixels):
    features = hbmp.get_method("lsh")(8).fit(np.random.default_rng(0).standard_normal((20, 4)))
    with pytest.raises(ValueError, match="photos is a folder of images, but this model takes features"):
        hbmp.encode_dataset(features, folder, tmp_path / "codes")
    pq.write_table(pa.table({"image": [encoded(image) for image in pixels[:3]]}), tmp_path / "x.parquet")
    with pytest.raises(ValueError, match=r"x\.parquet holds images in 'image', but this model takes features"):
        hbmp.encode_dataset(features, tmp_path / "x.parquet", tmp_path / "codes", column="image")
    with pytest.raises(ValueError, match="list columns are: none, and columns that may hold images: image"):
        hbmp.encode_dataset(features, tmp_path / "x.parquet", tmp_path / "codes")
    with pytest.raises(ValueError, match="on_error must be 'refuse' or 'skip', found 'ignore'"):
        hbmp.encode_dataset(Signs(), folder, tmp_path / "codes", on_error="ignore")
    for file in folder.rglob("*.png"):
        file.write_bytes(b"broken")
    with pytest.raises(ValueError, match=r"None of the images of .*photos can be read"):
        hbmp.encode_dataset(Signs(), folder, tmp_path / "codes", on_error="skip")
    assert not (tmp_path / "codes").exists()
