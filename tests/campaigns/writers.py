"""Every writer of the package, each as: prepare the previous state, write the new one, read what is there."""

from __future__ import annotations

import contextlib
import io
from pathlib import Path
from typing import Any

import numpy as np

import hbmp

X = np.random.default_rng(0).standard_normal((40, 6)).astype(np.float32)
CODES = {n: np.where(np.random.default_rng(n).random((40, n)) < 0.5, 1, -1).astype(np.int8) for n in (8, 16)}


def lsh(n_bits: int) -> Any:
    """A small model without torch."""
    return hbmp.get_method("lsh")(n_bits, random_state=0).fit(X)


def warm_up() -> None:
    """Load what the writers need before the first fork."""
    import faiss  # noqa: F401
    import pyarrow.parquet  # noqa: F401
    import safetensors.torch  # noqa: F401
    import scipy.io  # noqa: F401
    import torch

    import hbmp.app.card
    import hbmp.encode
    import hbmp.evaluation.one_model
    import hbmp.experiments.store

    torch.set_num_threads(1)  # a forked process must not wait for the threads of another
    lsh(8).transform(X)
    hbmp.Index(8).add(CODES[8]).search(CODES[8][:1], 1)
    hbmp.Database.build(lsh(8), X)


def command(*words: str) -> None:
    """Run a command line; its sentence becomes a ValueError."""
    from hbmp.app import cli

    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        status = cli.main(list(words))
    if status == 130:
        raise KeyboardInterrupt(err.getvalue().strip())
    if status:
        kind = ValueError if status == 2 else RuntimeError
        raise kind(err.getvalue().strip())


def lengths(texts: list[str]) -> list[list[int]]:
    """An encoder of one's own."""
    return [[len(text), 1] for text in texts]


class Writer:
    """A place on disk. `new` is what `read` gives after `write`, and `files` is what the folder holds then.

    `between` are further states that a stopped writer may leave.
    """

    new: Any = 16
    between: tuple[Any, ...] = ()
    files: tuple[str, ...] = ()

    def __init__(self, folder: Path):
        self.folder = folder

    def prepare(self) -> None:
        """Write the previous state; by default there is none."""

    def write(self) -> None:
        """Write the new state."""
        raise NotImplementedError

    def read(self) -> Any:
        """What is there, None for nothing."""
        raise NotImplementedError

    def again(self) -> Any:
        """Write once more without an attack, and read."""
        self.write()
        return self.read()

    def is_true(self, said: str, found: Any) -> bool:
        """Whether what an interrupted writer said fits what is there."""
        return "to continue" not in said or found != self.new


class FirstModel(Writer):
    """`model.save` where there is nothing."""

    files = ("model/arrays.safetensors", "model/model.json")

    @property
    def place(self) -> Path:
        """The model directory."""
        return self.folder / "model"

    def write(self) -> None:
        """Save 16 bits."""
        lsh(16).save(self.place)

    def read(self) -> Any:
        """The number of bits, if the codes are right."""
        if not (self.place / "model.json").exists():
            return None
        model = hbmp.load(self.place)
        good = np.array_equal(model.transform(X), lsh(model.n_bits).transform(X))
        return model.n_bits if good else "other codes"

    def again(self) -> Any:
        """Save again. The name of the arrays differs from save to save; they get the plain one."""
        found = super().again()
        for path in self.place.glob("arrays-*.safetensors"):
            path.rename(self.place / "arrays.safetensors")
        return found


class NextModel(FirstModel):
    """`model.save` over a model."""

    def prepare(self) -> None:
        """Save 8 bits."""
        lsh(8).save(self.place)


class Fit(FirstModel):
    """`hbmp fit -o` with its card, which comes after the model."""

    files = ("model/arrays.safetensors", "model/card.md", "model/model.json", "x.npy")
    new = (16, True)
    between = ((16, False),)

    def prepare(self) -> None:
        """Write the features."""
        np.save(self.folder / "x.npy", X)

    def write(self) -> None:
        """Fit and save."""
        self._fit("16")

    def _fit(self, bits: str) -> None:
        words = ["--method", "lsh", "--bits", bits, "--holdout", "0", "-o", str(self.place)]
        command("fit", str(self.folder / "x.npy"), *words)

    def read(self) -> Any:
        """Bits, and whether there is a whole card."""
        bits = super().read()
        card = self.place / "card.md"
        return None if bits is None else (bits, card.exists() and "hbmp fit" in card.read_text(encoding="utf-8"))

    def is_true(self, said: str, found: Any) -> bool:
        """Whether it tells a saved model from a lost one."""
        return not said or ("The model is saved" in said) == (found is not None and found[0] == 16)


class FitAgain(Fit):
    """`hbmp fit -o` over a model with its card."""

    between = ((16, False), (8, False))

    def prepare(self) -> None:
        """Fit the former model."""
        super().prepare()
        self._fit("8")

    def write(self) -> None:
        """Fit and replace it."""
        self._fit("16")


