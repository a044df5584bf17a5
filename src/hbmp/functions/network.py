"""A whole network on images: a backbone, a linear head with one score a bit, trained end to end on the target codes."""

from __future__ import annotations

import contextlib

import numpy as np
from sklearn.base import clone

from hbmp import hamming
from hbmp._core import catalog
from hbmp._core.device import autocast, pick_device, to_numpy
from hbmp._core.seeds import as_generator, draw_seed
from hbmp._training import distributed
from hbmp._training.loop import Recipe, seeded, train
from hbmp.functions._shared.base import HashFunction


class Network(HashFunction):
    """Any backbone with a linear head, fine-tuned as a whole.

    Parameters
    ----------
    backbone : a name from `hbmp.backbones`, or an object from there (`hbmp.backbones.Module` for a network of yours)
    loss : "logistic", "smooth", "hinge" (the paper's) or "squared". Logistic is the default, because at 32 bits on
        cifar-1 it gave mAP 0.900 where the hinge gave 0.881
    epochs, batch_size, optimizer, schedule, weight_decay : how it is trained
    lr, backbone_lr : learning rates of the head and of the backbone
    augmentation : "none", "light", "strong", or a dict such as {"flip": 0.5, "shift": 0.1, "cutout": 0.2}
    mixup : 0, or the parameter of the Beta distribution that blends pairs of training images
    ema : how much of the averaged weights each step keeps, 0 for none
    mirror : encode the mean of an image and its mirror image, where both mean the same: not for digits or text. Takes
        twice as long; held-out images of cifar-1 at 12 bits gained half a point to a point of mAP
    precision : "auto" (bf16 on a GPU, float32 on a CPU), "float32", "bf16" or "fp16"
    channels_last : how pictures lie in memory on the device
    compile : compile the backbone for training and let cuDNN try out its kernels, about a minute once a process; on a
        GPU its kernels are then launched together (CUDA graphs), which is what makes small batches quick. Each epoch
        leaves out the few images that do not fill a batch
    accumulate : parts that a batch is computed in, for networks that do not fit at once
    validation, patience : share of the images held out to watch mAP on; training stops after `patience` epochs without
        a better one, and the best weights are kept
    checkpoint, checkpoint_minutes : folder to save the training to, at least that often and after each epoch; the same
        training started again goes on from there
    workers : threads that decode images
    on_error : "refuse" or "skip" images that cannot be read
    log_dir : folder for TensorBoard
    """

    takes_images = True
    smoke = {"backbone": "tiny", "epochs": 1, "augmentation": "light", "device": "cpu"}

    def __init__(
        self,
        backbone="efficientnet_lite0",
        *,
        loss="logistic",
        epochs=30,
        batch_size=128,
        lr=1e-3,
        backbone_lr=3e-4,
        weight_decay=1e-2,
        optimizer="adamw",
        schedule="one-cycle",
        augmentation="strong",
        mixup=0.0,
        ema=0.0,
        mirror=False,
        precision="auto",
        channels_last=True,
        compile=False,
        accumulate=1,
        bit_importance=False,
        validation=0.0,
        patience=None,
        checkpoint=None,
        checkpoint_minutes=10.0,
        workers=4,
        on_error="refuse",
        log_dir=None,
        device="auto",
        verbose=False,
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

    def learn(self, X, loss, *rest, n_bits, random_state=None):
        """Minimise `loss(scores, *rest)` over images; a loss that is a module is trained along."""
        from hbmp.functions._shared.hashing import Hashing
        from hbmp.functions._shared.image_batches import ImageBatches, MixedLoss
        from hbmp.images import as_images

        images = as_images(X)
        device = distributed.join(pick_device(self.device))
        rng = as_generator(random_state)
        seed = draw_seed(rng)
        backbone = self._described_backbone()
        kept, held = _held_out(len(images), self.validation, rng)
        with seeded(seed, device), _kernels_tried_out(self.compile):
            module = Hashing(backbone.build(), n_bits, mirror=self.mirror).to(device)
            if self.channels_last:
                module = _channels_last(module)
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
                monitor=None if self.mixup else _unmatched,
                validate=None if held is None else self._validation(images[held], rest[0][held], backbone, device),
                checkpoint=self.checkpoint,
                checkpoint_minutes=self.checkpoint_minutes,
                callbacks=[_tensorboard(self.log_dir)] if self.log_dir else [],
            )
        self.weights_ = {name: to_numpy(value) for name, value in module.state_dict().items()}
        self.backbone_, self.n_bits_ = backbone, n_bits
        self._module = (module, device)
        return self

    def rescale(self, factor, shift):
        """Fold a factor and a shift of each score into the head."""
        weights, bias = self.weights_["head.weight"], self.weights_["head.bias"]
        self._new_head((weights * factor[:, None]).astype(np.float32), (bias * factor + shift).astype(np.float32))

    def drop(self, columns):
        """Leave these scores out of the head."""
        weights, bias = self.weights_["head.weight"], self.weights_["head.bias"]
        self._new_head(np.delete(weights, columns, axis=0), np.delete(bias, columns))

    def _new_head(self, weights, bias) -> None:
        self.weights_ |= {"head.weight": weights, "head.bias": bias}
        self.n_bits_ = len(bias)
        self.__dict__.pop("_module", None)  # built again from the weights

    @property
    def pretrained(self) -> bool:
        """Whether the backbone starts from weights that it has learned, and not from random ones."""
        return getattr(catalog.resolve("backbones", self.backbone), "pretrained", True) is not False

    def pretrained_features(self, X):
        """What the backbone gives for images before any training, (n, n_features)."""
        from hbmp.images import as_images

        device, backbone = pick_device(self.device), self._described_backbone()
        with seeded(0, device):  # for backbones that start from random weights
            module = backbone.build().to(device).eval()
        return self._outputs(module, module.n_features, as_images(X), backbone, device)

    def project(self, X):
        """Scores of the trained network."""
        from hbmp.images import as_images

        module, device = self._built()
        return self._scores(module, as_images(X), self.backbone_, device)

    def _scores(self, module, images, backbone, device) -> np.ndarray:
        return self._outputs(module, module.head.out_features, images, backbone, device)

    def _outputs(self, module, n_outputs, images, backbone, device) -> np.ndarray:
        import torch

        from hbmp._core.device import to_torch
        from hbmp.functions._shared.encoder import encoding_batch, folded
        from hbmp.functions._shared.image_batches import pixel_batches

        view, batch = self._view(backbone, device), encoding_batch(device)
        outputs = np.empty((len(images), n_outputs), dtype=np.float32)
        precision = self._precision(device)
        if precision != "float32" or self.compile:
            module = folded(module)  # a compiled network would be compiled once more for its use
        with torch.inference_mode(), autocast(device, precision):
            for rows, pixels in pixel_batches(images, view.size, batch_size=batch, workers=self.workers):
                outputs[rows] = to_numpy(module(view.for_use(to_torch(pixels, device))).float())
        return outputs

    def _built(self):
        """The trained module on its device, made from the weights where this function was loaded from a file."""
        cached = getattr(self, "_module", None)
        if cached is not None:
            return cached
        import torch

        from hbmp.functions._shared.hashing import Hashing

        device = pick_device(self.device)
        module = Hashing(self.backbone_.architecture(), self.n_bits_, mirror=self.mirror)
        try:
            module.load_state_dict({name: torch.from_numpy(np.asarray(value)) for name, value in self.weights_.items()})
        except RuntimeError as error:  # only a network of the user's own can be another one
            first = str(error).partition("\n")[2].strip().partition("\n")[0]
            raise ValueError(f"The network given has other layers than the one that was trained: {first}") from error
        module = module.to(device).eval()
        self._module = (_channels_last(module) if self.channels_last else module, device)
        return self._module

    def _described_backbone(self):
        return clone(catalog.resolve("backbones", self.backbone))

    def _view(self, backbone, device):
        from hbmp.functions._shared.augment import AUGMENTATIONS, Augmentation
        from hbmp.functions._shared.image_batches import View

        given = self.augmentation
        if isinstance(given, str) and given not in AUGMENTATIONS:
            known = ", ".join(map(repr, AUGMENTATIONS))
            raise ValueError(f"augmentation must be one of {known}, or a dict of settings; found {given!r}.")
        chosen = AUGMENTATIONS[given] if isinstance(given, str) else Augmentation(**given)
        return View(backbone, chosen, device, channels_last=self.channels_last)

    def _precision(self, device) -> str:
        if self.precision != "auto":
            return self.precision
        return "bf16" if str(device).startswith("cuda") else "float32"

    def _compile(self, backbone, device) -> None:
        """Compile the backbone; the head stays out, so that all code lengths share one.

        A graph of CUDA keeps gradients in memory of its own, which the next launch overwrites: they must not be summed
        over parts of a batch, and other processes must not be sent them.
        """
        one_launch = device.startswith("cuda") and self.accumulate == 1 and distributed.world() == 1
        backbone.compile(dynamic=False, mode="reduce-overhead" if one_launch else None)

    def _recipe(self, device) -> Recipe:
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

    def _validation(self, images, targets, backbone, device):
        """mAP when held-out images query each other; relevant are those with an equal code or a shared label."""
        from hbmp.metrics import self_retrieval_map

        codes = bool((targets < 0).any())  # of the first scores; label scores may follow
        labels = np.unique(targets, axis=0, return_inverse=True)[1].reshape(-1) if codes else targets
        n_bits = targets.shape[1] if codes else None

        def validate(module) -> float:
            scores = self._scores(module, images, backbone, device)[:, :n_bits]
            return self_retrieval_map(hamming.signs(scores), labels, ties="average")

        return validate


