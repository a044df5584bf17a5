"""`pip install hbmp` without torch: import, search, metrics, saved models and the encoders that need no training.

Each test starts a Python process in which importing torch fails, as where it is not installed.
"""

import json
import subprocess
import sys

import numpy as np
import pytest

import hbmp

HIDE_TORCH = """
import sys
class NoTorch:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] == "torch":
            raise ModuleNotFoundError(f"No module named {name!r}", name="torch")
sys.meta_path.insert(0, NoTorch())
import json
import numpy as np
import hbmp
rng = np.random.default_rng(0)
X = rng.standard_normal((200, 16)).astype(np.float32)
y = rng.integers(0, 4, 200)
"""
METHODS = ["hbmp", "itq", "lsh", "pca_sign", "pca_rotation", "sh"]
SUPERVISED = ["cca_itq", "fasthash", "ksh", "sdh", "structhash"]


def without_torch(program: str, *arguments) -> dict:
    """What the program prints, as JSON."""
    command = [sys.executable, "-c", HIDE_TORCH + program, *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


def test_everything_is_imported_and_searched_without_torch():
    found = without_torch(
        """
from hbmp import affinities, backbones, database, encode, evaluation, export, functions, metrics, stores
codes = hbmp.hamming.signs(X)
index = hbmp.Index(16, bit_weights=np.linspace(1, 2, 16))
index.add(codes)
distances, ids = index.search(codes[:5], 3)
score = metrics.mean_average_precision(codes[:50], codes[50:], y[:50], y[50:])
print(json.dumps({"ids": ids[:, 0].tolist(), "score": score, "torch": "torch" in sys.modules}))
"""
    )
    assert found["ids"] == [0, 1, 2, 3, 4]
    assert 0.2 < found["score"] < 0.5
    assert found["torch"] is False


def test_texts_are_searched_and_duplicates_found_without_torch(tmp_path):
    found = without_torch(
        """
from hbmp.app import cli
words = ["a red shoe", "a blue shoe", "a wireless router", "a camera lens", "a bag", "a lamp"]
texts = [f"{word} number {number}" for number in range(20) for word in words]
open(sys.argv[1] + ".csv", "w").write("text\\n" + "\\n".join(texts) + "\\n")
fitted = cli.main(["fit", sys.argv[1] + ".csv", "--bits", "64", "-o", sys.argv[1], "--json"])
model = hbmp.load(sys.argv[1])
database = hbmp.Database.build(model, texts, path=sys.argv[1] + ".db", vectors="float16")
distances, ids = database.search(["a wireless router number 3"], 1, rescore=50)
removed = len(hbmp.deduplicate(np.concatenate([X, X[:3]]), threshold=0.99).removed)
print(json.dumps({"text": texts[ids[0, 0]], "removed": removed, "torch": "torch" in sys.modules}))
""",
        tmp_path / "model",
    )
    assert found == {"text": "a wireless router number 3", "removed": 3, "torch": False}


def test_methods_without_gradients_give_the_same_codes(tmp_path):
    program = """
fitted = {}
for name in sys.argv[2].split(","):
    method = hbmp.get_method(name)
    model = method(n_bits=8, random_state=0) if "random_state" in method().get_params() else method(n_bits=8)
    fitted[name] = model.fit(X, y if method.supervised else None).transform(X)
np.savez(sys.argv[1], **fitted)
print(json.dumps(sorted(fitted)))
"""
    names = [*METHODS, *SUPERVISED]
    assert without_torch(program, tmp_path / "codes.npz", ",".join(names)) == sorted(names)
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((200, 16)).astype(np.float32), rng.integers(0, 4, 200)
    with np.load(tmp_path / "codes.npz") as codes:
        for name in names:
            method = hbmp.get_method(name)
            model = method(n_bits=8, random_state=0) if "random_state" in method().get_params() else method(n_bits=8)
            here = model.fit(X, y if method.supervised else None).transform(X)
            assert (codes[name] == here).mean() > 0.999, name


def test_saved_models_with_labels_encode_and_search(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 16)).astype(np.float32)
    y = X[:, :4].argmax(axis=1)
    linear, kernel = hbmp.functions.Linear(epochs=5), hbmp.functions.Kernel(n_anchors=20)
    for name, function in {"linear": linear, "kernel": kernel, "mlp": hbmp.functions.MLP(epochs=2)}.items():
        model = hbmp.HBMP(8, function=function, device="cpu", random_state=0).fit(X, y)
        model.save(tmp_path / name)
        hbmp.Database.build(model, X, ids=np.arange(200)).save(tmp_path / f"{name}-database")
        np.save(tmp_path / f"{name}.npy", model.transform(X))
    found = without_torch(
        """
import pathlib
folder, same, first = pathlib.Path(sys.argv[1]), {}, {}
for name in ("linear", "kernel", "mlp"):
    model = hbmp.load(folder / name)
    same[name] = bool((model.transform(X) == np.load(folder / f"{name}.npy")).all())
    model.codes_for([0, 1])
    _, ids = hbmp.Database.load(folder / f"{name}-database").search(X[:3], 5)
    first[name] = len(ids)
print(json.dumps({"same": same, "first": first}))
""",
        tmp_path,
    )
    assert found == {"same": dict.fromkeys(["linear", "kernel", "mlp"], True)} | {
        "first": dict.fromkeys(["linear", "kernel", "mlp"], 3)
    }


