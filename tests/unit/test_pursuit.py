"""The pursuit's shortcuts against plain matrices."""

import numpy as np
import pytest

import hbmp
from hbmp.affinities import LabelOverlap, SameClass, SharedLabels
from hbmp.pursuit.bqp import one_flip, tabu
from hbmp.pursuit.fit import Fit, solve_weights
from hbmp.pursuit.operator import AffinityOperator, DenseOperator, as_operator
from hbmp.pursuit.spectral import Eigenspace, canonical_signs, spectral_starts


def random_affinity(n, seed=0):
    values = np.random.default_rng(seed).uniform(-1, 1, (n, n))
    return (values + values.T) / 2


def off_diagonal(matrix):
    return matrix - np.diag(np.diag(matrix))


def residual_by_hand(book, R, weights=None, diagonal="ignore", item_weights=None):
    alpha = book.weights if weights is None else weights
    V = book.codes[:, : len(alpha)].astype(float)
    error = R * book.scale - (V * alpha) @ V.T - book.intercept
    error = off_diagonal(error) if diagonal == "ignore" else error
    c = np.ones(len(R)) if item_weights is None else item_weights / np.mean(item_weights)
    return np.sqrt((c[:, None] * c * error**2).sum())


@pytest.mark.parametrize("scheme", ["constant", "greedy", "regress"])
@pytest.mark.parametrize("diagonal", ["ignore", "fit"])
@pytest.mark.parametrize("weighted", [False, True])
def test_residual_is_the_norm_of_what_is_left(scheme, diagonal, weighted):
    R = random_affinity(17)
    c = np.random.default_rng(1).uniform(0.2, 3, 17) if weighted else None
    book = hbmp.infer_codes(R, 9, scheme=scheme, diagonal=diagonal, item_weights=c)
    assert book.residuals.shape == (10,)
    assert book.residuals[-1] == pytest.approx(residual_by_hand(book, R, None, diagonal, c), rel=1e-9)


def test_regressed_weights_are_those_of_the_full_design_matrix():
    R = random_affinity(12)
    book = hbmp.infer_codes(R, 8)
    pairs = ~np.eye(12, dtype=bool)
    design = np.stack([np.outer(v, v)[pairs] for v in book.codes.T.astype(float)], axis=1)
    np.testing.assert_allclose(book.weights, np.linalg.lstsq(design, R[pairs], rcond=None)[0], atol=1e-9)
    for k in (1, 3, 8):
        best = np.linalg.lstsq(design[:, :k], R[pairs], rcond=None)[0]
        np.testing.assert_allclose(book.weights_for(k), best, atol=1e-9)
        np.testing.assert_allclose(book.prefix(k).weights, best, atol=1e-9)
        assert book.residuals[k] == pytest.approx(np.linalg.norm(R[pairs] - design[:, :k] @ best))


def test_weights_of_least_norm_where_bits_exceed_pairs():
    R = 2 * np.eye(5) - 1
    book = hbmp.infer_codes(R, 16, tol=0)
    pairs = ~np.eye(5, dtype=bool)
    design = np.stack([np.outer(v, v)[pairs] for v in book.codes.T.astype(float)], axis=1)
    np.testing.assert_allclose(book.weights, np.linalg.pinv(design, rcond=1e-8) @ R[pairs], atol=1e-7)


def test_intercept_is_one_more_free_direction():
    R = random_affinity(14)
    book = hbmp.infer_codes(R, 6, intercept=True)
    pairs = ~np.eye(14, dtype=bool)
    columns = [np.ones(pairs.sum())] + [np.outer(v, v)[pairs] for v in book.codes.T.astype(float)]
    best = np.linalg.lstsq(np.stack(columns, axis=1), R[pairs], rcond=None)[0]
    np.testing.assert_allclose([book.intercept, *book.weights], best, atol=1e-9)
    assert book.residuals[-1] == pytest.approx(residual_by_hand(book, R))
    np.testing.assert_allclose(book.weights_for(6), book.weights)


