"""From a name to an encoder: its own name, that of a backbone, or that of a model of sentence-transformers."""

from __future__ import annotations

import importlib
from typing import Any

from hbmp._core import catalog
from hbmp.encoders._shared.base import Encoder


def get(name: Any, **settings: Any) -> Encoder:
    """Return an encoder by its name.

    Parameters
    ----------
    name : str, callable or Encoder
        The name of an encoder (`hbmp list encoders`) or of a backbone; a name with a slash, which is a model of
        sentence-transformers; "package.module:function"; a function; or an encoder, which is returned unchanged.
    **settings
        Settings of the encoder.

    Returns
    -------
    encoder : Encoder

    Raises
    ------
    LookupError
        If there is no encoder of this name.

    Examples
    --------
    >>> from hbmp import encoders
    >>> encoders.get("wordllama", longest=500)
    WordLlama(longest=500)
    >>> encoders.get("tiny")
    ImageBackbone(backbone='tiny')
    """
    if isinstance(name, Encoder):
        return name
    if not isinstance(name, str):
        if not callable(name):
            raise ValueError(f"An encoder is a name or a function, found a {type(name).__name__}.")
        return _made("custom", function=name, **settings)
    if name in catalog.names("encoders"):
        return _made(name, **settings)
    if name in catalog.names("backbones"):
        return _made("image_backbone", backbone=name, **settings)
    if ":" in name:
        return _made("custom", function=imported(name), **settings)
    if "/" in name:
        return _made("sentence_transformers", name=name, **settings)
    backbones = ", ".join(catalog.names("backbones"))
    raise LookupError(
        f"{catalog.unknown('encoders', name)} Backbones encode images: {backbones}. A name with a slash is a model of "
        "sentence-transformers, such as sentence-transformers/all-MiniLM-L6-v2."
    )


def imported(path: str) -> Any:
    """The function that "package.module:function" names."""
    module, _, function = path.partition(":")
    try:
        found = getattr(importlib.import_module(module), function)
    except (ImportError, AttributeError, ValueError) as error:
        raise LookupError(f"No function {path!r} can be imported ({error}); write package.module:function.") from error
    if not callable(found):
        raise LookupError(f"{path} is a {type(found).__name__}, not a function.")
    return found


def _made(file: str, **settings: Any) -> Encoder:
    made: Encoder = catalog.load("encoders", file)(**settings)
    return made
