"""Exported codes come back as they were, and the bytes are the ones the other systems document."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

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
