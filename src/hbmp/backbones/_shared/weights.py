"""Pretrained weights from files: no code in them is run, and every name and shape is checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hbmp._core.reading import reading

if TYPE_CHECKING:
    import torch


def read_tensors(path: str | Path) -> dict[str, torch.Tensor]:
    """The tensors of a .safetensors file or of a state dict in torch's format, by name."""
    path = Path(path)
    if not path.is_file():
        raise ValueError(f"There is no file {path} to take pretrained weights from.")
    tensors = _read_safetensors(path) if path.suffix == ".safetensors" else _read_torch(path)
    if isinstance(tensors, Mapping) and isinstance(tensors.get("state_dict"), Mapping):
        tensors = tensors["state_dict"]  # training scripts also save their epoch and optimiser
    if not isinstance(tensors, Mapping) or not all(hasattr(tensor, "shape") for tensor in tensors.values()):
        raise ValueError(f"{path} must hold a state dict of named tensors, found a {type(tensors).__name__}.")
    return dict(tensors)


def _read_safetensors(path: Path) -> Any:
    from safetensors.torch import load_file

    with reading(path, "safetensors", "get the file again"):
        return load_file(path)


def _read_torch(path: Path) -> Any:
    import torch

    with reading(path, "tensors alone", "save its state dict with torch.save or as .safetensors"):
        return torch.load(path, map_location="cpu", weights_only=True)


def put_tensors(
    module: torch.nn.Module, tensors: Mapping[str, Any], name_in_file: Callable[[str], str], origin: str
) -> None:
    """Copy tensors into a module. `name_in_file` maps the names of the module to the names of the tensors."""
    state = module.state_dict()
    found = {}
    for name, tensor in state.items():
        if name.endswith("num_batches_tracked"):  # number of training batches, which files may omit
            found[name] = tensor
            continue
        there = name_in_file(name)
        if there not in tensors:
            raise ValueError(
                f"{origin} has no weights {there!r}; it holds {_some(tensors)}. Pass a file of this network."
            )
        if tuple(tensors[there].shape) != tuple(tensor.shape):
            raise ValueError(
                f"{origin} has {there!r} of shape {tuple(tensors[there].shape)}, where this network has "
                f"{tuple(tensor.shape)}. Pass a file of this network."
            )
        found[name] = tensors[there]
    module.load_state_dict(found)


def _some(tensors: Mapping[str, Any]) -> str:
    names = list(tensors)
    return ", ".join(names[:3]) + (f" and {len(names) - 3} more" if len(names) > 3 else "") if names else "nothing"
