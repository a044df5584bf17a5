"""Encoders: texts or pictures to vectors, one per file.

    encoder = hbmp.encoders.get("wordllama")
    X = encoder.encode(texts)                                  # float32, one row per text
    model = hbmp.HBMP(256).fit(X).with_encoder(encoder)        # the encoder is saved with the model
    model.transform(["a sentence"])                            # and takes texts from now on

`Encoder` is the base class and the extension point. `Custom` wraps a function of one's own.
"""

from __future__ import annotations

from typing import Any

from hbmp._core import catalog
from hbmp.encoders._shared.base import Encoder
from hbmp.encoders._shared.names import get

__all__ = ["Encoder", "get"]


def __getattr__(name: str) -> Any:
    return catalog.load_class("encoders", name)


def __dir__() -> list[str]:
    return sorted([*__all__, *catalog.names("encoders")])
