"""An encoder as one ONNX file: features in, scores and codes out, the same bits as `transform`.

    input    features  float32 (n, n_features)   raw, as `transform` takes them: the standardisation is inside
    output   scores    float32 (n, n_bits)       before the sign
             codes     int8    (n, n_bits)       -1 and +1; a score of zero is +1

The bit weights travel in the file's metadata as JSON under `hbmp.bit_weights`.
"""

from __future__ import annotations

import importlib.util
import json
import logging
import os
import uuid
import warnings
from contextlib import contextmanager
from pathlib import Path

import numpy as np


def to_onnx(model, path: str | Path) -> Path:
    """Write a fitted model whose hash function is `linear` or `mlp` as ONNX; returns the path."""
    _require_onnx()
    network = _network_of(model)
    path = Path(path)
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        _write(network, model.n_features_in_, np.asarray(model.bit_weights_, np.float64), beside)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def _network_of(model):
    """The torch network that gives the model's scores, on the CPU."""
    for holder in (model, getattr(model, "function_", None)):
        to_torch = getattr(holder, "to_torch", None)
        if to_torch is not None:
            return to_torch().cpu().eval()
    raise ValueError(
        f"{type(model).__name__} cannot be written as ONNX: only models with a linear or mlp hash function can. "
        "Save it with model.save(path), or fit it with function='linear'."
    )


def _write(network, n_features: int, bit_weights: np.ndarray, path: Path) -> None:
    import onnx
    import torch

    class Encoder(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.network = network

        def forward(self, features):
            scores = self.network(features)
            return scores, torch.where(scores >= 0, 1, -1).to(torch.int8)

    with _only_our_own_warnings():
        program = torch.onnx.export(
            Encoder().eval(),
            (torch.zeros(2, n_features),),
            input_names=["features"],
            output_names=["scores", "codes"],
            dynamic_shapes=({0: torch.export.Dim("n")},),
            dynamo=True,
            verbose=False,
        )
    if program is None:
        raise RuntimeError("torch wrote no ONNX program for this network.")
    proto = program.model_proto
    onnx.helper.set_model_props(proto, {"hbmp.bit_weights": json.dumps(bit_weights.tolist())})
    onnx.checker.check_model(proto)
    path.write_bytes(proto.SerializeToString())


@contextmanager
def _only_our_own_warnings():
    """The exporter uses a torch interface that torch itself deprecates, and logs that torchvision is absent."""
    logger = logging.getLogger("torch.onnx._internal.exporter._registration")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=r".*LeafSpec.* is deprecated", category=FutureWarning)
            yield
    finally:
        logger.setLevel(level)


def _require_onnx() -> None:
    if not all(importlib.util.find_spec(name) for name in ("onnx", "onnxscript")):
        raise ImportError("to_onnx needs the exporter: pip install 'hbmp[export]'.")
