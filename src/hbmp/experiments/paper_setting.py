"""The paper's own setting: which network learns from which images, with which weights and schedule.

Deep methods train the whole network, as the paper and its authors' commands state: SGD with momentum 0.9, halved every
20 of 100 epochs, batches of 256, hinge loss. All other methods learn from the penultimate layer of the same network
before training, less the mean of the training images and scaled to length one.

Readings, where the published record is silent: HBMP on ImageNet100 has the rates of nus-2; rivals other than MIHash
have the rates of HBMP; one layer on GIST has the rate 0.01. Not as in the authors' code: biases have the rate of their
weights, codes are inferred from the label sets of the training images alone, and pictures are cropped to a square
before they are scaled.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from hbmp import datasets, encoders
from hbmp._core import catalog
from hbmp.encoders import Encoder
from hbmp.experiments.cells import Cell
from hbmp.methods.hbmp.published import PUBLISHED

DEEP_METHODS = ("dpsh", "drsch", "dsrh", "dtsh", "hashnet", "hbmp", "mihash")
"""Methods of the paper's tables that train the network itself."""

_TRAINING = {"loss": "hinge", "epochs": 100, "batch_size": 256, "optimizer": "sgd", "schedule": "step"}
_FLIP = {"augmentation": {"flip": 0.5}}
_RATES: dict[str, dict[str, Any]] = {
    "cifar-1": {"lr": 1e-4, "backbone_lr": 1e-4, "weight_decay": 0.0, "augmentation": "none"},
    "cifar-2": {"lr": 1e-4, "backbone_lr": 1e-4, "weight_decay": 5e-4, "augmentation": "none"},
    "nus-1": {"lr": 1e-3, "backbone_lr": 1e-5, "weight_decay": 5e-4, **_FLIP},
    "nus-2": {"lr": 1e-2, "backbone_lr": 1e-4, "weight_decay": 5e-4, **_FLIP},
    "imagenet100": {"lr": 1e-2, "backbone_lr": 1e-4, "weight_decay": 5e-4, **_FLIP},
}
_MIHASH: dict[str, tuple[float, dict[str, Any]]] = {  # the slope of its sigmoid, and its rates
    "cifar-1": (1.0, {"lr": 1e-3, "backbone_lr": 1e-3}),
    "cifar-2": (30.0, {"lr": 2e-3, "backbone_lr": 2e-3}),
    "nus-1": (1.0, {"lr": 0.05, "backbone_lr": 5e-4}),
    "nus-2": (1.0, {"lr": 0.01, "backbone_lr": 1e-4}),
    "imagenet100": (10.0, {"lr": 0.1, "backbone_lr": 1e-3}),
}
_ONE_LAYER = {**_TRAINING, "lr": 1e-2, "weight_decay": 5e-4}


@dataclass(frozen=True)
class Weights:
    """A file of published weights, kept under `weights/` of the data directory.

    Parameters
    ----------
    filename : str
        Its name.
    url : str
        Where its authors publish it.

    Examples
    --------
    >>> from hbmp.experiments.paper_setting import VGGF
    >>> VGGF.command("data").split()[:5]
    ['curl', '-L', '--create-dirs', '-o', 'data/weights/imagenet-vgg-f.mat']
    """

    filename: str
    url: str

    def path(self, data_dir: str | os.PathLike[str] | None) -> Path:
        """Where the file is expected.

        Parameters
        ----------
        data_dir : str or Path, default=None
            Data directory.

        Returns
        -------
        Path
            The path.
        """
        return datasets.data_dir(data_dir) / "weights" / self.filename

    def command(self, data_dir: str | os.PathLike[str] | None) -> str:
        """The shell command that gets the file.

        Parameters
        ----------
        data_dir : str or Path, default=None
            Data directory.

        Returns
        -------
        str
            The command.
        """
        return f"curl -L --create-dirs -o {self.path(data_dir)} {self.url}"


VGGF = Weights("imagenet-vgg-f.mat", "https://www.vlfeat.org/matconvnet/models/imagenet-vgg-f.mat")
ALEXNET = Weights("alexnet-owt-7be5be79.pth", "https://download.pytorch.org/models/alexnet-owt-7be5be79.pth")


