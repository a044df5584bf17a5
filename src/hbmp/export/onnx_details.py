"""Detail bits as ONNX nodes: the residual of the features, then sweeps over the bits as one Loop.

    rows      features of unit length
    rest      rows less what the label bits explain
    agreement C y of `hbmp.pursuit.features`, less the pull of the mean
    margins   agreement less the pull of the other bits
    signs     codes in {-1, +1}; the Loop visits one bit per step and sets it to the sign of its margin

The Loop ends once as many steps in a row as there are bits have changed nothing, or after the sweeps of `Rebuilding`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from hbmp.methods.hbmp.detail import DetailBits
from hbmp.methods.hbmp.stages import SWEEPS


def detail_scores(detail: DetailBits, label_scores: str, nodes: list[Any], constants: dict[str, Any]) -> str:
    """Add the nodes of `DetailBits.project`; return the name of their output."""
    constants |= _constants(detail)
    _add(nodes, _residual(label_scores))
    nodes.append(_loop())
    _add(nodes, _sizes())
    return "detail_scores"


def _constants(detail: DetailBits) -> dict[str, Any]:
    """What the nodes read; scalars have no dimension."""
    rebuilding = detail.rebuilding_
    directions, pulls = rebuilding.directions_, rebuilding.overlaps_ * np.float32(rebuilding.coupling_)
    n_bits = len(pulls)
    floats = {
        "one": 1,
        "explained": detail.explained_[1:],
        "constant": detail.explained_[0],
        "directions": directions,
        "offsets": rebuilding.offsets_,
        "pulls": pulls,
        "half_pulls": pulls / 2,
        "shift": getattr(rebuilding, "shift_", np.zeros(n_bits)),  # models saved before there was an origin have none
        "each_bit": np.eye(n_bits),
        "smallest": 1e-6 * max(float(np.abs(directions).max()), 1e-30),
        "detail_scale": rebuilding.scale_ * np.float32(detail.scale_),
    }
    whole = {"n_details": n_bits, "steps": SWEEPS * n_bits, "idle_start": 0, "idle_step": 1}
    return (
        {name: np.asarray(value, np.float32) for name, value in floats.items()}
        | {name: np.asarray(value, np.int64) for name, value in whole.items()}
        | {"going": np.asarray(True), "as_column": np.array([0], np.int64), "minus_one": np.float32(-1).reshape(())}
    )


def _residual(label_scores: str) -> list[tuple[str, list[str], list[str], dict[str, Any]]]:
    """From features and label scores to agreements, first signs and margins."""
    return [
        ("ReduceL2", ["features"], ["lengths"], {"axes": [1], "keepdims": 1}),
        ("Greater", ["lengths", "zero"], ["long"], {}),
        ("Where", ["long", "lengths", "one"], ["divisors"], {}),
        ("Div", ["features", "divisors"], ["unit_rows"], {}),
        ("GreaterOrEqual", [label_scores, "zero"], ["label_positive"], {}),
        ("Where", ["label_positive", "one", "minus_one"], ["label_signs"], {}),
        ("MatMul", ["label_signs", "explained"], ["by_labels"], {}),
        ("Sub", ["unit_rows", "constant"], ["centred_rows"], {}),
        ("Sub", ["centred_rows", "by_labels"], ["rest"], {}),
        ("MatMul", ["rest", "directions"], ["products"], {}),
        ("Sub", ["products", "offsets"], ["agreement"], {}),
        ("GreaterOrEqual", ["agreement", "zero"], ["agreement_positive"], {}),
        ("Where", ["agreement_positive", "one", "minus_one"], ["first_signs"], {}),
        ("MatMul", ["first_signs", "pulls"], ["first_pull"], {}),
        ("Sub", ["agreement", "first_pull"], ["first_margins"], {}),
    ]


def _loop() -> Any:
    """Coordinate sweeps, one bit per step, for all rows together."""
    from onnx import TensorProto, helper

    nodes: list[Any] = []
    _add(
        nodes,
        [
            ("Mod", ["step", "n_details"], ["at"], {}),
            ("Unsqueeze", ["at", "as_column"], ["bit"], {}),
            ("Gather", ["margins", "bit"], ["margin"], {"axis": 1}),
            ("GreaterOrEqual", ["margin", "zero"], ["is_plus"], {}),
            ("Where", ["is_plus", "one", "minus_one"], ["new_sign"], {}),
            ("Gather", ["signs_in", "bit"], ["old_sign"], {"axis": 1}),
            ("Sub", ["new_sign", "old_sign"], ["change"], {}),
            ("Gather", ["each_bit", "bit"], ["this_bit"], {"axis": 0}),
            ("Mul", ["change", "this_bit"], ["flips"], {}),
            ("Add", ["signs_in", "flips"], ["signs_out"], {}),
            ("Gather", ["pulls", "bit"], ["pull"], {"axis": 0}),
            ("Mul", ["change", "pull"], ["moved"], {}),
            ("Sub", ["margins", "moved"], ["margins_out"], {}),
            ("ReduceL1", ["change"], ["changes"], {"keepdims": 0}),
            ("Greater", ["changes", "zero"], ["changed"], {}),
            ("Add", ["idle", "idle_step"], ["idle_longer"], {}),
            ("Where", ["changed", "idle_start", "idle_longer"], ["idle_out"], {}),
            ("Less", ["idle_out", "n_details"], ["going_out"], {}),
        ],
    )
    kinds = {"margins": TensorProto.FLOAT, "signs": TensorProto.FLOAT, "idle": TensorProto.INT64}
    shapes: dict[str, list[Any]] = {"margins": [None, None], "signs": [None, None], "idle": []}

    def value(name: str, kind: str) -> Any:
        return helper.make_tensor_value_info(name, kinds[kind], shapes[kind])

    body = helper.make_graph(
        nodes,
        "one_bit",
        [
            helper.make_tensor_value_info("step", TensorProto.INT64, []),
            helper.make_tensor_value_info("going_in", TensorProto.BOOL, []),
            *(value(name, kind) for name, kind in (("margins", "margins"), ("signs_in", "signs"), ("idle", "idle"))),
        ],
        [
            helper.make_tensor_value_info("going_out", TensorProto.BOOL, []),
            *(value(f"{kind}_out", kind) for kind in kinds),
        ],
    )
    inputs = ["steps", "going", "first_margins", "first_signs", "idle_start"]
    return helper.make_node("Loop", inputs, ["last_margins", "detail_signs", "last_idle"], body=body)


def _sizes() -> list[tuple[str, list[str], list[str], dict[str, Any]]]:
    """Sizes of the scores: agreement less half the pull of the other bits and the shift, at least a trifle."""
    return [
        ("MatMul", ["detail_signs", "half_pulls"], ["half_pull"], {}),
        ("Sub", ["agreement", "half_pull"], ["pulled"], {}),
        ("Sub", ["pulled", "shift"], ["shifted"], {}),
        ("Mul", ["shifted", "detail_signs"], ["along"], {}),
        ("Max", ["along", "smallest"], ["at_least"], {}),
        ("Mul", ["at_least", "detail_signs"], ["signed_sizes"], {}),
        ("Mul", ["signed_sizes", "detail_scale"], ["detail_scores"], {}),
    ]


def _add(nodes: list[Any], steps: list[tuple[str, list[str], list[str], dict[str, Any]]]) -> None:
    from onnx import helper

    nodes += [helper.make_node(kind, inputs, outputs, **settings) for kind, inputs, outputs, settings in steps]
