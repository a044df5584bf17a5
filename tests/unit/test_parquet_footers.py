"""Every byte of a Parquet footer damaged in turn: one sentence with the name of the file, and the process goes on."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

TABLES = {
    "images": pa.table({"image": [b"\x89PNG", b"no picture"], "label": ["a", "b"]}),
    "features": pa.table({"features": [[1.0, 2.0], [3.0, 4.0]], "label": ["a", "b"]}),
    "texts": pa.table({"text": ["one", "two"], "price": [1.5, 2.5]}),
}
READ = """
import json, sys
import numpy as np
import hbmp
from hbmp.app.inputs import read_data
from hbmp.app.inputs.item_table import ItemTable

def images(path):
    source = hbmp.Images.from_parquet(path)._source
    return [source.picture(row) for row in range(len(source))]

def texts(path):
    table = ItemTable(path)
    return len(table), table.texts()

kind, path = sys.argv[1:]
read = {"images": images, "texts": texts, "features": lambda path: np.asarray(read_data(path).features)}[kind]
whole = open(path, "rb").read()
start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
unclear = []
for place, bits in [(place, bits) for place in range(start, len(whole) - 8) for bits in (1, 128)]:
    damaged = bytearray(whole)
    damaged[place] ^= bits
    with open(path, "wb") as file:
        file.write(damaged)
    try:
        read(path)
    except (ValueError, OSError) as error:
        if f"{kind}.parquet" not in str(error):
            unclear.append([place, bits, repr(error)])
    except Exception as error:
        unclear.append([place, bits, repr(error)])
print(json.dumps([place - start + 1, unclear]))
"""


@pytest.mark.parametrize("kind", TABLES)
def test_a_damaged_footer_is_named_and_never_ends_the_process(kind, tmp_path):
    pq.write_table(TABLES[kind], tmp_path / f"{kind}.parquet")
    command = [sys.executable, "-W", "ignore", "-c", READ, kind, str(tmp_path / f"{kind}.parquet")]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    assert done.returncode == 0, done.stderr[-500:]
    n_places, unclear = json.loads(done.stdout)
    assert n_places > 400
    assert unclear == []
