"""The report of the demo: one HTML file with one section per data set; each figure has a caption."""

from __future__ import annotations

import html
from typing import TYPE_CHECKING

import numpy as np

from hbmp import hamming
from hbmp.app.demo import figures
from hbmp.experiments.report.figures import as_svg, curves_plot
from hbmp.experiments.report.html_page import page, picture

if TYPE_CHECKING:
    from hbmp.app.demo import Shown

SECTIONS = {
    "scores": "Scores",
    "queries": "Three queries",
    "bits": "mAP against bits",
    "curves": "Precision and recall",
    "residual": "Residual",
    "affinity": "Affinity and its approximation",
    "codes": "The codes",
    "map": "A map of the codes",
}
_STYLE = """
main p,.lead{max-width:46rem}figure{background:#fff;border-radius:8px;padding:.4rem;margin:.6rem 0;overflow-x:auto}
figure svg,figure img{display:block;margin:0 auto}.sideways svg,.sideways img{min-width:34rem}
.pair{display:grid;gap:1rem;grid-template-columns:repeat(auto-fit,minmax(min(100%,24rem),1fr))}
code{font-size:.9em;overflow-wrap:anywhere}.jump{font-size:.88rem;margin:.4rem 0 1rem;line-height:1.9}
details{margin:.6rem 0}summary{cursor:pointer}b{font-weight:650}
@media(prefers-color-scheme:dark){pre{background:#23282e;color:#e4e7eb}figure{background:#fff}}
"""


def render(shown: list[Shown], *, lead: str, commands: list[tuple[str, str]]) -> str:
    """The page; `lead` is its first paragraph, `commands` are pairs of a description and a command line."""
    lines = "".join(f"<p>{html.escape(words)}</p><pre>{html.escape(line)}</pre>" for words, line in commands)
    sections = [*((each.example.title, _section(each)) for each in shown), ("Next steps", lines)]
    intro = f"<p class=lead>{html.escape(lead)}</p>"
    return page("hbmp demo", "hbmp: codes of a few bytes that keep neighbours close", intro, sections, style=_STYLE)


def _section(shown: Shown) -> str:
    name = shown.example.name
    links = " ".join(f'<a href="#{name}-{key}">{html.escape(title)}</a>' for key, title in SECTIONS.items())
    parts = {key: f'<div><h3 id="{name}-{key}">{title}</h3>' for key, title in SECTIONS.items()}
    filled = {key: f"{head}{_PARTS[key](shown)}</div>" for key, head in parts.items()}
    filled["curves"] = f"<div class=pair>{filled['curves']}{filled.pop('residual')}</div>"
    about = f"<p>{html.escape(shown.example.about)}</p>"
    return f"{about}<nav class=jump>{links}</nav><main>{''.join(filled.values())}</main>"


def _scores(shown: Shown) -> str:
    found = shown.comparison
    return (
        f"<p>{html.escape(standing(shown))}</p>{found.summary.html()}"
        f"<details><summary>All scores and costs</summary>{found.details.html()}</details>"
        f"<p class=caption>{html.escape(found.caption)}</p>"
    )


def _bits(shown: Shown) -> str:
    words = "One line per method. Longer codes need more memory; a good method reaches a high score with few bits."
    return _figure(as_svg(shown.comparison.plot()), words, sideways=True)


