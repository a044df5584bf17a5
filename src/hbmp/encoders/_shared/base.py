"""The contract of every encoder: texts or images in, one float32 vector per item out.

An encoder is a description: cheap to create, copy and save. It reads its weights when it first encodes, and keeps a
digest of them, so that a model that has an encoder notices other weights under the same name.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import BaseEstimator

from hbmp._core.progress import counted
from hbmp._core.texts import as_texts, is_texts
from hbmp.images import as_images, is_images


class Encoder(BaseEstimator):
    """Base class of all encoders, and the extension point for new ones.

    A subclass defines `_vectors`, which maps one block of items to an array, and `_digest`, which identifies its
    weights.

    Attributes
    ----------
    digest_ : str
        SHA-256 of the weights, set when the encoder first encodes. Empty if they have none.
    n_features_ : int
        Length of a vector, set when the encoder first encodes.
    takes : {"texts", "images"}
        Class attribute. The kind of items that it encodes.
    rows : int
        Class attribute. Items per block.
    neutral : tuple of str
        Class attribute. Settings that do not change the vectors, or whose effect the digest covers.
    smoke : dict
        Class attribute. Settings that need no package and no file, for tests.

    Examples
    --------
    An encoder that counts vowels:

    >>> from hbmp.encoders import Encoder
    >>> class Vowels(Encoder):
    ...     def _vectors(self, texts):
    ...         return [[text.count(vowel) for vowel in "aeiou"] for text in texts]
    >>> Vowels().encode(["banana", "kiwi"])
    array([[3., 0., 0., 0., 0.],
           [0., 0., 2., 0., 0.]], dtype=float32)
    """

    takes: Literal["texts", "images"] = "texts"
    rows: int = 1024
    neutral: tuple[str, ...] = ()
    smoke: dict[str, Any] = {}

    digest_: str
    n_features_: int
    _cache: Any

    def encode(self, items: Any, *, progress: bool = False) -> NDArray[np.float32]:
        """Vectors of texts or images.

        Parameters
        ----------
        items : sequence of str, or Images
            Texts: a list, an array or a column. Images: anything that `hbmp.images.as_images` takes.
        progress : bool, default=False
            Show a progress bar on a terminal.

        Returns
        -------
        vectors : ndarray of shape (n, n_features), float32
        """
        self._check_weights()
        given: Any = as_texts(items) if self.takes == "texts" else as_images(items)
        blocks = [np.empty((0, self.n_features), np.float32)] if len(given) == 0 else []
        with counted("encoding", len(given), self.takes[:-1], show=progress) as done:
            for start in range(0, len(given), self.rows):
                block = given[start : start + self.rows]
                blocks.append(self._checked(self._vectors(block), len(block)))
                done(len(block))
        return np.concatenate(blocks)

    def accepts(self, items: Any) -> bool:
        """Whether `encode` takes these items.

        Parameters
        ----------
        items : object
            Anything.

        Returns
        -------
        bool
        """
        return is_texts(items) if self.takes == "texts" else is_images(items)

    @property
    def n_features(self) -> int:
        """Length of a vector."""
        if not hasattr(self, "n_features_"):
            self.encode(["hbmp"] if self.takes == "texts" else np.zeros((1, 8, 8, 3), np.uint8))
        return self.n_features_

    def same_vectors(self, other: Encoder) -> bool:
        """Whether another encoder gives the same vectors: the same class, weights and settings.

        Parameters
        ----------
        other : Encoder
            The other encoder. Both have encoded before, or come from saved models.

        Returns
        -------
        bool
        """
        return self._identity() == other._identity()

    @property
    def short_name(self) -> str:
        """Class and settings, such as "WordLlama" or "Gist(size=256)"."""
        return " ".join(repr(self).split()).removesuffix("()")

    def about(self) -> str:
        """Name, settings and weights in words."""
        digest = getattr(self, "digest_", "")
        return f"{' '.join(repr(self).split())}" + (f" with weights {digest[:12]}" if digest else "")

    def code(self) -> str:
        """What identifies code of the user's own that the vectors depend on; empty if there is none."""
        return ""

    def _vectors(self, items: Any) -> Any:
        raise NotImplementedError

    def _digest(self) -> str:
        return ""

    def _identity(self) -> tuple[str, str, dict[str, str]]:
        settings = {name: repr(value) for name, value in self.get_params().items() if name not in self.neutral}
        return type(self).__name__, getattr(self, "digest_", ""), settings

    def _check_weights(self) -> None:
        """Read the weights' digest once, and compare it with the one that was saved."""
        if self.__dict__.get("_weights_checked"):
            return
        found, saved = self._digest(), getattr(self, "digest_", None)
        if saved is not None and found != saved:
            raise ValueError(
                f"The model was fitted on vectors of {self.about()}, and the weights installed here are {found[:12]}: "
                "install the version it was fitted with, or fit it again."
            )
        self.digest_ = found
        self._weights_checked = True

    def _checked(self, vectors: Any, n_items: int) -> NDArray[np.float32]:
        """Finite float32 vectors of the length of all others."""
        array = np.ascontiguousarray(vectors, dtype=np.float32)
        name = type(self).__name__
        if array.ndim != 2 or len(array) != n_items:
            raise ValueError(f"{name} must give one vector per item, found shape {array.shape} for {n_items} items.")
        if array.shape[1] != getattr(self, "n_features_", array.shape[1]):
            raise ValueError(f"{name} gave vectors of {self.n_features_} numbers before, found {array.shape[1]} now.")
        if not np.isfinite(array).all():
            raise ValueError(f"{name} gave vectors with infinite or missing numbers; check its input and weights.")
        self.n_features_ = array.shape[1]
        return array

    def __getstate__(self) -> dict[str, Any]:
        """Without what `_loaded` caches: sessions of other libraries cannot be copied."""
        state: dict[str, Any] = super().__getstate__()
        return {name: value for name, value in state.items() if name not in ("_cache", "_weights_checked")}


def digest_of(parts: Iterable[bytes]) -> str:
    """SHA-256 of bytes in order."""
    found = hashlib.sha256()
    for part in parts:
        found.update(part)
    return found.hexdigest()
