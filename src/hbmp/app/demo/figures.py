"""Figures of one code book and its codes: affinity, residual, codes of classes and of queries.

R                 affinity   (c, c)   target similarity of the classes
V                 codes      (c, k)   of the classes
α                 weights    (k,)     of the bits
V diag(α) Vᵀ + β  rebuilt    (c, c)   approximation of R by k bits
"""

from __future__ import annotations

import io

import numpy as np

import hbmp
from hbmp.experiments import figures
from hbmp.experiments.recipes import fig3, fig4
from hbmp.experiments.report.figures import as_svg

_COLOURS = "RdBu"
_SCHEMES = {"constant": figures.GREY, "greedy": figures.RED, "regress": figures.BLUE}
_MODEL = "the model"


def rebuilt(book, n_bits: int) -> np.ndarray:
    """The affinity rebuilt from the first n_bits bits, with the least-squares weights."""
    codes = book.codes[:, :n_bits].astype(float)
    return ((codes * book.weights_for(n_bits)) @ codes.T + book.intercept) / book.scale


def affinity(book, names, lengths) -> str:
    """The affinity of the classes beside its approximation by codes of each length, as SVG."""
    plt = figures.pyplot()
    items = np.arange(len(book.codes))
    target = book.affinity.block(items, items, device="cpu")
    shown = {"affinity": target, **{f"{n_bits} bits": rebuilt(book, n_bits) for n_bits in lengths}}
    figure, axes = plt.subplots(1, len(shown), figsize=(2.5 * len(shown), 2.9), layout="constrained", squeeze=False)
    for number, (axis, (title, matrix)) in enumerate(zip(axes[0], shown.items(), strict=True)):
        picture = axis.imshow(matrix, cmap=_COLOURS, vmin=-1, vmax=1, interpolation="nearest")
        axis.set_title(title)
        axis.grid(visible=False)
        axis.set_yticks(items, names if number == 0 else [])
        axis.set_xticks(items, names, rotation=0 if _short(names) else 90)
        axis.tick_params(length=0, labelsize=7)
    figure.colorbar(picture, ax=axes[0].tolist(), shrink=0.7, ticks=(-1, 0, 1), aspect=16)
    return as_svg(figure)


def residual_curves(book) -> dict[str, np.ndarray]:
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
    axis.set(xlabel="bits", ylabel="relative residual", ylim=(0, 1.03))
    axis.set_xlim(left=0)
    axis.legend(loc="lower left", fontsize=8)
    return as_svg(figure)


def codes(book, query_codes, query_labels, names) -> str:
    """The codes of the classes above and of the queries below, sorted by class, one column per bit, as SVG."""
    plt = figures.pyplot()
    order = np.argsort(query_labels, kind="stable")
    figure, (above, below) = plt.subplots(
        2, 1, figsize=(8.4, 5.4), layout="constrained", sharex=True, gridspec_kw={"height_ratios": (1, 1.9)}
    )
    _signs(above, book.codes)
    above.set_title("codes of the classes, from the pursuit", loc="left")
    above.set_yticks(np.arange(len(names)), names)
    _signs(below, query_codes[order])
    below.set_title(f"codes of {len(order):,} queries, from the hash function", loc="left")
    counts = np.bincount(query_labels, minlength=len(names))
    ends = np.cumsum(counts)
    for end in ends[:-1]:
        below.axhline(end - 0.5, color="white", linewidth=1.4)
    below.set_yticks(ends - counts / 2 - 0.5, names)
    below.set_xlabel("bit")
    return as_svg(figure)


def _signs(axis, matrix) -> None:
    axis.imshow(matrix, cmap=_COLOURS, vmin=-1.25, vmax=1.25, aspect="auto", interpolation="nearest")
    axis.grid(visible=False)
    axis.tick_params(length=0, labelsize=7)


def places(codes_of: dict[str, np.ndarray], labels, names, title: str) -> str:
    """t-SNE of the codes, one panel per method, as SVG."""
    records = [
        {
            "settings": {"method": method, "bits": signs.shape[1], "data": title},
            "classes": np.asarray(labels).tolist(),
            **fig3.places(signs, 0),
        }
        for method, signs in codes_of.items()
    ]
    return as_svg(fig3.panels(records, names))


def retrieval(records: list[dict], looks) -> bytes:
    """The nearest items of each query in green and red frames, as PNG; records as in `recipes.fig4`."""
    figure = fig4.framed_rows(records, looks)
    stream = io.BytesIO()
    figure.savefig(stream, format="png", dpi=110, facecolor="white", bbox_inches="tight", metadata={"Software": None})
    figures.pyplot().close(figure)
    return stream.getvalue()


def _short(names) -> bool:
    return max(map(len, names)) < 3