def test_non_negative_and_ridge_weights():
    R = random_affinity(14, seed=5)
    gram_book = hbmp.infer_codes(R, 12)
    free = solve_weights(gram_book.gram, gram_book.match, "least-squares", 0.0)
    bounded = solve_weights(gram_book.gram, gram_book.match, "non-negative", 0.0)
    shrunk = solve_weights(gram_book.gram, gram_book.match, "ridge", 1.0)

    def cost(alpha):
        return alpha @ gram_book.gram @ alpha - 2 * alpha @ gram_book.match

    assert bounded.min() >= 0
    slope = 2 * (gram_book.gram @ bounded - gram_book.match)  # optimal: no slope inside, none downhill at the bound
    assert np.abs(slope[bounded > 1e-9]).max() < 1e-6
    assert slope[bounded <= 1e-9].min(initial=0) > -1e-6
    assert np.linalg.norm(shrunk) < np.linalg.norm(free)
    assert cost(free) <= min(cost(bounded), cost(shrunk))
    for weighting in ("non-negative", "ridge"):
        assert (hbmp.infer_codes(R, 12, weighting=weighting, intercept=True).weights >= 0).all()


def test_more_bits_than_pairs_of_classes_leave_no_weight_negative():
    R = np.where(np.eye(10) > 0, 1.0, -1.0)
    plain, shrunk = (hbmp.infer_codes(R, 64, weighting=name, ridge=0.1, tol=0) for name in ("least-squares", "ridge"))
    assert plain.weights.min() < 0
    for k in (24, 48, 64):
        assert shrunk.weights_for(k).min() >= 0


def make_fit(R, *, bits=3, **settings):
    fit = Fit(as_operator(R), np.ones(len(R)), **{"diagonal": "ignore", "scale": 1.0, "intercept": False, **settings})
    rng = np.random.default_rng(3)
    for _ in range(bits):
        fit.append(canonical_signs(rng.standard_normal(len(R))))
    fit.weights = solve_weights(fit.gram, fit.match, "least-squares", 0.0)
    return fit


def residual_matrix(fit, R):
    V = fit.directions.astype(float)
    c = fit.item_weights
    return off_diagonal((R - (V * fit.weights) @ V.T) * c[:, None] * c)


@pytest.mark.parametrize(("small_items", "held_items"), [(1024, 8192), (0, 8192), (0, 0)])
def test_residual_operator_is_the_residual_matrix(small_items, held_items, monkeypatch):
    R = random_affinity(20)
    fit = make_fit(R)
    fit.item_weights = fit._c = np.random.default_rng(2).uniform(0.5, 2, 20)
    fit._unweighted = False
    monkeypatch.setattr("hbmp.pursuit.fit.SMALL_ITEMS", small_items)
    monkeypatch.setattr("hbmp.pursuit.fit.HELD_ITEMS", held_items)
    assert fit.has_matrix == (small_items + held_items > 0)
    A = residual_matrix(fit, R)
    vectors = np.random.default_rng(1).standard_normal((20, 4))
    np.testing.assert_allclose(fit.residual_times(vectors), A @ vectors, atol=1e-9)
    columns = np.array([2, 7, 11])
    np.testing.assert_allclose(
        fit.residual_times_columns(columns, vectors[:3, 0]), A[:, columns] @ vectors[:3, 0], atol=1e-9
    )
    np.testing.assert_allclose(fit.residual_block(columns), A[np.ix_(columns, columns)], atol=1e-9)


def test_a_held_residual_follows_every_change(monkeypatch):
    monkeypatch.setattr("hbmp.pursuit.fit.SMALL_ITEMS", 0)
    R, rng = random_affinity(20), np.random.default_rng(5)
    fit = Fit(as_operator(R), rng.uniform(0.5, 2, 20), diagonal="ignore", scale=1.0, intercept=True)
    for change in range(12):
        signs = canonical_signs(rng.standard_normal(20))
        if change % 3 == 2:
            fit.replace(int(rng.integers(1, fit.directions.shape[1])), signs)
        else:
            fit.append(signs)
        if change % 2:
            fit.weights = rng.standard_normal(fit.directions.shape[1])
        if change != 7:  # several changes at once, too
            np.testing.assert_allclose(fit.matrix(), residual_matrix(fit, R), atol=1e-9)


