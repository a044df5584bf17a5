"""The paper's tables and figures, one per file: what to run, the paper's numbers, and how to show both."""

from __future__ import annotations

from hbmp._core import catalog
from hbmp.experiments.recipes._shared.reproduce import headline, reproduce

__all__ = ["headline", "names", "reproduce"]


def names() -> tuple[str, ...]:
    """List the recipes.

    Returns
    -------
    tuple of str
        Their names.

    Examples
    --------
    >>> from hbmp.experiments import recipes
    >>> recipes.names()[:2]
    ('fig1', 'fig2')
    """
    return catalog.names("recipes")
