"""Batches of training images: pixels stay on the device if they fit, otherwise threads decode them batch by batch."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import asdict
from typing import Any

import numpy as np
import torch

from hbmp._core.device import to_torch
from hbmp._training import distributed
from hbmp._training.fingerprint import fingerprint, fingerprint_files
from hbmp.functions._shared.augment import Augmentation, augmented, resized

_MOST_ON_DEVICE = 8 << 30  # bytes of pixels


class ImageBatches:
    """Shuffled batches of augmented images with the rows of each of `rest`, for `train`.

    With `mixup` > 0, pairs of images are blended. The batch then holds the weight of the first image, the rest of the
    first images and the rest of the second images, in the order `MixedLoss` takes them. With `whole`, every batch is
    full; the images left over differ in each epoch.
    """

    def __init__(
        self,
        images: Any,
        *rest: np.ndarray,
        view: View,
        batch_size: int,
        device: str,
        mixup: float,
        workers: int,
        on_error: str,
        whole: bool = False,
    ):
        self.images, self.view, self.batch_size, self.device = images, view, batch_size, device
        self.rest = [to_torch(np.ascontiguousarray(array), device) for array in rest]
        self.mixup, self.workers, self.on_error, self.whole = mixup, workers, on_error, whole
        self._pixels = None
        if len(images) * view.size**2 * 3 <= _MOST_ON_DEVICE or small_pixels(images, view.size) is not None:
            self._rows, pixels = all_pixels(images, view.size, workers, on_error)
            self._pixels = to_torch(pixels, device)
        else:
            self._rows = np.arange(len(images))

    def __len__(self) -> int:
        full = len(self._rows) // self.batch_size
        return full if self.whole and full else math.ceil(len(self._rows) / self.batch_size)

    def about(self) -> dict[str, Any]:
        """Digests of images and targets, and the settings of the batches, for a checkpoint."""
        return {
            "data": fingerprint_images(self.images) if self._pixels is None else fingerprint(self._pixels, self._rows),
            "targets": fingerprint(*self.rest),
            "augmentation": asdict(self.view.augmentation),
            "mixup": self.mixup,
            "size": self.view.size,
        }

    def batches(self, generator: torch.Generator, start: int = 0) -> Iterator[tuple[torch.Tensor, ...]]:
        """One epoch in a new order, from batch number `start` on."""
        order = torch.randperm(len(self._rows), generator=generator)[: len(self) * self.batch_size]
        if start >= len(self):  # the last batch of the epoch was the last before a checkpoint
            return
        if self._pixels is None:
            order = torch.from_numpy(self.images.read_together(order.numpy()))
        for pixels, rows in self._in_order(order[start * self.batch_size :]):
            inputs = self.view.for_training(pixels)
            rest = [tensor[rows] for tensor in self.rest]
            yield (inputs, *rest) if self.mixup == 0 else self._mixed(inputs, rest)

    def _in_order(self, order: torch.Tensor) -> Iterator[tuple[torch.Tensor, torch.Tensor]]:
        """(pixels, rows of the rest), both on the device, batch by batch."""
        rows = torch.as_tensor(self._rows)
        if self._pixels is not None:
            for part in order.split(self.batch_size):
                mine = distributed.share(part)
                yield self._pixels[mine.to(self.device)], rows[mine].to(self.device)
            return
        parts = [distributed.share(part) for part in order.split(self.batch_size)]
        mine = torch.cat(parts).numpy()
        decoded = self.images[mine].batches(
            len(parts[0]), size=self.view.size, workers=self.workers, on_error=self.on_error
        )
        for found, pixels in decoded:
            yield to_torch(pixels, self.device), torch.as_tensor(mine[found]).to(self.device)

    def _mixed(self, inputs: torch.Tensor, rest: list[torch.Tensor]) -> tuple[torch.Tensor, ...]:
        share = torch.distributions.Beta(self.mixup, self.mixup).sample((len(inputs),)).to(inputs.device)
        other = torch.randperm(len(inputs), device=inputs.device)
        blend = share[:, None, None, None]
        mixed = blend * inputs + (1 - blend) * inputs[other]
        return (mixed, share, *rest, *(tensor[other] for tensor in rest))


def fingerprint_images(images: Any) -> str:
    """Digest of images: of pixels in memory, else of the names, sizes and modification times of their files."""
    identity, files = images.origin()
    return fingerprint(identity, fingerprint_files(files))


class MixedLoss(torch.nn.Module):
    """Loss of blended images: the losses of the first and the second images, weighted by their mean proportions.

    A loss that is a module is a submodule, so that its parameters are trained too.
    """

    def __init__(self, loss: Callable[..., torch.Tensor]):
        super().__init__()
        self.loss = loss

    def forward(self, scores: torch.Tensor, weight: torch.Tensor, *both: torch.Tensor) -> torch.Tensor:
        """Scores and mixing weights of a batch, then the rest of the first and of the second images."""
        half, part = len(both) // 2, weight.mean()
        return part * self.loss(scores, *both[:half]) + (1 - part) * self.loss(scores, *both[half:])


class View:
    """Conversion of pixels to inputs of a backbone by its size, mean and scale, with augmentation for training."""

    def __init__(self, backbone: Any, augmentation: Augmentation, device: str, *, channels_last: bool):
        self.size, self.augmentation = backbone.size, augmentation
        self._mean, self._scale = (
            torch.tensor(value, dtype=torch.float32, device=device).reshape(1, -1, 1, 1)
            for value in (backbone.mean, backbone.scale)
        )
        self._format = torch.channels_last if channels_last else torch.contiguous_format

    def for_training(self, pixels: torch.Tensor) -> torch.Tensor:
        """Augmented inputs (n, 3, size, size) from uint8 pixels (n, h, w, 3)."""
        return self._inputs(augmented(pixels, self.size, self.augmentation))

    def for_use(self, pixels: torch.Tensor) -> torch.Tensor:
        """Inputs (n, 3, size, size) from uint8 pixels (n, h, w, 3)."""
        return self._inputs(resized(pixels, self.size))

    def _inputs(self, images: torch.Tensor) -> torch.Tensor:
        return ((images - self._mean) / self._scale).contiguous(memory_format=self._format)


def all_pixels(images: Any, size: int, workers: int, on_error: str) -> tuple[np.ndarray, np.ndarray]:
    """(rows, pixels (n, side, side, 3)) of all readable images; small ones in memory are not resized."""
    pixels = small_pixels(images, size)
    if pixels is not None:
        return np.arange(len(images)), pixels
    parts = list(images.batches(256, size=size, workers=workers, on_error=on_error))
    return np.concatenate([rows for rows, _ in parts]), np.concatenate([pixels for _, pixels in parts])


def small_pixels(images: Any, size: int) -> np.ndarray | None:
    """Square images in memory that are no larger than the network's input, which the device enlarges; else None."""
    pixels: np.ndarray | None = images.pixels
    return pixels if pixels is not None and pixels.shape[1] == pixels.shape[2] <= size else None


def pixel_batches(images: Any, size: int, *, batch_size: int, workers: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """(rows, pixels (k, side, side, 3)) in order, for inference."""
    pixels = small_pixels(images, size)
    if pixels is None:
        yield from images.batches(batch_size, size=size, workers=workers, on_error="refuse")
        return
    for start in range(0, len(pixels), batch_size):
        part = pixels[start : start + batch_size]
        yield np.arange(start, start + len(part)), part