@pytest.mark.parametrize("machine_code", [True, False])
def test_flips_of_a_held_residual_are_those_of_a_small_one(machine_code, monkeypatch):
    """Items, bits and codes, with numba and without it."""
    if machine_code:
        pytest.importorskip("numba")
    affinity = SharedLabels().fit(y=(np.random.default_rng(0).random((400, 9)) < 0.2).astype(int))
    monkeypatch.setattr("hbmp.pursuit.operator.DenseOperator.steps_at_once", 0)
    small = hbmp.infer_codes(affinity, 10, refine=1, restarts=3)
    monkeypatch.setattr("hbmp.pursuit.fit.SMALL_ITEMS", 100)
    if not machine_code:
        monkeypatch.setattr("hbmp.pursuit.bqp.compiled", lambda loop: None)
    held = hbmp.infer_codes(affinity, 10, refine=1, restarts=3)
    np.testing.assert_array_equal(held.codes, small.codes)
    np.testing.assert_allclose(held.residuals, small.residuals)


def test_decrease_is_what_refitting_brings():
    R = random_affinity(15, seed=2)
    fit = make_fit(R, bits=4)
    candidates = np.stack([canonical_signs(np.random.default_rng(s).standard_normal(15)) for s in range(6)], axis=1)
    A = residual_matrix(fit, R)
    match = np.einsum("nk,nm,mk->k", candidates, A, candidates)
    promised = fit.decrease(candidates, match, np.arange(4))
    for k in range(6):
        grown = make_fit(R, bits=4)
        before = grown.residual() ** 2
        grown.append(candidates[:, k])
        grown.weights = solve_weights(grown.gram, grown.match, "least-squares", 0.0)
        brought = before - grown.residual() ** 2
        assert promised[k] == pytest.approx(brought, abs=1e-6)


@pytest.mark.parametrize("search", [one_flip, tabu])
@pytest.mark.parametrize("n", [12, 700, 1100])
def test_search_ends_where_no_flip_helps_and_never_below_its_start(search, n):
    R = random_affinity(n, seed=4)
    fit = make_fit(R)
    A = residual_matrix(fit, R)
    start = canonical_signs(np.random.default_rng(8).standard_normal(n))
    signs, field = search(fit, start, A @ start, np.random.default_rng(0))
    np.testing.assert_allclose(field, A @ signs, atol=1e-7)
    assert signs @ A @ signs >= start @ A @ start
    assert (signs * field).min() >= -1e-7


def test_tabu_finds_the_best_of_all_sign_vectors():
    R = random_affinity(11, seed=9)
    fit = make_fit(R, bits=0)
    A = residual_matrix(fit, R)
    every = np.array([[1, *(1 - 2 * ((code >> k) & 1) for k in range(10))] for code in range(1024)])
    best = np.einsum("in,nm,im->i", every, A, every).max()
    signs, _ = tabu(fit, every[5].astype(np.int8), A @ every[5], np.random.default_rng(0))
    assert signs @ A @ signs == pytest.approx(best)


def test_eigenspace_iteration_agrees_with_a_full_decomposition(monkeypatch):
    R = random_affinity(300, seed=6)
    monkeypatch.setattr("hbmp.pursuit.spectral.DENSE_ITEMS", 10)
    values, vectors = Eigenspace(300, np.float64, np.random.default_rng(0), exact=True).update(lambda v: R @ v)
    true_values, true_vectors = np.linalg.eigh(R)
    assert values[0] == pytest.approx(true_values[-1], rel=1e-5)
    assert abs(vectors[:, 0] @ true_vectors[:, -1]) > 0.999


def test_starts_do_not_depend_on_the_basis_of_a_degenerate_eigenspace():
    values, vectors = np.linalg.eigh(2 * np.eye(10) - 1)
    values, vectors = values[::-1], vectors[:, ::-1]
    rotation = np.linalg.qr(np.random.default_rng(0).standard_normal((9, 9)))[0]
    rotated = np.hstack([vectors[:, :9] @ rotation, vectors[:, 9:]])
    first = spectral_starts(values, vectors, 5, np.random.default_rng(1))
    np.testing.assert_array_equal(first, spectral_starts(values, rotated, 5, np.random.default_rng(1)))


