"""`hbmp.encode_dataset`: the local loop against transform in one piece, and Ray with two workers against the loop."""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import tracemalloc
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from sklearn.datasets import load_digits

import hbmp
from hbmp import hamming


class Hyperplanes:
    """The smallest model there is: which side of random planes; `folder` collects one note for every batch."""

    def __init__(self, n_features=6, n_bits=13, folder=None, seconds=0.0):
        self.planes = np.random.default_rng(0).standard_normal((n_features, n_bits))
        self.folder = folder
        self.seconds = seconds

    def transform(self, features):
        if not np.isfinite(features).all():
            raise ValueError("The features must be finite.")
        if self.folder is not None:
            (Path(self.folder) / f"{os.getpid()}-{time.monotonic_ns()}").touch()
            time.sleep(self.seconds)
        return np.where(features @ self.planes >= 0, 1, -1).astype(np.int8)


@pytest.fixture
def features():
    return np.random.default_rng(1).standard_normal((1000, 6)).astype(np.float32)


def write_parquet(path, features, *, first=0, kind="list", row_group_size=100):
    ids = np.arange(first, first + len(features))
    if kind == "fixed":
        column = pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), features.shape[1])
    else:
        column = pa.array(list(features))
    table = pa.table({"id": ids, "features": column, "title": [f"item {i}" for i in ids]})
    pq.write_table(table, path, row_group_size=row_group_size)


def read_back(folder):
    tables, codes = zip(*hbmp.encode.read_codes(folder), strict=True)
    return pa.concat_tables(tables), np.concatenate(codes)


def names(folder):
    return sorted(path.name for path in Path(folder).iterdir())


def test_an_array_on_disk_equals_transform_in_one_piece(tmp_path, features):
    np.save(tmp_path / "x.npy", features)
    model = Hyperplanes()
    done = hbmp.encode_dataset(model, tmp_path / "x.npy", tmp_path / "codes", batch_size=33, rows_per_part=300)
    assert (done.n_rows, done.n_parts, done.n_resumed) == (1000, 4, 0)
    table, codes = read_back(tmp_path / "codes")
    np.testing.assert_array_equal(codes, model.transform(features))
    assert table["id"].to_pylist() == list(range(1000))
    assert names(tmp_path / "codes") == ["_hbmp.json", *(f"part-00000{i}.parquet" for i in range(4))]


@pytest.mark.parametrize("kind", ["list", "fixed"])
def test_parquet_folder_carries_its_columns_along(tmp_path, features, kind):
    source = tmp_path / "in"
    (source / "deeper").mkdir(parents=True)
    write_parquet(source / "a.parquet", features[:430], kind=kind)
    write_parquet(source / "deeper" / "b.parquet", features[430:], first=430, kind=kind)
    model = Hyperplanes()
    done = hbmp.encode_dataset(model, source, tmp_path / "codes", batch_size=64, rows_per_part=200)
    assert done.n_parts == 3 + 3
    table, codes = read_back(tmp_path / "codes")
    assert table.column_names == ["id", "title", "code"]
    assert table["title"].to_pylist() == [f"item {i}" for i in range(1000)]
    np.testing.assert_array_equal(codes, model.transform(features))
    # Any reader of Parquet gets the bytes of hbmp.hamming.pack, and the width.
    plain = pq.read_table(tmp_path / "codes")
    assert b"".join(plain["code"].to_pylist()) == hamming.pack(model.transform(features)).tobytes()
    assert plain.schema.metadata[b"hbmp.n_bits"] == b"13"


def test_a_stopped_run_goes_on_where_it_was(tmp_path, features):
    np.save(tmp_path / "x.npy", features)
    notes = tmp_path / "notes"
    notes.mkdir()

    class Stops(Hyperplanes):
        def transform(self, features):
            if len(list(notes.iterdir())) == 5:
                raise KeyboardInterrupt
            return super().transform(features)

    def run(model):
        return hbmp.encode_dataset(model, tmp_path / "x.npy", tmp_path / "codes", batch_size=100, rows_per_part=250)

    with pytest.raises(KeyboardInterrupt):
        run(Stops(folder=notes))
    assert names(tmp_path / "codes") == ["_hbmp.json", "part-000000.parquet"]
    first = (tmp_path / "codes" / "part-000000.parquet").stat()
    for number in (0, 1):
        leftover = tmp_path / "codes" / f".part-00000{number}.parquet.{number:032x}.part"
        leftover.write_text("half a part of a run that was killed")
    done = run(Hyperplanes())
    assert (done.n_parts, done.n_resumed) == (4, 1)
    after = (tmp_path / "codes" / "part-000000.parquet").stat()
    assert (after.st_mtime_ns, after.st_ino) == (first.st_mtime_ns, first.st_ino)
    assert names(tmp_path / "codes") == ["_hbmp.json", *(f"part-00000{i}.parquet" for i in range(4))]
    np.testing.assert_array_equal(read_back(tmp_path / "codes")[1], Hyperplanes().transform(features))
    assert run(Hyperplanes()).n_resumed == 4


