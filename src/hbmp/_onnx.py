"""An encoder as one ONNX file: features in, scores and codes out, the same bits as `transform`.

    input    features  float32 (n, n_features)   raw, as `transform` takes them: the standardisation is in the weights
    output   scores    float32 (n, n_bits)       before the sign
             codes     int8    (n, n_bits)       -1 and +1; a score of zero is +1

The graph is one Gemm a layer with Relu between, then the sign. The bit weights travel in the file's metadata as JSON
under `hbmp.bit_weights`.
"""

from __future__ import annotations

import json
import os
import uuid
from pathlib import Path

import numpy as np
from sklearn.utils.validation import check_is_fitted

_OPSET, _IR_VERSION = 17, 8  # of 2022: old enough for any runtime in use


def to_onnx(model, path: str | Path) -> Path:
    """Write a fitted model whose hash function is `linear` or `mlp` as ONNX; returns the path."""
    try:
        import onnx
    except ImportError:
        raise ImportError("to_onnx needs onnx: pip install 'hbmp[export]'.") from None
    check_is_fitted(model)
    proto = _encoder(_layers_of(model))
    onnx.helper.set_model_props(proto, {"hbmp.bit_weights": json.dumps(np.asarray(model.bit_weights_).tolist())})
    onnx.checker.check_model(proto, full_check=True)
    path = Path(path)
    beside = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        beside.write_bytes(proto.SerializeToString())
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def _layers_of(model) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights (inputs, outputs) and bias of every layer of the model's hash function."""
    function = getattr(model, "function_", model)
    layers = getattr(function, "layers_", None)
    if layers is None:
        name = type(model).__name__
        held = f"{name} with the hash function {type(function).__name__}" if function is not model else name
        raise ValueError(
            f"{held} cannot be written as ONNX, only linear and mlp hash functions can. "
            "Use HBMP(function='linear'), or save this model with model.save(path)."
        )
    return layers


def _encoder(layers: list[tuple[np.ndarray, np.ndarray]]):
    from onnx import TensorProto, helper, numpy_helper

    constants = {"zero": np.zeros((), np.float32), "plus": np.ones((), np.int8), "minus": -np.ones((), np.int8)}
    nodes, value = [], "features"
    for position, (weights, bias) in enumerate(layers):
        last = position == len(layers) - 1
        constants |= {f"weights_{position}": weights, f"bias_{position}": bias}
        result = "scores" if last else f"hidden_{position}"
        nodes.append(helper.make_node("Gemm", [value, f"weights_{position}", f"bias_{position}"], [result]))
        value = result
        if not last:
            nodes.append(helper.make_node("Relu", [result], [value := f"active_{position}"]))
    nodes.append(helper.make_node("GreaterOrEqual", ["scores", "zero"], ["positive"]))
    nodes.append(helper.make_node("Where", ["positive", "plus", "minus"], ["codes"]))
    n_features, n_bits = layers[0][0].shape[0], layers[-1][0].shape[1]
    graph = helper.make_graph(
        nodes,
        "hbmp_encoder",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", n_features])],
        [
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", n_bits]),
            helper.make_tensor_value_info("codes", TensorProto.INT8, ["n", n_bits]),
        ],
        [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in constants.items()],
    )
    opset = [helper.make_opsetid("", _OPSET)]
    return helper.make_model(graph, producer_name="hbmp", opset_imports=opset, ir_version=_IR_VERSION)