def label_sets(n, labels, seed=0):
    Y = (np.random.default_rng(seed).random((n, labels)) < 0.25).astype(np.float32)
    return Y[Y.any(axis=1)]


@pytest.mark.parametrize("affinity", [SharedLabels(items="instances"), LabelOverlap(items="instances")])
def test_large_affinities_in_blocks_or_by_labels_give_the_codes_of_the_dense_one(affinity, monkeypatch):
    affinity.fit(None, label_sets(900, 12))
    dense = hbmp.infer_codes(affinity.matrix().astype(np.float64), 10)
    monkeypatch.setattr("hbmp.pursuit.operator.DOUBLE_ITEMS", 100)
    monkeypatch.setattr("hbmp.pursuit.operator.DENSE_BYTES", 1000)
    operator = as_operator(affinity)
    assert isinstance(operator, AffinityOperator)
    structured = hbmp.infer_codes(affinity, 10)
    assert structured.residuals[-1] == pytest.approx(dense.residuals[-1], rel=0.02)
    monkeypatch.setattr("hbmp.pursuit.operator.DENSE_BYTES", 2**40)
    single = hbmp.infer_codes(affinity.matrix(), 10)
    assert isinstance(as_operator(affinity.matrix()), DenseOperator)
    assert single.residuals[-1] == pytest.approx(dense.residuals[-1], rel=0.02)


def test_an_affinity_that_rounding_made_asymmetric_is_made_symmetric_again():
    """Otherwise the search never ends once 45 bits have explained all of ten items but that rounding."""
    random = np.random.default_rng(0)
    half = np.clip(random.standard_normal((10, 10)) / 4, -1, 1)
    matrix = ((half + half.T) / 2).astype(np.float32)
    np.fill_diagonal(matrix, 1)
    matrix[np.triu_indices(10, 1)] *= np.float32(1 + 1e-7)
    assert (matrix != matrix.T).any()
    values = as_operator(matrix).values
    assert (values == values.T).all()
    np.testing.assert_allclose(values, matrix, atol=1e-6)
    assert hbmp.infer_codes(matrix, 48, tol=0, random_state=0).relative_residuals[-1] < 1e-5


def test_auto_length_stops_at_the_bound_and_tol_stops_early():
    R = 2 * np.eye(10) - 1
    book = hbmp.infer_codes(R, "auto", max_residual=0.3)
    assert book.relative_residuals[-1] <= 0.3 < book.relative_residuals[-2]
    early = hbmp.infer_codes(R, 64, tol=0.5)
    assert early.relative_residuals[-1] <= 0.5 < early.relative_residuals[-2]
    assert hbmp.infer_codes(R, 64, tol=1e-6).n_bits < 64
    assert hbmp.infer_codes(R, 64).codes.shape == (10, 64)
    assert hbmp.infer_codes(random_affinity(30), "auto", max_residual=1e-9, max_bits=7).n_bits == 7


def test_bits_repeat_only_where_nothing_else_is_left():
    book = hbmp.infer_codes(2 * np.eye(10) - 1, 64, tol=0)
    assert len(np.unique(book.codes.T, axis=0)) == 64
    two = hbmp.infer_codes(2 * np.eye(2) - 1, 5, tol=0)
    np.testing.assert_array_equal(two.codes, [[1] * 5, [-1] * 5])
    np.testing.assert_allclose(two.weights, 0.2)


def test_count_weights_stand_for_repeated_instances():
    y = np.repeat(np.arange(6), [1, 2, 3, 4, 5, 30])
    by_class = SameClass().fit(None, y)
    weighted = hbmp.infer_codes(by_class, 4, item_weights="count")
    explicit = hbmp.infer_codes(by_class, 4, item_weights=by_class.counts_)
    np.testing.assert_array_equal(weighted.codes, explicit.codes)
    root = hbmp.infer_codes(by_class, 4, item_weights="sqrt-count")
    np.testing.assert_allclose(root.item_weights / root.item_weights[0], np.sqrt(by_class.counts_))


