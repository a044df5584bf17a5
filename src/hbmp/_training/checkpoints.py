"""Training state on disk, from which a killed training resumes exactly: safetensors, never pickle.

One file holds everything: tensors as they are, the rest as JSON in the header. The file is written under a temporary
name and renamed, so there is always one complete checkpoint, the old one or the new one.
"""

from __future__ import annotations

import json
import time
from pathlib import Path

from hbmp._core.files import write_into_place

_FILE = "training.safetensors"


class Checkpoints:
    """Store for the state of a training in a folder, saved at most every `minutes`.

    `about` describes the training in JSON types. A checkpoint of another training raises ValueError.
    """

    def __init__(self, folder, about: dict, *, minutes: float = 10.0):
        self.path = Path(folder) / _FILE
        self._about = json.loads(json.dumps(about))
        self._seconds, self._last = 60 * minutes, time.monotonic()

    @property
    def due(self) -> bool:
        """Whether the last checkpoint is older than `minutes`."""
        return time.monotonic() - self._last >= self._seconds

    def save(self, state: dict) -> None:
        """Write a state: nested dicts and lists of tensors, numbers, strings and None."""
        from safetensors.torch import save

        tensors: dict = {}
        tree = _flatten(state, tensors, "")
        header = {"state": json.dumps(tree), "about": json.dumps(self._about)}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_into_place(self.path, save(tensors, metadata=header))
        self._last = time.monotonic()

    def load(self) -> dict | None:
        """The saved state, or None if there is none."""
        from safetensors import safe_open

        if not self.path.is_file():
            return None
        with safe_open(self.path, framework="pt") as file:
            header = file.metadata()
            found = json.loads(header["about"])
            if found != self._about:
                different = sorted(key for key in {*found, *self._about} if found.get(key) != self._about.get(key))
                raise ValueError(
                    f"{self.path.parent} holds a checkpoint of another training: {', '.join(different)} differ. "
                    "Choose another folder, or remove this one."
                )
            return _unflatten(json.loads(header["state"]), {key: file.get_tensor(key) for key in file.keys()})  # noqa: SIM118


def _flatten(value, tensors: dict, key: str):
    """The value with each tensor moved to `tensors` and replaced by its key."""
    import torch

    if isinstance(value, torch.Tensor):
        tensors[key] = value.detach().cpu().contiguous().clone()
        return {"tensor": key}
    if isinstance(value, dict):
        return {"dict": [[name, _flatten(item, tensors, f"{key}/{name}")] for name, item in value.items()]}
    if isinstance(value, (list, tuple)):
        return {"list": [_flatten(item, tensors, f"{key}/{number}") for number, item in enumerate(value)]}
    return value


def _unflatten(tree, tensors: dict):
    if not isinstance(tree, dict):
        return tree
    if "tensor" in tree:
        return tensors[tree["tensor"]]
    if "dict" in tree:
        return {name: _unflatten(item, tensors) for name, item in tree["dict"]}
    return [_unflatten(item, tensors) for item in tree["list"]]