def test_a_truncated_part_is_encoded_again(tmp_path, features):
    np.save(tmp_path / "x.npy", features)
    hbmp.encode_dataset(Hyperplanes(), tmp_path / "x.npy", tmp_path / "codes", rows_per_part=250)
    parts = sorted((tmp_path / "codes").glob("*.parquet"))
    parts[1].write_bytes(parts[1].read_bytes()[:-100])
    parts[2].write_bytes(b"")
    with pytest.raises(ValueError, match=r"part-000001.parquet is damaged"):
        list(hbmp.encode.read_codes(tmp_path / "codes"))
    done = hbmp.encode_dataset(Hyperplanes(), tmp_path / "x.npy", tmp_path / "codes", rows_per_part=250)
    assert done.n_resumed == 2
    np.testing.assert_array_equal(read_back(tmp_path / "codes")[1], Hyperplanes().transform(features))


def test_a_flipped_bit_in_a_part_gives_no_other_codes(tmp_path, features):
    np.save(tmp_path / "x.npy", features)
    hbmp.encode_dataset(Hyperplanes(), tmp_path / "x.npy", tmp_path / "codes")
    (part,) = (tmp_path / "codes").glob("*.parquet")
    whole = part.read_bytes()
    pages = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")  # the footer has no checksum
    expected, refused = Hyperplanes().transform(features), 0
    for place in np.random.default_rng(0).integers(4, pages, 60):
        part.write_bytes(whole[:place] + bytes([whole[place] ^ 4]) + whole[place + 1 :])
        try:
            table, codes = read_back(tmp_path / "codes")
        except ValueError as error:
            refused += "part-000000.parquet is damaged" in str(error)
        else:
            assert (codes == expected).all()
            assert table["id"].to_pylist() == list(range(1000))
    assert refused > 40


def test_a_source_changed_in_place_is_not_resumed_into_a_mix(tmp_path, features):
    np.save(tmp_path / "x.npy", features)

    class Changes(Hyperplanes):
        def transform(self, batch):
            if len(list((tmp_path / "codes").glob("*.parquet"))) == 1:
                np.save(tmp_path / "x.npy", -features)
            return super().transform(batch)

    (tmp_path / "codes").mkdir()
    with pytest.raises(ValueError, match=r"x.npy changed while it was encoded; delete"):
        hbmp.encode_dataset(Changes(), tmp_path / "x.npy", tmp_path / "codes", rows_per_part=250)
    with pytest.raises(ValueError, match="begun with another source"):
        hbmp.encode_dataset(Hyperplanes(), tmp_path / "x.npy", tmp_path / "codes", rows_per_part=250)


