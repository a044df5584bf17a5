"""The grids behind the committed results: every cell, by the name of its protocol.

cifar-1, cifar-2   constant, regress and the best setting, linear and mlp functions, on CIFAR-10 features
nus                oracle retrieval with target codes on the real labels of NUS-WIDE
coco, voc2007      the best setting; constant against regress, item weights, label sets never seen in training
labelme            without labels, all three gains, on the stand-in for 22K LabelMe
methods            every method at 16 and 32 bits on CIFAR-10, MS-COCO and, those without labels, on GIST
leaders            the ten best of these on CIFAR-10, at more code lengths and seeds, on cifar-2 and VOC 2007
images             whole networks fine-tuned on CIFAR-10 and VOC 2007, in parts (`image_grid`)
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from hbmp._core import catalog
from hbmp.experiments import Cell, image_grid, load_results
from hbmp.experiments.running import Folder
from hbmp.experiments.scores import own_score
from hbmp.experiments.settings import (
    BEST_HBMP,
    BEST_UNLABELLED_HBMP,
    FUNCTIONS,
    ITEM_WEIGHTS,
    LEVELS_HBMP,
    SCHEMES,
    SEEDS,
    STAGES_ALONE,
    default_params,
    hbmp,
)
from hbmp.hasher import get_method

Settings = dict[str, Any]
CIFAR_FEATURES = "cifar10-efficientnet-lite0"


def cells_of(
    name: str,
    *,
    bits: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    methods: Sequence[str] | None = None,
    data: str | None = None,
    protocol_params: dict[str, Any] | None = None,
    parts: Sequence[str] | None = None,
    results: Folder = "results",
) -> list[Cell]:
    """List the cells of a grid, equal ones once.

    Parameters
    ----------
    name : str
        Name of the grid.
    bits, seeds : sequence of int, default=None
        Only these.
    methods : sequence of str, default=None
        Only these.
    data : str, default=None
        Another data set than the grid's own.
    protocol_params : dict, default=None
        Settings of the protocol that differ.
    parts : sequence of str, default=None
        Parts of the grid of images, in the order of running.
    results : str or Path, default="results"
        Folder of results that the leaders are chosen from.

    Returns
    -------
    list of Cell
        The cells.

    Examples
    --------
    >>> from hbmp.experiments import grids
    >>> {cell.bits for cell in grids.cells_of("cifar-1", bits=[12])}
    {12}
    """
    if name not in GRIDS:
        raise LookupError(f"No grid called {name!r}. There are {len(GRIDS)}: {', '.join(GRIDS)}.")
    if parts and name != "images":
        raise ValueError(f"Only the grid 'images' has parts; found {', '.join(parts)} for {name!r}.")
    options: tuple[Any, ...] = {"leaders": (results,), "images": (parts,)}.get(name, ())
    distinct = {}
    for cell in GRIDS[name](*options):
        if (bits and cell.bits not in bits) or (seeds and cell.seed not in seeds):
            continue
        if methods and cell.method not in methods:
            continue
        changed = Cell(
            cell.method,
            cell.protocol,
            data or cell.data,
            cell.bits,
            cell.seed,
            cell.params,
            {**cell.protocol_params, **(protocol_params or {})},
            cell.codes,
        )
        distinct[changed.key] = changed
    return list(distinct.values())


def _cifar_1() -> list[Cell]:
    functions = ({}, *FUNCTIONS.values())
    settings = [hbmp(STAGES_ALONE, function, scheme) for function in functions for scheme in SCHEMES.values()]
    settings += [hbmp(BEST_HBMP)]
    return _product("cifar-1", CIFAR_FEATURES, (12, 16, 24, 32, 48, 64), SEEDS, settings)


def _cifar_2() -> list[Cell]:
    settings = [hbmp(STAGES_ALONE, FUNCTIONS["mlp"], scheme) for scheme in SCHEMES.values()]
    settings += [hbmp(STAGES_ALONE), hbmp(BEST_HBMP)]
    return _product("cifar-2", CIFAR_FEATURES, (16, 32, 48), (0,), settings)


def _nus() -> list[Cell]:
    weighted = _weighted_schemes({})
    overlap = [hbmp(scheme, {"affinity": "label_overlap"}) for scheme in SCHEMES.values()]
    regress = [settings for settings in weighted if "scheme" not in settings]
    return [
        *_product("nus-1", "nuswide", (12, 24, 32, 48), (0,), weighted, codes="target"),
        *_product("nus-1", "nuswide", (12, 24, 32, 48), (0,), regress, codes="target-all"),
        *_product("nus-1", "nuswide", (16, 32, 48, 64), (0,), overlap, codes="target"),
        *_product("nus-2", "nuswide", (16, 24, 32, 48), (0,), weighted, codes="target"),
    ]


def _coco() -> list[Cell]:
    return _multi_label("coco", (12, 24, 32, 48), (0,))


def _voc2007() -> list[Cell]:
    return _multi_label("voc2007", (12, 24, 32, 48), SEEDS)


def _labelme() -> list[Cell]:
    settings = [hbmp(BEST_UNLABELLED_HBMP), *(hbmp(LEVELS_HBMP, scheme) for scheme in SCHEMES.values())]
    bits = (16, 24, 32, 48, 64, 96)
    cells = _product("labelme", "gist22k", bits, SEEDS, settings)
    for rival in _methods():
        if not _needs_labels(rival) and rival != "hbmp":
            cells += _product("labelme", "gist22k", bits, SEEDS, [{}], method=rival)
    return cells


def _all_methods() -> list[Cell]:
    cells = []
    for method in _methods():
        cells += _side_by_side("cifar-1", CIFAR_FEATURES, (16, 32), (0,), method)
        if not get_method(method).single_label:
            cells += _side_by_side("coco", "coco", (16, 32), (0,), method)
        if not _needs_labels(method):
            cells += _side_by_side("labelme", "gist22k", (16, 32), (0,), method)
    return cells


def _leaders(results: Folder) -> list[Cell]:
    cells = []
    for method in leaders(results):
        cells += _side_by_side("cifar-1", CIFAR_FEATURES, (12, 16, 24, 32, 48, 64), SEEDS, method)
        cells += _side_by_side("cifar-2", CIFAR_FEATURES, (16, 32, 48), (0,), method)
        if not get_method(method).single_label:
            cells += _side_by_side("voc2007", "voc2007", (12, 24, 32, 48), SEEDS, method)
            cells += _side_by_side("coco", "coco", (12, 24, 48, 64), (0,), method)
    return cells


def leaders(results: Folder, count: int = 10) -> list[str]:
    """The methods with the best mAP on cifar-1, mean over 16 and 32 bits, seed 0, each at its defaults."""
    wanted = {
        cell.key: cell
        for method in _methods()
        for cell in _side_by_side("cifar-1", CIFAR_FEATURES, (16, 32), (0,), method)
    }
    scores: dict[str, list[float]] = {}
    for record in load_results(results):
        if record["key"] in wanted:
            scores.setdefault(record["cell"]["method"], []).append(own_score(record, "map") or 0.0)
    complete = {method: sum(values) for method, values in scores.items() if len(values) == 2}
    return sorted(complete, key=complete.__getitem__, reverse=True)[:count]


def _methods() -> tuple[str, ...]:
    return catalog.names("methods")


def _needs_labels(method: str) -> bool:
    return bool(get_method(method).supervised)


def _side_by_side(protocol: str, data: str, bits: Sequence[int], seeds: Sequence[int], method: str) -> list[Cell]:
    """The cells of a method at its defaults, next to the others."""
    return _product(protocol, data, bits, seeds, [default_params(method, protocol)], method=method)


GRIDS: dict[str, Callable[..., list[Cell]]] = {
    "cifar-1": _cifar_1,
    "cifar-2": _cifar_2,
    "nus": _nus,
    "coco": _coco,
    "voc2007": _voc2007,
    "labelme": _labelme,
    "methods": _all_methods,
    "leaders": _leaders,
    "images": image_grid.cells,
}


def _multi_label(name: str, bits: Sequence[int], seeds: Sequence[int]) -> list[Cell]:
    """Learned codes with each scheme and item weight, by number of shared labels, and the oracle without a function."""
    by_number = {"affinity": "label_overlap"}
    overlap = [hbmp(STAGES_ALONE, scheme, by_number) for scheme in SCHEMES.values()]
    linear = [hbmp(STAGES_ALONE, FUNCTIONS["linear"], scheme) for scheme in SCHEMES.values()]
    return [
        *_product(name, name, bits, seeds, [hbmp(BEST_HBMP)]),
        *_product(name, name, bits, seeds, _weighted_schemes(STAGES_ALONE)),
        *_product(name, name, bits, seeds, linear),
        *_product(name, name, (16, 32, 48, 64), seeds, [hbmp(BEST_HBMP, by_number), *overlap]),
        *_product(name, name, bits, seeds[:1], _weighted_schemes({}), codes="target"),
    ]


def _weighted_schemes(base: Settings) -> list[Settings]:
    return [hbmp(base, scheme, {"item_weights": weights}) for scheme in SCHEMES.values() for weights in ITEM_WEIGHTS]


def _product(
    protocol: str,
    data: str,
    bits: Sequence[int],
    seeds: Sequence[int],
    settings: Sequence[Settings],
    *,
    method: str = "hbmp",
    codes: str = "function",
) -> list[Cell]:
    """One cell per seed, code length and setting."""
    return [
        Cell(method, protocol, data, n_bits, seed, params, {}, codes)
        for seed in seeds
        for n_bits in bits
        for params in settings
    ]
