"""Settings that recipes run, each in one place."""

from __future__ import annotations

from typing import Any

BEST_HBMP: dict[str, Any] = {}
"""The best measured settings of HBMP on features with labels: its defaults."""

STAGES_ALONE: dict[str, Any] = {"feature_share": 0, "label_share": 0, "weight_share": 1, "function": ["kernel", {}]}
"""The paper's three stages alone, for comparing its choices (constant or regress, item weights): an affinity of labels
only, weights of the pursuit, no label votes, the hinge loss."""

PAPER_LEVELS = ["distance_levels", {"percentiles": [2, 5, 10, 20], "levels": [10, 5, 2, 1]}]
"""The paper's neighbourhood of 22K LabelMe, levels as in its released code."""

LEVELS_HBMP: dict[str, Any] = {"function": ["linear", {}], "affinity": PAPER_LEVELS}
"""The paper's three stages on features without labels."""

BEST_UNLABELLED_HBMP: dict[str, Any] = {}
"""The best measured settings of HBMP on features without labels: its defaults."""

IMAGE_NETWORK: dict[str, Any] = {
    "backbone": ["efficientnet_lite0", {"size": 160}],
    "loss": "smooth",
    "batch_size": 128,
    "lr": 1e-3,
    "backbone_lr": 3e-4,
    "weight_decay": 1e-2,
    "optimizer": "adamw",
    "schedule": "one-cycle",
    "augmentation": "strong",
    "mixup": 0.0,
    "ema": 0.0,
}
"""Training of whole networks on images, the same for every method; chosen on held-out training images."""

LARGE_NETWORK: dict[str, Any] = {"backbone": ["efficientnet_lite0", {"size": 224}], "mirror": True}
"""Changes for better codes at higher cost. On held-out training images of cifar-1 (two seeds) the size raised mAP of
HBMP at 12 and 48 bits from 0.877 and 0.898 to 0.889 and 0.912, and mirror images to 0.896 and 0.918."""

IMAGE_HBMP: dict[str, Any] = {}
"""The best measured settings of HBMP on images: its defaults."""

IMAGE_EPOCHS = {"cifar-1": 50, "cifar-2": 10, "voc2007": 40}
"""Passes over the training images by protocol: 5,000, 50,000 and 2,500 images."""

SEEDS = (0, 1, 2)

FUNCTIONS: dict[str, dict[str, Any]] = {"linear": {"function": ["linear", {}]}, "mlp": {"function": ["mlp", {}]}}

SCHEMES: dict[str, dict[str, Any]] = {"constant": {"scheme": "constant"}, "regress": {"scheme": "regress"}}

ITEM_WEIGHTS: tuple[str | None, ...] = (None, "sqrt-count", "count")

METHOD_FILES = {
    "SH": "sh",
    "ITQ": "itq",
    "SHK": "ksh",
    "SDH": "sdh",
    "FastHash": "fasthash",
    "StructHash": "structhash",
    "VDSH": "vdsh",
    "DPSH": "dpsh",
    "DTSH": "dtsh",
    "MIHash": "mihash",
    "HashNet": "hashnet",
    "DRSH": "dsrh",
    "DRSCH": "drsch",
}
"""The paper's names of its rivals, and their files here."""


_DEFAULTS = {
    "scheme": "regress",
    "item_weights": "count",
}  # recipes set item weights for label sets only


def hbmp(*settings: dict[str, Any]) -> dict[str, Any]:
    """Merge settings of HBMP, later ones first. Defaults are left out, so that equal cells have equal keys.

    Parameters
    ----------
    *settings : dict
        Settings.

    Returns
    -------
    dict
        The merged settings.

    Examples
    --------
    >>> from hbmp.experiments.settings import hbmp
    >>> hbmp({"scheme": "constant"}, {"scheme": "regress", "improve": "none"})
    {'improve': 'none'}
    """
    merged = {key: value for part in settings for key, value in part.items()}
    return {key: value for key, value in merged.items() if key not in _DEFAULTS or value != _DEFAULTS[key]}


def network(protocol: str, **changes: Any) -> dict[str, Any]:
    """The hash function of all image cells of a protocol.

    Parameters
    ----------
    protocol : str
        Name of the protocol.
    **changes
        Settings that differ.

    Returns
    -------
    dict
        Settings of a method.

    Examples
    --------
    >>> from hbmp.experiments.settings import network
    >>> network("cifar-2")["function"][1]["epochs"]
    10
    """
    return {"function": ["network", {**IMAGE_NETWORK, "epochs": IMAGE_EPOCHS[protocol], **changes}]}


def default_params(method: str, protocol: str) -> dict[str, Any]:
    """The settings of a method in the comparisons.

    Parameters
    ----------
    method : str
        Name of the method.
    protocol : str
        Name of the protocol.

    Returns
    -------
    dict
        Its settings.

    Examples
    --------
    >>> from hbmp.experiments.settings import default_params
    >>> default_params("itq", "cifar-1")
    {}
    """
    if method != "hbmp":
        return {}
    return hbmp(BEST_UNLABELLED_HBMP if protocol == "labelme" else BEST_HBMP)
