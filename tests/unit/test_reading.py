"""Damaged files of others: one sentence with the name of the file, whatever the library raises."""

from __future__ import annotations

import zipfile
from pathlib import Path

import numpy as np
import pytest

from hbmp._core.arrays import read_npy, read_npz
from hbmp._core.reading import json_object, reading
from hbmp._core.unpack import unpack
from hbmp.app.inputs import read_data
from hbmp.app.settings import read_value
from hbmp.datasets.image_folder import from_table
from hbmp.encode.parts import Job, encode_head, plan_parts


def flipped(path: Path, place: int, bits: int) -> None:
    whole = bytearray(path.read_bytes())
    whole[place] ^= bits
    path.write_bytes(whole)


@pytest.mark.parametrize("error", [IndexError("string index out of range"), MemoryError(), NotImplementedError("x\ny")])
def test_any_error_becomes_one_sentence(error):
    sentence = r"^a\.bin cannot be read as arrays \(.+\); write it again\.$"
    with pytest.raises(ValueError, match=sentence) as found, reading("a.bin", "arrays"):
        raise error
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("[1]", "it is a list, not an object"),
        (b"Infinity", "it is a fraction, not an object"),
        ("null", "it is null, not an object"),
        ('{"parts": [], "format": 2}', "its 'parts' is a list, not an object"),
        ('{"parts": {}, "format": true}', "its 'format' is a boolean, not a whole number"),
        ('{"format": Infinity}', "its 'format' is a fraction, not a whole number"),
        ("[" * 100_000, "it is nested too deeply"),
        ('{"format": ' + "9" * 5000 + "}", "integer string conversion"),
        (b"\xff\xfe", "can't decode byte"),
        ("{", "Expecting property name"),
    ],
)
def test_json_of_another_shape_is_a_value_error_with_its_reason(text, reason):
    with pytest.raises(ValueError, match=reason):
        json_object(text, format=int, parts=dict)


def test_json_of_the_right_shape_is_given_as_it_is():
    assert json_object(b'{"format": 2, "other": [null]}', format=int, parts=dict) == {"format": 2, "other": [None]}


@pytest.mark.parametrize("error", [FileNotFoundError(2, "No such file", "a.bin"), ImportError("no pyarrow")])
def test_errors_of_the_system_pass(error):
    with pytest.raises(type(error)), reading("a.bin", "arrays"):
        raise error


@pytest.mark.parametrize(
    ("place", "bits"),
    [(6, 1), (6, 32), (4, 64), (8, 3)],
    ids=["encrypted", "patched", "a version of the future", "an unknown compression"],
)
def test_a_zip_of_arrays_that_python_cannot_unpack(place, bits, tmp_path):
    path = tmp_path / "features.npz"
    np.savez(path, features=np.ones((3, 2)))
    with zipfile.ZipFile(path) as archive:
        central = archive.start_dir
    flipped(path, central + 2 + place if place != 4 else central + 6, bits)
    with pytest.raises(ValueError, match=r"features\.npz cannot be read as arrays"):
        read_npz(path)


def test_a_header_of_an_array_that_never_ends(tmp_path):
    path = tmp_path / "features.npy"
    np.save(path, np.ones((3, 2)))
    path.write_bytes(path.read_bytes().replace(b"}", b"{"))
    with pytest.raises(ValueError, match=r"features\.npy cannot be read as an array"):
        read_npy(path)


def test_damaged_pages_of_parquet(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "features.parquet"
    table = pa.table({"features": [[1.0, 2.0], [3.0, 4.0]], "label": ["one", "two"]})
    pq.write_table(table, path, compression="none", use_dictionary=False)
    whole = path.read_bytes()
    for damaged in (whole.replace(b"one", b"\xff\xfe\xfd"), whole[:4] + b"\xff" * 20 + whole[24:]):
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"features\.parquet cannot be read as Parquet"):
            read_data(path)
        with pytest.raises(ValueError, match=r"features\.parquet cannot be read as Parquet"):
            encode_head(None, plan_parts(path, "features", None), Job("features", str(tmp_path), None, 4), 2)


def test_a_table_of_images_that_is_not_utf8(tmp_path):
    table = tmp_path / "labels.csv"
    table.write_bytes(b"file,label\na.jpg,\xff\n")
    with pytest.raises(ValueError, match=r"labels\.csv cannot be read as CSV in UTF-8"):
        from_table(table, tmp_path)


def test_an_archive_with_an_unknown_compression(tmp_path):
    path = tmp_path / "data.zip"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a.txt", "text")
        central = archive.fp.tell()
    flipped(path, central + 10, 97)
    with pytest.raises(ValueError, match=r"data\.zip is not a whole archive"):
        unpack(path, tmp_path / "out", bound=100)
    assert list((tmp_path / "out").iterdir()) == []


def test_a_setting_of_nested_brackets_stays_text():
    assert read_value("[" * 200_000) == "[" * 200_000
