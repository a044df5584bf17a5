"""Figures of one code book: the affinity next to its reconstruction by the bits, and the residual per bit.

R                 affinity   (c, c)   target similarity of the labels
V                 codes      (c, k)   of the labels
α                 weights    (k,)     of the bits
V diag(α) Vᵀ + β  rebuilt    (c, c)   approximation of R by k bits
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

import hbmp
from hbmp.experiments import figures
from hbmp.experiments.report.figures import as_svg

if TYPE_CHECKING:
    from hbmp.pursuit import CodeBook

_SCHEMES = {"constant": figures.GREY, "greedy": figures.RED, "regress": figures.BLUE}
_MODEL = "the model"


def rebuilt(book: CodeBook, n_bits: int) -> np.ndarray:
    """The affinity rebuilt from the first n_bits bits, with the least-squares weights."""
    codes = book.codes[:, :n_bits].astype(float)
    return ((codes * book.weights_for(n_bits)) @ codes.T + book.intercept) / book.scale


def affinity(book: CodeBook) -> str:
    """The affinity of the labels next to its reconstruction by the whole code, as SVG."""
    plt = figures.pyplot()
    items = np.arange(len(book.codes))
    shown = {
        "affinity of the labels": book.affinity.block(items, items, device="cpu"),
        f"rebuilt by {book.n_bits} bits": rebuilt(book, book.n_bits),
    }
    figure, axes = plt.subplots(1, 2, figsize=(5.6, 3.0), layout="constrained")
    for axis, (title, matrix) in zip(axes, shown.items(), strict=True):
        picture = axis.imshow(matrix, cmap="RdBu", vmin=-1, vmax=1, interpolation="nearest")
        axis.set_title(title, fontsize=9)
        axis.set_xlabel("label")
        axis.grid(visible=False)
    axes[0].set_ylabel("label")
    figure.colorbar(picture, ax=axes.tolist(), shrink=0.7, ticks=(-1, 0, 1), aspect=16)
    return as_svg(figure)


def residual_curves(book: CodeBook) -> dict[str, np.ndarray]:
    """Relative residual of the affinity after 0, 1, 2 … bits, for each weighting scheme and for the code book."""
    items = np.arange(len(book.codes))
    target = book.affinity.block(items, items, device="cpu").astype(float)
    return {
        scheme: hbmp.infer_codes(
            target, book.n_bits, scheme=scheme, tol=0, random_state=0, device="cpu"
        ).relative_residuals
        for scheme in _SCHEMES
    } | {_MODEL: book.relative_residuals}


def residuals(curves: dict[str, np.ndarray]) -> str:
    """The curves as SVG."""
    plt = figures.pyplot()
    figure, axis = plt.subplots(figsize=(5.6, 3.4))
    for scheme, curve in curves.items():
        style = {"color": "#1c1f23", "linestyle": "--"} if scheme == _MODEL else {"color": _SCHEMES[scheme]}
        axis.plot(curve, label=scheme, **style)
    lowest = min(float(curve.min()) for curve in curves.values())
    axis.set(xlabel="bits", ylabel="relative residual", ylim=(max(0.0, lowest - 0.15), 1.02))
    axis.set_xlim(left=0)
    axis.legend(loc="lower left", fontsize=8)
    return as_svg(figure)
