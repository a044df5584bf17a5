"""Exported codes come back as they were, and the bytes are the ones the other systems document."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from sklearn.datasets import load_digits
from sklearn.exceptions import NotFittedError

import hbmp
from hbmp import export, hamming

CODES = st.tuples(st.integers(0, 5), st.integers(1, 40)).flatmap(
    lambda shape: hnp.arrays(np.int8, shape, elements=st.sampled_from([-1, 1]))
)


@given(CODES, st.sampled_from(["little", "big"]))
def test_bytes_come_back(codes, bit_order):
    packed = export.to_bytes(codes, bit_order=bit_order)
    np.testing.assert_array_equal(export.from_bytes(packed, codes.shape[1], bit_order=bit_order), codes)


@given(CODES)
def test_hex_and_int8_come_back(codes):
    n_bits = codes.shape[1]
    np.testing.assert_array_equal(export.from_hex(export.to_hex(codes), n_bits), codes)
    np.testing.assert_array_equal(export.from_int8(export.to_int8(codes), n_bits), codes)


@given(CODES)
def test_bits_stand_where_the_documents_say(codes):
    """Each byte by arithmetic, one bit at a time: little-endian is 2**k, the others put the first bit highest."""
    little, big = export.to_bytes(codes), export.to_bytes(codes, bit_order="big")
    texts, signed = export.to_hex(codes), export.to_int8(codes)
    for row, code in enumerate(codes):
        for byte in range(little.shape[1]):
            bits = [bit > 0 for bit in code[8 * byte : 8 * byte + 8]]
            assert little[row, byte] == sum(2**k for k, bit in enumerate(bits) if bit)
            expected = sum(2 ** (7 - k) for k, bit in enumerate(bits) if bit)
            assert big[row, byte] == expected
            assert int(texts[row][2 * byte : 2 * byte + 2], 16) == expected
            assert signed[row, byte] == (expected if expected < 128 else expected - 256)


def test_bytes_are_those_of_the_package_and_examples_read_by_eye():
    code = np.array([[1, -1, -1, -1, -1, -1, -1, -1, 1, 1]])
    np.testing.assert_array_equal(export.to_bytes(code), hamming.pack(code))
    assert export.to_bytes(code).tolist() == [[1, 3]]
    assert export.to_hex(code) == ["80c0"]
    assert export.to_int8(code).tolist() == [[-128, -64]]


def test_hamming_distance_between_exported_bytes_is_the_distance_between_codes():
    rng = np.random.default_rng(0)
    codes = rng.choice([-1, 1], (6, 21))
    expected = hamming.distances(codes, codes)
    for packed in (export.to_bytes(codes), export.to_int8(codes).view(np.uint8)):
        counted = np.bitwise_count(packed[:, None] ^ packed[None]).sum(axis=2)
        np.testing.assert_array_equal(counted, expected)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: export.to_bytes([[0, 1]]), "only -1 and \\+1"),
        (lambda: export.to_bytes([[1, 1]], bit_order="middle"), "'little' or 'big'"),
        (lambda: export.from_bytes(np.zeros((1, 2), np.uint8), 8), "uint8 array of shape \\(n, 1\\)"),
        (lambda: export.from_bytes(np.zeros((1, 2), np.uint8), 8, bit_order="big"), "uint8 array of shape \\(n, 1\\)"),
        (lambda: export.from_bytes(np.zeros(2, np.uint8), 8, bit_order="big"), "uint8 array of shape \\(n, 1\\)"),
        (lambda: export.from_int8(np.zeros((1, 1), np.uint8), 8), "dtype int8"),
        (lambda: export.from_hex(["8"], 8), "2 hexadecimal digits, found '8'"),
        (lambda: export.from_hex(["zz"], 8), "found 'zz'"),
        (lambda: export.to_sql([[1, -1]], [1], table="a; DROP TABLE b"), "letters, digits and underscores"),
        (lambda: export.to_sql([[1, -1]], [1, 2]), "1 codes need ids"),
        (lambda: export.to_sql([[1, -1]], [1], rows_per_statement=0), "at least 1"),
        (lambda: export.to_sql(np.ones((1, 4001)), [1]), "at most 4000 bits"),
    ],
)
def test_wrong_input_says_why(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def test_sql_reads_as_sql():
    statements = list(export.to_sql([[1, -1, 1], [-1, -1, -1], [1, 1, 1]], [7, 8, 9], table="t", rows_per_statement=2))
    assert len(statements) == 2 + 2 + 2
    assert all(statement.endswith(";") for statement in statements)
    assert "(7, B'101', '[1, -1, 1]')" in statements[2]
    assert "(9, B'111'" in statements[3]


FUNCTIONS = {
    "linear": hbmp.functions.Linear(epochs=5),
    "mlp": hbmp.functions.MLP(hidden=(32, 24), epochs=3),
    "kernel": hbmp.functions.Kernel(n_anchors=150),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_onnx_gives_the_same_bits(tmp_path, name):
    onnxruntime = pytest.importorskip("onnxruntime")
    images, labels = load_digits(return_X_y=True)
    images = images.astype(np.float32)
    model = hbmp.HBMP(19, function=FUNCTIONS[name], random_state=0).fit(images, labels)
    path = export.to_onnx(model, tmp_path / "encoder.onnx")
    assert [file.name for file in tmp_path.iterdir()] == ["encoder.onnx"]
    session = onnxruntime.InferenceSession(path)
    for rows in (slice(None), slice(3, 4), slice(0, 0)):
        scores, codes = session.run(["scores", "codes"], {"features": images[rows]})
        assert codes.dtype == np.int8
        np.testing.assert_array_equal(codes, np.where(scores >= 0, 1, -1))
    scores, codes = session.run(None, {"features": images})
    np.testing.assert_array_equal(codes, model.transform(images))
    np.testing.assert_allclose(scores, model.project(images), rtol=1e-3, atol=1e-4)
    weights = json.loads(session.get_modelmeta().custom_metadata_map["hbmp.bit_weights"])
    np.testing.assert_array_equal(weights, model.bit_weights_)


@pytest.mark.parametrize("kind", ["classes", "label sets"])
def test_onnx_gives_the_same_detail_bits(tmp_path, kind):
    """Detail bits depend on one another, so a bit that differed would change others; rows of zeros are allowed."""
    onnxruntime = pytest.importorskip("onnxruntime")
    images, y = load_digits(return_X_y=True)
    images = images.astype(np.float32)
    images[5] = 0
    labels = y if kind == "classes" else np.eye(10, dtype=np.uint8)[y] | (images[:, 20:30] > 14)
    function = hbmp.functions.Linear(epochs=3)
    model = hbmp.HBMP(26, detail_bits=15, function=function, random_state=0).fit(images[:600], labels[:600])
    assert (model.encoder_.queries is None) == (kind == "classes")
    session = onnxruntime.InferenceSession(export.to_onnx(model, tmp_path / "encoder.onnx"))
    expected, sizes = model.transform(images), model.project(images)
    for rows in (slice(None), slice(3, 4), slice(0, 0)):
        scores, codes = session.run(["scores", "codes"], {"features": images[rows]})
        assert codes.shape == (len(images[rows]), 26)
        np.testing.assert_array_equal(codes, expected[rows])
        np.testing.assert_allclose(scores, sizes[rows], rtol=1e-3, atol=1e-4 * np.abs(sizes).max())
    assert len(np.unique(expected[:, 11:], axis=0)) > 500


def test_onnx_counts_a_score_of_zero_as_plus(tmp_path):
    onnxruntime = pytest.importorskip("onnxruntime")
    images, labels = load_digits(return_X_y=True)
    linear = hbmp.functions.Linear(epochs=1)
    model = hbmp.HBMP(4, function=linear, label_share=0, random_state=0).fit(images, labels)
    model.function_.layers_ = [(np.zeros((64, 4), np.float32), np.array([0, -0.0, 1, -1], np.float32))]
    session = onnxruntime.InferenceSession(export.to_onnx(model, tmp_path / "encoder.onnx"))
    codes = session.run(["codes"], {"features": np.ones((1, 64), np.float32)})[0]
    assert codes.tolist() == model.transform(np.ones((1, 64))).tolist() == [[1, 1, 1, -1]]


def test_what_cannot_be_written_as_onnx_says_so_and_leaves_the_file(tmp_path):
    images, labels = load_digits(return_X_y=True)
    path = tmp_path / "encoder.onnx"
    path.write_text("what was there before")
    trees = hbmp.HBMP(4, function=hbmp.functions.Trees(n_trees=2), random_state=0).fit(images[:100], labels[:100])
    with pytest.raises(ValueError, match="HBMP with the hash function Trees cannot be written as ONNX"):
        export.to_onnx(trees, path)
    with pytest.raises(ValueError, match="PCASign cannot be written as ONNX"):
        export.to_onnx(hbmp.get_method("pca_sign")(4).fit(images), path)
    with pytest.raises(NotFittedError):
        export.to_onnx(hbmp.HBMP(4), path)
    assert path.read_text() == "what was there before"