def test_two_runs_on_one_folder_do_not_harm_each_other(tmp_path, features):
    np.save(tmp_path / "x.npy", features)
    barrier, failures = threading.Barrier(3), []

    class Slow(Hyperplanes):
        def transform(self, batch):
            time.sleep(0.01)
            return super().transform(batch)

    def run(model):
        barrier.wait()
        try:
            hbmp.encode_dataset(model, tmp_path / "x.npy", tmp_path / "codes", rows_per_part=100)
        except Exception as error:
            failures.append(error)

    other = Slow()
    other.planes = -other.planes
    threads = [threading.Thread(target=run, args=(model,)) for model in (Slow(), Slow(), other)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert all("begun with another model" in str(error) for error in failures)
    found = read_back(tmp_path / "codes")[1]
    expected = Slow().transform(features)
    assert (found == (expected if len(failures) == 1 else -expected)).all()  # one model, whichever came first
    assert len(names(tmp_path / "codes")) == 11


def test_a_folder_of_another_run_is_refused_and_kept(tmp_path, features):
    np.save(tmp_path / "x.npy", features)
    np.save(tmp_path / "fewer.npy", features[:900])
    hbmp.encode_dataset(Hyperplanes(), tmp_path / "x.npy", tmp_path / "codes")
    before = (tmp_path / "codes" / "part-000000.parquet").read_bytes()
    other_model = Hyperplanes()
    other_model.planes = -other_model.planes
    for model, source, differs in [
        (other_model, "x.npy", "another model"),
        (Hyperplanes(n_bits=14), "x.npy", "another n_bits and model"),
        (Hyperplanes(), "fewer.npy", "another source"),
    ]:
        with pytest.raises(ValueError, match=differs):
            hbmp.encode_dataset(model, tmp_path / source, tmp_path / "codes")
    assert (tmp_path / "codes" / "part-000000.parquet").read_bytes() == before
    (tmp_path / "codes" / "_hbmp.json").unlink()
    with pytest.raises(ValueError, match="holds other Parquet files"):
        hbmp.encode_dataset(Hyperplanes(), tmp_path / "x.npy", tmp_path / "codes")


def test_memory_is_bounded_by_the_batch(tmp_path):
    features = np.random.default_rng(2).standard_normal((200_000, 32)).astype(np.float32)  # 26 MB
    np.save(tmp_path / "x.npy", features)
    fixed = pa.FixedSizeListArray.from_arrays(pa.array(features.ravel()), 32)
    pq.write_table(pa.table({"features": fixed}), tmp_path / "x.parquet", row_group_size=200_000)
    del features, fixed
    model = Hyperplanes(n_features=32)
    usual_pool, fresh_pool = pa.default_memory_pool(), pa.system_memory_pool()
    pa.set_memory_pool(fresh_pool)
    try:
        for source in ("x.npy", "x.parquet"):
            tracemalloc.start()
            hbmp.encode_dataset(model, tmp_path / source, tmp_path / f"codes-{source}", batch_size=4096)
            _, peak = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert peak < 8e6  # one batch is 0.5 MB of features and 1 MB of work
    finally:
        pa.set_memory_pool(usual_pool)
    assert 0 < fresh_pool.max_memory() < 8e6


def wrong_sources(folder, features):
    """Sources that cannot be encoded, and what the error must say."""
    np.save(folder / "flat.npy", features[0])
    np.save(folder / "empty.npy", features[:0])
    np.save(folder / "nan.npy", np.where(np.arange(1000)[:, None] == 700, np.nan, features))
    (folder / "x.csv").write_text("1,2\n")
    (folder / "nothing").mkdir()
    (folder / "photos" / "cats").mkdir(parents=True)
    (folder / "photos" / "cats" / "1.JPG").write_bytes(b"")
    pq.write_table(pa.table({"vector": pa.array(list(features)), "n": range(1000)}), folder / "named.parquet")
    pq.write_table(pa.table({"features": pa.array(list(features)), "code": range(1000)}), folder / "code.parquet")
    pq.write_table(pa.table({"features": [[1.0] * 6, [1.0] * 5]}), folder / "ragged.parquet")
    pq.write_table(pa.table({"features": [[1.0] * 6, None]}), folder / "null.parquet")
    return {
        "missing.npy": "nothing at .*missing.npy",
        "flat.npy": "shape \\(n, n_features\\), found \\(6,\\)",
        "empty.npy": "holds no rows",
        "nan.npy": "nan.npy, rows 600 to 799: The features must be finite",
        "x.csv": "neither .npy nor .parquet",
        "nothing": "without .parquet files",
        "photos": "folder of images, but this model takes features",
        "named.parquet": "no column 'features' of feature lists; its list columns are: vector",
        "code.parquet": "a column 'code' already",
        "ragged.parquet": "lists of 5 to 6 values",
        "null.parquet": "missing values",
    }


def test_wrong_sources_say_why(tmp_path, features):
    for name, message in wrong_sources(tmp_path, features).items():
        with pytest.raises(ValueError, match=message):
            hbmp.encode_dataset(Hyperplanes(), tmp_path / name, tmp_path / "codes" / name, batch_size=200)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"engine": "spark"}, "'local' or 'ray'"),
        ({"num_workers": 2}, "needs engine='ray'"),
        ({"batch_size": 0}, "batch_size must be"),
        ({"rows_per_part": -1}, "rows_per_part must be"),
        ({"engine": "ray", "num_workers": 0}, "num_workers must be"),
    ],
)
def test_wrong_options_say_why(tmp_path, features, options, message):
    np.save(tmp_path / "x.npy", features)
    with pytest.raises(ValueError, match=message):
        hbmp.encode_dataset(Hyperplanes(), tmp_path / "x.npy", tmp_path / "codes", **options)


def test_a_destination_inside_the_source_is_refused(tmp_path, features):
    write_parquet(tmp_path / "x.parquet", features)
    for destination in (tmp_path, tmp_path / "codes"):
        with pytest.raises(ValueError, match="is inside the source"):
            hbmp.encode_dataset(Hyperplanes(), tmp_path, destination)


