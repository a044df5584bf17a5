"""MATLAB files: the same values as SciPy reads, and one error for anything damaged."""

from __future__ import annotations

import struct

import numpy as np
import pytest
from scipy.io import loadmat, savemat

from hbmp._core.matlab import NotMatlab, read_matlab


def cell(*values):
    out = np.empty((1, len(values)), dtype=object)
    out[0] = values
    return out


CONTENT = {
    "doubles": np.arange(6.0).reshape(2, 3),
    "small": np.array([[1, 2]], np.int8),
    "halves": np.linspace(0, 1, 24, dtype=np.float32).reshape(2, 3, 4),
    "large": np.array([[2**40, -1]], np.int64),
    "flags": np.array([[True, False]]),
    "nothing": np.empty((0, 3)),
    "text": "größer",
    "mixed": cell(np.eye(2), "two", cell("three")),
    "about": {"name": "net", "size": np.array([[3.0]]), "inner": {"deep": "x"}},
}


@pytest.fixture(params=[False, True], ids=["plain", "compressed"])
def path(request, tmp_path):
    savemat(tmp_path / "a.mat", CONTENT, do_compression=request.param)
    return tmp_path / "a.mat"


def test_the_same_values_as_scipy(path):
    ours, theirs = read_matlab(path, list(CONTENT)), loadmat(path)
    for name in ("doubles", "small", "halves", "large", "flags", "nothing"):
        np.testing.assert_array_equal(ours[name], theirs[name], err_msg=name)
        assert ours[name].shape == theirs[name].shape
        assert ours[name].dtype == theirs[name].dtype or name == "flags"
    assert ours["text"] == theirs["text"][0] == "größer"
    np.testing.assert_array_equal(ours["mixed"][0], np.eye(2))
    assert ours["mixed"][1:] == ["two", ["three"]]
    assert ours["about"]["name"] == "net"
    assert ours["about"]["inner"] == {"deep": "x"}
    assert ours["about"]["size"] == 3


def test_only_the_named_variables_are_read(path):
    assert list(read_matlab(path, ["text", "absent"])) == ["text"]


def test_sizes_beyond_the_file_are_refused(tmp_path):
    savemat(tmp_path / "a.mat", {"x": np.arange(6.0)})
    whole = bytearray((tmp_path / "a.mat").read_bytes())
    for place in range(128, len(whole), 4):
        damaged = whole.copy()
        damaged[place : place + 4] = struct.pack("<I", 0x7FFFFFF0)
        (tmp_path / "a.mat").write_bytes(damaged)
        try:
            found = read_matlab(tmp_path / "a.mat", ["x"])
        except (NotMatlab, ValueError):
            continue
        assert found.get("x") is None or found["x"].shape == (1, 6)


def test_structures_without_end_are_refused(tmp_path):
    inner = b""
    for _ in range(200):
        body = struct.pack("<IIII", 6, 8, 1, 0) + struct.pack("<IIii", 5, 8, 1, 1) + struct.pack("<II", 1, 0) + inner
        inner = struct.pack("<II", 14, len(body)) + body
    (tmp_path / "a.mat").write_bytes(b"MATLAB 5.0".ljust(124) + b"\0\1IM" + inner)
    with pytest.raises(NotMatlab, match="nested too deeply"):
        read_matlab(tmp_path / "a.mat", [""])
