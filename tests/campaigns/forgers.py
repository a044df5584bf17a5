"""What an attacker writes: each forger fills a folder, and gives the function that reads it."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import sqlite3
import struct
import zlib
from collections.abc import Callable
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import more_formats
import numpy as np
import writers
from formats import FORMATS, LABELS
from oddities import changed, odd_array
from writers import X

import hbmp


def _forge_model(folder: Path, rng: np.random.Generator) -> Callable[[], Any]:
    from safetensors.numpy import load, save

    from hbmp._core.model_directory import digest

    source = ("lsh", "models/format-2/classes", "models/format-2/classes-by-name")[rng.integers(3)]
    if source == "lsh":
        writers.lsh(16).save(folder / "m")
    else:
        more_formats._copied(source, "")(folder)
        (folder / "saved").rename(folder / "m")
    content, arrays = (
        json.loads((folder / "m/model.json").read_text()),
        load((folder / "m/arrays.safetensors").read_bytes()),
    )
    if rng.random() < 0.6:
        content["model"] = changed(content["model"], rng)
    else:
        name = list(arrays)[rng.integers(len(arrays))]
        arrays[name] = odd_array(arrays[name], rng)
    data = save(arrays)
    content["arrays_sha256"] = hashlib.sha256(data).hexdigest()
    content["sha256"] = digest(content)
    (folder / "m/arrays.safetensors").write_bytes(data)
    (folder / "m/model.json").write_text(json.dumps(content))

    def use() -> Any:
        model = hbmp.load(folder / "m")
        inputs = X if source == "lsh" else np.load(folder / "m/answers.npz")["inputs"]
        with suppress(Exception):  # its parts are odd, and say so in many ways
            return repr(model), model.transform(inputs), model.codes_for([0, 1])

    return use


def _forge_index(folder: Path, rng: np.random.Generator) -> Callable[[], Any]:
    path = FORMATS["index"].write(folder)
    whole = path.read_bytes()
    length = struct.unpack("<I", whole[12:16])[0]
    text = json.dumps(changed(json.loads(whole[48 : 48 + length]), rng)).encode()
    text = text.ljust(length)[: max(length, len(text))]
    body = bytearray(whole[48 + length : -32])
    if rng.random() < 0.5:
        place = int(rng.integers(len(body) - 8))
        body[place : place + 8] = rng.bytes(8)
    if len(text) > length:
        text = whole[48 : 48 + length]
    start = whole[:16] + hashlib.sha256(text).digest() + text + bytes(body)
    path.write_bytes(start + hashlib.sha256(start).digest())

    def use() -> Any:
        index = hbmp.Index.load(path, mapped=bool(rng.random() < 0.3))
        queries = np.where(rng.random((3, index.n_bits)) < 0.5, 1, -1).astype(np.int8)
        found = (
            index.search(queries, 10),
            index.range_search(queries, 3.0),
            index.search(queries.astype(np.float32), 100),
        )
        index.add(queries)
        index.remove([0, 3])
        index.save(folder / "again.hbmp")
        return found

    return use


def _forge_database(folder: Path, rng: np.random.Generator) -> Callable[[], Any]:
    path = FORMATS["database: codes, weights, model"].write(folder)
    with closing(sqlite3.connect(path)) as db:
        tables = {
            "meta": ["value"],
            "files": ["name", "part", "content"],
            "items": ["number", "id", "label", "file", "c0", "c1"],
            "blocks": ["first", "size", "n_removed", "numbers", "codes", "removed"],
            "vectors": ["number", "value"],
        }
        table = str(rng.choice(list(tables), p=[0.45, 0.1, 0.15, 0.2, 0.1]))
        row = None
        if table not in ("meta", "files"):
            rows = db.execute(f"SELECT rowid FROM {table} ORDER BY rowid").fetchall()
            row = rows[rng.integers(len(rows))][0]
        if table == "meta":
            facts = db.execute("SELECT name, value FROM meta").fetchall()
            name, value = facts[rng.integers(len(facts))]
            text = json.dumps(changed(json.loads(value), rng))
            db.execute(
                "UPDATE meta SET value = ?, crc = ? WHERE name = ?",
                [text, zlib.crc32(f"{name}\n{text}".encode()), name],
            )
        else:
            column = str(rng.choice(tables[table]))
            values: list[Any] = [
                None,
                -1,
                0,
                2**62,
                1.5,
                "",
                "model/../../x",
                "model/..",
                b"",
                b"\xff" * 12,
                rng.bytes(65),
                "x",
                "1e999",
            ]
            where = "" if row is None else f"WHERE rowid = {row}"
            with suppress(sqlite3.Error):
                db.execute(f"UPDATE {table} SET {column} = ? {where}", [values[rng.integers(len(values))]])
            if table == "blocks":
                for seq, first, size, *parts in db.execute(
                    "SELECT seq, first, size, numbers, codes, removed FROM blocks"
                ).fetchall():
                    from hbmp.database.blocks import _crc

                    with suppress(Exception):
                        db.execute(
                            "UPDATE blocks SET crc = ? WHERE seq = ?",
                            [_crc(first, size, *(part or b"" for part in parts)), seq],
                        )
        db.commit()

    def use() -> Any:
        with hbmp.Database.load(path) as database:
            ids = list(database.ids)[:5]
            found = [
                database.search(X[:2], 5, rescore=10, where={"price": {"<": 9}}),
                database.payload_of(ids),
                database.labels_of(ids),
                database.codes(),
            ]
            found += [
                database.facets(),
                database.labels,
                database.label_names,
                database.filterable,
                database.paths_of(ids),
                database.source,
            ]
            database.add(X[:1], ids=["new"], labels=LABELS[:1], payload=[{"name": "n", "price": 1.0}])
            database.remove(ids[:1])
            return found

    return use


def _forge_checkpoint(folder: Path, rng: np.random.Generator) -> Callable[[], Any]:
    from safetensors.torch import load, save

    from hbmp._training import checkpoints

    path = more_formats._checkpoint(folder)
    data = path.read_bytes()
    header = json.loads(data[8 : 8 + int.from_bytes(data[:8], "little")])["__metadata__"]
    header["state"] = json.dumps(changed(json.loads(header["state"]), rng))
    header["sha256"] = checkpoints._ZEROS.decode()
    path.write_bytes(checkpoints._signed(save(load(data), metadata=header)))
    return lambda: checkpoints.Checkpoints(folder, {"loss": "hinge"}).load()


class _Evil:
    """Unpickled, it would leave a file."""

    def __init__(self, place: Path):
        self.place = place

    def __reduce__(self) -> Any:
        return os.system, (f"touch {self.place}",)


def _forge_arrays(folder: Path, rng: np.random.Generator) -> Callable[[], Any]:
    from hbmp.app.inputs import read_data, read_labels

    odd: list[Any] = [
        np.array([_Evil(folder / "PWNED")] * 40, dtype=object),
        np.zeros(40, "M8[s]"),
        np.zeros(40, [("a", "f4")]),
        np.zeros(40, complex),
        np.zeros((40, 2, 2)),
        np.array(3.0),
        np.zeros((0, 6)),
        np.zeros((40, 0)),
        np.full((40, 6), np.nan),
        np.zeros(40, "V8"),
        np.zeros(40, "S5"),
        np.array(["\ud800"] * 40),
        np.full(40, 2**63, np.uint64),
        np.array([True] * 40),
        np.full(40, np.nan),
    ]
    values = {
        "features": X,
        "labels": LABELS,
        str(rng.choice(["features", "labels", "classes", "label_names", "x"])): odd[rng.integers(len(odd))],
    }
    path = folder / f"data{rng.choice(['.npz', '.npy', '.pt'])}"
    if path.suffix == ".npz":
        np.savez(path, **values)
    elif path.suffix == ".npy":
        np.save(path, odd[rng.integers(len(odd))])
    else:
        import torch

        torch.save(
            {"a": torch.zeros(2), "b": _Evil(folder / "PWNED")}, path
        ) if rng.random() < 0.5 else path.write_bytes(pickle.dumps(_Evil(folder / "PWNED")))

    def use() -> Any:
        if path.suffix == ".pt":
            return more_formats._weights_answer(path)
        data, (labels, _) = read_data(path), read_labels(path)
        if not np.isfinite(data.features).all() or len(data) < 40:
            return labels
        kept = {} if data.labels is None else {"labels": data.labels}
        return hbmp.Database.build(writers.lsh(8), data.features, **kept).labels, labels

    return use


def _forge_json(folder: Path, rng: np.random.Generator) -> Callable[[], Any]:
    name = str(
        rng.choice(
            [
                "fetch.json",
                "features, note of a stopped run",
                "texts .jsonl",
                "results .jsonl",
                "database of format 2, database.json",
                "encoded part",
            ]
        )
    )
    format = {**FORMATS, **more_formats.MORE}[name]
    path = format.write(folder)
    if name == "encoded part":
        (path := path.parent / "_hbmp.json").write_text(json.dumps(changed(json.loads(path.read_text()), rng)))
        return lambda: FORMATS["encoded part, resumed"].read(path)
    lines = (
        path.read_text(encoding="utf-8").splitlines() if path.suffix == ".jsonl" else [path.read_text(encoding="utf-8")]
    )
    lines[0] = "[" * 100_000 if rng.random() < 0.1 else json.dumps(changed(json.loads(lines[0]), rng))
    if name.startswith("database"):
        from hbmp._core.model_directory import digest

        with suppress(ValueError, RecursionError, TypeError, AttributeError):
            content = json.loads(lines[0])
            content["sha256"] = digest(content)
            lines[0] = json.dumps(content)
    path.write_text("\n".join(lines), encoding="utf-8")
    return lambda: format.read(path)


def _forge_table(folder: Path, rng: np.random.Generator) -> Callable[[], Any]:
    """Texts, labels and features as CSV or plain lines with odd cells."""
    from hbmp.app.inputs import read_data, read_labels
    from hbmp.app.inputs.item_table import ItemTable

    cells = [
        "1",
        "-1",
        "+-3",
        "--3",
        "1e999",
        "nan",
        "inf",
        "٣",
        "²",
        "0x10",
        "9" * 25,
        "9" * 5000,
        "",
        " ",
        ";",
        "a;b",
        '"',
        "\0",
        "\r",
        "é",
        "1_000",
        "True",
    ]
    rows = [[cells[rng.integers(len(cells))] if rng.random() < 0.3 else "2" for _ in range(3)] for _ in range(5)]
    path = folder / f"table{rng.choice(['.csv', '.tsv', '.txt'])}"
    head = [["a", "label", "text"]] if rng.random() < 0.7 else []
    between = {".csv": ",", ".tsv": "\t", ".txt": " "}[path.suffix]
    path.write_text("\n".join(between.join(row) for row in [*head, *rows]), encoding="utf-8")
    reads = [
        lambda: read_data(path, images=True),
        lambda: read_labels(path),
        lambda: ItemTable(path).payload(),
        lambda: ItemTable(path).ids(),
    ]
    return reads[rng.integers(len(reads))]


FORGERS = {
    "model": _forge_model,
    "index": _forge_index,
    "database": _forge_database,
    "checkpoint": _forge_checkpoint,
    "arrays and weights": _forge_arrays,
    "JSON": _forge_json,
    "tables of text": _forge_table,
}
