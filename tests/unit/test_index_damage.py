"""Index files that lie: a header with valid checksums and impossible contents is refused in one sentence."""

import hashlib
import json
import os
import struct

import numpy as np
import pytest

import hbmp

SIGNS = np.array([-1, 1], np.int8)
START = struct.Struct("<8sII")


@pytest.fixture
def saved(tmp_path):
    """An index with lists and scattered ids, and a few codes added later."""
    rng = np.random.default_rng(0)
    codes = rng.choice(SIGNS, (400, 21))
    index = hbmp.Index.build(codes, ids=np.arange(400) * 3, kind="ivf", recall=0.5, bit_weights=rng.uniform(1, 2, 21))
    index.add(codes[:7])
    path = tmp_path / "codes.hbmp"
    index.save(path)
    return path


def forge(path, change_header=None, change_arrays=None):
    """Rewrite a file with another header or other arrays, and with checksums that match."""
    whole = bytearray(path.read_bytes())
    magic, number, length = START.unpack(whole[: START.size])
    first = START.size + 32
    header = json.loads(whole[first : first + length])
    if change_arrays is not None:
        arrays = {
            name: np.ndarray(tuple(section["shape"]), section["dtype"], whole, section["offset"])
            for name, section in header["sections"].items()
        }
        change_arrays(arrays)
    if change_header is not None:
        change_header(header)
    text = json.dumps(header).encode().ljust(length)
    assert len(text) == length
    whole[:first] = START.pack(magic, number, length) + hashlib.sha256(text).digest()
    whole[first : first + length] = text
    whole[-32:] = hashlib.sha256(whole[:-32]).digest()
    path.write_bytes(whole)


def set_section(name, key, value):
    return lambda header: header["sections"][name].__setitem__(key, value)


def set_entry(number, key, value):
    return lambda header: header["segments"][number].__setitem__(key, value)


HEADERS = {
    "object pointers": (set_section("segment1.rows", "dtype", "|O"), r"dtype '\|O'"),
    "objects as ids": (set_section("segment0.ids", "dtype", "O"), "dtype 'O'"),
    "structured dtype": (set_section("bit_weights", "dtype", [["a", "|O"]]), "dtype"),
    "big-endian": (set_section("bit_weights", "dtype", ">f8"), "dtype '>f8'"),
    "text": (set_section("segment0.ids", "dtype", "<U1"), "dtype '<U1'"),
    "narrower rows": (set_section("segment0.rows", "shape", [400, 2]), r"'segment0.rows' is uint8 of shape \(400, 2\)"),
    "floats as ids": (set_section("segment0.ids", "dtype", "<f4"), "'segment0.ids' is float32"),
    "a negative length": (set_section("segment0.rows", "shape", [-1, 3]), r"shape \[-1, 3\]"),
    "a huge length": (set_section("segment0.rows", "shape", [2**62, 3]), "shape"),
    "a product beyond 64 bits": (set_section("segment0.rows", "shape", [5000, 5000]), "outside the file"),
    "an offset in the header": (set_section("segment0.rows", "offset", 64), "outside the file"),
    "an offset beyond the end": (set_section("segment0.rows", "offset", 64 * 300), "lies"),
    "an odd offset": (set_section("segment0.rows", "offset", 1), "lies at 1"),
    "an offset that is no number": (set_section("segment0.rows", "offset", True), "lies at True"),
    "more bits": (lambda header: header.update(n_bits=200), "'bit_weights'"),
    "no bits": (lambda header: header.update(n_bits=0), "does not describe"),
    "next id behind": (lambda header: header.update(next_id=3), "not to have given"),
    "next id negative": (lambda header: header.update(next_id=-3), "does not describe"),
    "segments a number": (lambda header: header.update(segments=7), "does not describe"),
    "a segment without name": (set_entry(1, "name", 3), "no name"),
    "a segment that is missing": (set_entry(1, "name", "segment7"), "'segment7.rows' is missing"),
    "a first id below zero": (set_entry(0, "first_id", -5), "first id"),
    "a first id beyond 64 bits": (set_entry(0, "first_id", 2**63 - 2), "first id"),
    "no probes": (set_entry(0, "inverted", {"probes": [], "recalls": []}), "how many lists"),
    "probes of words": (set_entry(0, "inverted", {"probes": ["x"], "recalls": []}), "measurements"),
    "lists a word": (set_entry(0, "inverted", "x"), "measurements"),
}  # fmt: skip