def test_refinement_lowers_the_residual_and_keeps_its_account():
    R = random_affinity(40, seed=3)
    plain, refined = hbmp.infer_codes(R, 12), hbmp.infer_codes(R, 12, refine=3)
    assert refined.residuals[-1] < plain.residuals[-1]
    assert refined.residuals[-1] == pytest.approx(residual_by_hand(refined, R))
    assert refined.residuals[5] == pytest.approx(residual_by_hand(refined, R, refined.weights_for(5)))


def test_encode_keeps_known_codes_and_finds_the_best_for_new_ones():
    sets = label_sets(60, 6, seed=2)
    affinity = SharedLabels().fit(None, sets)
    book = hbmp.infer_codes(affinity, 7)
    np.testing.assert_array_equal(book.encode(sets), book.codes[affinity.item_of_])
    new = np.array([row for row in np.ndindex(*[2] * 6) if affinity.find([row])[0] < 0])
    assert len(new) > 3
    found = book.encode(new)
    every = np.array(list(np.ndindex(*[2] * 7))) * 2 - 1
    for row, code in zip(affinity.cross(new), found, strict=True):
        costs = ((row - (every * book.weights) @ book.codes.T) ** 2).sum(axis=1)
        mine = ((row - (code * book.weights) @ book.codes.T) ** 2).sum()
        assert mine <= np.percentile(costs, 2)  # best, or one flip from it


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_bits": 0}, "n_bits must be a whole number of at least 1, found 0"),
        ({"n_bits": -4}, "n_bits must be"),
        ({"n_bits": 3.0}, "n_bits must be"),
        ({"n_bits": "many"}, "or 'auto', found 'many'"),
        ({"scheme": "lasso"}, "scheme must be one of 'constant', 'greedy', 'regress'; found 'lasso'"),
        ({"improve": "two-flip"}, "improve must be one of"),
        ({"diagonal": "skip"}, "diagonal must be one of"),
        ({"weighting": "free"}, "weighting must be one of"),
        ({"intercept": True, "scheme": "greedy"}, "needs scheme='regress'"),
        ({"restarts": 0}, "restarts must be"),
        ({"refine": -1}, "refine must be"),
        ({"item_weights": "log"}, "'count', 'sqrt-count' or an array"),
        ({"item_weights": [1, 2]}, r"one number for each of 4 items, found shape \(2,\)"),
        ({"item_weights": [1, np.nan, 1, 1]}, "must be finite"),
        ({"device": "tpu"}, "device must be 'auto', 'cpu' or 'cuda'"),
    ],
)
def test_bad_settings_are_refused_in_one_sentence(settings, message):
    with pytest.raises(ValueError, match=message):
        hbmp.infer_codes(2 * np.eye(4) - 1, **{"n_bits": 4, **settings})


def test_bad_affinities_are_refused():
    with pytest.raises(ValueError, match="is not fitted"):
        hbmp.infer_codes(SameClass(), 4)
    with pytest.raises(ValueError, match="must be symmetric"):
        hbmp.infer_codes(np.array([[1.0, 0.2], [0.3, 1.0]]), 4)
    with pytest.raises(ValueError, match="found 9"):
        hbmp.infer_codes(2 * np.eye(4) - 1, 4).weights_for(9)


def test_a_prefix_has_an_intercept_of_its_own():
    similarity = np.random.default_rng(3).uniform(-1, 1, (12, 12))
    affinity = ((similarity + similarity.T) / 2).astype(np.float32) * 0.5 + 0.4
    long, short = (hbmp.infer_codes(affinity, bits, intercept=True, random_state=0, tol=0) for bits in (9, 4))
    prefix = long.prefix(4)
    np.testing.assert_array_equal(prefix.codes, short.codes)
    assert abs(short.intercept - long.intercept) > 1e-3
    assert prefix.intercept == pytest.approx(short.intercept)
    np.testing.assert_allclose(prefix.weights, short.weights)
