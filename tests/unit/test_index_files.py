"""Saved indexes: the same answers, memory-mapped, whole or refused, and readable by plain FAISS."""

import json
import re
from pathlib import Path

import numpy as np
import pytest

import hbmp
from hbmp import hamming
from hbmp.index import file as index_file

SIGNS = np.array([-1, 1], np.int8)
ROOT = Path(__file__).parents[2]
GOLDEN = ROOT / "tests" / "golden"


def some_index(rng, n_bits=37, n_items=3000):
    codes = rng.choice(SIGNS, (n_items, n_bits))
    return codes, hbmp.Index(n_bits, rng.normal(size=n_bits)).add(codes, rng.permutation(10 * n_items)[:n_items])


def same_answers(one, other, queries):
    for k in (1, 20):
        for left, right in zip(one.search(queries, k), other.search(queries, k), strict=True):
            np.testing.assert_array_equal(left, right)


@pytest.mark.parametrize("mapped", [True, False])
def test_saved_index_answers_the_same(tmp_path, mapped):
    rng = np.random.default_rng(0)
    codes, index = some_index(rng)
    index.add(codes[:5])
    path = tmp_path / "codes.hbmp"
    index.save(path)
    loaded = hbmp.Index.load(path, mapped=mapped)
    assert not loaded._segments[0].rows.flags.writeable
    np.testing.assert_array_equal(loaded.bit_weights, index.bit_weights)
    same_answers(index, loaded, codes[:9])
    # What was loaded can change and be saved over the file it came from.
    for each in (index, loaded):
        each.add(codes[5:8])
        each.remove([each.search(codes[:1], 1)[1][0, 0]])
    loaded.save(path)
    same_answers(index, hbmp.Index.load(path, verify=False), codes[:9])
    assert [entry.name for entry in tmp_path.iterdir()] == ["codes.hbmp"]


def test_empty_index_and_next_id_survive_saving(tmp_path):
    index = hbmp.Index(5)
    index.save(tmp_path / "empty")
    assert len(hbmp.Index.load(tmp_path / "empty")) == 0
    index.add(np.ones((3, 5), np.int8)).remove([2])
    index.save(tmp_path / "some")
    loaded = hbmp.Index.load(tmp_path / "some").add(np.ones((1, 5), np.int8))
    assert loaded.search(np.ones((1, 5), np.int8), 4)[1].tolist() == [[0, 1, 3, -1]]


def test_inverted_lists_survive_saving(tmp_path):
    rng = np.random.default_rng(3)
    codes = rng.choice(SIGNS, (3000, 24))
    index = hbmp.Index.build(codes, kind="ivf", bit_weights=rng.uniform(0.5, 1.5, 24), recall=0.8)
    index.add(codes[:10])
    index.save(tmp_path / "lists")
    loaded = hbmp.Index.load(tmp_path / "lists")
    assert loaded.kind == "ivf"
    assert loaded.recall_ == index.recall_
    same_answers(index, loaded, codes[:20])
    loaded.save(tmp_path / "again")  # its lists have been built by now
    same_answers(index, hbmp.Index.load(tmp_path / "again"), codes[:20])


