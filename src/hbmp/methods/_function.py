"""The hash function of a method, from its name or as an object that the user passed."""

from __future__ import annotations

from sklearn.base import clone

from hbmp import catalog

DEFAULT = "kernel"


def make_function(given, *, device="auto", verbose=False):
    """A hash function to fit: "auto" is the kernel, a name takes its defaults, an object is copied as it is."""
    if not isinstance(given, str):
        return copied(given, "function", "functions", "For example hbmp.functions.Linear().")
    function = catalog.resolve("functions", DEFAULT if given == "auto" else given)
    shared = {"device": device, "verbose": verbose}
    return function.set_params(**{key: value for key, value in shared.items() if key in function.get_params()})


def copied(given, name, folder, hint):
    """A copy of an object that the user passed, so that fitting leaves theirs untouched."""
    if isinstance(given, type) or not hasattr(given, "fit"):
        raise ValueError(f"{name} must be a name or an object from hbmp.{folder}, found {type(given).__name__}. {hint}")
    return clone(given)
