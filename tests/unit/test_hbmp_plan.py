"""The plan's table, row by row, and settings that no plan can follow."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import make_blobs

import hbmp
from hbmp.functions import MLP, Kernel, Linear, Network, Trees
from hbmp.methods.hbmp.plan import FEATURE_SHARES, DataFacts, Plan, TargetSettings, resolve

CLASSES = DataFacts(5000, n_classes=10)
FEW = DataFacts(150, n_classes=10)
SETS = DataFacts(5000, n_labels=20, n_label_sets=300)
FEW_SETS = DataFacts(1500, n_labels=20, n_label_sets=300)
TWO = DataFacts(5000, n_classes=2)
ONE_HOT = DataFacts(5000, n_labels=20, n_label_sets=20)
IMAGES = DataFacts(5000, images=True, n_classes=10)
FEW_IMAGES = DataFacts(500, images=True, n_classes=10)
IMAGE_SETS = DataFacts(5000, images=True, n_labels=20, n_label_sets=300)
NO_LABELS = DataFacts(5000)


def plan(facts, n_bits=12, **settings) -> Plan:
    return resolve(hbmp.HBMP(n_bits, **settings).get_params(deep=False), facts)


@pytest.mark.parametrize(
    ("decision", "facts", "expected"),
    [
        ("feature_share", CLASSES, FEATURE_SHARES),
        ("feature_share", FEW, 0.5),
        ("feature_share", SETS, 0.7),
        ("feature_share", IMAGES, 0.5),
        ("feature_share", IMAGE_SETS, 0.5),
        ("feature_share", NO_LABELS, 1.0),
        ("intercept", CLASSES, False),
        ("intercept", SETS, True),
        ("intercept", ONE_HOT, False),
        ("intercept", IMAGE_SETS, False),
        ("label_share", CLASSES, 0.5),
        ("label_share", SETS, 0.25),
        ("label_share", IMAGES, 0.0),
        ("label_share", FEW_IMAGES, 0.25),
        ("label_share", IMAGE_SETS, 0.25),
        ("learns_labels", CLASSES, True),
        ("learns_labels", IMAGES, False),
        ("learns_labels", DataFacts(5000, n_classes=2001), False),
        ("label_queries", CLASSES, False),
        ("label_queries", SETS, True),
        ("label_queries", FEW_IMAGES, True),
        ("label_queries", IMAGES, False),
        ("weight_share", CLASSES, 0.5),
        ("weight_share", SETS, 0.5),
        ("weight_share", IMAGES, 0.5),
        ("weight_share", NO_LABELS, 1.0),
        ("contrast_share", CLASSES, 0.25),
        ("contrast_share", FEW, 0.25),
        ("contrast_share", FEW_SETS, 0.0),
        ("contrast_share", SETS, 0.5),
        ("contrast_share", IMAGES, 0.75),
        ("contrast_share", FEW_IMAGES, 0.75),
        ("contrast_share", IMAGE_SETS, 0.25),
        ("dither", CLASSES, 0.0),
        ("dither", TWO, 0.6),
        ("dither", SETS, 0.0),
        ("dither", FEW_IMAGES, 0.0),
        ("extra_bits", CLASSES, 0),
        ("extra_bits", IMAGES, 36),
        ("extra_bits", FEW_IMAGES, 0),
        ("extra_bits", IMAGE_SETS, 0),
        ("normalise", CLASSES, False),
        ("normalise", IMAGES, True),
        ("normalise", FEW_IMAGES, False),
        ("normalise", IMAGE_SETS, False),
        ("unlabelled", NO_LABELS, True),
        ("unlabelled", CLASSES, False),
        ("n_classes", CLASSES, 10),
        ("n_classes", SETS, 0),
    ],
)
def test_the_table(decision, facts, expected):
    assert getattr(plan(facts), decision) == expected


@pytest.mark.parametrize(
    ("facts", "function", "affinity"),
    [
        (CLASSES, Kernel, hbmp.affinities.SameClass),
        (DataFacts(20_000, n_classes=10), MLP, hbmp.affinities.SameClass),
        (SETS, Kernel, hbmp.affinities.SharedLabels),
        (IMAGES, Network, hbmp.affinities.SameClass),
    ],
)
def test_the_parts(facts, function, affinity):
    found = plan(facts)
    assert isinstance(found.function, function)
    assert isinstance(found.affinity, affinity)


def test_label_sets_weigh_by_their_counts():
    weights = [plan(facts).inference["item_weights"] for facts in (CLASSES, SETS, IMAGE_SETS)]
    assert weights == [None, "count", "count"]


@pytest.mark.parametrize(
    ("settings", "facts", "expected"),
    [
        ({"feature_share": 0.2}, CLASSES, {"feature_share": 0.2, "open": False}),
        ({"feature_share": 0, "intercept": True}, SETS, {"feature_share": 0, "intercept": True}),
        ({"scheme": "constant"}, SETS, {"intercept": False}),
        ({"label_share": 0}, CLASSES, {"learns_labels": False, "contrast_share": 0.0, "dither": 0.0}),
        ({"label_share": 0.9}, IMAGES, {"learns_labels": True, "label_share": 0.9}),
        ({"contrast_share": 1}, CLASSES, {"contrast_share": 1.0}),
        ({"dither": 0.5}, CLASSES, {"dither": 0.5}),
        ({"dither": 0}, TWO, {"dither": 0.0}),
        ({"detail_bits": "auto"}, TWO, {"dither": "auto"}),
        ({"detail_bits": 8}, TWO, {"dither": 0.6, "extra_bits": 8}),
        ({"detail_bits": 9}, TWO, {"dither": 0.0, "extra_bits": 9}),
        ({"detail_bits": 4, "function": Trees()}, TWO, {"extra_bits": 0}),  # learns bits one by one
        ({"detail_bits": 4, "scheme": "constant"}, TWO, {"extra_bits": 0}),  # its codes are not nested
        ({"label_queries": True}, CLASSES, {"label_queries": True}),
        ({"label_queries": False}, SETS, {"label_queries": False}),
        ({"function": Trees()}, CLASSES, {"learns_labels": False, "contrast_share": 0.0, "open": True}),
        ({"affinity": "label_overlap"}, SETS, {"feature_share": 0.0, "intercept": True}),
        ({"affinity": "label_overlap"}, IMAGE_SETS, {"feature_share": 0.0, "intercept": False}),
        ({"affinity": "label_overlap", "feature_share": 0.4}, SETS, {"feature_share": 0.0}),
        ({"affinity": "distance_levels"}, NO_LABELS, {"unlabelled": False, "weight_share": 1.0}),
        ({"function": "linear"}, NO_LABELS, {"unlabelled": False, "learns_labels": False}),
        ({"scheme": "constant", "function": Network("tiny")}, IMAGES, {"extra_bits": 0}),
        ({"function": Network("tiny")}, IMAGES, {"extra_bits": 0}),  # starts from random weights
        ({"weight_share": 0.1}, NO_LABELS, {"unlabelled": True, "weight_share": 0.1}),
        ({"queries": "floats"}, NO_LABELS, {"unlabelled": True, "queries": "floats"}),
    ],
)
def test_settings_that_are_given_stand(settings, facts, expected):
    found = plan(facts, **settings)
    assert {name: getattr(found, name) for name in expected} == expected


def test_the_paper_leaves_nothing_open():
    found = resolve(hbmp.HBMP.paper(12).get_params(deep=False), CLASSES)
    assert found.learns_bits_alone
    assert not found.open
    assert found.target_settings() == [TargetSettings(0, False)]
    assert found.weight_share == 1


def test_a_menu_is_one_candidate_per_value():
    assert plan(CLASSES).target_settings() == [TargetSettings(share, False) for share in FEATURE_SHARES]
    assert not plan(CLASSES).settled(TargetSettings(0.3)).open


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"dither": "some"}, "dither must be"),
        ({"label_queries": "no"}, "label_queries must be"),
        ({"contrast_share": 2}, "contrast_share must"),
        ({"extra_bits": -1}, "extra_bits must be"),
        ({"extra_bits": True}, "extra_bits must be"),
        ({"extra_bits": 4, "function": Trees(n_trees=2)}, "Leave extra_bits at 0"),
        ({"queries": "real"}, "queries must be 'codes' or 'floats', found 'real'"),
        ({"queries": None}, "queries must be"),
        ({"queries": "floats"}, "without labels, found labels. Leave queries at 'codes'"),
    ],
)
def test_settings_that_no_plan_can_follow_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        plan(CLASSES, **settings)


def test_queries_need_bits_that_rebuild_features():
    with pytest.raises(ValueError, match="found an affinity, a function or a scheme of your own"):
        plan(NO_LABELS, queries="floats", affinity="distance_levels")


def test_facts_of_data(label_rows):
    X, y = make_blobs(90, n_features=6, centers=4, random_state=0)
    assert DataFacts.of(X, y) == DataFacts(90, n_classes=4)
    assert DataFacts.of(X, y[:, None]) == DataFacts(90, n_classes=4)
    assert DataFacts.of(X, None) == DataFacts(90)
    facts = DataFacts.of(X, label_rows)
    assert (facts.n_labels, facts.n_label_sets) == (label_rows.shape[1], len(np.unique(label_rows, axis=0)))


def test_the_plan_is_kept_with_the_model(tmp_path):
    X, y = make_blobs(90, n_features=6, centers=4, random_state=0)
    model = hbmp.HBMP(8, function=Linear(epochs=2), feature_share=0.3, random_state=0).fit(X, y)
    model.save(tmp_path / "model")
    again = hbmp.load(tmp_path / "model").plan_
    assert again.as_dict() == model.plan_.as_dict()
    assert model.plan_.as_dict()["affinity"] == "SameClass()"
