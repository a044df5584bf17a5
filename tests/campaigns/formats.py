"""Every file format that the package reads: how to write a small file, and the answer that it gives."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from writers import CODES, X, lsh

import hbmp

LABELS = np.arange(40) % 3


@dataclass(frozen=True)
class Format:
    """`write` fills a folder and gives the file to damage; `read` gives the answer; `checked`: a checksum covers it."""

    write: Callable[[Path], Path]
    read: Callable[[Path], Any]
    checked: bool


def _model(part: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        lsh(16).save(folder / "model")
        return folder / "model" / part

    return write


def _index(folder: Path) -> Path:
    index = hbmp.Index.build(CODES[16], ids=np.arange(40) * 3, bit_weights=np.linspace(1, 2, 16), kind="ivf")
    index.add(CODES[16][:7]).save(folder / "codes.hbmp")
    return folder / "codes.hbmp"


def _index_answer(path: Path) -> Any:
    index = hbmp.Index.load(path)
    return index.search(CODES[16][:5].astype(np.float32), 47), index.bit_weights


def _database(folder: Path) -> Path:
    payload = [{"name": f"item {row}", "price": row / 2} for row in range(40)]
    about = {"ids": [f"id {row}" for row in range(40)], "labels": LABELS, "payload": payload, "vectors": "float32"}
    hbmp.Database.build(lsh(16), X, path=folder / "shop.db", **about).close()
    return folder / "shop.db"


def _database_codes(path: Path) -> Any:
    with hbmp.Database.load(path) as database:
        return database.codes(), database.index.bit_weights, database.model.project(X)


def _database_items(path: Path) -> Any:
    with hbmp.Database.load(path) as database:
        found = database.search(X[:3], 5, rescore=10, where={"price": {"<": 12}})
        ids = list(database.ids)
        return found, database.payload_of(ids), database.labels_of(ids), database.search(X[:3], 4)


def _parts(folder: Path) -> Path:
    np.save(folder / "x.npy", X)
    hbmp.encode_dataset(lsh(16), folder / "x.npy", folder / "codes")
    return folder / "codes" / "part-000000.parquet"


def _parts_answer(path: Path) -> Any:
    return [codes for _, codes in hbmp.encode.read_codes(path.parent)]


def _resumed(path: Path) -> Any:
    return hbmp.encode_dataset(lsh(16), path.parents[1] / "x.npy", path.parent).n_rows


def _features(ending: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / f"features{ending}"
        if ending == ".npy":
            np.save(path, X)
        elif ending == ".npz":
            np.savez(path, features=X, labels=LABELS)
        elif ending == ".csv":
            rows = [",".join([*map(str, row), f"class {label}"]) for row, label in zip(X.tolist(), LABELS, strict=True)]
            path.write_text("\n".join(["a,b,c,d,e,f,label", *rows]), encoding="utf-8")
        else:
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.table({"features": X.tolist(), "label": [f"class {label}" for label in LABELS]}), path)
        return path

    return write


def _features_answer(path: Path) -> Any:
    from hbmp.app.inputs import read_data

    data = read_data(path)
    return np.asarray(data.features).tolist(), None if data.labels is None else data.labels.tolist()


def _labels(folder: Path) -> Path:
    path = folder / "labels.txt"
    path.write_text("\n".join(f"sea;sand {label}" for label in LABELS), encoding="utf-8")
    return path


def _labels_answer(path: Path) -> Any:
    from hbmp.app.inputs import read_labels

    return [part if isinstance(part, tuple) else part.tolist() for part in read_labels(path)]


def _image(ending: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        from PIL import Image

        pixels = np.random.default_rng(0).integers(0, 255, (24, 20, 3), dtype=np.uint8)
        Image.fromarray(pixels).save(folder / f"picture{ending}")
        return folder / f"picture{ending}"

    return write


def _image_answer(path: Path) -> Any:
    return hbmp.Images.from_paths([path]).decode([0], 16)


def _results(folder: Path) -> Path:
    from hbmp.experiments import store

    for key in "abc":
        store.append(folder / "results.jsonl", {"key": key, "scores": {"map": 0.5, "note": "é"}})
    return folder / "results.jsonl"


def _results_answer(path: Path) -> Any:
    from hbmp.experiments import store

    return store.read(path)


def _table(folder: Path) -> Path:
    from safetensors.numpy import save_file

    save_file({"vectors": X}, folder / "table.safetensors")
    return folder / "table.safetensors"


def _table_answer(path: Path) -> Any:
    from hbmp.encoders._shared.files import read_table

    return read_table(path, "the campaign")


def _idx(folder: Path) -> Path:
    path = folder / "images-idx3-ubyte"
    path.write_bytes(b"\0\0\x08\x03" + np.array([5, 4, 3], ">u4").tobytes() + bytes(range(60)))
    return path


def _idx_answer(path: Path) -> Any:
    from hbmp.datasets._shared.idx import read_idx

    return read_idx(path, 3)


def _project(path: Path) -> Any:
    return hbmp.load(path.parent).project(X)


FORMATS = {
    "model.json": Format(_model("model.json"), _project, checked=True),
    "arrays.safetensors": Format(_model("arrays.safetensors"), _project, checked=True),
    "index": Format(_index, _index_answer, checked=True),
    "database: codes, weights, model": Format(_database, _database_codes, checked=True),
    "database: payload, labels, vectors": Format(_database, _database_items, checked=False),
    "encoded part": Format(_parts, _parts_answer, checked=True),
    "encoded part, resumed": Format(_parts, _resumed, checked=False),
    "features .npy": Format(_features(".npy"), _features_answer, checked=False),
    "features .npz": Format(_features(".npz"), _features_answer, checked=False),
    "features .csv": Format(_features(".csv"), _features_answer, checked=False),
    "features .parquet": Format(_features(".parquet"), _features_answer, checked=False),
    "labels .txt": Format(_labels, _labels_answer, checked=False),
    "image .png": Format(_image(".png"), _image_answer, checked=False),
    "image .jpg": Format(_image(".jpg"), _image_answer, checked=False),
    "image .webp": Format(_image(".webp"), _image_answer, checked=False),
    "results .jsonl": Format(_results, _results_answer, checked=False),
    "table .safetensors": Format(_table, _table_answer, checked=False),
    "IDX": Format(_idx, _idx_answer, checked=False),
}
