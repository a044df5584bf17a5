"""Labels in the forms people have them: what is taken as it is, and what is told to come in another form."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.preprocessing import MultiLabelBinarizer

import hbmp
from hbmp import metrics
from hbmp._core.labels import as_classes, as_label_sets

WORDS = ["ant", "bee", "cat"] * 4
SETS = [{"digit", "odd"}, {"digit"}, {"odd"}] * 4
LISTS = [sorted(labels) for labels in SETS]


def test_words_are_classes_in_every_form():
    forms = [WORDS, tuple(WORDS), np.array(WORDS), np.array(WORDS, object), np.array(WORDS, np.dtypes.StringDType())]
    for form in forms:
        assert as_classes(form).tolist() == WORDS
        assert metrics.relevance.SameClass(form, form).grades(0, 1).tolist() == [[True, False, False] * 4]


def test_pandas_labels_are_read_by_position_and_their_gaps_are_refused():
    pd = pytest.importorskip("pandas")
    rows = np.random.default_rng(0).permutation(12)
    for dtype in (object, "string", "category"):
        assert as_classes(pd.Series(WORDS, dtype=dtype)[rows]).tolist() == [WORDS[row] for row in rows]
    gaps = [pd.NA, *WORDS]
    dates = pd.to_datetime(["2001-01-01", None])
    for series in (pd.Series(gaps), pd.Series(gaps, dtype="string"), pd.Series(dates), pd.Series(dates, dtype=object)):
        with pytest.raises(ValueError, match="labels holds missing values"):
            as_classes(series, "labels")


@pytest.mark.parametrize(
    ("labels", "found"),
    [
        (SETS, r"y holds collections such as \{'"),
        (LISTS, "y holds sequences of unequal length"),
        ([["digit", word] for word in WORDS], "y must hold 0 and 1; found values of type <U5"),
    ],
)
def test_metrics_take_several_labels_per_instance_as_a_matrix(labels, found):
    codes = np.ones((12, 4), np.int8)
    with pytest.raises(ValueError, match=rf"{found.replace('y', 'query_labels', 1)}.*MultiLabelBinarizer"):
        metrics.mean_average_precision(codes, codes, labels, labels)


def test_the_matrix_that_is_recommended_is_taken():
    matrix = MultiLabelBinarizer().fit_transform(LISTS)
    np.testing.assert_array_equal(as_label_sets(matrix), [["digit" in row, "odd" in row] for row in LISTS])


def test_codes_of_unseen_label_sets_do_not_depend_on_the_container():
    pd = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    labels = (rng.random((60, 5)) < 0.4).astype(int)
    known, new = labels[labels[:, 4] == 0], labels[::-1]
    book = hbmp.infer_codes(hbmp.affinities.SharedLabels().fit(None, known), 8)
    assert (book.affinity.find(new) < 0).any()
    frame = pd.DataFrame(new, columns=list("abcde"), index=range(60, 0, -1))
    for form in (new.tolist(), frame):
        np.testing.assert_array_equal(book.encode(form), book.encode(new))


def test_a_code_book_is_described_in_one_line():
    X, y = load_digits(return_X_y=True)
    book = hbmp.infer_codes(hbmp.affinities.SameClass().fit(X, y), 8)
    assert repr(book).startswith("CodeBook(10 items, 8 bits, scheme='regress', 0.")
