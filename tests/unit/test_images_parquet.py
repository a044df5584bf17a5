"""Images in a Parquet file larger than what is kept of it: a shuffled pass reads every row group once."""

from __future__ import annotations

import io

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

import hbmp
from hbmp.functions._shared import image_batches
from hbmp.functions._shared.augment import Augmentation
from hbmp.images import sources

N_IMAGES, PER_GROUP = 240, 12


def png(pixels):
    stream = io.BytesIO()
    Image.fromarray(pixels).save(stream, "PNG")
    return stream.getvalue()


@pytest.fixture
def images(tmp_path, monkeypatch):
    """Two files of ten row groups; four of the twenty fit into what is kept. Image i is all i."""
    for part in range(2):
        content = [png(np.full((8, 8, 3), part * 120 + i, np.uint8)) + bytes(1000) for i in range(120)]
        table = pa.table({"image": content, "label": range(120)})
        pq.write_table(table, tmp_path / f"{part}.parquet", row_group_size=PER_GROUP, compression="none")
    images = hbmp.Images.from_parquet(tmp_path)
    monkeypatch.setattr(sources, "_CACHED_BYTES", int(4.4 * images._source._bytes.max()))
    return images


@pytest.fixture
def reads(monkeypatch):
    """Which row groups were read, in order."""
    found = []
    read = pq.ParquetFile.read_row_group

    def noted(parquet, group, **options):
        found.append(group)
        return read(parquet, group, **options)

    monkeypatch.setattr(pq.ParquetFile, "read_row_group", noted)
    return found


def batches(images, seed, monkeypatch, **options):
    monkeypatch.setattr(image_batches, "_MOST_ON_DEVICE", 0)
    view = image_batches.View(hbmp.backbones.Tiny(), Augmentation(flip=0), "cpu", channels_last=False)
    settings = {"batch_size": 8, "device": "cpu", "mixup": 0, "workers": 2, "on_error": "refuse", **options}
    data = image_batches.ImageBatches(images, np.arange(len(images)), view=view, **settings)
    return data.batches(torch.Generator().manual_seed(seed))


def test_a_shuffled_pass_reads_every_group_once_and_gives_every_image_with_its_row(images, reads, monkeypatch):
    passes = []
    for seed in (0, 1):
        reads.clear()
        rows = []
        for inputs, mine in batches(images, seed, monkeypatch):
            colours = (inputs * 64 + 127.5).round().mean(dim=(1, 2, 3))  # as `Tiny` scales pixels
            torch.testing.assert_close(colours, mine.float(), atol=0.6, rtol=0)
            rows += mine.tolist()
        groups = N_IMAGES // PER_GROUP
        assert groups - 4 <= len(reads) <= groups  # the second pass finds some of the first still there
        assert sorted(rows) == list(range(N_IMAGES))
        passes.append(rows)
    assert passes[0] != passes[1]
    reads.clear()
    plain = np.random.default_rng(0).permutation(N_IMAGES)
    list(images[plain].batches(16, 8, workers=0))
    assert len(reads) > N_IMAGES / 2  # what it would cost to jump about


def test_a_window_is_as_many_groups_as_half_of_what_is_kept_and_is_shuffled_whole(images):
    order = np.random.default_rng(0).permutation(N_IMAGES)
    found = images.read_together(order)
    assert sorted(found) == list(range(N_IMAGES))
    seen = []
    for start in range(0, N_IMAGES, 2 * PER_GROUP):
        window = found[start : start + 2 * PER_GROUP]
        groups = set((window // PER_GROUP).tolist())
        assert len(groups) == 2
        seen += sorted(groups)
        ranks = [int(np.flatnonzero(order == image)[0]) for image in window]
        assert ranks == sorted(ranks)  # inside, the order asked for
        changes = np.count_nonzero(np.diff(window // PER_GROUP))
        assert changes > 3  # the two are mixed
    assert sorted(seen) == list(range(N_IMAGES // PER_GROUP))
    assert seen != sorted(seen)
    some = images[np.arange(60, 200)]  # positions of a part are its own
    assert sorted(some.read_together(np.random.default_rng(1).permutation(140))) == list(range(140))


def test_what_is_kept_whole_or_needs_no_groups_stays_as_it_was(images, monkeypatch):
    order = np.random.default_rng(0).permutation(N_IMAGES)
    few = images[:40]
    np.testing.assert_array_equal(few.read_together(order[order < 40]), order[order < 40])
    monkeypatch.setattr(sources, "_CACHED_BYTES", 1 << 30)
    np.testing.assert_array_equal(images.read_together(order), order)
    array = hbmp.Images.from_array(np.zeros((N_IMAGES, 4, 4, 3), np.uint8))
    np.testing.assert_array_equal(array.read_together(order), order)
