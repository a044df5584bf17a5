"""The grid of whole networks fine-tuned on images, in named parts; the order of the parts is the order of running.

Every cell has the same backbone, epochs, augmentation and optimiser (`_settings.IMAGE_NETWORK`), so that methods differ
by their loss and their target codes alone.

    nested       HBMP at 48 bits, three seeds, and from the same trainings its first 12, 16, 24 and 32 bits
    rivals       deep methods at two code lengths, one seed
    hbmp         HBMP trained for each code length alone, three seeds
    constant     plain Hamming targets (constant) in place of weighted ones (regress)
    instances    codes inferred for every training image in place of every class or label set
    figures      the rival of Figure 3 at its code length
    alexnet      HBMP and a rival with AlexNet from random weights, without any other image
"""

from __future__ import annotations

from collections.abc import Iterable

from hbmp.experiment import Cell
from hbmp.hasher import get_method
from hbmp.recipes._settings import IMAGE_HBMP, SCHEMES, SEEDS, hbmp, network

DATA = {"cifar-1": "cifar10", "voc2007": "voc2007", "cifar-2": "cifar10"}
BITS = {"cifar-1": (12, 24, 32, 48), "voc2007": (12, 24, 32, 48), "cifar-2": (16, 24, 32, 48)}
FEW_BITS = {"cifar-1": (12, 32), "voc2007": (12, 32), "cifar-2": (16, 32)}
PREFIXES = (12, 16, 24, 32)
RIVALS = ("csq", "dpsh", "orthohash", "greedyhash", "mihash", "hashnet", "dtsh", "dpn")
_PARTS = ("nested", "rivals", "hbmp", "constant", "instances")
_INSTANCES = {"cifar-1": "same_class", "voc2007": "shared_labels"}

PARTS = (
    *(f"{part}-{protocol}" for protocol in DATA for part in _PARTS if (part, protocol) != ("instances", "cifar-2")),
    "figures-cifar-1",
    "alexnet-cifar-1",
)
"""All parts, most telling first; codes for each of 50,000 images are left out."""


def cells(parts: Iterable[str] | None = None) -> list[Cell]:
    """The cells of these parts in this order, or of all."""
    found: list[Cell] = []
    for name in parts or PARTS:
        if name not in PARTS:
            raise LookupError(f"No part called {name!r} in the grid of images. There are {', '.join(PARTS)}.")
        part, _, protocol = name.partition("-")
        found += _MAKERS[part](protocol)
    return found


def _nested(protocol: str) -> list[Cell]:
    longest = max(BITS[protocol])
    params = hbmp(IMAGE_HBMP, network(protocol))
    return [
        cell
        for seed in SEEDS
        for cell in (
            _cell(protocol, longest, seed, params),
            *(_cell(protocol, n_bits, seed, params, codes=f"prefix of {longest}") for n_bits in PREFIXES),
        )
    ]


def _alone(protocol: str) -> list[Cell]:
    params = hbmp(IMAGE_HBMP, network(protocol))
    return [_cell(protocol, n_bits, seed, params) for seed in SEEDS for n_bits in BITS[protocol]]


def _rivals(protocol: str) -> list[Cell]:
    label_sets = protocol == "voc2007"
    methods = [name for name in RIVALS if not (label_sets and get_method(name).single_label)]
    return [
        _cell(protocol, n_bits, 0, network(protocol), method=method)
        for n_bits in reversed(FEW_BITS[protocol])
        for method in methods
    ]


def _constant(protocol: str) -> list[Cell]:
    params = hbmp(IMAGE_HBMP, network(protocol), SCHEMES["constant"])
    return [_cell(protocol, n_bits, 0, params) for n_bits in FEW_BITS[protocol]]


def _instances(protocol: str) -> list[Cell]:
    params = hbmp(IMAGE_HBMP, network(protocol), {"affinity": [_INSTANCES[protocol], {"items": "instances"}]})
    return [_cell(protocol, n_bits, 0, params) for n_bits in FEW_BITS[protocol]]


def _figures(protocol: str) -> list[Cell]:
    return [figure_cell("mihash", 48, 0)]


def figure_cell(method: str, n_bits: int, seed: int) -> Cell:
    """The cell whose codes a figure shows: a network on CIFAR-10 under cifar-1."""
    return _cell("cifar-1", n_bits, seed, network("cifar-1"), method=method)


def _alexnet(protocol: str) -> list[Cell]:
    function = network(protocol, backbone=["alexnet", {"pretrained": False}])
    return [
        _cell(protocol, n_bits, 0, function, method=method)
        for method in ("hbmp", "orthohash")
        for n_bits in FEW_BITS[protocol]
    ]


_MAKERS = {
    "alexnet": _alexnet,
    "figures": _figures,
    "nested": _nested,
    "rivals": _rivals,
    "hbmp": _alone,
    "constant": _constant,
    "instances": _instances,
}


def _cell(protocol, n_bits, seed, params, *, method="hbmp", codes="function") -> Cell:
    return Cell(method, protocol, DATA[protocol], n_bits, seed, params, {}, codes)