@pytest.mark.parametrize("verify", [True, False])
@pytest.mark.parametrize("mapped", [True, False])
@pytest.mark.parametrize("name", HEADERS)
def test_a_header_that_lies_is_refused(saved, name, mapped, verify):
    change, message = HEADERS[name]
    forge(saved, change)
    with pytest.raises(ValueError, match=rf"codes\.hbmp is damaged: .*{message}.*Save the index again"):
        hbmp.Index.load(saved, verify=verify, mapped=mapped)


ARRAYS = {
    "ids out of order": (lambda arrays: arrays["segment0.ids"].__setitem__(3, 1), "out of order"),
    "negative ids": (lambda arrays: arrays["segment0.ids"].__setitem__(0, -1), "negative"),
    "bits after the last": (lambda arrays: arrays["segment1.rows"].__setitem__((0, 2), 255), "bits after its last"),
    "a list that does not exist": (lambda arrays: arrays["segment0.lists"].__setitem__(9, 65535), "does not exist"),
    "weights not finite": (lambda arrays: arrays["bit_weights"].__setitem__(0, np.nan), "not finite"),
    "centroids not finite": (lambda arrays: arrays["segment0.centroids"].__setitem__((0, 0), np.inf), "not finite"),
}  # fmt: skip


@pytest.mark.parametrize("name", ARRAYS)
def test_arrays_that_do_not_fit_together_are_refused(saved, name):
    change, message = ARRAYS[name]
    forge(saved, change_arrays=change)
    with pytest.raises(ValueError, match=rf"codes\.hbmp is damaged: .*{message}"):
        hbmp.Index.load(saved)


def test_a_forged_file_without_a_lie_is_read(saved):
    forge(saved)
    assert len(hbmp.Index.load(saved)) == 407


def test_the_header_is_checked_without_the_checksum_of_the_whole(saved):
    whole = saved.read_bytes()
    saved.write_bytes(whole.replace(b'"next_id": 1', b'"next_id": 2'))
    with pytest.raises(ValueError, match="checksum of its header"):
        hbmp.Index.load(saved, verify=False)


@pytest.mark.parametrize("text", [b"[" * 100_000, b"\xff" * 9, b"3", b"[]", b'{"file_bytes": "x"}', b"{"])
def test_a_header_that_is_no_object_is_refused(tmp_path, text):
    path = tmp_path / "codes.hbmp"
    path.write_bytes(START.pack(b"HBMPIDX\0", 2, len(text)) + hashlib.sha256(text).digest() + text + bytes(32))
    with pytest.raises(ValueError, match="its header cannot be read"):
        hbmp.Index.load(path)
    path.write_bytes(START.pack(b"HBMPIDX\0", 1, 2**32 - 1) + text)
    with pytest.raises(ValueError, match="its header cannot be read"):
        hbmp.Index.load(path)


def test_a_file_cut_in_place_harms_no_loaded_index(saved):
    loaded, again = hbmp.Index.load(saved), hbmp.Index.load(saved)
    os.truncate(saved, 10)  # a mapped index ends the process here
    queries = np.ones((2, 21), np.int8)
    for left, right in zip(loaded.search(queries, 5), again.search(queries, 5), strict=True):
        np.testing.assert_array_equal(left, right)
    assert len(loaded.range_search(queries, 3.0)) == 2
    with pytest.raises(ValueError, match="not an index"):
        hbmp.Index.load(saved)


def test_mapped_codes_are_not_copied(saved):
    index = hbmp.Index.load(saved, mapped=True)
    assert isinstance(index._segments[1].rows.base.base, np.memmap)
    assert not index._segments[1].rows.flags.writeable
