"""The hash function of a method, from its name or from an object."""

from __future__ import annotations

from typing import Any

from sklearn.base import clone

from hbmp._core import catalog
from hbmp.functions import HashFunction
from hbmp.images import is_images

LARGE = 20_000
"""Instances from which on a small network serves better than a kernel on 2,000 anchors. Ten classes, CIFAR-10 features,
32 bits: among new images mAP 0.813 against 0.816 with 5,000 to learn from, 0.848 against 0.843 with 20,000, and 0.877
against 0.865 with 50,000; among learned ones 0.916 against 0.866 with 50,000."""


def suited_to(images: bool, n_rows: int) -> str:
    """The name of the function that "auto" selects."""
    if images:
        return "network"
    return "kernel" if n_rows < LARGE else "mlp"


def make_function(given: Any, X: Any, *, device: str = "auto", verbose: bool = False) -> HashFunction:
    """A hash function to fit on X. "auto" selects one by X, a name takes default settings, an object is copied."""
    return function_for(given, is_images(X), len(X), device=device, verbose=verbose)


def function_for(given: Any, images: bool, n_rows: int, *, device: str = "auto", verbose: bool = False) -> HashFunction:
    """The same as `make_function`, for a number of images or rows of features."""
    if isinstance(given, str):
        function = catalog.resolve("functions", suited_to(images, n_rows) if given == "auto" else given)
        shared = {"device": device, "verbose": verbose}
        function.set_params(**{key: value for key, value in shared.items() if key in function.get_params()})
    else:
        function = copied(given, "function", "functions", "For example hbmp.functions.Linear().")
    if function.takes_images != images:
        found = "feature vectors" if function.takes_images else "images"
        name = type(function).__name__
        raise ValueError(f"{name} does not take {found}. Use function={suited_to(images, n_rows)!r}, or omit it.")
    return function


def copied(given: Any, name: str, folder: str, hint: str) -> Any:
    """A copy of the given object, so that fitting does not change the original."""
    if isinstance(given, type) or not hasattr(given, "fit"):
        raise ValueError(f"{name} must be a name or an object from hbmp.{folder}, found {type(given).__name__}. {hint}")
    return clone(given)
