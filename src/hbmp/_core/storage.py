"""Models on disk: a directory of `model.json` (settings, scalars, names) and `arrays.safetensors`. Never pickle.

A saved object is its class, its parameters and what it learned (attributes that end in an underscore). Only classes
of this package are ever built from a file. Code is never saved: a network of the user's own is left out, and given
again when the model is loaded. The directory is written beside its place and renamed into it.
"""

from __future__ import annotations

import dataclasses
import importlib
import json
import os
import shutil
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator

FORMAT = 1
_FILES = ("arrays.safetensors", "model.json")


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """What stands in a loaded model where something of the user's own was not saved: the name of its class."""

    name: str


def save(obj, path) -> None:
    """Write an estimator as a model directory; an earlier model of that name is replaced, nothing else is."""
    path = Path(path)
    if path.exists() and not _holds_only_a_model(path):
        raise ValueError(f"{path} is not a model directory, or holds more than a model; choose another name.")
    arrays: dict[str, np.ndarray] = {}
    content = {"format": FORMAT, "hbmp": _version(), "model": _encode(obj, arrays, "model")}
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = Path(tempfile.mkdtemp(prefix=f".{path.name}-", dir=path.parent))
    try:
        _write(beside, content, arrays)
        _move_into_place(beside, path)
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def load(path, *, module=None):
    """Read a model directory written by `save`; module: what was left out of it, if anything was."""
    from safetensors.numpy import load_file

    path = Path(path)
    if not (path / "model.json").is_file():
        raise ValueError(f"{path} is not a saved model: it has no model.json.")
    try:
        content = json.loads((path / "model.json").read_text(encoding="utf-8"))
        arrays = load_file(path / "arrays.safetensors")
    except Exception as error:
        raise ValueError(f"{path} cannot be read as a model ({error}); it may be cut short. Save it again.") from error
    found = content.get("format") if isinstance(content, dict) else None
    if not isinstance(found, int) or "model" not in content:
        raise ValueError(f"{path}/model.json does not describe a saved model. Save it again.")
    if found > FORMAT:
        raise ValueError(f"{path} was saved in format {found}; this version reads up to {FORMAT}. Upgrade hbmp.")
    try:
        return _Reader(arrays, module).decode(content["model"])
    except (KeyError, TypeError, AttributeError, ImportError) as error:
        raise ValueError(f"{path} does not fit this version of hbmp ({error!r}). Save it again.") from error


def _write(folder: Path, content: dict, arrays: dict[str, np.ndarray]) -> None:
    from safetensors.numpy import save_file

    save_file({key: np.ascontiguousarray(value) for key, value in arrays.items()}, folder / "arrays.safetensors")
    (folder / "model.json").write_text(json.dumps(content, indent=1), encoding="utf-8")
    for name in _FILES:
        with open(folder / name, "rb") as file:
            os.fsync(file.fileno())
    mask = os.umask(0)
    os.umask(mask)
    folder.chmod(0o777 & ~mask)
    (folder / "arrays.safetensors").chmod(0o666 & ~mask)  # the library writes it for its owner alone


def _holds_only_a_model(path: Path) -> bool:
    return path.is_dir() and {"model.json"} <= {item.name for item in path.iterdir()} <= {*_FILES, "card.md"}


def _move_into_place(beside: Path, path: Path) -> None:
    if path.exists():
        old = Path(tempfile.mkdtemp(prefix=f".{path.name}-old-", dir=path.parent))
        path.rename(old / path.name)
        beside.rename(path)
        shutil.rmtree(old)
    else:
        beside.rename(path)


def _encode(value: Any, arrays: dict[str, np.ndarray], key: str) -> Any:
    """A JSON value; arrays go to `arrays` under `key`."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, np.generic):
        return _encode(value.item(), arrays, key)
    if isinstance(value, np.ndarray):
        if value.dtype.kind in "biuf":
            arrays[key] = value
            return {"array": key}
        return {"strings": value.astype(str).tolist()}
    if isinstance(value, (list, tuple)):
        items = [_encode(item, arrays, f"{key}.{i}") for i, item in enumerate(value)]
        return items if isinstance(value, list) else {"tuple": items}
    if isinstance(value, dict):
        return {"dict": [[name, _encode(item, arrays, f"{key}.{name}")] for name, item in value.items()]}
    if type(value).__module__.startswith("hbmp."):
        params, state = _parts(value)
        kept = {name: item for name, item in params.items() if name not in getattr(value, "not_saved", ())}
        return {
            "class": f"{type(value).__module__}:{type(value).__qualname__}",
            "params": {name: _encode(item, arrays, f"{key}.{name}") for name, item in kept.items()}
            | {name: {"left_out": _name_of(item)} for name, item in params.items() if name not in kept},
            "state": {name: _encode(item, arrays, f"{key}.{name}") for name, item in state.items()},
        }
    raise ValueError(f"{key} is a {type(value).__name__}, which a saved model cannot hold.")


def _parts(obj) -> tuple[dict, dict]:
    """(what the class is built from, what it learned)."""
    if dataclasses.is_dataclass(obj):
        return {item.name: getattr(obj, item.name) for item in dataclasses.fields(obj)}, {}
    if not isinstance(obj, BaseEstimator):
        raise ValueError(f"A {type(obj).__name__} cannot be saved in a model.")
    skipped = getattr(obj, "not_saved", ())
    learned = {
        name: item
        for name, item in vars(obj).items()
        if name.endswith("_") and not name.startswith("_") and name not in skipped
    }
    return obj.get_params(deep=False), learned


def _name_of(value) -> str:
    return value.name if isinstance(value, LeftOut) else type(value).__name__


class _Reader:
    """Values from JSON; arrays: by name · module: for what was left out, or None."""

    def __init__(self, arrays: dict[str, np.ndarray], module=None):
        self.arrays, self.module = arrays, module

    def decode(self, value: Any) -> Any:
        """The value that `_encode` was given."""
        if isinstance(value, list):
            return [self.decode(item) for item in value]
        if not isinstance(value, dict):
            return value
        if "array" in value:
            return self.arrays[value["array"]]
        if "strings" in value:
            return np.array(value["strings"])
        if "tuple" in value:
            return tuple(self.decode(item) for item in value["tuple"])
        if "dict" in value:
            return {name: self.decode(item) for name, item in value["dict"]}
        if "left_out" in value:
            return LeftOut(str(value["left_out"])) if self.module is None else self.module
        return self._build(value)

    def _build(self, value: dict):
        module, _, name = value["class"].partition(":")
        if not module.startswith("hbmp."):
            raise ValueError(f"The model asks for {value['class']}, which is not part of hbmp; it is not loaded.")
        cls = getattr(importlib.import_module(module), name)
        built_here = isinstance(cls, type) and cls.__module__ == module
        if not built_here or not (issubclass(cls, BaseEstimator) or dataclasses.is_dataclass(cls)):
            raise ValueError(f"The model asks for {value['class']}, which is not a part models are made of.")
        obj = cls(**{name: self.decode(item) for name, item in value["params"].items()})
        for name, item in value["state"].items():
            setattr(obj, name, self.decode(item))
        if hasattr(obj, "after_load"):
            obj.after_load()
        return obj


def _version() -> str:
    import hbmp

    return hbmp.__version__
