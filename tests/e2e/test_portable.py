"""Other platforms: the package works without the modules and functions that only POSIX systems have."""

import json
import subprocess
import sys

PROGRAM = """
import os, sys
import psutil  # has an implementation per platform; on this one it may need modules that are hidden here
for name in ("sysconf", "posix_fallocate", "sched_getaffinity", "getuid", "fchmod", "statvfs", "O_NOFOLLOW"):
    if hasattr(os, name):
        delattr(os, name)
for name in ("fcntl", "pwd", "grp", "resource", "termios"):
    sys.modules[name] = None  # importing it raises ImportError
import json
import numpy as np
import hbmp
from hbmp._core import machine
path = sys.argv[1]
rng = np.random.default_rng(0)
X, y = rng.standard_normal((150, 8)).astype(np.float32), rng.integers(0, 3, 150)
model = hbmp.HBMP(8, function=hbmp.functions.Linear(epochs=2), affinity="same_class", random_state=0).fit(X, y)
model.save(path)
same = bool((hbmp.load(path).transform(X) == model.transform(X)).all())
levels = hbmp.affinities.DistanceLevels().fit(X).matrix()
payload = [{"row": row} for row in range(150)]
with hbmp.Database.build(model, X, payload=payload, vectors="float16", path=path + ".db") as database:
    database.add(X[:1])
    database.remove([149])
with hbmp.Database.load(path + ".db") as database:
    nearest = database.search(X[:2], 1, rescore=50, where={"row": {"<": 100}})[1][:, 0].tolist()
    items = len(database)
removed = len(hbmp.deduplicate(np.concatenate([X, X[:5]]), threshold=0.99).removed)
texts = hbmp.encoders.get("wordllama").encode(["a shoe", "a router"])
hbmp.Index(8).add(model.transform(X)).save(path + ".index")
codes = len(hbmp.Index.load(path + ".index"))
found = {"same": same, "levels": levels.shape, "nearest": nearest, "items": items, "removed": removed, "codes": codes}
print(json.dumps({**found, "texts": texts.shape, "memory": machine.describe("cpu")["memory_gb"] > 0}))
"""


def test_models_databases_and_encoders_without_posix(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {
        "same": True,
        "levels": [150, 150],
        "nearest": [0, 1],
        "items": 150,
        "removed": 5,
        "codes": 150,
        "texts": [2, 256],
        "memory": True,
    }