class SavedIndex(Writer):
    """`Index.save` over an index."""

    files = ("codes.hbmp",)

    def prepare(self) -> None:
        """Save 8 bits."""
        hbmp.Index(8).add(CODES[8]).save(self.folder / "codes.hbmp")

    def write(self) -> None:
        """Save 16 bits."""
        hbmp.Index(16).add(CODES[16]).save(self.folder / "codes.hbmp")

    def read(self) -> Any:
        """The number of bits, if the codes are right."""
        index = hbmp.Index.load(self.folder / "codes.hbmp")
        return index.n_bits if np.array_equal(index.codes(np.arange(40)), CODES[index.n_bits]) else "other codes"


class EncodedArray(Writer):
    """`hbmp encode -o codes.npy` over a file."""

    files = ("codes.npy", "model/arrays.safetensors", "model/model.json", "x.npy")

    def prepare(self) -> None:
        """Write features, a model, and other codes."""
        np.save(self.folder / "x.npy", X)
        lsh(16).save(self.folder / "model")
        np.save(self.folder / "codes.npy", CODES[8])

    def write(self) -> None:
        """Encode."""
        command("encode", *(str(self.folder / name) for name in ("model", "x.npy")), "-o", f"{self.folder}/codes.npy")

    def read(self) -> Any:
        """The number of bits, if the codes are right."""
        codes = np.load(self.folder / "codes.npy")
        good = np.array_equal(codes, CODES[8] if codes.shape[1] == 8 else lsh(16).transform(X))
        return codes.shape[1] if good else "other codes"


class Features(Writer):
    """`hbmp features`, in blocks; a run that was stopped is resumed."""

    new = "right"
    files = ("texts.txt", "x.npy")

    def prepare(self) -> None:
        """Write the texts."""
        (self.folder / "texts.txt").write_text("".join(f"{'a' * (n % 97)}\n" for n in range(2500)), encoding="utf-8")

    def write(self) -> None:
        """Encode them, with a note of progress after each block."""
        from hbmp.encode import featuring

        featuring._SECONDS = -1
        words = ["--encoder", "writers:lengths", "-o", str(self.folder / "x.npy")]
        command("features", str(self.folder / "texts.txt"), *words)

    def read(self) -> Any:
        """Whether the vectors are right."""
        if not (self.folder / "x.npy").exists():
            return None
        expected = lengths(["a" * (n % 97) for n in range(2500)])
        return "right" if np.array_equal(np.load(self.folder / "x.npy"), expected) else "wrong"


class Exported(Writer):
    """`hbmp export` over a file."""

    new = 41
    files = ("codes.csv", "shop.db")

    def prepare(self) -> None:
        """Build a database, and write another file."""
        hbmp.Database.build(lsh(16), X, path=self.folder / "shop.db").close()
        (self.folder / "codes.csv").write_text("old\n", encoding="utf-8")

    def write(self) -> None:
        """Export the codes."""
        command("export", str(self.folder / "shop.db"), "--to", "hex", "-o", str(self.folder / "codes.csv"))

    def read(self) -> Any:
        """The number of lines, all of them whole."""
        lines = (self.folder / "codes.csv").read_text(encoding="utf-8").splitlines()
        return len(lines) if all(len(line.rpartition(",")[2]) == 4 for line in lines[1:]) else "cut"


class Checkpoint(Writer):
    """A checkpoint over an earlier one."""

    new = 2.0
    files = ("training.safetensors",)

    def prepare(self) -> None:
        """Save the first."""
        self._save(1.0)

    def write(self) -> None:
        """Save the second."""
        self._save(2.0)

    def read(self) -> Any:
        """The value in it."""
        return self._place().load()["weights"][0].mean().item()

    def _save(self, value: float) -> None:
        import torch

        self._place().save({"weights": [torch.full((500,), value)]})

    def _place(self) -> Any:
        from hbmp._training.checkpoints import Checkpoints

        return Checkpoints(self.folder, {"loss": "hinge"})


class EncodedParts(Writer):
    """`encode_dataset` in four parts; a run that was stopped is resumed."""

    new = 4
    between = (None, 0, 1, 2, 3)
    files = ("codes/_hbmp.json", *(f"codes/part-{n:06}.parquet" for n in range(4)), "x.npy")

    def prepare(self) -> None:
        """Write the features."""
        np.save(self.folder / "x.npy", X)

    def write(self) -> None:
        """Encode what is missing."""
        hbmp.encode_dataset(lsh(16), self.folder / "x.npy", self.folder / "codes", rows_per_part=10)

    def read(self) -> Any:
        """How many parts there are, if all are right."""
        if not (self.folder / "codes").is_dir():
            return None
        expected = lsh(16).transform(X)
        parts = sorted((self.folder / "codes").glob("part-*.parquet"))
        for table, codes in hbmp.encode.read_codes(self.folder / "codes") if parts else ():
            if not np.array_equal(codes, expected[table["id"].to_numpy()]):
                return "other codes"
        return len(parts)


