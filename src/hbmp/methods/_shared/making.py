"""A method from its name and its settings as JSON holds them, where pieces are named."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from hbmp._core import catalog
from hbmp.hasher import Hasher, get_method

_FOLDERS = {"function": "functions", "affinity": "affinities"}
_PARTS = {"backbone": "backbones", "linear": "functions"}  # pieces of pieces


def make_method(name: str, n_bits: int, params: Mapping[str, Any], *, seed: int, device: str) -> Hasher:
    """Create a method from plain settings.

    Parameters
    ----------
    name : str
        Name of the method, as `hbmp.list_methods` gives it.
    n_bits : int
        Code length.
    params : dict
        Settings of the method. A piece is a name, or a name with settings: ``["mlp", {"hidden": [512]}]``.
    seed : int
        The `random_state` of the method, unless `params` holds one.
    device : str
        Device of the method and of its pieces, unless `params` names one.

    Returns
    -------
    Hasher
        The method, not fitted.

    Examples
    --------
    >>> from hbmp.methods import make_method
    >>> make_method("hbmp", 16, {"function": ["linear", {"epochs": 3}]}, seed=0, device="cpu").function.epochs
    3
    """
    given = {key: make_piece(_FOLDERS[key], value) if key in _FOLDERS else value for key, value in params.items()}
    method = get_method(name)(n_bits, **given)
    known = method.get_params(deep=True)
    chosen = {"random_state": seed, **{key: device for key in known if key.rpartition("__")[2] == "device"}}
    return method.set_params(**{key: value for key, value in chosen.items() if key in known and key not in params})


def make_piece(folder: str, given: Any) -> Any:
    """Create a piece of a method from its name, or from its name and settings.

    Parameters
    ----------
    folder : str
        Folder of the piece: "functions", "affinities" or "backbones".
    given : str, list or object
        "mlp", ``["mlp", {"hidden": [512]}]``, or an object, which stays as it is; so does "auto". The backbone of a
        network and the linear function of a kernel have the same form:
        ``["network", {"backbone": ["efficientnet_lite0", {"size": 160}]}]``.

    Returns
    -------
    object
        The piece.

    Examples
    --------
    >>> from hbmp.methods import make_piece
    >>> make_piece("functions", ["linear", {"epochs": 3}]).epochs
    3
    """
    if isinstance(given, str):
        return given if given == "auto" else catalog.load(folder, given)()
    if isinstance(given, (list, tuple)):
        name, settings = given
        parts = {key: make_piece(_PARTS[key], settings[key]) for key in _PARTS if key in settings}
        return catalog.load(folder, name)(**{**settings, **parts})
    return given
