"""Images to train on: pixels that stay on the device where they fit, decoded in workers batch by batch where not."""

from __future__ import annotations

import math

import numpy as np
import torch

from hbmp._core.device import to_torch
from hbmp._training import distributed
from hbmp.functions._shared.augment import Augmentation, augmented, resized

_MOST_ON_DEVICE = 8 << 30  # bytes of pixels


class ImageBatches:
    """Shuffled batches of augmented images with the rows of each of `rest`, for `training.train`.

    mixup: 0, or how much two images of a batch are blended; the batch then holds the share of the first, and the rest
    of the first and of the second one after the other, as `MixedLoss` takes them. whole: every batch is a full one, and
    the images left over, others in each pass, wait for the next.
    """

    def __init__(
        self, images, *rest, view: View, batch_size: int, device: str, mixup: float, workers, on_error, whole=False
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

    def batches(self, generator, start: int = 0):
        """One pass in a fresh order, from batch number `start` on."""
        order = torch.randperm(len(self._rows), generator=generator)[: len(self) * self.batch_size]
        if self._pixels is None:
            order = torch.from_numpy(self.images.read_together(order.numpy()))
        for pixels, rows in self._in_order(order[start * self.batch_size :]):
            inputs = self.view.for_training(pixels)
            rest = [tensor[rows] for tensor in self.rest]
            yield (inputs, *rest) if self.mixup == 0 else self._mixed(inputs, rest)

    def _in_order(self, order):
        """(pixels, rows of the rest), both on the device, a batch at a time."""
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

    def _mixed(self, inputs, rest):
        share = torch.distributions.Beta(self.mixup, self.mixup).sample((len(inputs),)).to(inputs.device)
        other = torch.randperm(len(inputs), device=inputs.device)
        blend = share[:, None, None, None]
        mixed = blend * inputs + (1 - blend) * inputs[other]
        return (mixed, share, *rest, *(tensor[other] for tensor in rest))


class MixedLoss(torch.nn.Module):
    """The loss of blended images: that of the first and of the second image, each with its mean share.

    A loss that is a module stays one, so that what it learns is trained along.
    """

    def __init__(self, loss):
        super().__init__()
        self.loss = loss

    def forward(self, scores, share, *both):
        """Scores and shares of a batch, then the rest of the first images and of the second."""
        half, part = len(both) // 2, share.mean()
        return part * self.loss(scores, *both[:half]) + (1 - part) * self.loss(scores, *both[half:])


class View:
    """How pixels become inputs of a backbone: its size, mean and scale, with an augmentation for training."""

    def __init__(self, backbone, augmentation: Augmentation, device: str, *, channels_last: bool):
        self.size, self.augmentation = backbone.size, augmentation
        self._mean, self._scale = (
            torch.tensor(value, dtype=torch.float32, device=device).reshape(1, -1, 1, 1)
            for value in (backbone.mean, backbone.scale)
        )
        self._format = torch.channels_last if channels_last else torch.contiguous_format

    def for_training(self, pixels):
        """Augmented inputs (n, 3, size, size) from uint8 pixels (n, h, w, 3)."""
        return self._inputs(augmented(pixels, self.size, self.augmentation))

    def for_use(self, pixels):
        """Inputs (n, 3, size, size) from uint8 pixels (n, h, w, 3)."""
        return self._inputs(resized(pixels, self.size))

    def _inputs(self, images):
        return ((images - self._mean) / self._scale).contiguous(memory_format=self._format)


def all_pixels(images, size: int, workers, on_error) -> tuple[np.ndarray, np.ndarray]:
    """(rows, pixels (n, side, side, 3)) of all images that can be read; small ones in memory stay as they are."""
    pixels = small_pixels(images, size)
    if pixels is not None:
        return np.arange(len(images)), pixels
    parts = list(images.batches(256, size=size, workers=workers, on_error=on_error))
    return np.concatenate([rows for rows, _ in parts]), np.concatenate([pixels for _, pixels in parts])


def small_pixels(images, size: int) -> np.ndarray | None:
    """Square images in memory that are no larger than the network's input: the device enlarges them."""
    pixels = images.pixels
    return pixels if pixels is not None and pixels.shape[1] == pixels.shape[2] <= size else None


def pixel_batches(images, size: int, *, batch_size: int, workers):
    """(rows, pixels (k, side, side, 3)) in order, for use."""
    pixels = small_pixels(images, size)
    if pixels is None:
        yield from images.batches(batch_size, size=size, workers=workers, on_error="refuse")
        return
    for start in range(0, len(pixels), batch_size):
        part = pixels[start : start + batch_size]
        yield np.arange(start, start + len(part)), part
