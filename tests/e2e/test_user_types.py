"""A small user program under mypy: right lines pass, wrong names and arguments are errors."""

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hbmp

PROGRAM = """\
import numpy as np
import hbmp
from hbmp.affinities import Affinity, SameClass
from hbmp.functions import HashFunction

X = np.zeros((4, 2), dtype=np.float32)
model: hbmp.Hasher = hbmp.HBMP(n_bits=8, random_state=0).fit(X, [0, 1, 0, 1])
codes = model.transform(X)
reveal_type(codes)  # ndarray
affinity: Affinity = SameClass(items="classes").fit(y=[0, 1])
function: HashFunction = hbmp.functions.Linear(loss="hinge", epochs=3)
backbone: hbmp.backbones.Backbone = hbmp.backbones.Tiny()
book: hbmp.CodeBook = hbmp.infer_codes(affinity, 8, scheme="greedy")
names: list[str] = hbmp.list_methods()
hbmp.methods.ITQ(n_bits=8)
index = hbmp.Index(8)
hbmp.HBMP(n_bit=3)  # error: call-arg
hbmp.NoSuchName  # error: attr-defined
hbmp.functions.Liner()  # error: attr-defined
hbmp.functions.Linear(epoch=3)  # error: call-arg
SameClass(items=3)  # error: arg-type
hbmp.methods.ITQ(8, n_iters=3)  # error: call-arg
hbmp.infer_codes(affinity, 8, shceme="greedy")  # error: call-arg
hbmp.affinities.Linear()  # error: attr-defined
wrong: int = book.weights_for(3)  # error: assignment
"""


@pytest.fixture(scope="module")
def found(tmp_path_factory):
    """(line, code) of every error that mypy finds, and its whole output."""
    folder = tmp_path_factory.mktemp("user")
    (folder / "program.py").write_text(PROGRAM, encoding="utf-8")
    (folder / "mypy.ini").write_text("[mypy]\n[mypy-torch.*]\nfollow_imports = skip\n", encoding="utf-8")
    source = str(Path(hbmp.__file__).parent.parent)
    command = [sys.executable, "-m", "mypy", "program.py", "--ignore-missing-imports", "--follow-imports=silent"]
    options = ["--show-error-codes", "--no-error-summary", "--cache-dir", str(folder / "cache")]
    done = subprocess.run(
        [*command, *options],
        cwd=folder,
        env={**os.environ, "MYPYPATH": source},
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    lines = [line for line in done.stdout.splitlines() if line.startswith("program.py:") and ": error:" in line]
    return {(int(line.split(":")[1]), line.rpartition("[")[2].rstrip("]")) for line in lines}, done.stdout


def test_wrong_lines_and_only_those_are_errors(found):
    errors, output = found
    expected = {
        (number, line.partition("# error: ")[2])
        for number, line in enumerate(PROGRAM.splitlines(), start=1)
        if "# error: " in line
    }
    assert errors == expected, output


def test_results_have_real_types(found):
    assert "ndarray[" in next(line for line in found[1].splitlines() if "Revealed type" in line)


def test_stubs_name_what_the_catalog_holds():
    spec = importlib.util.spec_from_file_location("write_stubs", Path(__file__).parents[2] / "scripts/write_stubs.py")
    script = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(script)
    for path, text in script.stubs():
        assert path.read_text(encoding="utf-8") == text, f"{path.name} is old: run python scripts/write_stubs.py"
