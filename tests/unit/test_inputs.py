"""Data of the command line are read as meant, or refused in one sentence."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hbmp.app.inputs import in_the_same_columns, read_data, read_features, read_labels
from hbmp.datasets import Data

X = np.arange(12, dtype=np.float32).reshape(4, 3) / 7
Y = np.array([3, 1, 1, 2])
SETS = np.array([[1, 0], [1, 1], [0, 0], [0, 1]], dtype=np.uint8)


def write(path, text):
    path.write_text(text, encoding="utf-8")
    return path


def test_features_come_from_every_kind_of_file(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    np.save(tmp_path / "a.npy", X)
    np.savez(tmp_path / "named.npz", X=X, y=Y)
    np.savez(tmp_path / "alone.npz", X)
    np.savetxt(tmp_path / "bare.csv", X, delimiter=",", fmt="%.9g")
    np.savetxt(tmp_path / "tabs.tsv", X, delimiter="\t", fmt="%.9g")
    np.savetxt(tmp_path / "headed.csv", X, delimiter=",", fmt="%.9g", header="a,b,c", comments="")
    parquet.write_table(pa.table({"features": list(X)}), tmp_path / "list.parquet")
    parquet.write_table(pa.table({"embedding": list(X), "id": [9, 8, 7, 6]}), tmp_path / "embedding.parquet")
    parquet.write_table(pa.table({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2], "labels": Y}), tmp_path / "columns.pq")
    (tmp_path / "folder").mkdir()
    np.save(tmp_path / "folder" / "features.npy", X)
    for path in sorted(tmp_path.iterdir()):
        found = read_features(path)
        np.testing.assert_allclose(found, X, rtol=1e-6, err_msg=path.name)
        assert found.dtype == np.float32
    assert isinstance(read_features(tmp_path / "a.npy"), np.memmap)
    np.testing.assert_array_equal(read_data(tmp_path / "named.npz").labels, Y)
    np.testing.assert_array_equal(read_data(tmp_path / "columns.pq").labels, Y)
    assert read_data(tmp_path / "bare.csv").labels is None


def test_a_data_set_is_read_by_its_name():
    data = read_data("digits")
    assert data.features.shape == (1797, 64)
    assert len(data.labels) == 1797


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("y.csv", "3\n1\n1\n2\n"),
        ("y.csv", "label\n3\n1\n1\n2\n"),
        ("y.csv", "\ufefffile,Label\na.jpg,3\nb.jpg,1\nc.jpg,1\nd.jpg,2\n"),
        ("y.csv", ",y\n0,3\n1,1\n2,1\n3,2\n"),
        ("y.csv", "something\n3\n1\n1\n2\n"),
        ("y.tsv", "id\tclass\tremark\n0\t3\tx\n1\t1\tx\n2\t1\tx\n3\t2\tx\n"),
        ("y.txt", "3\n1\n1\n2"),
    ],
)
def test_classes_from_text(name, text, tmp_path):
    labels, names = read_labels(write(tmp_path / name, text))
    np.testing.assert_array_equal(labels, Y)
    assert labels.dtype.kind == "i"
    assert names == ()


@pytest.mark.parametrize(
    ("name", "text", "named"),
    [
        ("y.csv", "label\nsand\nsand;sea\n;\n sea ;\n", True),
        ("y.csv", "file,labels\na,sand\nb,sand;sea\nc,\nd,sea\n", True),
        ("y.txt", "sand\nsea;sand\n\nsea\n", True),
        ("y.csv", "sand,sea\n1,0\n1,1\n0,0\n0,1\n", True),
        ("y.csv", "id,sand,sea\n7,1,0\n8,1,1\n9,0,0\n10,0,1\n", True),
        ("y.csv", "1,0\n1,1\n0,0\n0,1\n", False),
        ("y.txt", "1 0\n1 1\n0 0\n0 1\n", False),
    ],
)
def test_label_sets_from_text(name, text, named, tmp_path):
    labels, names = read_labels(write(tmp_path / name, text))
    np.testing.assert_array_equal(labels, SETS)
    assert names == (("sand", "sea") if named else ())


def test_labels_from_arrays_and_parquet(tmp_path):
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    np.save(tmp_path / "y.npy", Y)
    np.save(tmp_path / "sets.npy", SETS)
    np.savez(tmp_path / "y.npz", labels=SETS, classes=["sand", "sea"])
    lists = [["sand"], ["sea", "sand"], [], ["sea"]]
    parquet.write_table(pa.table({"labels": lists, "more": [1, 2, 3, 4]}), tmp_path / "lists.parquet")
    parquet.write_table(pa.table({"class": Y, "more": [1.5, 2, 3, 4]}), tmp_path / "class.parquet")
    parquet.write_table(pa.table({"anything": Y}), tmp_path / "only.parquet")
    parquet.write_table(pa.table({"id": Y, "sand": SETS[:, 0], "sea": SETS[:, 1]}), tmp_path / "matrix.parquet")
    for name in ("y.npy", "class.parquet", "only.parquet"):
        np.testing.assert_array_equal(read_labels(tmp_path / name)[0], Y)
    for name in ("sets.npy", "y.npz", "lists.parquet", "matrix.parquet"):
        np.testing.assert_array_equal(read_labels(tmp_path / name)[0], SETS)
    for name in ("y.npz", "lists.parquet", "matrix.parquet"):
        assert read_labels(tmp_path / name)[1] == ("sand", "sea")


def test_words_stay_words_and_a_header_is_only_taken_where_there_is_one(tmp_path):
    labels, _ = read_labels(write(tmp_path / "y.csv", "dog\ncat\n007\ndog\n"))
    assert labels.tolist() == ["dog", "cat", "007", "dog"]


def test_a_csv_may_hold_features_and_labels(tmp_path):
    path = write(tmp_path / "both.csv", 'id,a,label,b\n1,0.5,"dog",2\n2,-1,cat,3\n')
    data = read_data(path)
    np.testing.assert_array_equal(data.features, np.array([[0.5, 2], [-1, 3]], dtype=np.float32))
    assert data.labels.tolist() == ["dog", "cat"]


def test_a_file_of_labels_counts_before_labels_beside_the_features(tmp_path):
    np.savez(tmp_path / "both.npz", features=X, labels=Y)
    data = read_data(tmp_path / "both.npz", write(tmp_path / "y.txt", "a\nb\nb\na\n"))
    assert data.labels.tolist() == ["a", "b", "b", "a"]


@given(
    st.lists(st.frozensets(st.sampled_from("abcde")), min_size=1, max_size=6),
    st.lists(st.frozensets(st.sampled_from("cdefg")), min_size=1, max_size=6),
)
def test_labels_of_two_files_come_into_the_same_columns(first, second):
    """Shared labels of every pair, counted on the sets themselves."""
    from hbmp._core.label_matrix import matrix_of

    data = []
    for sets in (first, second):
        matrix, names = matrix_of(sets)
        data.append(Data(name="some", labels=matrix, label_names=names, features=np.zeros((len(sets), 1))))
    left, right = in_the_same_columns(*data)
    shared = left.labels.astype(int) @ right.labels.astype(int).T
    assert shared.tolist() == [[len(a & b) for b in second] for a in first]


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("x.csv", "a,b\n1,2\n3,dog\n", "must hold numbers in every feature column"),
        ("x.csv", "label,id\n1,2\n", "has no numeric columns"),
        ("x.csv", "", "is empty"),
        ("x.mat", "", "is not a feature file; feature files end in .npy"),
        ("photo.JPG", "", "photo.JPG is an image, but this command needs features"),
    ],
)
def test_wrong_features_give_a_sentence(name, text, sentence, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        read_data(write(tmp_path / name, text))


@pytest.mark.parametrize(
    ("name", "text", "sentence"),
    [
        ("y.csv", "a\n\nb\n", "Item 2 of .* has no label"),
        ("y.csv", "a,b\n1,2\n", "y.csv has 2 columns: a, b. Name the column of labels 'label'"),
        (
            "y.csv",
            "label\n0.5\n1.25\n2\n",
            "must be classes, found numbers such as 0.5 in .*3 different values in 3 rows",
        ),
        ("y.txt", "", "holds no labels"),
        ("y.json", "[]", "is not a file of labels"),
    ],
)
def test_wrong_labels_give_a_sentence(name, text, sentence, tmp_path):
    with pytest.raises(ValueError, match=sentence):
        read_labels(write(tmp_path / name, text))


@pytest.mark.parametrize(
    ("name", "content", "sentence"),
    [
        ("y.txt", "Müll\n".encode("latin-1"), "is not UTF-8 text"),
        ("y.csv", "label\nMüll\n".encode("latin-1"), "is not UTF-8 text"),
        ("y.csv", b"label\n" + b"a" * 200_000, "cannot be read as CSV"),
    ],
)
def test_text_in_another_encoding_is_named(name, content, sentence, tmp_path):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(ValueError, match=f"{name} {sentence}"):
        read_labels(tmp_path / name)


def test_wrong_places_give_a_sentence(tmp_path):
    (tmp_path / "images" / "dog").mkdir(parents=True)
    write(tmp_path / "images" / "dog" / "a.png", "")
    (tmp_path / "nothing").mkdir()
    np.savez(tmp_path / "many.npz", first=X, second=X)
    with pytest.raises(ValueError, match="is a folder of images"):
        read_data(tmp_path / "images")
    with pytest.raises(ValueError, match=r"holds neither images nor features.npy"):
        read_data(tmp_path / "nothing")
    with pytest.raises(ValueError, match="holds first, second; rename the array of features to 'features'"):
        read_data(tmp_path / "many.npz")
    with pytest.raises(ValueError, match=r"There is no file .*absent.npy"):
        read_data(tmp_path / "absent.npy")
    with pytest.raises(LookupError, match=r"No data set called 'digit'\. Did you mean 'digits'"):
        read_data("digit")
    np.save(tmp_path / "x.npy", X)
    with pytest.raises(ValueError, match=r"4 rows but .* has 2"):
        read_data(tmp_path / "x.npy", write(tmp_path / "y.txt", "1\n2\n"))
    first, second = (Data(name=name, labels=labels, features=X) for name, labels in (("a", Y), ("b", SETS)))
    with pytest.raises(ValueError, match="a has classes and b has multi-label rows"):
        in_the_same_columns(first, second)


def encoded_picture() -> bytes:
    import io

    from PIL import Image

    buffer = io.BytesIO()
    Image.fromarray(np.zeros((4, 4, 3), np.uint8)).save(buffer, "PNG")
    return buffer.getvalue()


def test_images_in_parquet_and_what_is_wrong_with_them(tmp_path):
    """Labels over several files, of kinds that differ a little; features count before images; mistakes are told."""
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    picture = encoded_picture()

    def write(name, **columns):
        rows = len(next(iter(columns.values())))
        parquet.write_table(pa.table({"image": [picture] * rows, **columns}), tmp_path / name)

    (tmp_path / "parts").mkdir()
    write("parts/a.parquet", label=pa.array([3, 1], pa.int32()))
    write("parts/b.parquet", label=pa.array([2, 2, 1], pa.int64()))
    write("parts/_meta.parquet", other=[1.0])
    data = read_data(tmp_path / "parts", images=True)
    assert (len(data.images), data.labels.tolist(), data.features) == (5, [3, 1, 2, 2, 1], None)
    write("bare.parquet", number=[1, 2])
    assert read_data(tmp_path / "bare.parquet", images=True).labels is None
    write("both.parquet", features=[[1.0, 2.0], [3.0, 4.0]])
    assert read_data(tmp_path / "both.parquet", images=True).images is None
    (tmp_path / "names.csv").write_text("file,label\na.png,cat\nb.png,dog\n")
    (tmp_path / "labels.txt").write_text("cat\ndog\n")
    assert read_data(tmp_path / "bare.parquet", tmp_path / "labels.txt", images=True).labels.tolist() == ["cat", "dog"]
    write("gap.parquet", label=["cat", None])
    write("parts/c.parquet", number=[1])
    for source, labels, message in (
        ("bare.parquet", tmp_path / "names.csv", "is Parquet: pass one label per row"),
        ("gap.parquet", None, "has 1 rows without a label"),
        ("parts", None, "c.parquet has no column 'label', which others have"),
    ):
        with pytest.raises(ValueError, match=message):
            read_data(tmp_path / source, labels, images=True)