def _channels_last(module):
    import torch

    return module.to(memory_format=torch.channels_last)


@contextlib.contextmanager
def _kernels_tried_out(wanted: bool):
    """cuDNN measures which of its kernels are quickest for the sizes it meets, in here alone."""
    import torch

    before = torch.backends.cudnn.benchmark
    torch.backends.cudnn.benchmark = wanted or before
    try:
        yield
    finally:
        torch.backends.cudnn.benchmark = before


def _held_out(n: int, share: float, rng) -> tuple[np.ndarray, np.ndarray | None]:
    """Rows to train on, and rows to validate on or None."""
    if share == 0:
        return np.arange(n), None
    order = rng.permutation(n)
    held = max(2, round(share * n))
    return np.sort(order[held:]), np.sort(order[:held])


def _unmatched(scores, targets, *_):
    """Share of bits that miss their target, where the targets are codes; label scores may follow the bits."""
    if targets.ndim != 2 or targets.shape[1] > scores.shape[1]:
        return scores.new_zeros(())
    missed = ((scores[:, : targets.shape[1]] >= 0) != (targets > 0)).float().mean()
    return missed * (targets < 0).any()  # a product, because a condition would make the device wait


def _tensorboard(folder):
    try:
        from torch.utils.tensorboard import SummaryWriter
    except ImportError as error:
        raise ValueError(
            "log_dir= writes for TensorBoard, which is not installed. `pip install tensorboard`."
        ) from error
    writer = SummaryWriter(folder)

    def write(facts) -> None:
        for name, value in facts.items():
            if name != "epoch":
                writer.add_scalar(name, value, facts["epoch"])
        writer.flush()

    return write
