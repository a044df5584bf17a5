"""What only a fresh interpreter shows: what an import costs, and that a saved model needs nothing but its files."""

from __future__ import annotations

import json
import subprocess
import sys
import time

import numpy as np
from sklearn.datasets import load_digits

import hbmp
from hbmp.functions import MLP, Kernel, Linear, Trees

IMPORT_SECONDS = 0.3


def run(program: str, *arguments) -> str:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout


def test_import_brings_in_no_heavy_library():
    loaded = json.loads(run("import hbmp, json, sys; dir(hbmp); print(json.dumps(sorted(sys.modules)))"))
    assert "hbmp" in loaded
    assert not {"torch", "faiss", "sklearn", "scipy", "numpy", "matplotlib"} & set(loaded)


def test_import_is_fast():
    """Best of several, over a bare start in turn with it: a busy machine slows both."""

    def seconds(program):
        started = time.perf_counter()
        run(program)
        return time.perf_counter() - started

    turns = [(seconds("pass"), seconds("import hbmp")) for _ in range(7)]
    bare, imported = (min(column) for column in zip(*turns, strict=True))
    assert imported - bare < IMPORT_SECONDS


ANSWERS = """
import sys
from pathlib import Path
import numpy as np
import hbmp
X = np.load(sys.argv[1])
for path in map(Path, sys.argv[2:]):
    model = hbmp.load(path)
    labels = model.codes_for(np.arange(10))
    weights = model.bit_weights_
    np.savez(path / "answers.npz", codes=model.transform(X), scores=model.project(X), weights=weights, labels=labels)
"""


def test_saved_models_answer_the_same_in_a_fresh_process(tmp_path):
    X, y = load_digits(return_X_y=True)
    functions = [Linear(epochs=5), MLP(hidden=(16,), epochs=5), Kernel(n_anchors=40), Trees(n_trees=3)]
    models = {
        tmp_path / type(function).__name__: hbmp.HBMP(12, function=function, random_state=0).fit(X[:300], y[:300])
        for function in functions
    }
    np.save(tmp_path / "X.npy", X[300:500])
    for path, model in models.items():
        model.save(path)
    run(ANSWERS, tmp_path / "X.npy", *models)
    for path, model in models.items():
        answers = np.load(path / "answers.npz")
        np.testing.assert_array_equal(answers["codes"], model.transform(X[300:500]))
        np.testing.assert_array_equal(answers["scores"], model.project(X[300:500]))
        np.testing.assert_array_equal(answers["weights"], model.bit_weights_)
        np.testing.assert_array_equal(answers["labels"], model.codes_for(np.arange(10)))


def test_the_same_seed_gives_the_same_model_in_a_fresh_process(tmp_path):
    program = """
import sys
import numpy as np
import hbmp
from sklearn.datasets import load_digits
X, y = load_digits(return_X_y=True)
model = hbmp.HBMP(12, function=hbmp.functions.Linear(epochs=5), random_state=3).fit(X[:300], y[:300])
np.save(sys.argv[1], model.transform(X))
"""
    run(program, tmp_path / "codes.npy")
    X, y = load_digits(return_X_y=True)
    model = hbmp.HBMP(12, function=Linear(epochs=5), random_state=3).fit(X[:300], y[:300])
    np.testing.assert_array_equal(np.load(tmp_path / "codes.npy"), model.transform(X))
