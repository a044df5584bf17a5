"""Modules of other platforms: the package works where `os.sysconf` and `fcntl` do not exist."""

import json
import subprocess
import sys

PROGRAM = """
import os, sys
import psutil  # has an implementation per platform; on this one it may need modules that are hidden here
if hasattr(os, "sysconf"):
    del os.sysconf
for name in ("fcntl", "pwd", "grp"):
    sys.modules[name] = None  # importing it raises ImportError
import json
import numpy as np
import hbmp
from hbmp._core import machine
rng = np.random.default_rng(0)
X, y = rng.standard_normal((60, 8)).astype(np.float32), rng.integers(0, 3, 60)
model = hbmp.HBMP(8, function=hbmp.functions.Linear(epochs=2), affinity="same_class", random_state=0).fit(X, y)
model.save(sys.argv[1])
same = bool((hbmp.load(sys.argv[1]).transform(X) == model.transform(X)).all())
levels = hbmp.affinities.DistanceLevels().fit(X).matrix()
print(json.dumps({"same": same, "levels": levels.shape, "memory": machine.describe("cpu")["memory_gb"] > 0}))
"""


def test_fit_save_and_load_without_posix_modules(tmp_path):
    command = [sys.executable, "-c", PROGRAM, str(tmp_path / "model")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {"same": True, "levels": [60, 60], "memory": True}
