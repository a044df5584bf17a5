"""Lists of texts: how they are distinguished from features and images, and made safe for tokenizers."""

from __future__ import annotations

from typing import Any

import numpy as np


def is_texts(X: Any) -> bool:
    """Whether X is a sequence of strings: a list, a tuple, an array or a column of a table. A string alone is not."""
    if isinstance(X, (str, bytes)):
        return False
    if isinstance(X, (list, tuple)):
        return len(X) > 0 and all(isinstance(item, str) for item in X)
    if len(getattr(X, "shape", ())) != 1 or len(X) == 0:
        return False
    values = np.asarray(X)
    return values.dtype.kind in "UT" or (values.dtype == object and all(isinstance(item, str) for item in values))


def as_texts(X: Any) -> list[str]:
    """The strings of X as a list. Halves of surrogate pairs, which no tokenizer takes, become question marks."""
    if isinstance(X, str):
        raise ValueError(f"Pass a list of texts, [{X[:20]!r}], found a single string.")
    if len(X) and not is_texts(X):
        found = next((type(item).__name__ for item in X if not isinstance(item, str)), type(X).__name__)
        raise ValueError(f"Texts are a sequence of strings, found a {found} in it.")
    return [str(text).encode("utf-8", "replace").decode() for text in X]
