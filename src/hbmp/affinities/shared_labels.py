"""Neighbours share at least one label: R_ij = +1 if they do, -1 if not (NUS-WIDE in the paper)."""

from __future__ import annotations

from typing import Any

from hbmp._core.device import as_float32
from hbmp.affinities._shared.labelled import LabelSets


class SharedLabels(LabelSets):
    """Affinity of +1 for items with a label in common, -1 otherwise.

    Parameters
    ----------
    items : {"label-sets", "instances"}, default="label-sets"
        What gets a target code: every distinct label row, or every instance.

    Attributes
    ----------
    n_labels_ : int
        Number of labels.

    See Also
    --------
    LabelOverlap : Affinity that grows with the number of shared labels.

    Examples
    --------
    >>> from hbmp.affinities import SharedLabels
    >>> affinity = SharedLabels().fit(y=[[1, 0, 0], [1, 1, 0], [0, 0, 1], [1, 0, 0]])
    >>> affinity.features_.astype(int)  # the distinct label rows
    array([[0, 0, 1],
           [1, 0, 0],
           [1, 1, 0]])
    >>> affinity.matrix()
    array([[ 1., -1., -1.],
           [-1.,  1.,  1.],
           [-1.,  1.,  1.]], dtype=float32)
    """

    def _values(self, a: Any, b: Any) -> Any:
        return as_float32(a @ b.T > 0) * 2 - 1