def test_every_truncation_and_alteration_is_refused(tmp_path):
    rng = np.random.default_rng(1)
    _, index = some_index(rng, n_items=20)
    path = tmp_path / "codes.hbmp"
    index.save(path)
    whole = path.read_bytes()
    for length in [0, 5, 16, 40, *rng.integers(0, len(whole), 20), len(whole) - 1]:
        path.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"not an index|damaged|truncated"):
            hbmp.Index.load(path)
    for place in [0, 9, 14, 17, *rng.integers(16, len(whole), 60), len(whole) - 1]:
        altered = bytearray(whole)
        altered[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(altered)
        with pytest.raises(ValueError, match=r"not an index|format|damaged|truncated|altered"):
            hbmp.Index.load(path)
    path.write_bytes(whole + b"x")
    with pytest.raises(ValueError, match="bytes, found"):
        hbmp.Index.load(path)


def test_what_is_no_file_is_told_in_a_sentence(tmp_path):
    with pytest.raises(ValueError, match=r"There is no index at .*nowhere\.hbmp; `Index\.save` writes one\."):
        hbmp.Index.load(tmp_path / "nowhere.hbmp")
    with pytest.raises(ValueError, match="There is no index at"):
        hbmp.Index.load(tmp_path)
    hbmp.Index(8).save(tmp_path / "db" / "index.hbmp")
    with pytest.raises(ValueError, match=r"it is a whole database, which `hbmp\.Database\.load` opens"):
        hbmp.Index.load(tmp_path / "db")


def test_a_later_format_is_named(tmp_path):
    path = tmp_path / "codes.hbmp"
    hbmp.Index(8).save(path)
    later = bytearray(path.read_bytes())
    later[8] = 9
    path.write_bytes(later)
    with pytest.raises(ValueError, match=r"saved in format 9; this version reads up to 2\. Upgrade hbmp"):
        hbmp.Index.load(path)


def test_save_makes_the_folders_above(tmp_path):
    path = tmp_path / "new" / "deeper" / "codes.hbmp"
    hbmp.Index(8).add(np.ones((3, 8), np.int8)).save(path)
    assert len(hbmp.Index.load(path)) == 3


def test_a_failed_save_leaves_the_old_file(tmp_path, monkeypatch):
    rng = np.random.default_rng(2)
    codes, index = some_index(rng, n_items=50)
    path = tmp_path / "codes.hbmp"
    index.save(path)
    before = path.read_bytes()
    real = index_file._pieces

    def breaking(*args):
        pieces = real(*args)
        yield next(pieces)
        raise OSError("no space left")

    monkeypatch.setattr(index_file, "_pieces", breaking)
    index.remove([index.search(codes[:1], 1)[1][0, 0]])
    with pytest.raises(OSError, match="no space"):
        index.save(path)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["codes.hbmp"]


def test_golden_file_of_format_1_is_still_read():
    facts = json.loads((GOLDEN / "index-format-1.json").read_text())
    index = hbmp.Index.load(GOLDEN / "index-format-1.hbmp")
    packed = np.frombuffer(bytes.fromhex(facts["packed_codes"]), np.uint8).reshape(len(facts["ids"]), -1)
    codes, ids = hamming.unpack(packed, facts["n_bits"]), np.array(facts["ids"])
    assert index.kind == "ivf"
    assert len(index) == len(ids)
    np.testing.assert_array_equal(index.codes(ids), codes)
    np.testing.assert_array_equal(index.bit_weights, facts["bit_weights"])
    found, nearest = index.search(codes[:7], 5, n_probe=1000)
    all_distances = hamming.distances(codes[:7], codes, facts["bit_weights"])
    for row in range(7):
        order = np.lexsort((ids, all_distances[row]))[:5]
        np.testing.assert_array_equal(nearest[row], ids[order])
        np.testing.assert_array_equal(found[row], all_distances[row][order])
    assert index.add(codes[:1]).remove([facts["next_id"]]) == 1


@pytest.mark.parametrize("n_bits", [13, 64])
def test_plain_faiss_reads_the_export(tmp_path, n_bits):
    import faiss

    rng = np.random.default_rng(n_bits)
    codes, index = some_index(rng, n_bits)
    index.to_faiss(tmp_path / "codes.faiss")
    exported = faiss.read_index(str(tmp_path / "codes.faiss"))
    for queries in (codes[:10], rng.normal(size=(10, n_bits)).astype(np.float32)):
        scores, ids = exported.search(queries.astype(np.float32), 5)
        distances = (np.abs(queries) @ index.bit_weights[:, None] - scores) / 2
        expected, _ = index.search(queries, 5)
        np.testing.assert_allclose(distances, expected, atol=1e-4)
        for row in range(10):
            found = hamming.distances(queries[row : row + 1], index.codes(ids[row]), index.bit_weights)[0]
            np.testing.assert_array_equal(np.sort(found), expected[row])
    with pytest.raises(ValueError, match="empty index"):
        hbmp.Index(3).to_faiss(tmp_path / "none.faiss")


def test_the_lines_of_the_guide_run(tmp_path, monkeypatch):
    """Every Python block of docs/search.md, one after another, in one namespace."""
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs" / "search.md").read_text(), re.DOTALL)
    assert any("faiss.read_index" in block for block in blocks)
    names: dict = {}
    for block in blocks:
        exec(block, names)
