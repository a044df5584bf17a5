"""Length bits: rows that differ in length are coded by direction and length."""

import numpy as np
import pytest

import hbmp
from hbmp.methods.hbmp.lengths import RebuildingLengths, length_bits, levels_of, places_of, steps_of, with_lengths
from hbmp.methods.hbmp.unlabelled import Rebuilding


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((1300, 16)).astype(np.float32)
    return X * np.exp(0.4 * rng.standard_normal((len(X), 1))).astype(np.float32)


@pytest.fixture(scope="module")
def model(rows):
    return hbmp.HBMP(24, random_state=0).fit(rows[:1200])


def recall(similarity, truth, k=10):
    near, found = (np.argsort(-each, axis=1)[:, :k] for each in (truth, similarity))
    return np.mean([len(np.intersect1d(a, b)) / k for a, b in zip(near, found, strict=True)])


def test_lengths_get_bits_where_they_differ(rows):
    unit = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    assert length_bits(rows, 24) >= 2
    assert length_bits(unit, 24) == 0
    assert type(with_lengths(Rebuilding(), unit, 24)) is Rebuilding
    assert type(with_lengths(Rebuilding(nested=True), rows, 24)) is Rebuilding
    assert type(with_lengths(Rebuilding(length_bits=0), rows, 24)) is Rebuilding
    assert with_lengths(Rebuilding(length_bits=5), unit, 24).length_bits == 5


def test_rows_far_from_the_origin_and_fine_codes(rows):
    unit = rows + np.float32(8) * (np.arange(16) == 0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    assert length_bits(unit, 24) >= 3
    assert length_bits(unit, 48) == length_bits(rows, 48, "ip") == 0
    assert length_bits(rows, 48) >= 3
    assert length_bits(np.ones((300, 3), np.float32), 2) == length_bits(rows[:100], 24) == 0
    assert hbmp.HBMP(24, function=Rebuilding(metric="ip"), random_state=0).fit(unit).function_.n_lengths_ >= 3


def test_length_bits_are_a_count():
    for wrong in (-1, True, "many", 2.5, 8):
        with pytest.raises(ValueError, match="length_bits"):
            hbmp.HBMP(8, function=Rebuilding(length_bits=wrong)).fit(np.eye(8, dtype=np.float32))


def test_the_last_bits_number_the_lengths(model, rows):
    function = model.function_
    assert isinstance(function, RebuildingLengths)
    rebuilt = function.rebuild(model.transform(rows[1200:]))
    lengths = [np.linalg.norm(each - function.mean_, axis=1) for each in (rebuilt, rows[1200:])]
    assert np.corrcoef(*lengths)[0, 1] > 0.9


@pytest.mark.parametrize("metric", ["l2", "ip"])
def test_length_bits_find_more_of_the_nearest(metric, rows):
    database, queries = rows[:1200], rows[1200:]
    truth = queries @ database.T - (np.square(database).sum(axis=1) / 2 if metric == "l2" else 0)
    found = {}
    for n_lengths in (0, 3):
        function = Rebuilding(metric=metric, length_bits=n_lengths, n_iter=5)
        model = hbmp.HBMP(24, function=function, random_state=0).fit(database)
        scores = model.project(queries) @ (model.transform(database) * model.bit_weights_).T
        found[n_lengths] = recall(scores, truth)
        assert model.recall_.low - 0.05 < found[n_lengths] < model.recall_.high + 0.05
    assert found[3] > found[0] + 0.03


def test_levels_and_their_bits():
    levels = levels_of(np.exp(np.random.default_rng(0).standard_normal(2000)), 3)
    assert len(levels) == 8
    assert (np.diff(levels) > 0).all()
    places = places_of(np.arange(8), 3)
    assert places.tolist()[6] == [1, 1, -1]
    uniform = np.arange(8.0)
    np.testing.assert_allclose(uniform.mean() + places @ steps_of(uniform), uniform)


def test_a_saved_model_and_signed_scores_give_the_same_codes(model, rows, tmp_path):
    model.save(tmp_path / "model")
    loaded, few = hbmp.load(tmp_path / "model"), rows[1200:]
    np.testing.assert_array_equal(loaded.transform(few), model.transform(few))
    np.testing.assert_allclose(loaded.project(few), model.project(few), rtol=1e-5)
    np.testing.assert_array_equal(model.function_.project(few) > 0, model.transform(few) > 0)
    weighted = model.function_.query_scores(few, model.bit_weights_) * model.bit_weights_
    ratio = weighted / (model.project(few) * model.bit_weights_)
    np.testing.assert_allclose(ratio, np.broadcast_to(ratio[:1], ratio.shape), rtol=1e-3)
