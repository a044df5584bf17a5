"""Every affinity, found by its file, against a double loop over its definition."""

import numpy as np
import pytest
from sklearn.base import clone

from hbmp import affinities
from hbmp._core import catalog

RNG = np.random.default_rng(0)
X = RNG.standard_normal((70, 5)).astype(np.float32)
CLASSES = RNG.integers(0, 6, 70)
LABELS = (RNG.random((70, 7)) < 0.3).astype(int)
SIMILARITY = np.array([[1 - 0.3 * abs(i - j) for j in range(6)] for i in range(6)])
DISTANCES = np.abs(X[:, :1] - X[:, 0]).astype(np.float64)


def levels_by_hand(i, j):
    distances = np.linalg.norm(X[:, None].astype(float) - X[None], axis=2)
    thresholds = np.percentile(distances[np.triu_indices(70, 1)], [2, 5, 10, 20])
    for threshold, level in zip(thresholds, [10, 4, 2, 1], strict=True):
        if distances[i, j] <= threshold:
            return 2 * level / 10 - 1
    return -1.0


def mixed_by_hand(i, j):
    centred = X.astype(float) - X.mean(axis=0)
    means = [centred[LABELS[:, label] == 1].mean(axis=0) for label in range(LABELS.shape[1])]
    a, b = (np.sum([means[label] for label in np.flatnonzero(SETS[k])] or [0 * means[0]], axis=0) for k in (i, j))
    sizes = np.linalg.norm(a) * np.linalg.norm(b)
    shared = 1 if SETS[i] @ SETS[j] else -1
    return 0.7 * shared + 0.3 * (a @ b / sizes if sizes else 0)


def centred_by_hand(i, j):
    shared = np.where(SETS @ SETS.T > 0, 1.0, -1.0)
    carried = [(row == SETS).all(axis=1).argmax() for row in LABELS]  # the item of each instance
    means = shared[:, carried].mean(axis=1)
    return np.clip(shared[i, j] - 0.4 * (means[i] + means[j] - means[carried].mean()), -1, 1)


def distinct(rows):
    return np.unique(rows, axis=0)


SETS = distinct(LABELS)
LARGEST = LABELS.sum(1).max()
# name: (affinity, X, y, number of items, value of a pair of items by definition)
CASES = {
    "same_class": (affinities.SameClass(), X, CLASSES, 6, lambda i, j: 1 if i == j else -1),
    "shared_labels": (affinities.SharedLabels(), X, LABELS, len(SETS), lambda i, j: 1 if SETS[i] @ SETS[j] else -1),
    "label_overlap": (
        affinities.LabelOverlap(),
        X,
        LABELS,
        len(SETS),
        lambda i, j: 2 * (SETS[i] @ SETS[j]) / LARGEST - 1,
    ),
    "distance_levels": (affinities.DistanceLevels(), X, None, 70, levels_by_hand),
    "class_similarity": (affinities.ClassSimilarity(SIMILARITY), X, CLASSES, 6, lambda i, j: SIMILARITY[i, j]),
    "mean_features": (affinities.MeanFeatures(share=0.3), X, LABELS, len(SETS), mixed_by_hand),
    "centred": (affinities.Centred(share=0.4), X, LABELS, len(SETS), centred_by_hand),
    "precomputed": (
        affinities.Precomputed(kind="distance"),
        DISTANCES,
        None,
        70,
        lambda i, j: 1 - 2 * DISTANCES[i, j] / DISTANCES.max(),
    ),
}
INSTANCES = {
    "same_class": (affinities.SameClass(items="instances"), CLASSES),
    "shared_labels": (affinities.SharedLabels(items="instances"), LABELS),
    "label_overlap": (affinities.LabelOverlap(items="instances"), LABELS),
    "class_similarity": (affinities.ClassSimilarity(SIMILARITY, items="instances"), CLASSES),
    "mean_features": (affinities.MeanFeatures(affinities.SharedLabels(items="instances"), share=0.3), LABELS),
    "centred": (affinities.Centred(affinities.SharedLabels(items="instances"), share=0.4), LABELS),
}


@pytest.fixture(params=sorted(CASES))
def case(request):
    affinity, features, y, n_items, pair = CASES[request.param]
    slow = np.array([[pair(i, j) for j in range(n_items)] for i in range(n_items)], dtype=float)
    return clone(affinity).fit(features, y), slow


def test_every_file_has_a_case():
    assert set(catalog.names("affinities")) == set(CASES)


