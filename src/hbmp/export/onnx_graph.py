"""An encoder as one ONNX file: features in, scores and codes out, with the same bits as `transform`.

    input    features  float32 (n, n_features)   as `transform` takes them; the weights include the standardisation
    output   scores    float32 (n, n_bits)       before the sign, as `project` returns them
             codes     int8    (n, n_bits)       -1 and +1; a score of zero is +1

The graph is one Gemm per layer with Relu between, then the sign. A kernel function starts with its RBF features. With
label scores a second last layer computes them; they vote on bits and enter label-aware queries. Dithered bits have
thresholds. The bit weights are in the metadata of the file, as JSON under `hbmp.bit_weights`.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.utils.validation import check_is_fitted

from hbmp._core.files import write_into_place
from hbmp.export.onnx_details import detail_scores
from hbmp.functions.kernel import Kernel
from hbmp.methods.hbmp.dither import LEAST
from hbmp.methods.hbmp.encoder import BitEncoder
from hbmp.methods.hbmp.label_queries import LabelQueries
from hbmp.methods.hbmp.label_votes import CERTAIN, LabelVotes

Layer = tuple[NDArray[Any], NDArray[Any]]

_OPSET, _IR_VERSION = 17, 8  # of 2022, for older runtimes


def to_onnx(model: Any, path: str | Path) -> Path:
    """Write the encoder of a fitted model as an ONNX file.

    Parameters
    ----------
    model : Hasher
        A fitted model whose hash function is `linear`, `mlp` or `kernel`.
    path : path
        The file to write.

    Returns
    -------
    Path
        The path of the file.

    Examples
    --------
    >>> import tempfile
    >>> from sklearn.datasets import load_digits
    >>> import hbmp
    >>> X, y = load_digits(return_X_y=True)
    >>> model = hbmp.HBMP(16, function="linear", device="cpu", random_state=0).fit(X[:150], y[:150])
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hbmp.export.to_onnx(model, f"{folder}/encoder.onnx").name
    'encoder.onnx'
    """
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


def _layers_of(model: Any, function: Any) -> list[Layer]:
    """Weights (inputs, outputs) and bias of each layer of the hash function."""
    layers: list[Layer] | None = getattr(function, "layers_", None)
    if layers is None:
        name = type(model).__name__
        described = f"{name} with the hash function {type(function).__name__}" if function is not model else name
        raise ValueError(
            f"{described} cannot be written as ONNX; linear, mlp and kernel hash functions can. "
            "Use HBMP(function='linear'), or save this model with model.save(path)."
        )
    return layers


def _kernel_features(kernel: Kernel, nodes: list[Any], constants: dict[str, Any]) -> str:
    """Add the nodes of exp(-‖x - a‖² / 2σ²); return the name of their output."""
    from onnx import helper

    anchors = kernel.anchors_
    constants |= {
        "mean": kernel.mean_,
        "scale": np.float32(kernel.scale_).reshape(()),
        "anchors": anchors.T,
        "anchor_squares": (anchors**2).sum(axis=1),
        "factor": np.float32(-2 * kernel.spread_).reshape(()),
    }
    steps: list[tuple[str, list[str], str, dict[str, Any]]] = [
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


def _label_scores(value: str, label_layer: Layer, nodes: list[Any], constants: dict[str, Any]) -> None:
    """Add the nodes of `label_scores`."""
    from onnx import helper

    constants |= {"label_weights": label_layer[0], "label_bias": label_layer[1]}
    nodes.append(helper.make_node("Gemm", [value, "label_weights", "label_bias"], ["label_scores"]))


def _votes(votes: LabelVotes, share: float, nodes: list[Any], constants: dict[str, Any]) -> str:
    """Add the nodes that blend `bit_scores` with the log-odds of the label votes; return the name of the output."""
    from onnx import helper

    constants |= {
        "label_rows": votes.label_rows.T,
        "prior": votes.prior,
        "item_codes": votes.codes.astype(np.float32),
        "least_certain": np.float32(-CERTAIN).reshape(()),
        "most_certain": np.float32(CERTAIN).reshape(()),
        "label_share": np.float32(2 * share).reshape(()),
        "bit_share": np.float32(1 - share).reshape(()),
    }
    steps: list[tuple[str, list[str], str, dict[str, Any]]] = [
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


def _queries(queries: LabelQueries, odds: str, nodes: list[Any], constants: dict[str, Any]) -> str:
    """Add the nodes of label-aware queries, from log-odds and `label_scores`; return the name of their output."""
    from onnx import helper

    constants["label_vectors"] = queries.vectors
    steps: list[tuple[str, list[str], str]] = [
        ("Softmax" if queries.exclusive else "Sigmoid", ["label_scores"], "label_probabilities"),
        ("MatMul", ["label_probabilities", "label_vectors"], "wanted"),
        ("Add", [odds, "wanted"], "sum"),
    ]
    nodes += [helper.make_node(kind, inputs, [output]) for kind, inputs, output in steps]
    return "sum"


def _held(thresholds: NDArray[Any], odds: str, nodes: list[Any], constants: dict[str, Any]) -> str:
    """Add the node that takes the thresholds off; return the name of its output."""
    from onnx import helper

    constants["thresholds"] = thresholds
    nodes.append(helper.make_node("Sub", [odds, "thresholds"], ["held"]))
    return "held"


def _with_signs_of(scores: str, held: str, nodes: list[Any], constants: dict[str, Any]) -> str:
    """Add the nodes of `dither.with_signs_of`; return the name of their output."""
    from onnx import helper

    constants["least"] = np.float32(LEAST).reshape(())
    steps: list[tuple[str, list[str], str]] = [
        ("Sign", [held], "signs"),
        ("Mul", ["signs", scores], "agreeing"),
        ("Abs", [held], "sizes"),
        ("Mul", ["sizes", "least"], "floors"),
        ("Max", ["agreeing", "floors"], "strengths"),
        ("Mul", ["signs", "strengths"], "signed"),
    ]
    nodes += [helper.make_node(kind, inputs, [output]) for kind, inputs, output in steps]
    return "signed"


def _encoder(model: Any, layers: list[Layer], kernel: Kernel | None) -> Any:
    from onnx import TensorProto, helper, numpy_helper

    constants = {"zero": np.zeros((), np.float32), "plus": np.ones((), np.int8), "minus": -np.ones((), np.int8)}
    nodes: list[Any] = []
    value = "features" if kernel is None else _kernel_features(kernel, nodes, constants)
    for position, (weights, bias) in enumerate(layers[:-1]):
        constants |= {f"weights_{position}": weights, f"bias_{position}": bias}
        nodes.append(helper.make_node("Gemm", [value, f"weights_{position}", f"bias_{position}"], [f"h_{position}"]))
        nodes.append(helper.make_node("Relu", [f"h_{position}"], [value := f"active_{position}"]))
    encoder = getattr(model, "encoder_", None) or BitEncoder(model, model.n_bits)
    (weights, bias), columns = layers[-1], encoder.layout
    constants |= {"bit_layer": weights[:, columns.bits], "bit_bias": bias[columns.bits]}
    nodes.append(helper.make_node("Gemm", [value, "bit_layer", "bit_bias"], [scores := "bit_scores"]))
    if encoder.votes is not None:
        _label_scores(value, (weights[:, columns.labels], bias[columns.labels]), nodes, constants)
        if encoder.label_share > 0:
            scores = _votes(encoder.votes, encoder.label_share, nodes, constants)
    held = scores
    if encoder.thresholds is not None:
        held = _held(encoder.thresholds, scores, nodes, constants)
    if encoder.queries is not None:
        scores = _queries(encoder.queries, scores, nodes, constants)
    if scores != held:
        scores = _with_signs_of(scores, held, nodes, constants)
    if encoder.detail is not None:
        details = detail_scores(encoder.detail, scores, nodes, constants)
        nodes.append(helper.make_node("Concat", [scores, details], [scores := "all_scores"], axis=1))
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
        [numpy_helper.from_array(np.array(array, order="C"), name) for name, array in constants.items()],
    )
    opset = [helper.make_opsetid("", _OPSET)]
    return helper.make_model(graph, producer_name="hbmp", opset_imports=opset, ir_version=_IR_VERSION)
