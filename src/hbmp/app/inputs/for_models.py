"""The input of a fitted model from data of the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from hbmp.app.inputs.images import with_images
from hbmp.datasets import Data
from hbmp.hasher import Hasher
from hbmp.images.files import is_image_file

if TYPE_CHECKING:
    from hbmp.encoders import Encoder


def inputs_for(model: Hasher, data: Data, source: Any) -> Any:
    """The input of a fitted model: features (n, d), `hbmp.Images`, or an array of texts."""
    encoder = getattr(model, "input_encoder_", None)
    if encoder is not None and data.features is None:
        return _items_for(encoder, data, source)
    if data.texts is not None:
        raise ValueError(f"{source} holds texts, but {_wants(model)}: fit a model on texts, or pass features.")
    if model.fitted_on_images:
        if data.images is None:
            raise ValueError(f"{source} holds features, but the model takes images: give a folder of images.")
        return with_images(data).images
    if data.features is None:
        holds = "is an image" if is_image_file(source) else "holds images"
        raise ValueError(
            f"{source} {holds}, but the model takes vectors of {model.n_features_in_} features: pass features from "
            "the network it was fitted on, or fit a model on images."
        )
    return np.asanyarray(data.features)


def vectors_for(model: Hasher, data: Data, source: Any) -> Any:
    """The same as features or images: the items of an encoder as its vectors."""
    inputs = inputs_for(model, data, source)
    encoder = getattr(model, "input_encoder_", None)
    return encoder.encode(inputs, progress=True) if encoder is not None and encoder.accepts(inputs) else inputs


def _items_for(encoder: Encoder, data: Data, source: Any) -> Any:
    """The texts or images of an encoder."""
    found = "texts" if data.texts is not None else "images"
    if found != encoder.takes:
        raise ValueError(f"{source} holds {found}, but the model takes {encoder.takes}, by {encoder.about()}.")
    return with_images(data).images if found == "images" else np.array(data.texts, dtype=object)


def _wants(model: Hasher) -> str:
    if model.fitted_on_images:
        return "the model takes images"
    return f"the model takes vectors of {model.n_features_in_} features and has no encoder"