def _curves(shown: Shown) -> str:
    n_bits = shown.lengths[len(shown.lengths) // 2]
    curves = {row.method: row.curve for row in shown.comparison.rows if row.bits == n_bits and row.curve}
    words = (
        f"Precision and recall down the ranking of {n_bits}-bit codes: the fraction of relevant items among those "
        "ranked so far, against the fraction of all relevant items found so far. Up and to the right is better."
    )
    return _figure(curves_plot(curves, n_bits), words)


def _residual(shown: Shown) -> str:
    curves = figures.residual_curves(shown.book)
    left = {name: f"{curve[-1]:.0%}" for name, curve in curves.items()}
    words = (
        f"Each bit of the pursuit reduces the residual of the affinity. After {shown.book.n_bits} bits it is "
        f"{left['constant']} with plain Hamming distance (constant), {left['greedy']} with one weight per bit "
        f"(greedy), and {left['regress']} with all weights refitted at each step (regress). The weights of the model "
        f"have a ridge penalty, so that no single bit dominates: {left['the model']}."
    )
    return _figure(figures.residuals(curves), words)


def _affinity(shown: Shown) -> str:
    book = shown.book
    words = (
        "Left: the affinity of the classes, from blue (+1, the same class) to red (−1, nothing in common); classes "
        "with similar features are slightly closer than others. Then its approximation by the first "
        f"{_listed(shown.lengths)} bits of one code book. Codes are nested: the first bits of a long code are a short "
        "code, with their own weights."
    )
    return _figure(figures.affinity(book, shown.example.names, shown.lengths), words, sideways=True)


def _codes(shown: Shown) -> str:
    apart = hamming.distances(shown.book.codes, shown.book.codes, None)
    closest = int(apart[~np.eye(len(apart), dtype=bool)].min())
    targets = shown.book.codes[shown.query_labels]
    missed = float((shown.query_codes["hbmp"] != targets).mean())
    words = (
        f"Above, the codes of the classes from the pursuit: the closest two differ in {closest} of {shown.book.n_bits} "
        f"bits. Below, the codes of held-out queries from the hash function, sorted by class: {missed:.1%} of their "
        "bits differ from the code of their class."
    )
    picture = figures.codes(shown.book, shown.query_codes["hbmp"], shown.query_labels, shown.example.names)
    return _figure(picture, words, sideways=True)


def _map(shown: Shown) -> str:
    words = (
        "t-SNE of the codes of the queries; the colour is the class. "
        f"Left HBMP, right {shown.rival}; both with {shown.book.n_bits} bits."
    )
    drawn = figures.places(shown.query_codes, shown.query_labels, shown.example.names, shown.example.title)
    return _figure(drawn, words, sideways=True)


def _queries(shown: Shown) -> str:
    hits = {record["settings"]["method"]: int(np.sum(record["hits"])) for record in shown.retrieved}
    total = np.size(shown.retrieved[0]["hits"])
    counted = ", ".join(f"{method} {count} of {total}" for method, count in hits.items())
    words = (
        f"Each row begins with a query; its nearest items by {shown.book.n_bits}-bit codes follow, framed green if "
        "they have the class of the query and red if not. By the mean average precision of both methods, the first "
        "query is the median, the second lies at the lowest tenth, and the third is the worst. "
        f"Correct: {counted}."
    )
    drawn = figures.retrieval(shown.retrieved, shown.example.looks())
    return _figure(picture(drawn, f"Nearest items of three queries. {counted}."), words, sideways=True)


_PARTS = {
    "scores": _scores,
    "bits": _bits,
    "curves": _curves,
    "residual": _residual,
    "affinity": _affinity,
    "codes": _codes,
    "map": _map,
    "queries": _queries,
}


def standing(shown: Shown) -> str:
    """The scores of HBMP and of the best other method, in one sentence."""
    found = shown.comparison
    scores = {(row.method, row.bits): row.score(found.measure) for row in found.rows}
    parts = []
    for n_bits in shown.lengths:
        mine = scores["hbmp", n_bits]
        others = {name: score for (name, bits), score in scores.items() if bits == n_bits and name != "hbmp" and score}
        best = max(others, key=lambda name: others[name])
        parts.append(f"{mine:.3f} at {n_bits} bits (best other: {best}, {others[best]:.3f})")
    return f"HBMP's mean average precision: {'; '.join(parts)}."


def _figure(content: str, words: str, *, sideways: bool = False) -> str:
    """A figure with its caption; with `sideways` it scrolls on narrow screens."""
    kind = " class=sideways" if sideways else ""
    return f"<figure{kind}>{content}</figure><p class=caption>{html.escape(words)}</p>"


def _listed(numbers) -> str:
    words = [str(number) for number in numbers]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
