"""The grid of whole networks fine-tuned on images, in named parts; the order of the parts is the order of running.

Every cell has the same backbone, epochs, augmentation and optimiser (`settings.IMAGE_NETWORK`), so that methods differ
only in their loss and target codes.

    nested       HBMP at 48 bits, three seeds, and its first 12, 16, 24 and 32 bits from the same trainings; for classes
                 HBMP gives these at those lengths too, because it learns 48 bits anyway (`extra_bits`)
    rivals       deep methods at two code lengths, one seed; on cifar-1 the strongest of them with three
    alone        HBMP that learns exactly the bits of one code length, three seeds
    whole        HBMP trained on whole codes rather than single bits, nested and alone, three seeds
    constant     plain Hamming targets (constant) instead of weighted ones (regress)
    instances    codes inferred for every training image instead of every class or label set
    figures      the rival of Figure 3 at its code length
    alexnet      HBMP and a rival with AlexNet from random weights, without any other image
    large        HBMP nested and its closest rivals at the backbone's pretraining size, encoded with mirror images:
                 better codes for more time
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from hbmp.experiments import Cell
from hbmp.experiments.settings import IMAGE_HBMP, LARGE_NETWORK, SCHEMES, SEEDS, hbmp, network
from hbmp.hasher import get_method
from hbmp.methods.hbmp.plan import LEAST_BITS

DATA = {"cifar-1": "cifar10", "voc2007": "voc2007", "cifar-2": "cifar10"}
BITS = {"cifar-1": (12, 24, 32, 48), "voc2007": (12, 24, 32, 48), "cifar-2": (16, 24, 32, 48)}
FEW_BITS = {"cifar-1": (12, 32), "voc2007": (12, 32), "cifar-2": (16, 32)}
PREFIXES = (12, 16, 24, 32)
RIVALS = ("csq", "dpsh", "orthohash", "greedyhash", "mihash", "hashnet", "dtsh", "dpn")
SEEDED_RIVALS = {"cifar-1": ("orthohash",)}
CLOSEST_RIVALS = ("orthohash", "greedyhash")
_PARTS = {
    "cifar-1": ("nested", "rivals", "constant", "instances", "large", "alone", "whole"),
    "voc2007": ("nested", "rivals", "constant", "instances", "large"),
    "cifar-2": ("nested", "rivals", "constant", "large", "alone", "whole"),
}
_INSTANCES = {"cifar-1": "same_class", "voc2007": "shared_labels"}

PARTS = (
    *(f"{part}-{protocol}" for protocol, parts in _PARTS.items() for part in parts),
    "figures-cifar-1",
    "alexnet-cifar-1",
)
"""All parts, most informative first; codes for each of 50,000 images are left out."""


def cells(parts: Iterable[str] | None = None) -> list[Cell]:
    """List the cells of some parts, in their order.

    Parameters
    ----------
    parts : iterable of str, default=None
        Names of parts; all of them if None.

    Returns
    -------
    list of Cell
        The cells.

    Examples
    --------
    >>> from hbmp.experiments import image_grid
    >>> len(image_grid.cells(["figures-cifar-1"]))
    1
    """
    found: list[Cell] = []
    for name in parts or PARTS:
        if name not in PARTS:
            raise LookupError(f"No part called {name!r} in the grid of images. There are {', '.join(PARTS)}.")
        part, _, protocol = name.partition("-")
        found += _MAKERS[part](protocol)
    return found


def learned_anyway(cell: dict[str, Any]) -> bool:
    """Whether the method itself gives the first bits of longer codes at that length, because it learns longer codes."""
    longer = cell["codes"] == f"prefix of {LEAST_BITS}" and "extra_bits" not in cell["params"]
    return longer and (cell["method"], cell["data"]) == ("hbmp", "cifar10")


def _nested(protocol: str, *, changed_network: dict[str, Any] | None = None, **changes: Any) -> list[Cell]:
    longest = max(BITS[protocol])
    params = hbmp(IMAGE_HBMP, network(protocol, **(changed_network or {})), changes)
    return [
        cell
        for seed in SEEDS
        for cell in (
            _cell(protocol, longest, seed, params),
            *(_cell(protocol, n_bits, seed, params, codes=f"prefix of {longest}") for n_bits in PREFIXES),
        )
    ]


def _whole(protocol: str) -> list[Cell]:
    return _nested(protocol, contrast_share=1.0) + _alone(protocol, contrast_share=1.0)


def _alone(protocol: str, **changes: Any) -> list[Cell]:
    params = hbmp(IMAGE_HBMP, network(protocol), {"extra_bits": 0, **changes})
    return [_cell(protocol, n_bits, seed, params) for seed in SEEDS for n_bits in FEW_BITS[protocol]]


def _large(protocol: str) -> list[Cell]:
    return _nested(protocol, changed_network=LARGE_NETWORK) + _rivals(protocol, CLOSEST_RIVALS, **LARGE_NETWORK)


def _rivals(protocol: str, methods: Sequence[str] = RIVALS, **changes: Any) -> list[Cell]:
    label_sets = protocol == "voc2007"
    able = [name for name in methods if not (label_sets and get_method(name).single_label)]
    seeded = SEEDED_RIVALS.get(protocol, ())
    return [
        _cell(protocol, n_bits, seed, network(protocol, **changes), method=method)
        for seed in SEEDS
        for n_bits in reversed(FEW_BITS[protocol])
        for method in (able if seed == 0 else seeded)
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


_MAKERS: dict[str, Callable[[str], list[Cell]]] = {
    "alexnet": _alexnet,
    "figures": _figures,
    "nested": _nested,
    "large": _large,
    "rivals": _rivals,
    "alone": _alone,
    "whole": _whole,
    "constant": _constant,
    "instances": _instances,
}


def _cell(
    protocol: str,
    n_bits: int,
    seed: int,
    params: dict[str, Any],
    *,
    method: str = "hbmp",
    codes: str = "function",
) -> Cell:
    """A cell on the images of a protocol."""
    return Cell(method, protocol, DATA[protocol], n_bits, seed, params, {}, codes)
