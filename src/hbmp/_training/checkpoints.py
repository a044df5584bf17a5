"""Training state on disk, from which a killed training resumes exactly: safetensors, never pickle.

One file holds everything: tensors as they are, the rest as JSON in the header. The file is written under a temporary
name and renamed, so there is always one complete checkpoint, the old one or the new one. The header names the training
(`about`) and holds the SHA-256 of the whole file, computed with zeros in its own place.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import re
import time
from pathlib import Path
from typing import Any

from hbmp._core.files import write_into_place
from hbmp._core.reading import json_object

_FILE = "training.safetensors"
_FORMAT = 2  # 1 had neither digests of the data nor a checksum
_DIGEST = re.compile(rb'"sha256":"([0-9a-f]{64})"')
_ZEROS = b"0" * 64


class Checkpoints:
    """Store for the state of a training in a folder, saved after each epoch and at least every `minutes`.

    `about` describes the training in JSON types. A checkpoint of another training and a damaged one raise ValueError.
    Spare ones, which nobody asked for by name, are saved every `minutes` alone, and damaged ones count as missing.
    """

    def __init__(self, folder, about: dict, *, minutes: float = 10.0, spare: bool = False):
        self.path = Path(folder) / _FILE
        self._about = json.loads(json.dumps({"format": _FORMAT, **about}))
        self._seconds, self._last, self._spare = 60 * minutes, time.monotonic(), spare

    @property
    def due(self) -> bool:
        """Whether the last checkpoint is older than `minutes`."""
        return time.monotonic() - self._last >= self._seconds

    def due_at_epoch(self, *, last: bool) -> bool:
        """Whether to save at the end of an epoch; a spare one also at the end of a training that has one."""
        return not self._spare or self.due or (last and self.path.is_file())

    def save(self, state: dict) -> None:
        """Write a state: nested dicts and lists of tensors, numbers, strings and None."""
        from safetensors.torch import save

        tensors: dict = {}
        tree = _flatten(state, tensors, "")
        header = {"state": json.dumps(tree), "about": json.dumps(self._about), "sha256": _ZEROS.decode()}
        self.path.parent.mkdir(parents=True, exist_ok=True)
        write_into_place(self.path, _signed(save(tensors, metadata=header)))
        self._last = time.monotonic()

    def load(self) -> dict | None:
        """The saved state, or None if there is none."""
        if not self.path.is_file():
            return None
        with contextlib.suppress(*([ValueError] if self._spare else [])):
            return self._load()
        return None

    def _load(self) -> dict:
        try:
            header, tensors, verified = _read(self.path.read_bytes())
            self._check(_from_json(header, "about"))
            if not verified:
                raise _Damaged("it has no SHA-256 digest")
            return _from_json(header, "state", tensors)
        except _Damaged as error:
            raise ValueError(
                f"The checkpoint {self.path} is damaged: {error}. Remove it to start this training afresh."
            ) from error

    def _check(self, found: dict) -> None:
        """Raise ValueError for a checkpoint of another training."""
        if found == self._about:
            return
        if "format" not in found:
            raise ValueError(
                f"{self.path.parent} holds a checkpoint of an earlier version, which did not record its data. "
                "Choose another folder, or remove this one."
            )
        different = sorted(key for key in {*found, *self._about} if found.get(key) != self._about.get(key))
        raise ValueError(
            f"{self.path.parent} holds a checkpoint of another training: {', '.join(different)} differ. "
            "Choose another folder, or remove this one."
        )


class _Damaged(Exception):
    """A checkpoint whose bytes are not those that were written."""


def _signed(data: bytes) -> bytes:
    """The file with its SHA-256 instead of the zeros."""
    place = _digest_place(data)
    return data[: place.start] + hashlib.sha256(data).hexdigest().encode() + data[place.stop :]


def _header_end(data: bytes) -> int:
    """Where the header ends, which begins after the 8 bytes of its length."""
    end = 8 + int.from_bytes(data[:8], "little")
    if end > len(data):
        raise _Damaged("its header does not end within the file")
    return end


def _digest_place(data: bytes) -> slice:
    """Where the header holds the digest. JSON escapes quotes inside strings, so no other text matches."""
    found = _DIGEST.search(data, 8, _header_end(data))
    return slice(*found.span(1)) if found else slice(0, 0)


def _read(data: bytes) -> tuple[dict[str, str], dict, bool]:
    """The header and the tensors of a file, and whether it has a digest, which must match. Format 1 has none."""
    from safetensors import SafetensorError
    from safetensors.torch import load

    place = _digest_place(data)
    if place.stop:
        unsigned = data[: place.start] + _ZEROS + data[place.stop :]
        if hashlib.sha256(unsigned).hexdigest().encode() != data[place]:
            raise _Damaged("it does not match its SHA-256 digest")
    try:
        header = json_object(data[8 : _header_end(data)], __metadata__=dict)["__metadata__"]
        return header, load(data), bool(place.stop)
    except (SafetensorError, ValueError, KeyError, TypeError) as error:
        raise _Damaged(f"it cannot be read ({error})") from error


def _from_json(header: dict[str, str], name: str, tensors: dict | None = None) -> dict:
    """A dict of the header; with tensors, as `save` was given it."""
    try:
        found: Any = json_object(header[name])
        found = found if tensors is None else _unflatten(found, tensors)
        if not isinstance(found, dict):
            raise TypeError(f"{name} is a {type(found).__name__}")
        return found
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise _Damaged(f"its {name} cannot be read ({error})") from error


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
