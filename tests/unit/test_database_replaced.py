"""A database is never lost: killed at every file event of each change, read and written meanwhile, on a full disk."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import hbmp
from hbmp.database import Database

X = np.random.default_rng(0).standard_normal((60, 8))
MODEL = hbmp.get_method("lsh")(16, random_state=0).fit(X)

# Counts calls of the system that change files, and kills the process before the one whose turn it is.
EVENTS = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <sys/types.h>
#include <unistd.h>
long hbmp_seen = 0, hbmp_last = 0;
static void event(void) { if (hbmp_last && ++hbmp_seen == hbmp_last) kill(getpid(), SIGKILL); }
#define WRAP(kind, name, given, passed) \
    kind name given { \
        static kind (*real) given; \
        if (!real) real = dlsym(RTLD_NEXT, #name); \
        event(); \
        return real passed; \
    }
WRAP(ssize_t, write, (int fd, const void *b, size_t n), (fd, b, n))
WRAP(ssize_t, pwrite, (int fd, const void *b, size_t n, off_t at), (fd, b, n, at))
WRAP(ssize_t, pwrite64, (int fd, const void *b, size_t n, off64_t at), (fd, b, n, at))
WRAP(int, fsync, (int fd), (fd))
WRAP(int, fdatasync, (int fd), (fd))
WRAP(int, ftruncate, (int fd, off_t n), (fd, n))
WRAP(int, ftruncate64, (int fd, off64_t n), (fd, n))
WRAP(int, unlink, (const char *p), (p))
WRAP(int, rename, (const char *a, const char *b), (a, b))
"""

CHANGE_AND_DIE = """
import ctypes, os, shutil, sys, warnings
import numpy as np
import hbmp
from hbmp.database import Database

warnings.simplefilter("ignore")
path, how, step, events = sys.argv[1], sys.argv[2], int(sys.argv[3]), ctypes.CDLL(None)
X = np.random.default_rng(0).standard_normal((60, 8))
model = hbmp.get_method("lsh")(16, random_state=0).fit(X)

def more(a, b):
    numbers = range(a, b)
    return dict(ids=[f"i{n}" for n in numbers], labels=list(numbers), payload=[{"n": n} for n in numbers])


start = path + ".start"
Database.build(model, X[:50], vectors="float16", path=start, **more(0, 50))


def work():
    if how == "add":
        Database.load(path).add(X[50:], **more(50, 60))
    elif how == "remove":
        Database.load(path).remove([f"i{n}" for n in range(10)])
    elif how == "update":
        Database.load(path).update(["i3"], X=X[59:], payload=[{"n": -1}], labels=[-1])
    else:
        Database.build(model, X, vectors="float16", path=path, replace=True, **more(0, 60))


def state(database):
    ids = database.ids.tolist()
    numbers = [row["n"] for row in database.payload_of(ids)]
    assert numbers == database.labels.tolist() and len(database.index) == len(ids)
    assert database.search(X[:5], 3, rescore=60)[1].shape == (5, 3)
    return ids, numbers, database.codes().tolist()


def fresh():
    for ending in ("", "-wal", "-shm", "-journal"):
        if os.path.exists(path + ending):
            os.remove(path + ending)
    if how != "build":
        shutil.copy(start, path)


fresh()
before = None if how == "build" else state(Database.load(path))
work()
after = state(Database.load(path))
died = 0
for number in range(1, 10_000, step):
    fresh()
    pid = os.fork()
    if pid == 0:
        ctypes.c_long.in_dll(events, "hbmp_last").value = number
        try:
            work()
            os._exit(0)
        except BaseException as error:
            print(f"event {number}: {error!r}", file=sys.stderr)
            os._exit(3)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) in (0, -9), number
    found = state(Database.load(path)) if os.path.exists(path) else None
    assert found in (before, after), number
    if status == 0:
        assert found == after
        break
    died += 1
print(died)
"""


@pytest.fixture(scope="module")
def events(tmp_path_factory):
    """A library that counts file events."""
    compiler = shutil.which("cc")
    if compiler is None or not sys.platform.startswith("linux"):
        pytest.skip("needs a C compiler on Linux")
    folder = tmp_path_factory.mktemp("events")
    (folder / "events.c").write_text(EVENTS)
    command = [compiler, "-shared", "-fPIC", "-O1", "-o", folder / "events.so", folder / "events.c", "-ldl"]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "events.so"


