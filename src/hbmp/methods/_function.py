"""The hash function of a method, from its name or as an object that the user passed."""

from __future__ import annotations

from sklearn.base import clone

from hbmp import catalog

DEFAULT = "kernel"
DEFAULT_FOR_IMAGES = "network"


def make_function(given, *, images=False, device="auto", verbose=False):
    """A hash function to fit: "auto" suits the inputs, a name takes its defaults, an object is copied as it is."""
    if isinstance(given, str):
        default = DEFAULT_FOR_IMAGES if images else DEFAULT
        function = catalog.resolve("functions", default if given == "auto" else given)
        shared = {"device": device, "verbose": verbose}
        function.set_params(**{key: value for key, value in shared.items() if key in function.get_params()})
    else:
        function = copied(given, "function", "functions", "For example hbmp.functions.Linear().")
    if function.takes_images != images:
        found, other = ("images", DEFAULT_FOR_IMAGES) if images else ("feature vectors", DEFAULT)
        raise ValueError(f"{type(function).__name__} does not take {found}. Use function={other!r}, or leave it out.")
    return function


def copied(given, name, folder, hint):
    """A copy of an object that the user passed, so that fitting leaves theirs untouched."""
    if isinstance(given, type) or not hasattr(given, "fit"):
        raise ValueError(f"{name} must be a name or an object from hbmp.{folder}, found {type(given).__name__}. {hint}")
    return clone(given)