def test_codes_of_every_affinity_are_inferred():
    """Stage one of the paper needs no torch: affinities compute in NumPy."""
    program = """
L = (rng.random((200, 5)) < 0.3).astype(int)
similarity = np.array([[1 - abs(i - j) / 2 for j in range(4)] for i in range(4)])
a = hbmp.affinities
fitted = [
    a.SameClass().fit(None, y), a.SharedLabels().fit(None, L), a.LabelOverlap().fit(None, L),
    a.DistanceLevels().fit(X), a.ClassSimilarity(similarity).fit(None, y), a.MeanFeatures().fit(X, L),
    a.Centred().fit(X, L), a.Precomputed(kind="distance").fit(np.abs(X[:, :1] - X[:, 0])),
]
books = {type(each).__name__: hbmp.infer_codes(each, 6) for each in fitted}
print(json.dumps({name: [book.n_bits, float(book.relative_residuals[-1])] for name, book in books.items()}))
"""
    found = without_torch(program)
    assert len(found) == 8
    assert all(0 <= residual < 1 for _, residual in found.values())
    namespace: dict = {}
    exec(HIDE_TORCH[HIDE_TORCH.index("import json") :] + program.rpartition("print(")[0], namespace)
    for name, book in namespace["books"].items():
        assert found[name][1] == pytest.approx(float(book.relative_residuals[-1]), abs=1e-3), name


@pytest.mark.parametrize(
    ("statement", "message"),
    [
        ("hbmp.HBMP(8).fit(X, y)", "HBMP with labels trains by torch: pip install 'hbmp[learn]'"),
        ("hbmp.get_method('csq')", "The method 'csq' needs torch: pip install 'hbmp[learn]'"),
        ("hbmp.get_method('tsh')(n_bits=4).fit(X, y)", "trains by torch: pip install 'hbmp[learn]'"),
        ("hbmp.functions.Linear().fit(X, y)", "Linear trains by torch: pip install 'hbmp[learn]'"),
        ("hbmp.functions.Network('tiny').learn(X, None, n_bits=4)", "Network trains by torch"),
        ("hbmp.backbones.Tiny", "The backbone 'tiny' needs torch: pip install 'hbmp[learn]'"),
    ],
)
def test_training_reports_what_to_install(statement, message):
    program = f"""
try:
    {statement}
except ImportError as error:
    print(json.dumps({{"text": str(error)}}))
"""
    assert message in without_torch(program)["text"]
