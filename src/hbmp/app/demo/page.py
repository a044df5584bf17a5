"""The report of the demo: one HTML file; each figure has a caption."""

from __future__ import annotations

import html
import re
from typing import TYPE_CHECKING

from hbmp._core.table import Table
from hbmp.app.demo import figures
from hbmp.evaluation.plot import colours
from hbmp.experiments.report.figures import as_svg, curves_plot
from hbmp.experiments.report.html_page import page

if TYPE_CHECKING:
    from hbmp.app.demo import SentenceSearch, Shown

_STYLE = """
main p,.lead{max-width:46rem}figure{background:#fff;border-radius:8px;padding:.4rem;margin:.6rem 0;overflow-x:auto}
figure svg,figure img{display:block;margin:0 auto;max-width:46rem}
.key{display:none;font-size:.85rem}.key span{margin-right:1em;white-space:nowrap}
.key i{display:inline-block;width:.8em;height:.8em;margin-right:.35em;border-radius:2px}
@media(max-width:40rem){.key{display:block}.searches td,.searches th{padding:.28rem .2rem;font-size:.74rem}}
pre{white-space:pre-wrap;overflow-wrap:anywhere}
.sideways svg,.sideways img{min-width:34rem}
.pair{display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr))}
code{font-size:.9em;overflow-wrap:anywhere}.jump{font-size:.88rem;margin:.4rem 0 1rem;line-height:1.9}
.searches table{table-layout:fixed;width:100%}.searches td,.searches th{white-space:normal;overflow-wrap:anywhere}
details,table{margin:.6rem 0}summary{cursor:pointer}b{font-weight:650}
@media(prefers-color-scheme:dark){pre{background:#23282e;color:#e4e7eb}figure{background:#fff}}
"""


def render(shown: Shown, *, commands: list[tuple[str, str]]) -> str:
    """The page; `commands` are pairs of a description and a command line."""
    lines = "".join(f"<p>{html.escape(words)}</p><pre>{html.escape(line)}</pre>" for words, line in commands)
    sections = {
        "Scores": _scores(shown),
        "Searches": _searches(shown),
        "Score against bits": _bits(shown),
        "Precision and recall": _curves(shown),
        "How the codes are found": f"<div class=pair><div>{_residual(shown)}</div><div>{_affinity(shown)}</div></div>",
        "Next steps": lines,
    }
    lead = (
        "Short binary codes for texts, by Hashing with Binary Matrix Pursuit (ECCV 2018) and other methods, and the "
        "same search without hashing. All methods have their default settings, the same split and the same score. "
        f"{shown.texts.about}"
    )
    intro = f"<p class=lead>{html.escape(lead)}</p>"
    return page("hbmp demo", "hbmp: search by codes of a few bytes", intro, list(sections.items()), style=_STYLE)


def _scores(shown: Shown) -> str:
    found = shown.comparison
    return (
        f"<p>{html.escape(found.recommendation)}</p>{found.summary.html()}{found.alternatives.html()}"
        f"<details><summary>All scores and costs</summary>{found.details.html()}</details>"
        f"<details><summary>How this was measured</summary><p class=caption>{html.escape(found.caption)}</p></details>"
    )


def _searches(shown: Shown) -> str:
    details = shown.model.detail_bits_
    words = (
        f"The database holds {len(shown.comparison.split.database):,} descriptions as codes of {shown.model.n_bits} "
        f"bits. {shown.model.n_bits - details} of them are learned from the labels, and {details} distinguish "
        "descriptions with the same label. The first column of each table compares codes alone. The second ranks the "
        "50 nearest codes by their vectors. The last searches the vectors themselves."
    )
    tables = "".join(_search_table(each) for each in shown.searches)
    return f"<p>{html.escape(words)}</p><div class=searches>{tables}</div>"


def _search_table(search: SentenceSearch) -> str:
    kinds = tuple(search.found)
    rows = tuple(zip(*search.found.values(), strict=True))
    table = Table(kinds, rows, title=f"“{search.sentence}”", n_names=len(kinds)).html()
    return re.sub(r"(?<=[a-z])([._])(?=\w)", r"\1<wbr>", table)  # long names break after a dot on narrow screens


def _bits(shown: Shown) -> str:
    words = "One line per method. Longer codes need more memory; a good method reaches a high score with few bits."
    drawn = colours(shown.comparison.ranking)
    key = " ".join(_key(name, colour) for name, colour in drawn.items())
    return _figure(as_svg(shown.comparison.plot()), words, sideways=True, key=key)


def _key(name: str, colour: tuple[float, float, float]) -> str:
    red, green, blue = (round(255 * part) for part in colour)
    return f'<span><i style="background:rgb({red},{green},{blue})"></i>{html.escape(name)}</span>'


def _curves(shown: Shown) -> str:
    n_bits = shown.lengths[len(shown.lengths) // 2]
    curves = {row.method: row.curve for row in shown.comparison.rows if row.bits == n_bits and row.curve}
    words = (
        f"Precision and recall down the ranking of {n_bits}-bit codes: the fraction of relevant items among those "
        "ranked so far, against the fraction of all relevant items found so far. Up and to the right is better."
    )
    return _figure(curves_plot(curves, n_bits, colours(curves)), words)


def _residual(shown: Shown) -> str:
    book = shown.model.codebook_
    curves = figures.residual_curves(book)
    left = {name: f"{curve[-1]:.0%}" for name, curve in curves.items()}
    words = (
        f"Each bit of the pursuit reduces the residual of the affinity. After {book.n_bits} bits it is "
        f"{left['constant']} with plain Hamming distance (constant), {left['greedy']} with one weight per bit "
        f"(greedy), and {left['regress']} with all weights refitted at each step (regress). The weights of the model "
        f"have a ridge penalty, so that no single bit dominates: {left['the model']}."
    )
    return _figure(figures.residuals(curves), words)


def _affinity(shown: Shown) -> str:
    book = shown.model.codebook_
    words = (
        "Left: the affinity of the labels, from blue (+1, the same label) to red (−1, nothing in common); labels with "
        f"similar texts are closer than others. Right: what {book.n_bits} bits rebuild of it. It is paler, because a "
        "constant shift of all pairs changes no ranking."
    )
    return _figure(figures.affinity(book), words)


def _figure(content: str, words: str, *, sideways: bool = False, key: str = "") -> str:
    """A figure with its caption; with `sideways` it scrolls on narrow screens, and the key of its colours is shown."""
    kind = " class=sideways" if sideways else ""
    key = f"<p class=key>{key}</p>" if key else ""
    return f"<figure{kind}>{content}</figure>{key}<p class=caption>{html.escape(words)}</p>"
