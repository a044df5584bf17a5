"""What the encoder is trained on and what its label queries are made from."""

import numpy as np
import pytest

from hbmp import hamming
from hbmp.affinities import SameClass
from hbmp.functions import Linear
from hbmp.methods.hbmp import encoder as encoding
from hbmp.methods.hbmp.encoder import BitEncoder
from hbmp.methods.hbmp.label_queries import make_queries
from hbmp.methods.hbmp.plan import Plan, TargetSettings
from hbmp.methods.hbmp.targets import Target
from hbmp.pursuit import infer_codes


@pytest.fixture
def two_kinds():
    rng = np.random.default_rng(0)
    y = np.repeat([0, 1, 2], 40)
    X = (rng.standard_normal((120, 6)) + 1.2 * np.eye(3, 6)[y]).astype(np.float32)
    affinity = SameClass().fit(None, y)
    book = infer_codes(affinity, 8)
    return X, y, Target(TargetSettings(0.0, False), affinity, book)


def plan_of(**settings):
    return Plan(n_bits=8, function=Linear(epochs=3, device="cpu"), n_classes=3, **settings)


def test_only_items_that_are_classes_are_as_unlike_as_can_be(two_kinds):
    _, _, target = two_kinds
    assert encoding._certain_codes(target, plan_of()) is target.book.codes
    # Rows as items: as many as there are rows, alike to a degree, so that the loss compares them within a batch.
    assert encoding._certain_codes(target, Plan(n_bits=8, n_classes=120)) is None


def test_label_vectors_come_from_the_codes_that_the_function_gives(two_kinds):
    X, y, target = two_kinds
    found = BitEncoder.fit(X, y, target, plan_of(learns_labels=True, label_share=0.25, label_queries=True), 0)
    odds, scores = found.odds(X), found.scores(X)
    given, wanted = hamming.signs(odds), target.book.codes[target.item_of]
    assert (given != wanted).any()  # else the two would be the same
    expected = make_queries(given, y, 3).levelled(odds, scores.labels)
    np.testing.assert_allclose(found.queries.vectors, expected.vectors, rtol=1e-5)
    others = make_queries(wanted, y, 3).levelled(odds, scores.labels)
    assert not np.allclose(found.queries.vectors, others.vectors, rtol=1e-3)
