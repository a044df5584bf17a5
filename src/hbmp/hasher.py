"""The contract of every method: fit on features, give scores and signs, save and load.

A method is one file in `methods/` with one class on this base. It defines `_fit(X, y)`, which learns, and
`_project(X)`, which gives real-valued scores; everything a user calls is here, the same for all.
"""

from __future__ import annotations

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hbmp import hamming
from hbmp._core import catalog, storage
from hbmp._core.labels import as_array
from hbmp.images import as_images, is_images

_ROWS = 16_384  # rows projected at a time


class Hasher(TransformerMixin, BaseEstimator):
    """Base of all methods: features in, codes in {-1, +1} out.

    Each method carries its facts: `citation`, the publication; `supervised`, whether it needs labels; `smoke`, the
    cheapest setting that runs every line; `never_rises`, a learned history that its optimiser promises not to raise;
    `single_label`, that it is defined for classes alone and refuses label sets; `takes_images`, that it can be fitted
    on images too; `search`, the settings that `hbmp.compare(validation=…)` may try in place of the defaults, {name:
    [values]} or a list of such, as scikit-learn's `ParameterGrid` takes them; empty where there is nothing to tune.
    """

    citation = ""
    supervised = False
    smoke: dict = {}
    never_rises: str | None = None
    single_label = False
    takes_images = False
    search: dict | list = {}

    n_bits: int

    def fit(self, X, y=None):
        """Learn codes. X: (n, d) features, or images (`hbmp.Images`); y: (n,) classes, (n, c) 0/1 labels, or None."""
        if isinstance(self.n_bits, bool) or not isinstance(self.n_bits, (int, np.integer)) or self.n_bits < 1:
            raise ValueError(f"n_bits must be a positive whole number, found {self.n_bits!r}.")
        X = self._checked(X, reset=True)
        if y is None and self.supervised:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        if y is not None:
            y = y if sparse.issparse(y) else as_array(y)
            if y.ndim == 0 or y.shape[0] != len(X):
                raise ValueError(f"X has {len(X)} rows but y has shape {y.shape}; every row needs its label.")
        self.bit_weights_ = np.ones(self.n_bits)
        self._fit(X, y)
        return self

    def project(self, X) -> np.ndarray:
        """Scores before the sign, float32, shape (n, n_bits)."""
        return self._by_blocks(X, self._project)

    def transform(self, X) -> np.ndarray:
        """Codes in {-1, +1}, int8, shape (n, n_bits); sign(0) is +1."""
        return self._by_blocks(X, lambda rows: hamming.signs(self._sign_scores(rows)), np.int8)  # HBMP Eq. 11

    def score(self, X, y) -> float:
        """Mean average precision when every row queries all the others by this method's distance."""
        from hbmp.metrics import self_retrieval_map

        return self_retrieval_map(self.transform(X), y, bit_weights=self.bit_weights_)

    def save(self, path) -> None:
        """Write a model directory (`model.json` and `arrays.safetensors`) that `hbmp.load` reads."""
        check_is_fitted(self)
        storage.save(self, path)

    @property
    def fitted_on_images(self) -> bool:
        """Whether this model turns images into codes; features otherwise."""
        return hasattr(self, "bit_weights_") and not hasattr(self, "n_features_in_")

    def _checked(self, X, *, reset: bool):
        """Features as float32, (n, d), or images as they are."""
        name = type(self).__name__
        if is_images(X):
            if reset and not self.takes_images:
                raise ValueError(
                    f"{name} learns from feature vectors, found images. Use 'hbmp' or a deep method such as 'csq', or "
                    "pass the features that a network gives."
                )
            if not reset and not self.fitted_on_images:
                raise ValueError(f"This {name} takes vectors of {self.n_features_in_} features, found images.")
            if reset and hasattr(self, "n_features_in_"):
                del self.n_features_in_  # of an earlier fit on features
            return as_images(X)
        if not reset and self.fitted_on_images:
            raise ValueError(f"This {name} takes images, found {_described(X)}.")
        return validate_data(self, X, dtype=np.float32, reset=reset, ensure_min_samples=2 if reset else 1)

    def _by_blocks(self, X, score, dtype=np.float32) -> np.ndarray:
        """Scores of checked rows, one block at a time."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        scores = np.empty((len(X), self.n_bits), dtype=dtype)
        for start in range(0, len(X), _ROWS):
            scores[start : start + _ROWS] = score(X[start : start + _ROWS])
        return scores

    def _fit(self, X: np.ndarray, y) -> None:
        raise NotImplementedError

    def _project(self, X: np.ndarray) -> np.ndarray:
        raise NotImplementedError

    def _sign_scores(self, X: np.ndarray) -> np.ndarray:
        """Scores with the signs of `_project`, where these cost less."""
        return self._project(X)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "bit_weights_")

    def __sklearn_tags__(self):
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = []  # codes are int8 whatever the features are
        tags.target_tags.required = self.supervised
        tags.target_tags.two_d_labels = True
        tags.target_tags.multi_output = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_bits


def _described(X) -> str:
    return f"features of shape {np.shape(X)}" if hasattr(X, "shape") else f"a {type(X).__name__}"


def load(path, *, module=None) -> Hasher:
    """A model saved by `Hasher.save`; module: the torch network of your own that it was fitted with, if it was."""
    return storage.load(path, module=module)


def get_method(name: str) -> type[Hasher]:
    """The class of a method by its name, for example `get_method("itq")(n_bits=32)`."""
    return catalog.load("methods", name)


def list_methods() -> list[str]:
    """The names of all methods."""
    return list(catalog.names("methods"))
