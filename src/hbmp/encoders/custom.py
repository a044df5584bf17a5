"""A user-defined function that maps a list of texts, or images, to vectors.

Models never hold code: a saved model keeps the name of the function alone, and the function must be passed when it is
loaded again, `hbmp.load(path, module=function)`. A name in a file is not imported, because that would run whatever it
names.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hbmp._core.storage import LeftOut, name_of_code
from hbmp.encoders._shared.base import Encoder


class Custom(Encoder):
    """Encoder from a function.

    Parameters
    ----------
    function : callable
        It maps a list of texts, or `hbmp.Images`, to an array (n, n_features).
    takes : {"texts", "images"}, default="texts"
        The kind of items that the function encodes.
    rows : int, default=1024
        Most items per call.

    Examples
    --------
    >>> from hbmp.encoders import Custom
    >>> def lengths(texts):
    ...     return [[len(text), text.count(" ")] for text in texts]
    >>> Custom(lengths).encode(["one two", "three"])
    array([[7., 1.],
           [5., 0.]], dtype=float32)
    """

    not_saved = ("function",)
    neutral = ("rows",)
    smoke = {"function": lambda texts: [[len(text), 1] for text in texts]}

    def __init__(
        self, function: Callable[[Any], Any], *, takes: Literal["texts", "images"] = "texts", rows: int = 1024
    ):
        self.function = function
        self.takes = takes
        self.rows = rows

    def about(self) -> str:
        """The function by its name, which is the same in every process."""
        return f"{name_of_code(self.function)} for {self.takes}"

    def code(self) -> str:
        """The source of the function where Python finds it; what the function calls is not part of it."""
        try:
            return inspect.getsource(self.function)
        except (OSError, TypeError):
            return ""

    def _vectors(self, items: Any) -> NDArray[np.float32]:
        if isinstance(self.function, LeftOut):
            raise ValueError(
                f"The vectors of this model come from your function {self.function.name}, which is not saved: pass it, "
                "hbmp.load(path, module=function), or name it on the command line, --encoder package.module:function."
            )
        vectors: NDArray[np.float32] = self.function(items)
        return vectors
