"""Protocols: the sizes and disjointness they promise, seeds and checksums, scores against the metrics themselves."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hbmp import metrics, protocols
from hbmp.datasets import Data
from hbmp.protocols._shared.nus import draw_per_concept
from hbmp.protocols._shared.split import Split, draw_per_class


def classes_data(n=120, n_classes=4, seed=0):
    rng = np.random.default_rng(seed)
    labels = rng.permutation(np.arange(n) % n_classes)
    return Data("toy", labels=labels, features=rng.normal(size=(n, 5)).astype(np.float32))


def label_data(n=400, n_labels=30, seed=0):
    rng = np.random.default_rng(seed)
    chances = np.linspace(0.4, 0.05, n_labels)[rng.permutation(n_labels)]
    labels = (rng.random((n, n_labels)) < chances).astype(np.uint8)
    split = rng.choice([0, 1, 2, -1], size=n, p=[0.2, 0.3, 0.4, 0.1]).astype(np.int8)
    return Data("toy", labels=labels, features=rng.normal(size=(n, 5)).astype(np.float32), split=split)


def random_codes(n, bits, seed):
    return np.where(np.random.default_rng(seed).random((n, bits)) < 0.5, np.int8(-1), np.int8(1))


SMALL = {
    "cifar-1": ({"train_per_class": 8, "query_per_class": 3}, classes_data),
    "cifar-2": ({"query_per_class": 5}, classes_data),
    "imagenet100": ({"train_per_class": 8, "query_per_class": 3}, classes_data),
    "nus-1": ({"train_per_concept": 4, "query_per_concept": 2, "n_concepts": 21}, label_data),
    "nus-2": ({"query_per_concept": 2, "n_concepts": 21}, label_data),
    "coco": ({}, label_data),
    "voc2007": ({}, label_data),
    "labelme": ({"n_train": 50, "n_query": 20}, classes_data),
}


def test_every_protocol_is_tested():
    assert set(SMALL) == set(protocols.names())


@pytest.mark.parametrize("name", sorted(SMALL))
def test_split_contract(name):
    options, make = SMALL[name]
    protocol, data = protocols.get(name, **options), make()
    split = protocol.split(data, 3)
    for rows in (split.train, split.query, split.database):
        assert len(rows)
        assert (np.diff(rows) > 0).all()
        assert rows.min() >= 0
        assert rows.max() < len(data)
    assert not set(split.query) & (set(split.train) | set(split.database))
    assert set(split.train) <= set(split.database)
    assert protocol.split(data, 3).checksum == split.checksum
    other_features = replace(data, features=data.features[:, :2].copy())
    assert protocol.split(other_features, 3).checksum == split.checksum


@pytest.mark.parametrize("name", ["cifar-1", "cifar-2", "nus-1", "nus-2", "labelme"])
def test_seed_changes_split(name):
    options, make = SMALL[name]
    protocol, data = protocols.get(name, **options), make()
    assert protocol.split(data, 0).checksum != protocol.split(data, 1).checksum


@pytest.mark.parametrize("name", sorted(SMALL))
def test_caption_states_the_conventions(name):
    options, _ = SMALL[name]
    protocol = protocols.get(name, **options)
    assert protocol.caption.startswith(f"{name}: ")
    assert "order of the database" in protocol.caption
    for measure in protocol.measures:
        assert measure.caption in protocol.caption


def test_paper_sizes():
    labels = np.repeat(np.arange(10), 6000)
    data = Data("cifar10", labels=np.random.default_rng(0).permutation(labels))
    one, two = protocols.get("cifar-1").split(data, 0), protocols.get("cifar-2").split(data, 0)
    assert [len(one.train), len(one.query), len(one.database)] == [5000, 1000, 59000]
    assert [len(two.train), len(two.query), len(two.database)] == [50000, 10000, 50000]
    assert (np.bincount(data.labels[one.train]) == 500).all()
    assert (np.bincount(data.labels[one.query]) == 100).all()


def test_nus_draws_each_concept_in_order_of_frequency():
    data = label_data()
    protocol = protocols.get("nus-1", train_per_concept=4, query_per_concept=2)
    labels = protocol.labels(data)
    counts = labels.sum(axis=0, dtype=int)
    assert labels.shape == (400, 21)
    assert (np.diff(counts) <= 0).all()
    assert counts.sum() == np.sort(data.labels.sum(axis=0, dtype=int))[-21:].sum()
    split = protocol.split(data, 0)
    assert len(split.query) == 42
    assert len(split.train) == 84
    assert set(np.concatenate([split.query, split.database])) == set(np.flatnonzero(labels.any(axis=1)))
    assert (protocols.get("nus-2", query_per_concept=2).split(data, 0).query == split.query).all()


def test_draw_per_concept_takes_enough_of_each():
    labels = protocols.get("nus-1").labels(label_data())
    free = np.ones(len(labels), dtype=bool)
    rows = draw_per_concept(labels, 3, free, np.random.default_rng(0))
    assert len(set(rows)) == 3 * 21
    assert not free[rows].any()
    assert (labels[rows].sum(axis=0, dtype=int) >= 3).all()


@given(st.integers(1, 4), st.integers(0, 4), st.integers(0, 10))
@settings(max_examples=20, deadline=None)
def test_draw_per_class_is_balanced(first, second, seed):
    classes = np.random.default_rng(seed).permutation(np.repeat(["a", "b", "c"], 9))
    one, two = draw_per_class(classes, (first, second), seed)
    assert not set(one) & set(two)
    for rows, count in ((one, first), (two, second)):
        assert [int((classes[rows] == value).sum()) for value in "abc"] == [count] * 3


def test_split_saves_and_loads(tmp_path):
    split = Split(train=np.array([1, 4]), query=np.array([0, 2]), database=np.array([1, 3, 4, 9]))
    split.save(tmp_path / "split.npz")
    again = Split.load(tmp_path / "split.npz")
    assert again.checksum == split.checksum
    assert again.database.tolist() == [1, 3, 4, 9]
    moved = Split(train=np.array([1]), query=np.array([4, 0, 2]), database=np.array([1, 3, 4, 9]))
    assert moved.checksum != split.checksum


def test_imagenet100_uses_given_lists():
    data = label_data()
    given_lists = replace(data, labels=np.arange(400) % 4)
    split = protocols.get("imagenet100", train_per_class=5).split(given_lists, 0)
    assert (given_lists.split[split.train] == 1).all()
    assert (np.bincount(given_lists.labels[split.train]) == 5).all()
    assert (split.query == np.flatnonzero(given_lists.split == 0)).all()
    assert (split.database == np.flatnonzero(given_lists.split >= 1)).all()


def test_voc_database_of_untrained_images():
    data = label_data()
    split = protocols.get("voc2007", database="val", n_query=10).split(data, 0)
    assert len(split.query) == 10
    assert (data.split[np.concatenate([split.query, split.database])] == 0).all()
    assert (data.split[split.train] == 1).all()


def test_scores_are_the_metrics():
    data, protocol = label_data(), protocols.get("coco")
    split = protocol.split(data, 0)
    query, database = random_codes(len(split.query), 8, 1), random_codes(len(split.database), 8, 2)
    weights = np.random.default_rng(3).normal(size=8)
    real = query * np.random.default_rng(4).random(query.shape)
    scores = protocol.evaluate(query, database, data, split, bit_weights=weights, query_scores=real)
    labels = data.labels[split.query], data.labels[split.database]
    expected = {
        "map@5000": metrics.mean_average_precision(query, database, *labels, cutoff=5000),
        "map.tie-aware": metrics.mean_average_precision(query, database, *labels, ties="average"),
        "map.weighted": metrics.mean_average_precision(query, database, *labels, bit_weights=weights),
        "map.real-valued": metrics.mean_average_precision(real, database, *labels),
        "map.weighted.real-valued": metrics.mean_average_precision(real, database, *labels, bit_weights=weights),
        "ndcg-shared": metrics.ndcg(query, database, *labels, gain="shared"),
        "ndcg-binary.weighted": metrics.ndcg(query, database, *labels, gain="binary", bit_weights=weights),
        "ndcg-scaled.tie-aware": metrics.ndcg(query, database, *labels, gain="scaled", ties="average"),
    }
    for name, value in expected.items():
        assert scores[name] == pytest.approx(value, abs=1e-12), name
    plain = protocol.evaluate(query, database, data, split, bit_weights=np.ones(8))
    assert not any("weighted" in name or "real-valued" in name for name in plain)
    assert plain["map"] == scores["map"]


@pytest.mark.parametrize("normalize", [True, False])
def test_labelme_grades_by_training_percentiles(normalize):
    data = classes_data(n=90)
    protocol = protocols.get("labelme", n_train=30, n_query=10, normalize=normalize)
    split = protocol.split(data, 0)
    features = data.features.astype(float)
    if normalize:
        centred = features - features[split.train].mean(axis=0)
        features = np.array([row / np.sqrt((row**2).sum()) for row in centred])
    assert protocol.features(data, split) == pytest.approx(features, abs=1e-6)
    train = features[split.train]
    distances = sorted(np.linalg.norm(a - b) for i, a in enumerate(train) for b in train[:i])
    thresholds = np.percentile(distances, [2, 5, 10, 20])
    grades = protocol.relevance(data, split).grades(0, 10)
    for i, query in enumerate(split.query):
        for j, item in enumerate(split.database):
            distance = np.linalg.norm(features[query] - features[item])
            expected = next(
                (grade for grade, limit in zip((10, 5, 2, 1), thresholds, strict=True) if distance <= limit), 0
            )
            assert grades[i, j] == expected
    assert protocol.labels(data) is None


def test_errors_say_what_to_do():
    with pytest.raises(LookupError, match="Did you mean 'cifar-1'"):
        protocols.get("cifar-11")
    with pytest.raises(ValueError, match="class 0 has 30"):
        protocols.get("cifar-1").split(classes_data(), 0)
    with pytest.raises(ValueError, match="one class per item; toy has a label matrix"):
        protocols.get("cifar-1").split(label_data(), 0)
    with pytest.raises(ValueError, match="rows of 0/1 labels; toy has one class"):
        protocols.get("nus-1").split(classes_data(), 0)
    with pytest.raises(ValueError, match="split that comes with the data; toy has none"):
        protocols.get("coco").split(replace(label_data(), split=None), 0)
    with pytest.raises(ValueError, match="per label, and label"):
        protocols.get("nus-1").split(label_data(), 0)
