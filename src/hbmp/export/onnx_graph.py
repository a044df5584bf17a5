"""An encoder as one ONNX file: features in, scores and codes out, the same bits as `transform`.

    input    features  float32 (n, n_features)   raw, as `transform` takes them: the standardisation is in the weights
    output   scores    float32 (n, n_bits)       before the sign, as `project` gives them
             codes     int8    (n, n_bits)       -1 and +1; a score of zero is +1

The graph has one Gemm per layer with Relu between, then the sign. A kernel function computes its RBF features first.
Where the model has label scores, a second last layer gives them; they vote on bits and shape label-aware queries. The
bit weights travel in the file's metadata as JSON under `hbmp.bit_weights`.
"""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hbmp._core.files import write_into_place
from hbmp.functions.kernel import Kernel
from hbmp.methods.hbmp.encoder import Encoder

_OPSET, _IR_VERSION = 17, 8  # of 2022: old enough for any runtime in use


def to_onnx(model, path: str | Path) -> Path:
    """Write a fitted model whose hash function is `linear`, `mlp` or `kernel` as ONNX; returns the path."""
    try:
        import onnx
    except ImportError:
        raise ImportError("to_onnx needs onnx: pip install 'hbmp[export]'.") from None
    check_is_fitted(model)
    function = getattr(model, "function_", model)
    kernel = function if isinstance(function, Kernel) else None
    proto = _encoder(model, _layers_of(model, kernel.linear_ if kernel else function), kernel)
    onnx.helper.set_model_props(proto, {"hbmp.bit_weights": json.dumps(np.asarray(model.bit_weights_).tolist())})
    onnx.checker.check_model(proto, full_check=True)
    return write_into_place(path, proto.SerializeToString())


def _layers_of(model, function) -> list[tuple[np.ndarray, np.ndarray]]:
    """Weights (inputs, outputs) and bias of every layer of the model's hash function."""
    layers = getattr(function, "layers_", None)
    if layers is None:
        name = type(model).__name__
        held = f"{name} with the hash function {type(function).__name__}" if function is not model else name
        raise ValueError(
            f"{held} cannot be written as ONNX, only linear, mlp and kernel hash functions can. "
            "Use HBMP(function='linear'), or save this model with model.save(path)."
        )
    return layers


def _kernel_features(kernel: Kernel, nodes: list, constants: dict) -> str:
    """Add the nodes of exp(-‖x - a‖² / 2σ²); the name of their result."""
    from onnx import helper

    anchors = kernel.anchors_
    constants |= {
        "mean": kernel.mean_,
        "scale": np.float32(kernel.scale_).reshape(()),
        "anchors": anchors.T,
        "anchor_squares": (anchors**2).sum(axis=1),
        "factor": np.float32(-2 * kernel.spread_).reshape(()),
    }
    steps: list[tuple[str, list[str], str, dict]] = [
        ("Sub", ["features", "mean"], "centred", {}),
        ("Div", ["centred", "scale"], "rows", {}),
        ("ReduceSumSquare", ["rows"], "row_squares", {"axes": [1], "keepdims": 1}),
        ("Add", ["row_squares", "anchor_squares"], "squares", {}),
        ("Gemm", ["rows", "anchors", "squares"], "distances", {"alpha": -2.0}),
        ("Relu", ["distances"], "squared_distances", {}),
        ("Div", ["squared_distances", "factor"], "exponent", {}),
        ("Exp", ["exponent"], "kernel", {}),
    ]
    nodes += [helper.make_node(kind, inputs, [output], **settings) for kind, inputs, output, settings in steps]
    return "kernel"


def _label_scores(value: str, label_layer, nodes: list, constants: dict) -> None:
    """Add the nodes of `label_scores`."""
    from onnx import helper

    constants |= {"label_weights": label_layer[0], "label_bias": label_layer[1]}
    nodes.append(helper.make_node("Gemm", [value, "label_weights", "label_bias"], ["label_scores"]))