def test_reading_what_was_not_encoded_says_so(tmp_path):
    with pytest.raises(ValueError, match="holds no encoded parts"):
        next(hbmp.encode.read_codes(tmp_path))
    pq.write_table(pa.table({"code": [1]}), tmp_path / "part-000000.parquet")
    with pytest.raises(ValueError, match="not written by hbmp"):
        next(hbmp.encode.read_codes(tmp_path))


@pytest.fixture(scope="module")
def ray_of_two():
    """A Ray of two workers on this machine that tells nobody and leaves nothing behind."""
    folder = tempfile.mkdtemp(prefix="ray")
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("RAY_USAGE_STATS_ENABLED", "0")
        patch.setenv("RAY_AUTH_MODE", "disabled")
        ray = pytest.importorskip("ray")
        ray.cloudpickle.register_pickle_by_value(sys.modules[__name__])
        ray.init(
            num_cpus=2,
            include_dashboard=False,
            log_to_driver=False,
            object_store_memory=80 * 2**20,
            _temp_dir=folder,
        )
        yield ray
        ray.shutdown()
    shutil.rmtree(folder, ignore_errors=True)


# Ray announces its own deprecated settings when its context is made.
@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning:ray.data")
def test_ray_gives_the_same_files_and_a_killed_worker_loses_nothing(ray_of_two, tmp_path, features):
    source = tmp_path / "in"
    source.mkdir()
    write_parquet(source / "a.parquet", features, row_group_size=100)
    notes = tmp_path / "notes"
    notes.mkdir()
    options = {"batch_size": 50, "rows_per_part": 100}
    hbmp.encode_dataset(Hyperplanes(), source, tmp_path / "local", **options)
    slow = Hyperplanes(folder=str(notes), seconds=0.3)
    killed = []

    def kill_the_first_worker_at_work():
        while not killed:
            time.sleep(0.02)
            workers = {int(note.name.split("-")[0]) for note in notes.iterdir()} - {os.getpid()}
            for worker in sorted(workers)[:1]:
                os.kill(worker, signal.SIGKILL)
                killed.append(worker)

    killer = threading.Thread(target=kill_the_first_worker_at_work, daemon=True)
    killer.start()
    done = hbmp.encode_dataset(slow, source, tmp_path / "ray", engine="ray", num_workers=2, **options)
    killer.join(timeout=5)
    assert len(killed) == 1
    assert done.n_parts == 10
    batches = [note for note in notes.iterdir() if not note.name.startswith(f"{os.getpid()}-")]
    assert len(batches) > 20  # the part that was being encoded was encoded again
    assert names(tmp_path / "ray") == names(tmp_path / "local")
    for name in names(tmp_path / "local"):
        if name.endswith(".parquet"):
            assert pq.read_table(tmp_path / "ray" / name).equals(pq.read_table(tmp_path / "local" / name))
    assert json.loads((tmp_path / "ray" / "_hbmp.json").read_text()) == json.loads(
        (tmp_path / "local" / "_hbmp.json").read_text()
    )


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning:ray.data")
def test_a_fitted_model_gives_its_own_codes_locally_and_on_ray(ray_of_two, tmp_path):
    images, labels = load_digits(return_X_y=True)
    np.save(tmp_path / "x.npy", images)
    model = hbmp.HBMP(16, function=hbmp.functions.Linear(epochs=5), random_state=0).fit(images, labels)
    for engine in ("local", "ray"):
        hbmp.encode_dataset(model, tmp_path / "x.npy", tmp_path / engine, rows_per_part=500, engine=engine)
        np.testing.assert_array_equal(read_back(tmp_path / engine)[1], model.transform(images))


@pytest.mark.filterwarnings("ignore:.*is deprecated:DeprecationWarning:ray.data")
def test_ray_names_the_rows_that_are_wrong_and_keeps_the_others(ray_of_two, tmp_path, features):
    features[650] = np.nan
    np.save(tmp_path / "x.npy", features)

    def run():
        return hbmp.encode_dataset(
            Hyperplanes(), tmp_path / "x.npy", tmp_path / "codes", batch_size=100, rows_per_part=250, engine="ray"
        )

    with pytest.raises(ValueError, match=r"x\.npy, rows 600 to 699: The features must be finite"):
        run()
    assert names(tmp_path / "codes") == ["_hbmp.json", *(f"part-00000{i}.parquet" for i in (0, 1, 3))]