@pytest.mark.parametrize("step", [pytest.param(1, marks=pytest.mark.slow), 7], ids=["every event", "some events"])
@pytest.mark.parametrize("how", ["add", "remove", "update", "build", "replace"])
def test_no_file_event_is_a_bad_moment_to_die(tmp_path, events, how, step):
    done = subprocess.run(
        [sys.executable, "-c", CHANGE_AND_DIE, str(tmp_path / "db"), how, str(step)],
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
        env={**os.environ, "LD_PRELOAD": str(events), "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 20 / step  # it died at several events
    assert {path.name for path in tmp_path.iterdir()} == {"db", "db.start"}  # nothing is left over


def test_a_reader_in_another_process_sees_whole_changes(tmp_path):
    path = tmp_path / "db"
    writer = Database.build(MODEL, X[:10], payload={"n": range(10)}, vectors="int8", path=path)
    script = """
import sys, numpy as np
from hbmp.database import Database
X = np.random.default_rng(0).standard_normal((60, 8))
database, seen = Database.load(sys.argv[1]), set()
print("ready", flush=True)
while len(database) != 60:
    distances, ids = database.search(X[:1], 60, rescore=60)
    found = ids[0][ids[0] >= 0]
    assert len(found) % 10 == 0, len(found)  # ten come at a time
    assert [row["n"] for row in database.payload_of(found)] == found.tolist()
    seen.add(len(found))
print(sorted(seen))
"""
    reader = subprocess.Popen([sys.executable, "-c", script, path], stdout=subprocess.PIPE, text=True)
    assert reader.stdout.readline() == "ready\n"
    for start in range(10, 60, 10):
        writer.add(X[start : start + 10], ids=range(start, start + 10), payload={"n": range(start, start + 10)})
    assert reader.communicate(timeout=60)[0].startswith("[")
    assert reader.returncode == 0


def test_threads_search_while_one_adds_and_removes(tmp_path):
    database = Database.build(MODEL, X[:20], vectors="float32", path=tmp_path / "db")
    failures, done = [], threading.Event()

    def search():
        try:
            while not done.is_set():
                distances, ids = database.search(X[:4], 5, rescore=20)
                assert (np.diff(distances, axis=1) >= 0).all()
                assert (ids >= 0).all()
                assert (ids[:, 0] == np.arange(4)).all()  # those are never removed
        except Exception as error:
            failures.append(error)

    searchers = [threading.Thread(target=search) for _ in range(3)]
    for searcher in searchers:
        searcher.start()
    for _ in range(15):
        database.add(X[20:], ids=range(20, 60))
        database.remove(range(20, 60))
    done.set()
    for searcher in searchers:
        searcher.join()
    assert failures == []


def test_writers_take_turns_and_a_failed_save_leaves_the_previous_database(tmp_path, monkeypatch):
    databases = [Database.build(MODEL, X[:n], source={"items": n}) for n in (40, 60)]
    databases[0].save(tmp_path / "db")
    failures = []

    def write(database):
        try:
            for _ in range(6):
                database.save(tmp_path / "db")
        except Exception as error:
            failures.append(error)

    writers = [threading.Thread(target=write, args=(database,)) for database in databases]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        with Database.load(tmp_path / "db") as found:
            assert len(found) == len(found.index) in (40, 60)
    for writer in writers:
        writer.join()
    assert not failures
    for name, expected in (("db", {40, 60}), ("new", None)):
        with monkeypatch.context() as patch:
            patch.setattr("hbmp.database.database.write_model", lambda *_: (_ for _ in ()).throw(OSError("full")))
            with pytest.raises(OSError, match="full"):
                databases[1].save(tmp_path / name)
        assert (len(Database.load(tmp_path / name)) in expected) if expected else not (tmp_path / name).exists()
    assert [path.name for path in tmp_path.iterdir()] == ["db"]


FULL = """
import resource, sys
import numpy as np
from hbmp.database import Database
X = np.random.default_rng(0).standard_normal((5000, 8))
database = Database.load(sys.argv[1])
if sys.argv[2] == "limit":
    resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000))
try:
    database.add(X, payload={"text": ["x" * 100] * 5000})
    sys.exit("no error")
except OSError as error:
    print(error)
assert len(database) == len(Database.load(sys.argv[1])) == 60 == len(database.search(X[:1], 60)[1][0])
assert database.columns == {}
database.remove([0])
assert len(Database.load(sys.argv[1])) == 59
"""


@pytest.mark.parametrize("how", ["disk", "limit"])
def test_a_full_disk_is_one_sentence_and_changes_nothing(tmp_path, how):
    place = tmp_path / "disk"
    place.mkdir()
    if how == "disk":
        mount = ["mount", "-t", "tmpfs", "-o", "size=400k", "none", place]
        if subprocess.run(mount, check=False, capture_output=True).returncode:
            pytest.skip("needs the right to mount a small disk")
    try:
        Database.build(MODEL, X, path=place / "db").close()
        words = [sys.executable, "-c", FULL, place / "db", how]
        done = subprocess.run(words, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        assert "nothing was changed. Free some space" in done.stdout
        with pytest.raises(OSError) if how == "disk" else threading.Lock():
            rows = np.tile(X, (900, 1)) if how == "disk" else X
            Database.build(MODEL, rows, path=place / "large", vectors="float32")
        assert {path.name for path in place.iterdir()} - {"large"} == {"db"}
    finally:
        if how == "disk":
            subprocess.run(["umount", "-l", place], check=True)


def test_a_file_on_a_read_only_disk_is_searched_and_not_changed(tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "none", place], check=False, capture_output=True).returncode:
        pytest.skip("needs the right to mount a disk")
    try:
        Database.build(MODEL, X, path=place / "db").close()
        subprocess.run(["mount", "-o", "remount,ro", place], check=True)
        with Database.load(place / "db") as database:
            assert database.search(X[:3], 1)[1][:, 0].tolist() == [0, 1, 2]
            with pytest.raises(PermissionError, match="is read-only here; copy it"):
                database.add(X)
            assert len(database) == 60
        with pytest.raises(ValueError, match="disk is read-only"):
            Database.build(MODEL, X, path=place / "other")
    finally:
        subprocess.run(["umount", "-l", place], check=True)


def test_a_folder_of_format_2_is_read_and_not_changed(tmp_path):
    golden = Path(__file__).parents[1] / "golden" / "databases" / "format-2" / "features"
    shutil.copytree(golden, tmp_path / "db")
    database = Database.load(tmp_path / "db")
    with pytest.raises(ValueError, match=r"is a database of format 2, which can only be read\. Save it as a new file"):
        database.remove([1])
    with pytest.raises(ValueError, match="is a database folder of an earlier version, which is not replaced"):
        database.save(tmp_path / "db")
    database.save(tmp_path / "new")
    new = Database.load(tmp_path / "new")
    assert new.ids.tolist() == database.ids.tolist()
    assert new.labels_of(new.ids) == database.labels_of(new.ids)
    assert new.remove(new.ids[:5]) == 5
    described = tmp_path / "db" / "database.json"
    text = described.read_text()
    for wrong, sentence in [
        (text.replace('"items": 120', '"items": 121'), "does not match its SHA-256 digest"),
        (text.replace('"format": 2', '"format": 9'), "format 9; this version reads up to 2"),
        (text.replace('"format": 2', '"format": 1').replace("blobs", "other"), "does not match its SHA-256 digest"),
        (
            text.replace('"items": "items.npz"', '"items": "../items.npz"')
            .replace('"format": 2', '"format": 1')
            .replace('"sha256"', '"unknown"'),
            "names '../items.npz'",
        ),
        (text.replace('"format": 2', '"former": 2'), "names no format"),
        ("{", "cannot be read"),
    ]:
        described.write_text(wrong)
        with pytest.raises(ValueError, match=sentence):
            Database.load(tmp_path / "db")


def test_an_open_database_that_is_replaced_encodes_with_the_new_model(tmp_path):
    models = [hbmp.get_method("lsh")(16, random_state=seed).fit(X) for seed in (0, 1)]
    Database.build(models[0], X, path=tmp_path / "a.db").close()
    with Database.load(tmp_path / "a.db") as reader:
        assert reader.search(X[:1], 1)[1] == 0
        Database.build(models[1], X, path=tmp_path / "a.db", replace=True).close()
        found = reader.search(X[:5], 3)  # the first call afterwards: the former model gives other codes
    expected = Database.build(models[1], X).search(X[:5], 3)
    np.testing.assert_array_equal(found[0], expected[0])
    np.testing.assert_array_equal(found[1], expected[1])


def test_a_new_file_that_cannot_be_opened_is_a_sentence(tmp_path, monkeypatch):
    from hbmp.database import database_file

    def refuse(*_, **__):
        raise sqlite3.OperationalError("unable to open database file")

    monkeypatch.setattr(database_file.sqlite3, "connect", refuse)
    with pytest.raises(OSError, match=r"new\.db cannot be opened \(unable to open database file\)\."):
        database_file.DatabaseFile.create(tmp_path / "new.db")