def test_matrix_is_the_definition(case):
    affinity, slow = case
    assert affinity.n_items_ == len(slow)
    np.testing.assert_allclose(affinity.matrix(), slow, atol=1e-6)


def test_blocks_products_and_norms_agree_with_the_matrix(case):
    affinity, slow = case
    rows, columns = np.array([3, 0, 5]), np.array([1, 4])
    np.testing.assert_allclose(affinity.block(rows, columns), slow[np.ix_(rows, columns)], atol=1e-6)
    vectors = np.random.default_rng(1).standard_normal((len(slow), 3)).astype(np.float32)
    np.testing.assert_allclose(affinity.matmul(vectors), slow @ vectors, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        affinity.times_columns(columns, vectors[:2]), slow[:, columns] @ vectors[:2], rtol=1e-4, atol=1e-4
    )
    np.testing.assert_allclose(affinity.diagonal(), np.diag(slow), atol=1e-6)
    weights = np.random.default_rng(2).random(len(slow))
    expected = sum(weights[i] * weights[j] * slow[i, j] ** 2 for i in range(len(slow)) for j in range(len(slow)))
    assert affinity.squared_norm(weights) == pytest.approx(expected, rel=1e-5)


def test_blocks_of_rows_give_the_same_product(case, monkeypatch):
    affinity, slow = case
    monkeypatch.setattr("hbmp.affinities._shared.base._BLOCK_BYTES", 4 * len(slow) * 3)
    assert len(affinity.row_blocks()) > 1
    vectors = np.ones((len(slow), 1), dtype=np.float32)
    np.testing.assert_allclose(affinity.matmul(vectors)[:, 0], slow.sum(1), rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(affinity.matrix(), slow, atol=1e-6)


def test_values_are_symmetric_and_in_range(case):
    matrix = case[0].matrix()
    np.testing.assert_allclose(matrix, matrix.T, atol=1e-6)
    assert np.abs(matrix).max() <= 1 + 1e-6


def test_items_lead_back_to_instances(case):
    affinity, _ = case
    assert affinity.item_of_.shape == (70,)
    np.testing.assert_array_equal(np.bincount(affinity.item_of_, minlength=affinity.n_items_), affinity.counts_)


@pytest.mark.parametrize("name", sorted(INSTANCES))
def test_instances_as_items_repeat_the_values_of_their_items(name):
    affinity, y = INSTANCES[name]
    by_instance = clone(affinity).fit(X, y)
    by_item = clone(CASES[name][0]).fit(X, y)
    expected = by_item.matrix()[np.ix_(by_item.item_of_, by_item.item_of_)]
    np.testing.assert_allclose(by_instance.matrix(), expected, atol=1e-6)
    vectors = np.random.default_rng(3).standard_normal((70, 2)).astype(np.float32)
    np.testing.assert_allclose(by_instance.matmul(vectors), expected @ vectors, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize(
    "name", ["same_class", "shared_labels", "label_overlap", "class_similarity", "mean_features", "centred"]
)
def test_known_items_are_found_and_placed_where_they_are(name):
    affinity, _, y, n_items, _ = CASES[name]
    affinity = clone(affinity).fit(X, y)
    np.testing.assert_array_equal(affinity.find(y), affinity.item_of_)
    np.testing.assert_allclose(affinity.cross(y), affinity.matrix()[affinity.item_of_], atol=1e-6)
    assert affinity.cross(y).shape == (70, n_items)


def test_items_never_seen_have_affinities():
    classes = affinities.SameClass().fit(None, ["cat", "dog", "cat"])
    np.testing.assert_array_equal(classes.find(["dog", "emu"]), [1, -1])
    np.testing.assert_array_equal(classes.cross(["emu"]), [[-1, -1]])
    sets = affinities.LabelOverlap().fit(None, [[1, 0, 0], [0, 1, 0]])
    np.testing.assert_array_equal(sets.find([[1, 1, 0]]), [-1])
    np.testing.assert_array_equal(sets.cross([[1, 1, 0]]), [[1, 1]])


def test_classes_never_seen_look_like_no_other():
    mixed = affinities.MeanFeatures(share=0.5).fit(X, np.array(["cat", "dog"])[CLASSES % 2])
    np.testing.assert_array_equal(mixed.find(["dog", "emu"]), [1, -1])
    np.testing.assert_allclose(mixed.cross(["emu"]), [[-0.5, -0.5]])


def test_means_can_be_mixed_into_a_given_similarity():
    mixed = affinities.MeanFeatures(affinities.ClassSimilarity(SIMILARITY), share=0).fit(X, CLASSES)
    np.testing.assert_allclose(mixed.matrix(), SIMILARITY, atol=1e-6)


def test_means_can_be_mixed_into_a_centred_affinity():
    mixed = affinities.MeanFeatures(affinities.Centred(share=0.4), share=0).fit(X, LABELS)
    np.testing.assert_allclose(mixed.matrix(), affinities.Centred(share=0.4).fit(X, LABELS).matrix(), atol=1e-6)


def test_centring_all_of_equal_classes_leaves_no_mean():
    centred = affinities.Centred(share=1).fit(None, np.arange(12) % 4)
    np.testing.assert_allclose(centred.matrix(), np.where(np.eye(4), 1.0, -0.5), atol=1e-6)


def test_cosine_levels_ignore_length():
    scaled = X * np.random.default_rng(4).uniform(0.1, 9, (70, 1)).astype(np.float32)
    first = affinities.DistanceLevels(metric="cosine").fit(X).matrix()
    second = affinities.DistanceLevels(metric="cosine").fit(scaled).matrix()
    assert (first != second).mean() < 0.001


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: affinities.SameClass().fit(None, [1, 1, 1]), "only one class"),
        (lambda: affinities.SameClass().fit(X, None), "needs labels: pass y"),
        (lambda: affinities.MeanFeatures().fit(None, CLASSES), "pass X, or use its base"),
        (lambda: affinities.MeanFeatures(share=2).fit(X, CLASSES), "between 0 and 1"),
        (lambda: affinities.Centred(share=-1).fit(X, CLASSES), "between 0 and 1"),
        (lambda: affinities.Centred().fit(X), "needs labels: pass y"),
        (lambda: affinities.SameClass().fit(None, LABELS), "For multi-label data use"),
        (lambda: affinities.SameClass(items="labels").fit(None, CLASSES), "'classes' or 'instances'"),
        (lambda: affinities.SameClass().fit(None, [0.0, np.nan]), "NaN or infinity"),
        (lambda: affinities.SharedLabels().fit(None, CLASSES), "use affinity='same_class'"),
        (lambda: affinities.SharedLabels().fit(None, [[0, 2], [1, 0]]), "every value is 0 or 1; found"),
        (lambda: affinities.SharedLabels().fit(None, [[0, 1], [0, 1]]), "at least two different"),
        (lambda: affinities.LabelOverlap().fit(None, LABELS).cross([[1, 0]]), "fitted on 7 labels; found rows of 2"),
        (lambda: affinities.Precomputed().fit(np.ones((3, 4))), "square matrix, items by items; found shape"),
        (lambda: affinities.Precomputed().fit([[1, 0.5], [0.4, 1]]), r"must be symmetric; found 0.5 at \(0, 1\)"),
        (lambda: affinities.Precomputed().fit([[1, np.nan], [np.nan, 1]]), "must be finite; found nan at row 0"),
        (lambda: affinities.Precomputed().fit([[1, 3], [3, 1]]), "found 1 to 3. Scale it"),
        (lambda: affinities.Precomputed(kind="distance").fit([[0, -1], [-1, 0]]), "never negative"),
        (lambda: affinities.Precomputed(kind="distance").fit(np.zeros((3, 3))), "all items are equal"),
        (lambda: affinities.DistanceLevels(percentiles=(5, 2)).fit(X), "percentiles must increase"),
        (lambda: affinities.DistanceLevels(levels=(1, 2, 3, 4)).fit(X), "levels must fall"),
        (lambda: affinities.DistanceLevels().fit(np.ones((4, 2))), "All instances are equal"),
        (lambda: affinities.ClassSimilarity(SIMILARITY).fit(None, [0, 1]), "6 rows but there are 2 classes"),
        (lambda: affinities.ClassSimilarity().fit(None, CLASSES), "needs `similarity`"),
    ],
)
def test_bad_input_is_refused_in_one_sentence(build, message):
    with pytest.raises(ValueError, match=message):
        build()


def test_a_matrix_too_large_for_memory_says_how_large():
    affinity = affinities.SameClass(items="instances").fit(None, np.arange(3_000_000) % 10)
    with pytest.raises(ValueError, match=r"3,000,000 items takes 33,527\.6 GiB.*infer_codes.*max_items"):
        affinity.matrix()