def _votes(encoder, nodes: list, constants: dict) -> str:
    """Add the nodes that blend `bit_scores` with the log-odds of the labels' votes; the name of their result."""
    from onnx import helper

    from hbmp.methods.hbmp.label_votes import CERTAIN

    votes, share = encoder.votes, encoder.label_share
    constants |= {
        "label_rows": votes.label_rows.T,
        "prior": votes.prior,
        "item_codes": votes.codes.astype(np.float32),
        "least_certain": np.float32(-CERTAIN).reshape(()),
        "most_certain": np.float32(CERTAIN).reshape(()),
        "label_share": np.float32(2 * share).reshape(()),
        "bit_share": np.float32(1 - share).reshape(()),
    }
    steps: list[tuple[str, list[str], str, dict]] = [
        ("MatMul", ["label_scores", "label_rows"], "odds", {}),
        ("Add", ["odds", "prior"], "item_scores", {}),
        ("Softmax", ["item_scores"], "probabilities", {"axis": 1}),
        ("MatMul", ["probabilities", "item_codes"], "expected_codes", {}),
        ("Clip", ["expected_codes", "least_certain", "most_certain"], "clipped_codes", {}),
        ("Atanh", ["clipped_codes"], "half_odds", {}),
        ("Mul", ["half_odds", "label_share"], "voted", {}),
        ("Mul", ["bit_scores", "bit_share"], "own", {}),
        ("Add", ["own", "voted"], "blended", {}),
    ]
    nodes += [helper.make_node(kind, inputs, [output], **settings) for kind, inputs, output, settings in steps]
    return "blended"


def _queries(queries, odds: str, nodes: list, constants: dict) -> str:
    """Add the nodes of label-aware queries from log-odds and `label_scores`; the name of their result."""
    from onnx import helper

    from hbmp.methods.hbmp.label_queries import LEAST

    constants |= {"label_vectors": queries.vectors, "least": np.float32(LEAST).reshape(())}
    steps: list[tuple[str, list[str], str]] = [
        ("Softmax" if queries.exclusive else "Sigmoid", ["label_scores"], "label_probabilities"),
        ("MatMul", ["label_probabilities", "label_vectors"], "wanted"),
        ("Add", [odds, "wanted"], "sum"),
        ("Sign", [odds], "signs"),
        ("Mul", ["signs", "sum"], "agreeing"),
        ("Abs", [odds], "sizes"),
        ("Mul", ["sizes", "least"], "floors"),
        ("Max", ["agreeing", "floors"], "strengths"),
        ("Mul", ["signs", "strengths"], "asking"),
    ]
    nodes += [helper.make_node(kind, inputs, [output]) for kind, inputs, output in steps]
    return "asking"


def _encoder(model, layers: list[tuple[np.ndarray, np.ndarray]], kernel: Kernel | None):
    from onnx import TensorProto, helper, numpy_helper

    constants = {"zero": np.zeros((), np.float32), "plus": np.ones((), np.int8), "minus": -np.ones((), np.int8)}
    nodes: list = []
    value = "features" if kernel is None else _kernel_features(kernel, nodes, constants)
    for position, (weights, bias) in enumerate(layers[:-1]):
        constants |= {f"weights_{position}": weights, f"bias_{position}": bias}
        nodes.append(helper.make_node("Gemm", [value, f"weights_{position}", f"bias_{position}"], [f"h_{position}"]))
        nodes.append(helper.make_node("Relu", [f"h_{position}"], [value := f"active_{position}"]))
    encoder = getattr(model, "encoder_", None) or Encoder(model, model.n_bits)
    (weights, bias), columns = layers[-1], encoder.layout
    constants |= {"bit_layer": weights[:, columns.bits], "bit_bias": bias[columns.bits]}
    nodes.append(helper.make_node("Gemm", [value, "bit_layer", "bit_bias"], [scores := "bit_scores"]))
    if encoder.votes is not None:
        _label_scores(value, (weights[:, columns.labels], bias[columns.labels]), nodes, constants)
        if encoder.label_share > 0:
            scores = _votes(encoder, nodes, constants)
        if encoder.queries is not None:
            scores = _queries(encoder.queries, scores, nodes, constants)
    nodes.append(helper.make_node("Identity", [scores], ["scores"]))
    nodes.append(helper.make_node("GreaterOrEqual", ["scores", "zero"], ["positive"]))
    nodes.append(helper.make_node("Where", ["positive", "plus", "minus"], ["codes"]))
    n_features = (kernel.anchors_ if kernel else layers[0][0].T).shape[1]
    graph = helper.make_graph(
        nodes,
        "hbmp_encoder",
        [helper.make_tensor_value_info("features", TensorProto.FLOAT, ["n", n_features])],
        [
            helper.make_tensor_value_info("scores", TensorProto.FLOAT, ["n", model.n_bits]),
            helper.make_tensor_value_info("codes", TensorProto.INT8, ["n", model.n_bits]),
        ],
        [numpy_helper.from_array(np.ascontiguousarray(array), name) for name, array in constants.items()],
    )
    opset = [helper.make_opsetid("", _OPSET)]
    return helper.make_model(graph, producer_name="hbmp", opset_imports=opset, ir_version=_IR_VERSION)
