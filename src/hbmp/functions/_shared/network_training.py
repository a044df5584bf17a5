"""Training of a whole network on images: held-out images, the error that progress shows, kernels, TensorBoard."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from typing import Any

import numpy as np


def in_channels_last(module: Any) -> Any:
    """The module with its weights in the order that convolutions on a GPU read fastest."""
    import torch

    return module.to(memory_format=torch.channels_last)


@contextlib.contextmanager
def kernels_tried_out(wanted: bool) -> Iterator[None]:
    """Inside this context cuDNN measures which of its kernels are fastest for the sizes it meets."""
    import torch

    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = wanted or before
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def held_out(n: int, fraction: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows to train on, and rows to validate on or None."""
    if fraction == 0:
        return np.arange(n), None
    order = rng.permutation(n)
    held = max(2, round(fraction * n))
    return np.sort(order[held:]), np.sort(order[:held])


def about_held_out(images: Any, rest: Sequence[np.ndarray], held: np.ndarray) -> dict[str, str]:
    """Digest of the validation data, which decide the weights that are kept."""
    from hbmp._training.fingerprint import fingerprint
    from hbmp.functions._shared.image_batches import fingerprint_images

    return {"validation": fingerprint(fingerprint_images(images), rest[0][held])}


def unmatched(scores: Any, targets: Any, *_: Any) -> Any:
    """Bit error rate where the targets are codes; label scores may follow the bits."""
    if targets.ndim != 2 or targets.shape[1] > scores.shape[1]:
        return scores.new_zeros(())
    missed = ((scores[:, : targets.shape[1]] >= 0) != (targets > 0)).float().mean()
    return missed * (targets < 0).any()  # a product, because a condition would synchronise the device


def tensorboard(folder: str | PathLike[str]) -> Callable[[Any], None]:
    """A callback that writes the facts of each epoch for TensorBoard."""
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ValueError(
            "log_dir= writes for TensorBoard, which is not installed. `pip install tensorboard`."
        ) from error
    writer = SummaryWriter(folder)

    def write(facts: Any) -> None:
        for name, value in facts.items():
            if name != "epoch":
                writer.add_scalar(name, value, facts["epoch"])
        writer.flush()

    return write
