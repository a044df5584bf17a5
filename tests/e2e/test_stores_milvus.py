"""What Milvus does beyond the tests of all stores: the engine behind an address, and what it cannot do."""

from __future__ import annotations

import socket

import numpy as np
import pytest
from stores_common import clustered

from hbmp import hamming, stores


def test_it_answers_the_same_by_its_address(short_folder):
    """The engine as a server on a port: the path a cluster takes, with a token and wide codes in several requests."""
    with stores.Milvus(16, short_folder / "warm.db"):
        from milvus_lite.server import Server
    codes, queries = clustered(4096, n_items=2000)
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{probe.getsockname()[1]}"
    server = Server(str(short_folder / "served.db"), address)
    assert server.init()
    assert server.start()
    try:
        with stores.Milvus(4096, f"http://{address}", token="user:password") as store:
            store.add(codes, np.arange(len(codes)))
            assert store.count() == len(codes)
            found, ids = store.search(queries, 5, bit_weights=np.linspace(1, 2, 4096))
            store.drop()
    finally:
        server.stop()
    expected = hamming.distances(queries, codes, np.linspace(1, 2, 4096))
    np.testing.assert_allclose(found, np.sort(expected, axis=1)[:, :5], rtol=1e-5)
    np.testing.assert_allclose(found, np.take_along_axis(expected, ids, axis=1), rtol=1e-5)


def test_an_engine_that_does_not_answer_is_named_and_limits_are_told(short_folder, tmp_path):
    with pytest.raises(ConnectionError, match=r"No Milvus could be reached at http://127\.0\.0\.1:1"):
        stores.Milvus(16, "http://127.0.0.1:1", token="me:secret")
    with pytest.raises(ValueError, match="http://host:port, or a file name ending in"):
        stores.Milvus(16, "codes")
    with pytest.raises(ValueError, match="does not exist; create it first"):
        stores.Milvus(16, tmp_path / "nowhere" / "codes.db")
    with pytest.raises(ValueError, match="Embedded Milvus has only index='flat'"):
        stores.Milvus(16, tmp_path / "codes.db", index="hnsw")
    with pytest.raises(ValueError, match="at most 16384 results"), stores.Milvus(16, tmp_path / "codes.db") as store:
        store.search(np.ones((1, 16), int), 16_385)
