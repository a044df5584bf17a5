"""A database that is replaced is never lost: killed or interrupted at every file event, read and written meanwhile."""

from __future__ import annotations

import subprocess
import sys
import threading

import numpy as np
import pytest

import hbmp
from hbmp.database import Database

X = np.random.default_rng(0).standard_normal((60, 8))
MODEL = hbmp.get_method("lsh")(16, random_state=0).fit(X)
PARTS = {"database.json", "index.hbmp", "items.npz", "model"}

# Each fork saves over the database and dies, or is interrupted, at its next file event until one gets to the end.
SAVE_AND_DIE = """
import os, signal, sys, warnings
import numpy as np
import hbmp
from hbmp.database import Database

warnings.simplefilter("ignore")
path, how, first = sys.argv[1], getattr(signal, sys.argv[2]), sys.argv[3] == "first"
X = np.random.default_rng(0).standard_normal((60, 8))
model = hbmp.get_method("lsh")(16, random_state=0).fit(X)
databases = {n: Database.build(model, X[:n], source={"items": n}) for n in (50, 60)}
signal.signal(signal.SIGINT, signal.default_int_handler)
if not first:
    databases[50].save(path)


def child(event_number):
    seen = 0

    def count(event, arguments):
        nonlocal seen
        watched = event in ("open", "os.rename", "os.remove", "os.mkdir", "os.rmdir")
        if watched and arguments and str(arguments[0]).startswith(path):
            seen += 1
            if seen == event_number:
                signal.raise_signal(how)

    sys.addaudithook(count)
    try:
        databases[60].save(path)
    except KeyboardInterrupt:
        os._exit(9)
    except BaseException as error:
        print(f"event {event_number}: {error!r}", file=sys.stderr)
        os._exit(3)
    os._exit(9 if seen >= event_number else 0)


for event_number in range(1, 200):
    pid = os.fork()
    if pid == 0:
        child(event_number)
    _, status = os.waitpid(pid, 0)
    assert os.waitstatus_to_exitcode(status) in (0, 9, -9), event_number
    if os.path.exists(path + "/database.json"):
        found = Database.load(path)
        assert found.source["items"] == len(found) in (50, 60), (event_number, len(found))
        assert (found.codes() == databases[len(found)].codes()).all()
    else:
        assert first, f"event {event_number} lost the database"
    if status == 0:
        break
    if not first:
        databases[50].save(path)
assert status == 0 and len(Database.load(path)) == 60
print(event_number)
"""


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs fork")
@pytest.mark.parametrize("first", ["first", "again"])
@pytest.mark.parametrize("how", ["SIGKILL", "SIGINT"])
def test_no_file_event_is_a_bad_moment_to_die(tmp_path, how, first):
    path = tmp_path / "db"
    done = subprocess.run(
        [sys.executable, "-c", SAVE_AND_DIE, str(path), how, first],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 5  # it died at several events
    found = {item.name.split("-")[0].split(".")[0] for item in path.iterdir()}
    assert found == {"database", "index", "items", "model"}
    assert len(list(path.iterdir())) == len(PARTS)  # nothing left over


def test_a_failed_save_leaves_the_previous_database_and_nothing_else(tmp_path, monkeypatch):
    before = Database.build(MODEL, X[:50])
    for path, expected in ((tmp_path / "new", None), (tmp_path / "old", 50)):
        if expected:
            before.save(path)
        after = Database.build(MODEL, X)
        with monkeypatch.context() as patch:
            patch.setattr("hbmp.database.folder.np.savez", lambda *_, **__: (_ for _ in ()).throw(OSError("full")))
            with pytest.raises(OSError, match="full"):
                after.save(path)
        if expected:
            assert len(Database.load(path)) == expected
            assert {item.name for item in path.iterdir()} == PARTS
        else:
            assert not path.exists()


def test_readers_meet_one_whole_database_and_writers_take_turns(tmp_path):
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
    n_read = 0
    while any(writer.is_alive() for writer in writers) or not n_read:
        found = Database.load(tmp_path / "db")
        assert len(found) == len(found.index) == found.source["items"]
        n_read += 1
    for writer in writers:
        writer.join()
    assert not failures
    assert len(list((tmp_path / "db").iterdir())) == len(PARTS)


def test_a_folder_that_only_looks_like_a_database_is_refused(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "mine.txt").write_text("mine")
    with pytest.raises(ValueError, match="exists and is not a database"):
        Database.build(MODEL, X).save(tmp_path)
    assert (tmp_path / "model" / "mine.txt").read_text() == "mine"


def test_a_description_leads_to_no_other_folder(tmp_path):
    import json

    from hbmp._core.model_directory import digest

    Database.build(MODEL, X).save(tmp_path / "db")
    file = tmp_path / "db" / "database.json"
    described = json.loads(file.read_text())
    described["parts"]["items"] = "../items.npz"
    file.write_text(json.dumps({**described, "sha256": digest(described)}))
    with pytest.raises(ValueError, match=r"names '\.\./items\.npz' as its items"):
        Database.load(tmp_path / "db")
    described["items"] = 1
    file.write_text(json.dumps(described))
    with pytest.raises(ValueError, match="SHA-256 digest"):
        Database.load(tmp_path / "db")
