"""Models on disk: a directory of `model.json` (settings, scalars, names) and one file of arrays. Never pickle.

A saved object is its class, its parameters and what it learned (attributes that end in an underscore). Classes have
stable names (`saved_names`), and only classes that have one are ever built from a file. Code is never saved: a network
or function of the user's own is left out, and given again when the model is loaded. `model_directory` writes and reads
the files.

Format 1 named classes by file, always called its arrays `arrays.safetensors`, and had no digests; it still loads.
"""

from __future__ import annotations

import dataclasses
from pathlib import Path
from typing import Any

import numpy as np

from hbmp._core import model_directory, saved_names

FORMAT = 2


@dataclasses.dataclass(frozen=True)
class LeftOut:
    """Placeholder in a loaded model for an object of the user that was not saved: the name of its class."""

    name: str


def save(obj, path) -> None:
    """Write an estimator as a model directory; an earlier model of that name is replaced, nothing else is."""
    arrays: dict[str, np.ndarray] = {}
    content = {"format": FORMAT, "hbmp": _version(), "model": _encode(obj, arrays, "model")}
    model_directory.write(Path(path), content, arrays)


def load(path, *, module=None):
    """Read a model directory written by `save`; module: what was left out of it, if anything was."""
    path = Path(path)
    if not (path / model_directory.DESCRIPTION).is_file():
        raise ValueError(f"{path} is not a saved model: it has no {model_directory.DESCRIPTION}.")
    try:
        content, arrays = model_directory.read(path)
    except Exception as error:
        raise ValueError(
            f"{path} cannot be read as a model ({error}); it may be cut short or damaged. Save it again."
        ) from error
    found = content.get("format")
    if not isinstance(found, int) or "model" not in content:
        raise ValueError(f"{path}/model.json does not describe a saved model. Save it again.")
    if found > FORMAT:
        raise ValueError(f"{path} was saved in format {found}; this version reads up to {FORMAT}. Upgrade hbmp.")
    try:
        return _Reader(arrays, module).decode(content["model"])
    except saved_names.Refused as error:
        raise saved_names.Refused(f"{path}: {error}") from error
    except Exception as error:
        raise ValueError(f"{path} does not fit this version of hbmp ({error!r}). Save it again.") from error


def _encode(value: Any, arrays: dict[str, np.ndarray], key: str) -> Any:
    """A JSON value; arrays go to `arrays` under `key`."""
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    if isinstance(value, Path):
        return str(value)
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
    if (name := saved_names.name_of(type(value))) is not None:
        params, state = _parts(value)
        kept = {key: item for key, item in params.items() if key not in getattr(value, "not_saved", ())}
        return {
            "class": name,
            "params": {name: _encode(item, arrays, f"{key}.{name}") for name, item in kept.items()}
            | {name: {"left_out": name_of_code(item)} for name, item in params.items() if name not in kept},
            "state": {name: _encode(item, arrays, f"{key}.{name}") for name, item in state.items()},
        }
    raise ValueError(f"{key} is a {type(value).__name__}, which a saved model cannot hold.")


def _parts(obj) -> tuple[dict, dict]:
    """(what the class is built from, what it learned)."""
    if dataclasses.is_dataclass(obj):
        return {item.name: getattr(obj, item.name) for item in dataclasses.fields(obj)}, {}
    skipped = getattr(obj, "not_saved", ())
    learned = {
        name: item
        for name, item in vars(obj).items()
        if name.endswith("_") and not name.startswith("_") and name not in skipped
    }
    return obj.get_params(deep=False), learned


def name_of_code(value) -> str:
    """The name of a function, or of the class of an object, that a saved model keeps in its place."""
    if isinstance(value, LeftOut):
        return value.name
    if hasattr(value, "__qualname__"):  # a function
        return f"{value.__module__}:{value.__qualname__}"
    return type(value).__name__


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
        cls = saved_names.class_of(value["class"])
        retired = getattr(cls, "retired", ())  # parameters that a former version had
        obj = cls(**{name: self.decode(item) for name, item in value["params"].items() if name not in retired})
        for name, item in value["state"].items():
            setattr(obj, name, self.decode(item))
        if hasattr(obj, "after_load"):
            obj.after_load()
        return obj


def _version() -> str:
    import hbmp

    return hbmp.__version__
