"""A network on images: a backbone and a linear head with one score per bit, trained end to end on the target codes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from os import PathLike
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from hbmp import hamming
from hbmp._core import catalog
from hbmp._core.device import autocast, pick_device, require_torch, to_numpy
from hbmp._core.seeds import RandomState, as_generator, draw_seed
from hbmp._training import distributed
from hbmp._training.loop import Recipe, seeded, train
from hbmp.functions._shared.base import HashFunction
from hbmp.functions._shared.network_training import (
    about_held_out,
    held_out,
    in_channels_last,
    kernels_tried_out,
    tensorboard,
    unmatched,
)


class Network(HashFunction):
    """Backbone with a linear head, fine-tuned as a whole on images.

    Parameters
    ----------
    backbone : str or Backbone, default="efficientnet_lite0"
        A name from `hbmp.backbones`, or a backbone object. `hbmp.backbones.Module` wraps any torch network.
    loss : {"logistic", "smooth", "hinge", "squared"}, default="logistic"
        Loss of each bit. "hinge" is the loss of the paper. See docs/beyond-the-paper.md for a comparison.
    epochs : int, default=30
        Passes over the images.
    batch_size : int, default=128
        Images per step.
    lr : float, default=1e-3
        Highest learning rate of the head.
    backbone_lr : float, default=3e-4
        Highest learning rate of the backbone.
    weight_decay : float, default=1e-2
        Weight decay of the optimiser.
    optimizer : {"adamw", "sgd"}, default="adamw"
        The optimiser. "sgd" has momentum 0.9.
    schedule : {"one-cycle", "step", "constant"}, default="one-cycle"
        Learning rate over time. "one-cycle" rises for a tenth of training and then falls to 0 by a cosine.
    augmentation : {"none", "light", "strong"} or dict, default="strong"
        Random changes to training images. A dict sets each part, such as
        ``{"flip": 0.5, "shift": 0.1, "cutout": 0.2}``.
    mixup : float, default=0.0
        Parameter of the Beta distribution by which pairs of training images are blended. 0 turns mixup off.
    ema : float, default=0.0
        Decay of the exponential moving average of the weights. 0 keeps no average.
    mirror : bool, default=False
        Encode the mean of an image and its mirror image. Takes twice as long. Not for digits or text.
    precision : {"auto", "float32", "bf16", "fp16"}, default="auto"
        Precision of the network. "auto" is bf16 on a GPU and float32 on a CPU.
    channels_last : bool, default=True
        Memory layout of images on the device.
    compile : bool, default=False
        Compile the backbone for training and let cuDNN select its kernels. Takes about a minute per process. On a GPU
        the kernels are then launched together (CUDA graphs), which speeds up small batches. Each epoch skips the few
        images that do not fill a batch.
    accumulate : int, default=1
        Parts that a batch is split into, for networks that do not fit in memory.
    bit_importance : bool, default=False
        Weight each bit's loss by the size of its learned weight.
    validation : float, default=0.0
        Fraction of the images held out to measure mAP after each epoch. The best weights are kept.
    patience : int or None, default=None
        Epochs without a better validation score after which training stops.
    checkpoint : str, path or None, default=None
        Folder for checkpoints. The same training, started again, resumes from there. A checkpoint of other images,
        targets or settings is refused.
    checkpoint_minutes : float, default=10.0
        The most minutes between checkpoints. There is one after each epoch too.
    workers : int, default=4
        Threads that decode images.
    on_error : {"refuse", "skip"}, default="refuse"
        Raise an error for images that cannot be read, or skip them.
    log_dir : str, path or None, default=None
        Folder for TensorBoard logs.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the network runs.
    verbose : bool, default=False
        Show a progress bar on stderr.

    Attributes
    ----------
    weights_ : dict of str to ndarray
        Weights of backbone and head by name.
    backbone_ : Backbone
        The backbone that was trained.
    n_bits_ : int
        Number of scores.
    loss_ : list of float
        Mean loss of each epoch.

    Examples
    --------
    >>> import numpy as np
    >>> import hbmp
    >>> from hbmp.functions import Network
    >>> pixels = np.zeros((16, 8, 8, 3), dtype=np.uint8)
    >>> pixels[8:] = 255  # black and white images
    >>> targets = np.repeat(np.array([[1, 1], [-1, 1]], dtype=np.int8), 8, axis=0)
    >>> network = Network("tiny", epochs=2, augmentation="none", device="cpu")
    >>> network.fit(hbmp.Images(pixels), targets, random_state=0).project(hbmp.Images(pixels)).shape
    (16, 2)
    """

    takes_images = True
    smoke = {"backbone": "tiny", "epochs": 1, "augmentation": "light", "device": "cpu"}

    weights_: dict[str, np.ndarray]

    def __init__(
        self,
        backbone: Any = "efficientnet_lite0",
        *,
        loss: str = "logistic",
        epochs: int = 30,
        batch_size: int = 128,
        lr: float = 1e-3,
        backbone_lr: float = 3e-4,
        weight_decay: float = 1e-2,
        optimizer: str = "adamw",
        schedule: str = "one-cycle",
        augmentation: str | dict[str, float] = "strong",
        mixup: float = 0.0,
        ema: float = 0.0,
        mirror: bool = False,
        precision: str = "auto",
        channels_last: bool = True,
        compile: bool = False,
        accumulate: int = 1,
        bit_importance: bool = False,
        validation: float = 0.0,
        patience: int | None = None,
        checkpoint: str | PathLike[str] | None = None,
        checkpoint_minutes: float = 10.0,
        workers: int = 4,
        on_error: str = "refuse",
        log_dir: str | PathLike[str] | None = None,
        device: str = "auto",
        verbose: bool = False,
    ):
        self.backbone = backbone
        self.loss = loss
        self.epochs = epochs
        self.batch_size = batch_size
        self.lr = lr
        self.backbone_lr = backbone_lr
        self.weight_decay = weight_decay
        self.optimizer = optimizer
        self.schedule = schedule
        self.augmentation = augmentation
        self.mixup = mixup
        self.ema = ema
        self.mirror = mirror
        self.precision = precision
        self.channels_last = channels_last
        self.compile = compile
        self.accumulate = accumulate
        self.bit_importance = bit_importance
        self.validation = validation
        self.patience = patience
        self.checkpoint = checkpoint
        self.checkpoint_minutes = checkpoint_minutes
        self.workers = workers
        self.on_error = on_error
        self.log_dir = log_dir
        self.device = device
        self.verbose = verbose

    def learn(
        self, X: Any, loss: Callable[..., Any], *rest: np.ndarray, n_bits: int, random_state: RandomState = None
    ) -> Self:
        """Minimise `loss(scores, *rest)` over images. A loss that is a module is trained too."""
        require_torch("Network")
        from hbmp.functions._shared.hashing import Hashing
        from hbmp.functions._shared.image_batches import ImageBatches, MixedLoss
        from hbmp.images import as_images

        images = as_images(X)
        device = distributed.join(pick_device(self.device))
        rng = as_generator(random_state)
        seed = draw_seed(rng)
        backbone = self._described_backbone()
        kept, held = held_out(len(images), self.validation, rng)
        with seeded(seed, device), kernels_tried_out(self.compile):
            module = Hashing(backbone.build(), n_bits, mirror=self.mirror).to(device)
            if self.channels_last:
                module = in_channels_last(module)
            if self.compile:
                self._compile(module.backbone, device)
            loss = loss.to(device) if hasattr(loss, "to") else loss
            data = ImageBatches(
                images if held is None else images[kept],
                *(array if held is None else array[kept] for array in rest),
                view=self._view(backbone, device),
                batch_size=min(self.batch_size, len(kept)),
                device=device,
                mixup=self.mixup,
                workers=self.workers,
                on_error=self.on_error,
                whole=self.compile,
            )
            self.loss_ = train(
                module,
                data,
                MixedLoss(loss) if self.mixup else loss,
                self._recipe(device),
                seed=seed,
                progress=self.verbose,
                label="network",
                monitor=None if self.mixup else unmatched,
                validate=None if held is None else self._validation(images[held], rest[0][held], backbone, device),
                checkpoint=self.checkpoint,
                checkpoint_minutes=self.checkpoint_minutes,
                about=None if held is None or self.checkpoint is None else about_held_out(images[held], rest, held),
                callbacks=[tensorboard(self.log_dir)] if self.log_dir else [],
            )
        self.weights_ = {name: to_numpy(value) for name, value in module.state_dict().items()}
        self.backbone_, self.n_bits_ = backbone, n_bits
        self._module = (module, device)
        return self

    def rescale(self, factor: np.ndarray, shift: np.ndarray) -> None:
        """Fold a factor and a shift of each score into the head."""
        weights, bias = self.weights_["head.weight"], self.weights_["head.bias"]
        self._new_head((weights * factor[:, None]).astype(np.float32), (bias * factor + shift).astype(np.float32))

    def drop(self, columns: Sequence[int]) -> None:
        """Remove these scores from the head."""
        weights, bias = self.weights_["head.weight"], self.weights_["head.bias"]
        self._new_head(np.delete(weights, columns, axis=0), np.delete(bias, columns))

    def _new_head(self, weights: np.ndarray, bias: np.ndarray) -> None:
        self.weights_ |= {"head.weight": weights, "head.bias": bias}
        self.n_bits_ = len(bias)
        self.__dict__.pop("_module", None)  # built again from the weights

    @property
    def pretrained(self) -> bool:
        """Whether the backbone starts from learned weights instead of random ones."""
        return getattr(catalog.resolve("backbones", self.backbone), "pretrained", True) is not False

    def pretrained_features(self, X: Any) -> NDArray[np.float32]:
        """Features of the backbone before training, (n, n_features)."""
        from hbmp.images import as_images

        device, backbone = pick_device(self.device), self._described_backbone()
        with seeded(0, device):  # for backbones that start from random weights
            module = backbone.build().to(device).eval()
        return self._outputs(module, module.n_features, as_images(X), backbone, device)

    def project(self, X: Any) -> NDArray[np.float32]:
        """Scores of the trained network."""
        from hbmp.images import as_images

        module, device = self._built()
        return self._scores(module, as_images(X), self.backbone_, device)

    def project_with_features(self, X: Any) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Scores, and the features of the layer before the head, from one pass."""
        from hbmp.functions._shared.hashing import WithFeatures
        from hbmp.images import as_images

        module, device = self._built()
        width = module.head.in_features + self.n_bits_
        outputs = self._outputs(WithFeatures(module), width, as_images(X), self.backbone_, device)
        return outputs[:, : self.n_bits_], outputs[:, self.n_bits_ :]

    def _scores(self, module: Any, images: Any, backbone: Any, device: str) -> NDArray[np.float32]:
        return self._outputs(module, module.head.out_features, images, backbone, device)

    def _outputs(self, module: Any, n_outputs: int, images: Any, backbone: Any, device: str) -> NDArray[np.float32]:
        require_torch("Network")
        import torch

        from hbmp._core.device import to_torch
        from hbmp.functions._shared.encoder import encoding_batch, folded
        from hbmp.functions._shared.image_batches import pixel_batches

        view, batch = self._view(backbone, device), encoding_batch(device)
        outputs = np.empty((len(images), n_outputs), dtype=np.float32)
        precision = self._precision(device)
        if precision != "float32" or self.compile:
            module = folded(module)  # a compiled network would be compiled again for inference
        with torch.inference_mode(), autocast(device, precision):
            for rows, pixels in pixel_batches(images, view.size, batch_size=batch, workers=self.workers):
                outputs[rows] = to_numpy(module(view.for_use(to_torch(pixels, device))).float())
        return outputs

    def _built(self) -> tuple[Any, str]:
        """The trained module on its device, built from the weights if this function was loaded from a file."""
        cached: tuple[Any, str] | None = getattr(self, "_module", None)
        if cached is not None:
            return cached
        require_torch("Network")
        import torch

        from hbmp.functions._shared.hashing import Hashing

        device = pick_device(self.device)
        module = Hashing(self.backbone_.architecture(), self.n_bits_, mirror=self.mirror)
        try:
            module.load_state_dict({name: torch.from_numpy(np.asarray(value)) for name, value in self.weights_.items()})
        except RuntimeError as error:  # only a custom network can differ
            first = str(error).partition("\n")[2].strip().partition("\n")[0]
            raise ValueError(
                f"The network passed has different layers from the one that was trained: {first}"
            ) from error
        module = module.to(device).eval()
        built = (in_channels_last(module) if self.channels_last else module, device)
        self._module = built
        return built

    def _described_backbone(self) -> Any:
        return clone(catalog.resolve("backbones", self.backbone))

    def _view(self, backbone: Any, device: str) -> Any:
        from hbmp.functions._shared.augment import AUGMENTATIONS, Augmentation
        from hbmp.functions._shared.image_batches import View

        given = self.augmentation
        if isinstance(given, str) and given not in AUGMENTATIONS:
            known = ", ".join(map(repr, AUGMENTATIONS))
            raise ValueError(f"augmentation must be one of {known}, or a dict of settings; found {given!r}.")
        chosen = AUGMENTATIONS[given] if isinstance(given, str) else Augmentation(**given)
        return View(backbone, chosen, device, channels_last=self.channels_last)

    def _precision(self, device: str) -> str:
        if self.precision != "auto":
            return self.precision
        return "bf16" if str(device).startswith("cuda") else "float32"

    def _compile(self, backbone: Any, device: str) -> None:
        """Compile the backbone. The head is not compiled, so that all code lengths share one compilation.

        A CUDA graph keeps gradients in its own memory, which the next launch overwrites. They must not be summed over
        parts of a batch or sent to other processes.
        """
        one_launch = device.startswith("cuda") and self.accumulate == 1 and distributed.world() == 1
        backbone.compile(dynamic=False, mode="reduce-overhead" if one_launch else None)

    def _recipe(self, device: str) -> Recipe:
        return Recipe(
            epochs=self.epochs,
            batch_size=self.batch_size,
            lr=self.lr,
            weight_decay=self.weight_decay,
            optimizer=self.optimizer,
            schedule=self.schedule,
            rates=(("backbone.", self.backbone_lr / self.lr),),
            precision=self._precision(device),
            accumulate=self.accumulate,
            ema=self.ema,
            patience=self.patience,
        )

    def _validation(self, images: Any, targets: np.ndarray, backbone: Any, device: str) -> Callable[[Any], float]:
        """mAP when held-out images query each other; images with an equal code or a shared label are relevant."""
        from hbmp.metrics import self_retrieval_map

        codes = bool((targets < 0).any())  # of the first scores; label scores may follow
        labels = np.unique(targets, axis=0, return_inverse=True)[1].reshape(-1) if codes else targets
        n_bits = targets.shape[1] if codes else None

        def validate(module: Any) -> float:
            scores = self._scores(module, images, backbone, device)[:, :n_bits]
            return self_retrieval_map(hamming.signs(scores), labels, ties="average")

        return validate
