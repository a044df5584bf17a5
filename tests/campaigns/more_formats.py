"""Formats of data sets, weights, texts and earlier versions: how to write a small file, and its answer."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import sys
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from formats import Format
from writers import X

import hbmp

GOLDEN = Path(__file__).parents[1] / "golden"
sys.path.append(str(Path(__file__).parents[1] / "contract"))
TEXTS = ["a cat and a kitten", "the bank", "", "a sofa, a couch", "puppy on the sofa"]


def _copied(source: str, name: str) -> Callable[[Path], Path]:
    """A part of a file or folder that an earlier version saved."""

    def write(folder: Path) -> Path:
        place = GOLDEN / source
        if place.is_file():
            return Path(shutil.copy(place, folder))
        return Path(shutil.copytree(place, folder / "saved")) / name

    return write


def _old_model(source: str) -> Callable[[Path], Any]:
    inputs = np.load(GOLDEN / source / "answers.npz")["inputs"]
    return lambda path: (hbmp.load(path.parent).project(inputs), hbmp.load(path.parent).bit_weights_)


def _old_database(path: Path) -> Any:
    with hbmp.Database.load(path.parent) as database:
        found = database.search_codes(database.codes()[:3], 5)
        return found, list(database.ids), database.labels_of(database.ids), database.model.bit_weights_


def _old_index(path: Path) -> Any:
    index = hbmp.Index.load(path)
    return index.search(np.ones((1, index.n_bits), np.int8), 10), index.bit_weights


def _checkpoint(folder: Path) -> Path:
    import torch

    from hbmp._training.checkpoints import Checkpoints

    Checkpoints(folder, {"loss": "hinge"}).save({"epoch": 3, "weights": [torch.arange(40.0)], "note": None})
    return folder / "training.safetensors"


def _checkpoint_answer(path: Path) -> Any:
    from hbmp._training.checkpoints import Checkpoints

    found = Checkpoints(path.parent, {"loss": "hinge"}).load()
    return found and [found["epoch"], found["note"], *(tensor.tolist() for tensor in found["weights"])]


def _weights(ending: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        import torch
        from safetensors.torch import save_file

        path = folder / f"weights{ending}"
        tensors = {"conv.weight": torch.arange(60.0).reshape(3, 20), "conv.bias": torch.ones(3)}
        (save_file if ending == ".safetensors" else torch.save)(tensors, path)
        return path

    return write


def _weights_answer(path: Path) -> Any:
    from hbmp.backbones._shared.weights import read_tensors

    return [(name, tensor.shape, str(tensor.dtype)) for name, tensor in read_tensors(path).items()]


def _labelme(folder: Path) -> Path:
    from scipy.io import savemat

    savemat(folder / "LabelMe_gist.mat", {"gist": X, "img": np.zeros((4, 4, 3, 40), np.uint8)}, do_compression=True)
    return folder / "LabelMe_gist.mat"


def _labelme_answer(path: Path) -> Any:
    data = hbmp.datasets.get("labelme").load(path.parent)
    return np.asarray(data.features).tolist(), None if data.images is None else np.shape(data.images)


def _matconvnet(folder: Path) -> Path:
    from scipy.io import savemat

    rng = np.random.default_rng(0)
    layers = np.empty(2, dtype=object)
    layers[0] = {"type": "conv", "name": "conv1", "filters": rng.random((3, 3, 2, 4)), "biases": rng.random(4)}
    layers[1] = {"type": "lrn", "name": "norm1", "param": np.array([5, 2, 1e-4, 0.75])}
    savemat(folder / "vgg-f.mat", {"layers": layers, "normalization": {"averageImage": rng.random((4, 4, 3))}})
    return folder / "vgg-f.mat"


def _matconvnet_answer(path: Path) -> Any:
    from hbmp.backbones.vggf import read_matconvnet

    return [(name, tensor.tolist()) for name, tensor in read_matconvnet(path).items()]


def _encoder(name: str, part: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        from small_encoders import write_network, write_table

        return {"wordllama": write_table, "minilm": write_network}[name](folder / "encoder") / part

    return write


def _encoder_answer(name: str, levels: int, *, known: bool) -> Callable[[Path], Any]:
    """Vectors of texts; `known`: the weights have a digest that a model remembers."""
    from functools import cache

    @cache
    def digest(place: Path) -> str:
        encoder = hbmp.encoders.get(name, path=place)
        encoder.encode(TEXTS)
        return str(encoder.digest_)

    def answer(path: Path) -> Any:
        place = path.parents[levels]
        encoder = hbmp.encoders.get(name, path=place)
        if known:
            encoder.digest_ = digest(place)  # of the whole file, which is read first
        return encoder.encode(TEXTS).tolist()

    return answer


def _split(folder: Path) -> Path:
    rows = np.arange(30)
    hbmp.protocols.Split(rows[:10], rows[10:20], rows[20:]).save(folder / "split.npz")
    return folder / "split.npz"


def _split_answer(path: Path) -> Any:
    split = hbmp.protocols.Split.load(path)
    return split.train.tolist(), split.query.tolist(), split.database.tolist()


def _fetched(folder: Path) -> Path:
    from hbmp.datasets._shared.fetch import _write_lock

    _write_lock(folder, {"a.gz": {"url": "https://example.org", "sha256": "0" * 64, "files": {"a.gz": 20}}})
    return folder / "fetch.json"


def _fetched_answer(path: Path) -> Any:
    from hbmp.datasets._shared.fetch import _is_there, _read_lock

    lock = _read_lock(path.parent)
    return lock, _is_there(path.parent, lock.get("a.gz"))


def _bytes(name: str, content: bytes) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        (folder / name).write_bytes(content)
        return folder / name

    return write


def _idx_answer(path: Path) -> Any:
    from hbmp.datasets._shared.idx import read_idx

    return read_idx(path, 3).tolist()


def _cifar_answer(path: Path) -> Any:
    from hbmp.datasets.cifar10 import _read_batch

    return _read_batch(path).tolist()


def _nus_answer(path: Path) -> Any:
    from hbmp.datasets.nuswide import _zeros_and_ones

    return _zeros_and_ones(path, 3).tolist()


def _image_table(folder: Path) -> Path:
    for name in ("a.jpg", "b.jpg"):
        (folder / name).touch()
    return _bytes("labels.csv", "file,label\na.jpg,cat;tree\nb.jpg,dög\n".encode())(folder)


def _image_table_answer(path: Path) -> Any:
    from hbmp.datasets.image_folder import from_table

    data = from_table(path, path.parent)
    return np.asarray(data.labels).tolist(), data.label_names


def _items(ending: str) -> Callable[[Path], Path]:
    def write(folder: Path) -> Path:
        path = folder / f"items{ending}"
        rows = [{"id": n, "text": text, "price": n / 2} for n, text in enumerate(TEXTS)]
        if ending == ".jsonl":
            path.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
        elif ending == ".tsv":
            lines = ["\t".join(rows[0]), *("\t".join(map(str, row.values())) for row in rows)]
            path.write_text("\n".join(lines), encoding="utf-8")
        else:
            import pyarrow as pa
            import pyarrow.parquet as pq

            pq.write_table(pa.Table.from_pylist(rows), path)
        return path

    return write


def _items_answer(path: Path) -> Any:
    from hbmp.app.inputs.item_table import ItemTable

    table = ItemTable(path)
    return len(table), table.texts(), table.ids(), table.payload()


def _pictures(folder: Path) -> Path:
    import pyarrow as pa
    import pyarrow.parquet as pq

    pq.write_table(pa.table({"image": [_jpeg(0), _jpeg(1)], "label": ["a", "b"]}), folder / "pictures.parquet")
    return folder / "pictures.parquet"


def _pictures_answer(path: Path) -> Any:
    from hbmp.app.inputs import read_data

    data = read_data(path, images=True)
    return data.images.decode(np.arange(len(data.images)), 8).tolist(), np.asarray(data.labels).tolist()


def _jpeg(seed: int) -> bytes:
    from PIL import Image

    file = io.BytesIO()
    pixels = np.random.default_rng(seed).integers(0, 255, (12, 10, 3), dtype=np.uint8)
    Image.fromarray(pixels).save(file, "JPEG")
    return file.getvalue()


def _packed(folder: Path) -> Path:
    np.savez(folder / "labels.npz", labels=[0, 1], names=["a", "b"])
    with tarfile.open(folder / "images.tar", "w") as tar:
        for seed, name in enumerate(("images/a.jpg", "images/b.jpg")):
            info = tarfile.TarInfo(name)
            info.size = len(_jpeg(seed))
            tar.addfile(info, io.BytesIO(_jpeg(seed)))
    return folder / "images.tar"


def _packed_answer(path: Path) -> Any:
    return np.load(hbmp.datasets.pack_images(path.parent, size=8)).tolist()


def _stopped(part: str) -> Callable[[Path], Path]:
    """What a run of `hbmp features` leaves that is stopped after its first block."""

    def write(folder: Path) -> Path:
        try:
            _features(folder / "x.npy", n_blocks=1)
        except ValueError:
            return folder / part
        raise AssertionError("the run was not stopped")

    return write


def _features(path: Path, n_blocks: int) -> int:
    from hbmp.encode import featuring

    def blocks(start: int) -> Any:
        yield from [TEXTS[:2], TEXTS[2:4], TEXTS[4:]][start // 2 : n_blocks]

    featuring._SECONDS = -1
    encoder = hbmp.encoders.get(_lengths)
    return featuring.write_features(encoder, featuring.ItemSource(5, 2, blocks, "x"), path, dtype="float32")


def _lengths(texts: list[str]) -> list[list[int]]:
    return [[len(text), 1] for text in texts]


def _resumed(path: Path) -> Any:
    left = {other: other.read_bytes() for other in path.parent.iterdir()}
    try:
        _features(path.parent / "x.npy", n_blocks=3)
        return np.load(path.parent / "x.npy").tolist()
    finally:
        for other, content in left.items():
            other.write_bytes(content)


MORE = {
    "model of format 1, model.json": Format(
        _copied("models/format-1/classes", "model.json"), _old_model("models/format-1/classes"), checked=False
    ),
    "model of format 1, arrays": Format(
        _copied("models/format-1/classes", "arrays.safetensors"), _old_model("models/format-1/classes"), checked=False
    ),
    "HBMP of format 2, model.json": Format(
        _copied("models/format-2/classes", "model.json"), _old_model("models/format-2/classes"), checked=True
    ),
    "HBMP of format 2, arrays": Format(
        _copied("models/format-2/classes", "arrays.safetensors"), _old_model("models/format-2/classes"), checked=True
    ),
    "database of format 1, database.json": Format(
        _copied("databases/format-1/features", "database.json"), _old_database, checked=False
    ),
    "database of format 1, items.npz": Format(
        _copied("databases/format-1/features", "items.npz"), _old_database, checked=False
    ),
    "database of format 2, database.json": Format(
        _copied("databases/format-2/features", "database.json"), _old_database, checked=True
    ),
    "database of format 2, items.npz": Format(
        _copied("databases/format-2/features", "items.npz"), _old_database, checked=True
    ),
    "index of format 1": Format(_copied("index-format-1.hbmp", ""), _old_index, checked=True),
    "checkpoint": Format(_checkpoint, _checkpoint_answer, checked=True),
    "weights .safetensors": Format(_weights(".safetensors"), _weights_answer, checked=False),
    "weights .pt": Format(_weights(".pt"), _weights_answer, checked=False),
    "LabelMe .mat": Format(_labelme, _labelme_answer, checked=False),
    "VGG-F .mat": Format(_matconvnet, _matconvnet_answer, checked=False),
    "tokenizer": Format(
        _encoder("wordllama", "tokenizer_config.json"), _encoder_answer("wordllama", 0, known=False), checked=False
    ),
    "tokenizer of a saved model": Format(
        _encoder("wordllama", "tokenizer_config.json"), _encoder_answer("wordllama", 0, known=True), checked=True
    ),
    "token table": Format(
        _encoder("wordllama", "table_24.safetensors"), _encoder_answer("wordllama", 0, known=False), checked=False
    ),
    "network .onnx": Format(
        _encoder("minilm", "onnx/model.onnx"), _encoder_answer("minilm", 1, known=False), checked=False
    ),
    "network .onnx of a saved model": Format(
        _encoder("minilm", "onnx/model.onnx"), _encoder_answer("minilm", 1, known=True), checked=True
    ),
    "split .npz": Format(_split, _split_answer, checked=False),
    "fetch.json": Format(_fetched, _fetched_answer, checked=False),
    "IDX .gz": Format(
        _bytes("a.gz", gzip.compress(b"\0\0\x08\x03" + np.array([5, 4, 3], ">u4").tobytes() + bytes(60))),
        _idx_answer,
        checked=False,
    ),
    "CIFAR-10 batch": Format(_bytes("data_batch_1.bin", bytes(2 * 3073)), _cifar_answer, checked=False),
    "NUS-WIDE text": Format(_bytes("labels.txt", b"0 1 0\n1 1 0\n" * 9), _nus_answer, checked=False),
    "table of image files": Format(_image_table, _image_table_answer, checked=False),
    "texts .jsonl": Format(_items(".jsonl"), _items_answer, checked=False),
    "texts .tsv": Format(_items(".tsv"), _items_answer, checked=False),
    "texts .parquet": Format(_items(".parquet"), _items_answer, checked=False),
    "images .parquet": Format(_pictures, _pictures_answer, checked=False),
    "images .tar": Format(_packed, _packed_answer, checked=False),
    "features, stopped": Format(_stopped("x.npy.part"), _resumed, checked=True),
    "features, note of a stopped run": Format(_stopped("x.npy.part.json"), _resumed, checked=True),
}
