"""Texts that every installation has: what NumPy, SciPy and scikit-learn say that their functions and classes do."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from hbmp.datasets._shared.base import Data, DataSet
from hbmp.datasets._shared.docstrings import describe

__all__ = ["Documentation", "describe"]
PACKAGES = ("numpy", "scipy", "sklearn")
_FEWEST, _SEED = 20, 0


class Documentation(DataSet):
    """Descriptions of functions and classes, labelled by the part of the package that they come from.

    It depends on the installed versions of the packages. The features are vectors of the encoder `wordllama`, which
    needs the extra `text`. Rows are in a random order that is always the same.

    Examples
    --------
    >>> from hbmp import datasets
    >>> data = datasets.load("documentation")
    >>> data.features.shape[1], data.label_names[0]
    (256, 'numpy.f2py')
    """

    title = "Documentation of NumPy, SciPy and scikit-learn"
    licence = "BSD 3-Clause, as the packages."
    layout = "The installed packages; no folder is read."
    how_to_get = "It comes with the packages that hbmp needs: load it without fetching."

    def load(self, folder: Path) -> Data:
        """Read the source files of the packages and encode the descriptions.

        Parameters
        ----------
        folder : Path
            Not used.

        Returns
        -------
        Data
            Texts, their names as ids, features (n, 256) float32, and labels such as "scipy.signal".
        """
        from hbmp.encoders import WordLlama

        found = describe(PACKAGES, _FEWEST)
        names, texts, labels = zip(
            *(found[row] for row in np.random.default_rng(_SEED).permutation(len(found))), strict=True
        )
        return Data(
            name=self.name(),
            labels=np.array(labels),
            features=WordLlama().encode(list(texts)),
            label_names=tuple(sorted(set(labels))),
            texts=list(texts),
            ids=names,
        )
