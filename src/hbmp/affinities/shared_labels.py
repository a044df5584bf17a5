"""Neighbours share at least one label: R_ij = +1 if they do, -1 if not (the paper's NUS-WIDE neighbourhood)."""

from __future__ import annotations

from hbmp.affinities._shared.labelled import LabelSets


class SharedLabels(LabelSets):
    """+1 for two label sets with a label in common, -1 otherwise. Items: the distinct label sets.

    Parameters
    ----------
    items : "label-sets" (default) or "instances"
    """

    def _values(self, a, b):
        return (a @ b.T > 0).to(a.dtype) * 2 - 1
