"""Writers are killed at random moments, one after the other, while readers keep searching: all see whole changes."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

KILLED = """
import itertools, os, random, signal, sys, time, warnings
import numpy as np
import hbmp
from hbmp.database import Database

warnings.simplefilter("ignore")
path, seed, kills = sys.argv[1], int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(seed)
X = np.random.default_rng(0).standard_normal((400, 8)).astype(np.float32)
model = hbmp.get_method("lsh")(16, random_state=0).fit(X)
name = "item {}".format


def rows(numbers):
    return {"ids": list(map(name, numbers)), "payload": [{"n": number} for number in numbers]}


def write(seed):
    own = random.Random(seed)
    with Database.load(path) as database:
        for change in itertools.count():
            if change == 1:
                os.write(ready[1], b"w")
            start = 10 * own.randrange(40)
            numbers = range(start, start + 10)
            if own.random() < 0.6:
                database.add(X[numbers], **rows(numbers), replace=True)
            else:
                database.remove(list(map(name, numbers)))


def check(database):
    ids = database.ids.tolist()
    numbers = [int(one.split()[1]) for one in ids]
    assert len(ids) == len(set(ids)) == len(database.index), (len(ids), len(database.index))
    assert all(n // 10 * 10 + 9 in set(numbers) for n in numbers), "part of a change"
    if ids:
        np.testing.assert_array_equal(database.codes(), model.transform(X[numbers]))
        np.testing.assert_array_equal(database.vectors_of(ids), X[numbers])
        assert database.payload_of(ids) == [{"n": number} for number in numbers]
    return len(ids)


def read(number):
    with Database.load(path) as database:
        told = False
        while not os.path.exists(path + ".stop"):
            distances, ids = database.search(X[number : number + 1], 400, rescore=400)
            found = [int(one.split()[1]) for one in ids[0] if one is not None]
            assert len(found) % 10 == 0 == len(set(found)) - len(found), found
            near = np.sort(1 - X[found] @ X[number] / np.linalg.norm(X[found], axis=1) / np.linalg.norm(X[number]))
            np.testing.assert_allclose(distances[0][: len(found)], near, atol=1e-5)
            if not told:
                os.write(ready[1], b"r")
                told = True


def forked(work, *arguments):
    pid = os.fork()
    if pid == 0:
        try:
            work(*arguments)
            os._exit(0)
        except BaseException as error:
            print(f"{work.__name__}: {error!r}", file=sys.stderr)
            os._exit(3)
    return pid


Database.build(model, X[:200], **rows(range(200)), vectors="float32", path=path).close()
ready = os.pipe()
readers = [forked(read, number) for number in (3, 250)]
for _ in readers:
    os.read(ready[0], 1)  # it has searched once
sizes = []
for turn in range(kills):
    writer = forked(write, seed * 1000 + turn)
    os.read(ready[0], 1)  # it has changed something
    time.sleep(rng.uniform(0, 0.08))
    os.kill(writer, signal.SIGKILL)
    assert os.waitstatus_to_exitcode(os.waitpid(writer, 0)[1]) == -9
    with Database.load(path) as database:
        sizes.append(check(database))
open(path + ".stop", "w").close()
assert [os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) for pid in readers] == [0, 0]
with Database.load(path) as database:
    assert database._store.rows("PRAGMA integrity_check") == [("ok",)]
    database.add(X[:10], ids=[f"new {number}" for number in range(10)], payload={"n": range(10)})
print(len(set(sizes)))
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("kills", [8, pytest.param(400, marks=pytest.mark.slow)])
def test_writers_killed_at_any_moment_leave_whole_changes(tmp_path, kills):
    done = subprocess.run(
        [sys.executable, "-c", KILLED, str(tmp_path / "db"), "0", str(kills)],
        capture_output=True,
        text=True,
        check=False,
        timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert int(done.stdout) > 2  # the killed writers had changed something
    assert {path.name for path in tmp_path.iterdir()} == {"db", "db.stop"}