class TextFile(Writer):
    """A file written whole: results, cards, checkpoints, locks of fetched data."""

    new = "new" * 5000
    files = ("file.json",)

    def prepare(self) -> None:
        """Write the former text."""
        self._put("old")

    def write(self) -> None:
        """Replace it."""
        self._put(self.new)

    def read(self) -> Any:
        """The text."""
        return (self.folder / "file.json").read_text(encoding="utf-8")

    def _put(self, text: str) -> None:
        from hbmp._core.files import write_into_place

        write_into_place(self.folder / "file.json", text)


class ResultLine(Writer):
    """A result line behind another."""

    new = ("a", "b")
    files = (".results.jsonl.lock", "results.jsonl")

    def prepare(self) -> None:
        """Write the first line."""
        self._append("a")

    def write(self) -> None:
        """Write the second."""
        self._append("b")

    def read(self) -> Any:
        """The keys of all lines."""
        from hbmp.experiments import store

        return tuple(record["key"] for record in store.read(self.folder / "results.jsonl"))

    def _append(self, key: str) -> None:
        from hbmp.experiments import store

        store.append(self.folder / "results.jsonl", {"key": key, "scores": {"map": 0.5}})


class BuiltDatabase(Writer):
    """`Database.build` where there is nothing."""

    new = ((16, 40), "right")
    files = ("shop.db",)

    @property
    def place(self) -> Path:
        """The file."""
        return self.folder / "shop.db"

    def build(self, n_bits: int, n_items: int, **more: Any) -> None:
        """Build a database of the first items."""
        ids, payload = [f"item {row}" for row in range(n_items)], [{"row": row} for row in range(n_items)]
        model, vectors = lsh(n_bits), "float32"
        hbmp.Database.build(
            model, X[:n_items], ids=ids, payload=payload, vectors=vectors, path=self.place, **more
        ).close()

    def write(self) -> None:
        """Build."""
        self.build(16, 40, replace=True)

    def read(self) -> Any:
        """Bits and items, and whether codes, payload and vectors belong together."""
        if not self.place.exists():
            return None
        with hbmp.Database.load(self.place) as database:
            ids = list(database.ids)
            rows = np.array([int(name.split()[1]) for name in ids], dtype=np.int64)
            expected = lsh(database.index.n_bits).transform(X)
            right = [one["row"] for one in database.payload_of(ids)] == rows.tolist()
            if ids:
                near, _ = database.search(X[rows], 1, rescore=3)
                right &= bool(np.allclose(near[:, 0], 0, atol=1e-5))
                numbers = database._contents.numbers
                right &= np.array_equal(database.index.codes(numbers), expected[rows])
            return (database.index.n_bits, len(ids)), "right" if right else "wrong"


class ReplacedDatabase(BuiltDatabase):
    """`Database.build` over a database."""

    def prepare(self) -> None:
        """Build a smaller one."""
        self.build(8, 25)


class GrownDatabase(BuiltDatabase):
    """`database.add`."""

    def prepare(self) -> None:
        """Build the first 25 items."""
        self.build(16, 25)

    def write(self) -> None:
        """Add the others."""
        with hbmp.Database.load(self.place) as database:
            ids, payload = [f"item {row}" for row in range(25, 40)], [{"row": row} for row in range(25, 40)]
            database.add(X[25:], ids=ids, payload=payload)

    def again(self) -> Any:
        """Add what is not there."""
        if self.read() != self.new:
            self.write()
        return self.read()


class ShrunkDatabase(BuiltDatabase):
    """`database.remove`."""

    new = ((16, 10), "right")

    def prepare(self) -> None:
        """Build 40 items."""
        self.build(16, 40)

    def write(self) -> None:
        """Remove 30, those that are there."""
        with hbmp.Database.load(self.place) as database:
            database.remove([f"item {row}" for row in range(10, 40)])


class CopiedDatabase(BuiltDatabase):
    """`database.save` over another database."""

    def prepare(self) -> None:
        """Build a smaller one at the place."""
        self.build(8, 25)

    def write(self) -> None:
        """Save a copy of a database in memory."""
        ids, payload = [f"item {row}" for row in range(40)], [{"row": row} for row in range(40)]
        hbmp.Database.build(lsh(16), X, ids=ids, payload=payload, vectors="float32").save(self.place)


WRITERS = {
    "first model": FirstModel,
    "next model": NextModel,
    "hbmp fit": Fit,
    "hbmp fit over a model": FitAgain,
    "index": SavedIndex,
    "hbmp encode": EncodedArray,
    "encode_dataset": EncodedParts,
    "hbmp features": Features,
    "hbmp export": Exported,
    "checkpoint": Checkpoint,
    "whole file": TextFile,
    "result line": ResultLine,
    "first database": BuiltDatabase,
    "replaced database": ReplacedDatabase,
    "database add": GrownDatabase,
    "database remove": ShrunkDatabase,
    "database save": CopiedDatabase,
}