@dataclass(frozen=True)
class PaperSetting:
    """The paper's network on one set of images; or one layer on features, without a backbone.

    Parameters
    ----------
    images : str, default=""
        Data set of the images; empty where all methods learn from the same features.
    backbone : str, default=""
        Name of the backbone.
    weights : Weights, default=None
        Its weights.

    Examples
    --------
    >>> from hbmp.experiments.paper_setting import VGGF, PaperSetting
    >>> setting = PaperSetting("cifar10", "vggf", VGGF)
    >>> setting.params("mihash", "cifar-1", {})["slope"]
    1.0
    >>> setting.params("hbmp", "nus-1", {"scheme": "constant"})["function"][1]["backbone_lr"]
    1e-05
    """

    images: str = ""
    backbone: str = ""
    weights: Weights | None = None

    @property
    def words(self) -> str:
        """The setting in words."""
        if not self.images:
            return "one linear layer for deep methods"
        return f"{self.backbone} fine-tuned on {self.images} for deep methods, its penultimate layer for the others"

    @property
    def needs(self) -> str:
        """The names of its images and weights."""
        return " with ".join(f"`{name}`" for name in (self.images, self.weights and self.weights.filename) if name)

    def params(self, method: str, protocol: str, published: Mapping[str, Any]) -> dict[str, Any]:
        """Settings of a deep method in this setting.

        Parameters
        ----------
        method : str
            Name of the method.
        protocol : str
            Name of the protocol.
        published : dict
            Settings of HBMP for the row of the table.

        Returns
        -------
        dict
            The settings.
        """
        own = {**PUBLISHED, **published} if method == "hbmp" else {}
        if not self.images:
            return {**own, "function": ["linear", _ONE_LAYER]}
        network = {"backbone": [self.backbone, self._backbone_settings()], **_TRAINING, **_RATES[protocol]}
        if method == "mihash":
            slope, rates = _MIHASH[protocol]
            own, network = {"slope": slope}, {**network, **rates}
        return {**own, "function": ["network", {**network, "precision": "float32"}]}

    def lacking(self, data_dir: str | os.PathLike[str] | None) -> list[str]:
        """Data that this setting lacks, each with the command that gets it.

        Parameters
        ----------
        data_dir : str or Path, default=None
            Data directory.

        Returns
        -------
        list of str
            Sentences; none if everything is there.
        """
        found = []
        if self.images:
            try:
                if datasets.load(self.images, data_dir).images is None:
                    found.append(f"{self.images} has no images. {datasets.get(self.images).how_to_get}")
            except FileNotFoundError as error:
                fetch = f"hbmp fetch {self.images}"
                found.append(str(error).replace(fetch, f"{fetch} --data-dir {datasets.data_dir(data_dir)}"))
        if self.weights is not None and not self.weights.path(data_dir).is_file():
            found.append(f"{self.weights.path(data_dir)}. `{self.weights.command(data_dir)}` gets it.")
        return found

    def _backbone_settings(self) -> dict[str, Any]:
        return {"pretrained": self.weights.filename, "dropout": 0.0} if self.weights else {}


def network_encoder(setting: PaperSetting, data_dir: str | os.PathLike[str] | None, device: str = "auto") -> Encoder:
    """The encoder of images to the penultimate layer of the paper's network.

    Parameters
    ----------
    setting : PaperSetting
        A setting with images.
    data_dir : str or Path, default=None
        Data directory.
    device : str, default="auto"
        "auto", "cpu" or "cuda".

    Returns
    -------
    Encoder
        The encoder.

    Examples
    --------
    >>> from hbmp.experiments.paper_setting import PaperSetting, network_encoder
    >>> network_encoder(PaperSetting("cifar10", "tiny"), None, "cpu")
    ImageBackbone(backbone=Tiny(), device='cpu')
    """
    settings = {} if setting.weights is None else {"pretrained": str(setting.weights.path(data_dir))}
    backbone = catalog.load("backbones", setting.backbone)(**settings)
    return encoders.get("image_backbone", backbone=backbone, device=device)


def of_this_machine(
    cell: Cell, n_train: int, device: str, *, results: str | os.PathLike[str], data_dir: str | os.PathLike[str] | None
) -> dict[str, Any]:
    """Settings without an effect on the result: where the weights are, and where long trainings keep checkpoints.

    Parameters
    ----------
    cell : Cell
        The cell.
    n_train : int
        Number of training images.
    device : str
        "cpu" or "cuda".
    results : str or Path
        Folder of results. Checkpoints are under `checkpoints/`.
    data_dir : str or Path, default=None
        Data directory.

    Returns
    -------
    dict
        Settings as `set_params` takes them; none for a method that takes features.

    Examples
    --------
    >>> from hbmp.experiments import Cell
    >>> from hbmp.experiments.paper_setting import of_this_machine
    >>> of_this_machine(Cell("itq", "cifar-1", "digits", 8), 100, "cpu", results="results", data_dir=None)
    {}
    """
    function = cell.params.get("function")
    backbone = function[1].get("backbone") if isinstance(function, list) else None
    weights = backbone[1].get("pretrained") if isinstance(backbone, list) else None
    if not isinstance(weights, str) or Path(weights).is_file():
        return {}
    found = {"function__backbone__pretrained": str(datasets.data_dir(data_dir) / "weights" / weights)}
    if n_train >= LONG or not str(device).startswith("cuda"):
        found["function__checkpoint"] = str(checkpoint_of(cell, results))
    return found


LONG = 20_000
"""Training images from which a GPU keeps checkpoints; fewer are trained again in the time that a checkpoint takes."""


def checkpoint_of(cell: Cell, results: str | os.PathLike[str]) -> Path:
    """The folder of the checkpoint of a cell.

    Parameters
    ----------
    cell : Cell
        The cell.
    results : str or Path
        Folder of results.

    Returns
    -------
    Path
        The folder.

    Examples
    --------
    >>> from hbmp.experiments import Cell
    >>> from hbmp.experiments.paper_setting import checkpoint_of
    >>> checkpoint_of(Cell("itq", "cifar-1", "digits", 8), "results").parent.name
    'checkpoints'
    """
    return Path(results) / "checkpoints" / cell.whole.key
