"""Content of the second tab: codes of the classes, the affinity and its approximation, and a map of all items.

R      affinity    (c, c)   target similarity of the classes, if the model has a code book
V      codes       (c, b)   of the classes: from the code book, else the majority sign of each bit
V diag(α) Vᵀ + β   rebuilt  approximation of R by the codes
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import numpy as np

from hbmp import hamming
from hbmp.app.web.first_sight import first_sight
from hbmp.app.web.looks import roles
from hbmp.database import Database

if TYPE_CHECKING:
    from hbmp.affinities import Affinity

_CLASSES = 60  # shown at most: the largest classes
_SAMPLED = 20_000  # items in a majority vote
_MAPPED = 2_000  # items on the map


def codes_tab(database: Database) -> dict[str, Any]:
    """Everything on the tab but the map."""
    return {**class_codes(database), "first_results": first_sight(database)}


def class_codes(database: Database) -> dict[str, Any]:
    """Names, codes, affinity, its approximation, distances and residuals; None for missing ones."""
    book = getattr(database.model, "codebook_", None)
    if book is not None and hasattr(book, "relative_residuals"):
        return _from_book(book, database)
    names, codes, of = _from_labels(database)
    kind = "none" if not names else "classes" if database.label_kind == "classes" else "labels"
    sampled = _SAMPLED if len(database) > _SAMPLED else None
    return {**_described(names, codes, database.index.bit_weights, kind=kind, of=of), "sampled": sampled}


def _from_book(book: Any, database: Database) -> dict[str, Any]:
    counts = getattr(book.affinity, "counts_", np.ones(len(book.codes)))
    shown = np.sort(np.argsort(-counts, kind="stable")[:_CLASSES])
    names, kind = _names(book.affinity, shown, database)
    affinity = None if book.affinity is None else book.affinity.block(shown, shown, device="cpu")
    codes = book.codes[shown]
    rebuilt = ((codes * book.weights) @ codes.T.astype(float) + book.intercept) / book.scale
    weights = database.index.bit_weights[: codes.shape[1]]  # of searches, which may be shrunk; details follow
    described = _described(names, codes, weights, kind=kind, of=len(book.codes), residuals=book.relative_residuals)
    unknown = _unknown(book.affinity, database) if kind == "classes" else []
    more = {"unknown": unknown, "affinity": None if affinity is None else _rows(affinity), "rebuilt": _rows(rebuilt)}
    return {**described, **more}


def _unknown(affinity: Affinity, database: Database) -> list[str]:
    """Classes of the database that the code book does not have."""
    if database.label_kind != "classes":
        return []
    return sorted(
        {str(label) for label in np.unique(np.asarray(database.labels))} - {str(label) for label in affinity.classes_}
    )


def _names(affinity: Affinity, shown: np.ndarray, database: Database) -> tuple[list[str], str]:
    classes = getattr(affinity, "classes_", None)
    if classes is not None and len(classes) == affinity.n_items_:
        return [str(classes[item]) for item in shown], "classes"
    features = getattr(affinity, "features_", None)
    if features is not None and features.ndim == 2 and hasattr(affinity, "n_labels_"):
        words = database.label_names or [str(column) for column in range(features.shape[1])]
        return [
            ";".join(words[column] for column in np.flatnonzero(features[item])) for item in shown
        ], "label combinations"
    return [str(item) for item in shown], "items"


def _from_labels(database: Database) -> tuple[list[str], np.ndarray, int]:
    """The majority sign of each bit among the items of a class or label, and the number of all classes or labels."""
    labels = database.labels
    if labels is None or not len(database):
        return [], np.empty((0, database.index.n_bits), np.int8), 0
    of = len(np.unique(labels)) if labels.ndim == 1 else labels.shape[1]
    places = _some(len(database), _SAMPLED)
    labels, codes = labels[places], database.codes()[places]
    if labels.ndim == 1:
        found, counts = np.unique(labels, return_counts=True)
        kept = np.sort(np.argsort(-counts, kind="stable")[:_CLASSES])
        members = [(str(found[which]), labels == found[which]) for which in kept]
    else:
        words = database.label_names or [str(column) for column in range(labels.shape[1])]
        columns = np.sort(np.argsort(-labels.sum(axis=0), kind="stable")[:_CLASSES])
        members = [(words[column], labels[:, column] > 0) for column in columns if labels[:, column].any()]
    signs = [np.where(codes[rows].sum(axis=0, dtype=np.int64) >= 0, 1, -1) for _, rows in members]
    return [name for name, _ in members], np.array(signs, dtype=np.int8), of


def _described(
    names: Any, codes: np.ndarray, weights: np.ndarray, *, kind: Any, of: Any = None, residuals: Any = None
) -> dict[str, Any]:
    distances = hamming.distances(codes, codes, weights) if len(codes) else np.empty((0, 0))
    return {
        "kind": kind,
        "names": names,
        "of": len(names) if of is None else of,
        "codes": codes.tolist(),
        "weights": np.asarray(weights, dtype=float).tolist(),
        "distances": _rows(distances),
        "residuals": None if residuals is None else np.round(residuals, 5).tolist(),
        "affinity": None,
        "rebuilt": None,
    }


class CodeMap:
    """t-SNE of the codes, computed once in its own thread."""

    def __init__(self, database: Database):
        self._database = database
        self._points: list[dict[str, Any]] = []
        self.state = "waiting"

    def start(self) -> None:
        """Start the computation."""
        self.state = "working"
        threading.Thread(target=self._work, name="map of the codes", daemon=True).start()

    def answer(self) -> dict[str, Any]:
        """The state, and the points once they are computed."""
        return {"state": self.state, "points": self._points}

    def _work(self) -> None:
        try:
            self._points = place_codes(self._database)
            self.state = "ready"
        except Exception as error:  # the server runs without the map
            self.state = f"failed: {error}"


def place_codes(database: Database, most: int = _MAPPED) -> list[dict[str, Any]]:
    """{id, x, y, label} of up to `most` items, x and y in [0, 1]; items with equal codes share a point."""
    places = _some(len(database), most)
    if not len(places):
        return []
    ids = database.ids[places]
    codes, code_of = np.unique(database.codes()[places], axis=0, return_inverse=True)
    # Squared Euclidean distances of these rows are four times the weighted Hamming distances.
    plane = _plane(codes * np.sqrt(np.clip(database.index.bit_weights, 0, None)))
    low, high = plane.min(axis=0), plane.max(axis=0)
    plane = (plane - low) / np.maximum(high - low, 1e-9)
    points, titles = np.round(plane, 4)[code_of.reshape(-1)].tolist(), _titles(database, ids)
    rows = zip(ids.tolist(), points, database.labels_of(ids), titles, strict=True)
    return [{"id": one, "x": x, "y": y, "label": label, "title": title} for one, (x, y), label, title in rows]


def _titles(database: Database, ids: np.ndarray) -> list[str | None]:
    """The titles of items, where their payload has one."""
    column = roles(database.columns)["title"]
    if column is None:
        return [None] * len(ids)
    return [(row or {}).get(column) for row in database.payload_of(ids, [column])]


def _plane(rows: np.ndarray) -> np.ndarray:
    """Rows (m, b) in the plane, (m, 2): t-SNE, or principal components of fewer than five rows."""
    from sklearn.manifold import TSNE

    if len(rows) < 5 or rows.shape[1] < 3:
        centred = rows - rows.mean(axis=0)
        left, sizes, _ = np.linalg.svd(centred, full_matrices=False)
        return np.pad((left * sizes)[:, :2], ((0, 0), (0, max(0, 2 - len(sizes)))))
    near = min(30.0, (len(rows) - 1) / 3)
    return TSNE(perplexity=near, init="pca", random_state=0).fit_transform(rows.astype(np.float32))


def _some(n_items: int, most: int) -> np.ndarray:
    """All positions, or a sample with a fixed seed, ascending."""
    if n_items <= most:
        return np.arange(n_items)
    return np.sort(np.random.default_rng(0).choice(n_items, most, replace=False))


def _rows(matrix: np.ndarray) -> list[list[float]]:
    return np.round(np.asarray(matrix, dtype=float), 4).tolist()
