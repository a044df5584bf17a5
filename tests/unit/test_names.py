"""One name for one thing: no two classes of the package share a public name, except a model and its own kind."""

from __future__ import annotations

import ast
from collections import defaultdict
from pathlib import Path

import hbmp

SRC = Path(hbmp.__file__).parent
ONE_THING_IN_TWO_ROLES = {
    "COCO",  # a data set and the protocol on it
    "ImageNet100",
    "LabelMe",
    "VOC2007",
}


def test_no_two_classes_share_a_name():
    places = defaultdict(list)
    web = SRC / "app" / "web"  # its messages are named after the things of the library that they carry
    for path in sorted(path for path in SRC.rglob("*.py") if web not in path.parents):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                places[node.name].append(path.relative_to(SRC).as_posix())
    shared = {name: paths for name, paths in places.items() if len(paths) > 1}
    assert set(shared) <= ONE_THING_IN_TWO_ROLES, shared


def test_former_names_of_public_classes_still_work():
    from hbmp import evaluation, metrics

    assert metrics.SameClass is metrics.SharesClass
    assert metrics.SharedLabels is metrics.CountsSharedLabels
    assert metrics.DistanceLevels is metrics.DistanceGrades
    assert (evaluation.Cell, evaluation.Row) == (evaluation.MethodRun, evaluation.MethodResult)
