"""The contract of every method: fit on features, return scores and signs, save and load.

A method is one file in `methods/` with one subclass of `Hasher`. It defines `_fit(X, y)`, which learns, and
`_project(X)`, which returns real-valued scores. Everything a user calls is defined here, once for all methods.
"""

from __future__ import annotations

from collections.abc import Callable
from os import PathLike
from typing import Any, Never, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from hbmp import hamming
from hbmp._core import catalog, storage
from hbmp._core.labels import as_targets
from hbmp._core.texts import is_texts
from hbmp.images import as_images, is_images

_ROWS = 16_384  # rows projected at a time


class Hasher(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Base class of all methods: features in, codes in {-1, +1} out.

    Attributes
    ----------
    bit_weights_ : ndarray of shape (n_bits,)
        Weight of each bit in the distance. All ones for methods without weights.
    input_encoder_ : Encoder
        The encoder of texts or images, where `with_encoder` gave one.
    citation : str
        Class attribute. The publication.
    supervised : bool
        Class attribute. Whether the method needs labels.
    single_label : bool
        Class attribute. True for methods that are defined only for classes and refuse multi-label data.
    takes_images : bool
        Class attribute. Whether the method can be fitted on images.
    smoke : dict
        Class attribute. The cheapest settings that run every line, for tests.
    never_rises : str or None
        Class attribute. Name of a learned history that the optimiser must not raise.
    search : dict or list of dict
        Class attribute. Settings that `hbmp.compare(validation=…)` may try instead of the defaults, in the form of
        scikit-learn's `ParameterGrid`. Empty if there is nothing to tune.

    Examples
    --------
    A method of one's own, which keeps the signs of the features with the largest variance:

    >>> import numpy as np
    >>> import hbmp
    >>> class LargestVariance(hbmp.Hasher):
    ...     def __init__(self, n_bits=32):
    ...         self.n_bits = n_bits
    ...     def _fit(self, X, y):
    ...         self.mean_ = X.mean(axis=0)
    ...         self.columns_ = np.argsort(-X.var(axis=0))[: self.n_bits]
    ...     def _project(self, X):
    ...         return (X - self.mean_)[:, self.columns_]
    >>> X = np.array([[0.0, 5.0, 1.0], [0.1, -5.0, 2.0], [0.0, 4.0, 6.0]])
    >>> LargestVariance(2).fit(X).transform(X)
    array([[ 1, -1],
           [-1, -1],
           [ 1,  1]], dtype=int8)
    """

    citation: str = ""
    supervised: bool = False
    smoke: dict[str, Any] = {}
    never_rises: str | None = None
    single_label: bool = False
    takes_images: bool = False
    search: dict[str, list[Any]] | list[dict[str, list[Any]]] = {}

    n_bits: int
    bit_weights_: np.ndarray

    def fit(self, X: Any, y: Any = None, **unknown: Never) -> Self:
        """Learn codes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or Images
            Features, or images for methods with `takes_images`.
        y : array-like of shape (n,) or (n, n_labels), sparse matrix or None, default=None
            Classes; or, for multi-label data, 0/1 labels or lists of names such as [["cat", "dog"], ["cat"]]. Methods
            that are not `supervised` may ignore it.

        Returns
        -------
        self : Hasher
            A fit that fails or is interrupted leaves the model as it was before.

        Raises
        ------
        TypeError
            For `sample_weight`: most objectives compare pairs or whole batches, so that only `HBMP` weights instances.
        """
        if unknown:
            raise TypeError(self._refusal(*unknown))
        return self._fit_or_restore(X, y, self._fit)

    def _refusal(self, *names: str) -> str:
        name = type(self).__name__
        if names == ("sample_weight",):
            return (
                f"{name} cannot weight instances: found sample_weight. Leave it out, repeat or drop rows, or use HBMP, "
                "whose fit takes sample_weight."
            )
        return f"{name}.fit takes X and y, found {', '.join(names)}."

    def _fit_or_restore(self, X: Any, y: Any, learn: Callable[[Any, Any], None]) -> Self:
        """Check the data and learn from them; after an error or an interrupt the model is what it was before."""
        before = dict(self.__dict__)
        try:
            X, y = self._training_data(X, y)
            self.__dict__.pop("input_encoder_", None)  # of an earlier fit
            self.bit_weights_ = np.ones(self.n_bits)
            learn(X, y)
        except BaseException:
            self.__dict__.clear()
            self.__dict__.update(before)
            raise
        return self

    def _training_data(self, X: Any, y: Any) -> tuple[Any, Any]:
        """Features or images, and labels as arrays, checked."""
        if isinstance(self.n_bits, bool) or not isinstance(self.n_bits, (int, np.integer)) or self.n_bits < 1:
            raise ValueError(f"n_bits must be a positive whole number, found {self.n_bits!r}.")
        X = self._checked(X, reset=True)
        if y is None and self.supervised:
            raise ValueError(f"{type(self).__name__} requires y to be passed, but the target y is None.")
        if y is not None:
            y, names = as_targets(y)
            self.__dict__.pop("label_names_", None)  # of an earlier fit
            if names is not None:
                self.label_names_ = names
            if y.ndim == 0 or y.shape[0] != len(X):
                raise ValueError(f"X has {len(X)} rows but y has shape {y.shape}; every row needs its label.")
        return X, y

    def project(self, X: Any) -> NDArray[np.float32]:
        """Scores before the sign.

        Parameters
        ----------
        X : array-like of shape (n, d), Images, or list of str
            Features, or images for a model that was fitted on images, or items of `input_encoder_`.

        Returns
        -------
        scores : ndarray of shape (n, n_bits), float32
            As queries of an index they are more precise than their signs.
        """
        return self._by_blocks(X, self._project)

    def transform(self, X: Any) -> NDArray[np.int8]:
        """Codes of new items.

        Parameters
        ----------
        X : array-like of shape (n, d), Images, or list of str
            Features, or images for a model that was fitted on images, or items of `input_encoder_`.

        Returns
        -------
        codes : ndarray of shape (n, n_bits), int8
            Signs in {-1, +1}. The sign of a score of 0 is +1.
        """
        return self._by_blocks(X, lambda rows: hamming.signs(self._sign_scores(rows)), np.int8)  # HBMP Eq. 11

    def score(self, X: Any, y: ArrayLike) -> float:
        """Mean average precision when every row queries all others.

        Parameters
        ----------
        X : array-like of shape (n, d), or Images
            The items.
        y : array-like of shape (n,) or (n, n_labels)
            Their classes or 0/1 labels. Items that share one are relevant to each other.

        Returns
        -------
        map : float
        """
        from hbmp.metrics import self_retrieval_map

        return float(self_retrieval_map(np.asarray(self.transform(X)), as_targets(y)[0], bit_weights=self.bit_weights_))

    def with_encoder(self, encoder: Any) -> Self:
        """Set the encoder whose vectors this model was fitted on; the model then accepts its texts or images.

        Parameters
        ----------
        encoder : Encoder
            An encoder from `hbmp.encoders`. It is saved with the model, with a digest of its weights.

        Returns
        -------
        self : Hasher
            `transform` and `project` take items of the encoder as well as its vectors. Another `fit` removes it.
        """
        check_is_fitted(self)
        if self.fitted_on_images:
            raise ValueError(f"This {type(self).__name__} takes images itself and needs no encoder.")
        if encoder.n_features != self.n_features_in_:
            raise ValueError(
                f"{encoder!r} gives vectors of {encoder.n_features} numbers, but this {type(self).__name__} was fitted "
                f"on {self.n_features_in_} features; pass the encoder whose vectors it was fitted on."
            )
        self.input_encoder_ = encoder
        return self

    def save(self, path: str | PathLike[str]) -> None:
        """Write the model as a directory of `model.json` and `arrays.safetensors`.

        Parameters
        ----------
        path : str or path
            The directory. An earlier model there is replaced. `hbmp.load` reads it.
        """
        check_is_fitted(self)
        storage.save(self, path)

    @property
    def fitted_on_images(self) -> bool:
        """Whether this model was fitted on images instead of features."""
        return hasattr(self, "bit_weights_") and not hasattr(self, "n_features_in_")

    def _checked(self, X: Any, *, reset: bool) -> Any:
        """Features as float32, (n, d), or images unchanged."""
        name = type(self).__name__
        encoder = None if reset else getattr(self, "input_encoder_", None)
        if encoder is not None and encoder.accepts(X):
            X = encoder.encode(X)
        if is_texts(X) and not is_images(X):  # a list of image files is images
            raise ValueError(_not_texts(name, encoder, reset))
        if is_images(X):
            if reset and not self.takes_images:
                raise ValueError(
                    f"{name} learns from feature vectors, found images. Use 'hbmp' or a deep method such as 'csq', or "
                    "pass the features of a network."
                )
            if not reset and not self.fitted_on_images:
                raise ValueError(f"This {name} takes vectors of {self.n_features_in_} features, found images.")
            if reset and hasattr(self, "n_features_in_"):
                del self.n_features_in_  # of an earlier fit on features
            return as_images(X)
        if not reset and self.fitted_on_images:
            raise ValueError(f"This {name} takes images, found {_described(X)}.")
        if sparse.issparse(X):
            X = X.toarray()
        return validate_data(self, X, dtype=np.float32, reset=reset, ensure_min_samples=2 if reset else 1)

    def _by_blocks(self, X: Any, score: Callable[[Any], np.ndarray], dtype: Any = np.float32) -> np.ndarray:
        """Scores of checked rows, one block at a time."""
        check_is_fitted(self)
        X = self._checked(X, reset=False)
        scores = np.empty((len(X), self.n_bits), dtype=dtype)
        for start in range(0, len(X), _ROWS):
            scores[start : start + _ROWS] = score(X[start : start + _ROWS])
        return scores

    def _fit(self, X: Any, y: Any) -> None:
        raise NotImplementedError

    def _project(self, X: Any) -> np.ndarray:
        raise NotImplementedError

    def _sign_scores(self, X: np.ndarray) -> np.ndarray:
        """Scores with the signs of `_project`, where these cost less."""
        return self._project(X)

    def __sklearn_is_fitted__(self) -> bool:
        return hasattr(self, "bit_weights_")

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.transformer_tags.preserves_dtype = []  # codes are int8 for features of any type
        tags.target_tags.required = self.supervised
        tags.target_tags.two_d_labels = True
        tags.target_tags.multi_output = True
        return tags

    @property
    def _n_features_out(self) -> int:
        return self.n_bits


def _not_texts(name: str, encoder: Any, fitting: bool) -> str:
    """The refusal of texts."""
    if fitting:
        return (
            f"{name} learns from vectors, found texts. Encode them: encoder = hbmp.encoders.get('wordllama'), then "
            "fit(encoder.encode(texts)).with_encoder(encoder)."
        )
    if encoder is not None:
        return f"The encoder of this {name}, {encoder!r}, takes {encoder.takes}, found texts."
    return f"This {name} has no encoder, found texts. Pass vectors, or set the encoder with `with_encoder`."


def _described(X: Any) -> str:
    return f"features of shape {np.shape(X)}" if hasattr(X, "shape") else f"a {type(X).__name__}"


def load(path: str | PathLike[str], *, module: Any = None) -> Any:
    """Read a model that `Hasher.save` wrote.

    Parameters
    ----------
    path : str or path
        The model directory.
    module : torch.nn.Module or callable, optional
        The custom network that the model was fitted with, or the function of its `Custom` encoder, if any. Their code
        is not saved.

    Returns
    -------
    model : Hasher
        Typed as Any, because the class is known only from the file.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import hbmp
    >>> X = np.random.default_rng(0).standard_normal((50, 8))
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     hbmp.methods.ITQ(4, random_state=0).fit(X).save(f"{folder}/model")
    ...     hbmp.load(f"{folder}/model")
    ITQ(n_bits=4, random_state=0)
    """
    return storage.load(path, module=module)


def get_method(name: str) -> Any:
    """Return the class of a method by its name.

    Parameters
    ----------
    name : str
        A name from `list_methods`.

    Returns
    -------
    method : type
        The subclass of `Hasher`. It is typed as Any, because its parameters depend on the name.

    Examples
    --------
    >>> import hbmp
    >>> hbmp.get_method("itq")(n_bits=16)
    ITQ(n_bits=16)
    """
    return catalog.load("methods", name)


def list_methods() -> list[str]:
    """Return the names of all methods.

    Returns
    -------
    names : list of str

    Examples
    --------
    >>> import hbmp
    >>> [name for name in hbmp.list_methods() if "itq" in name]
    ['cca_itq', 'itq']
    """
    return list(catalog.names("methods"))
