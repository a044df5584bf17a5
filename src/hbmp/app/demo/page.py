"""The demo's report: one HTML file with a section a data set, every picture inside it and explained below it."""

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
    "residual": "What the bits leave over",
    "affinity": "The affinity and what codes rebuild of it",
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
    """The page. lead: a sentence; commands: (what it does, the line to type)."""
    lines = "".join(f"<p>{html.escape(words)}</p><pre>{html.escape(line)}</pre>" for words, line in commands)
    sections = [*((each.example.title, _section(each)) for each in shown), ("Go on from here", lines)]
    told = f"<p class=lead>{html.escape(lead)}</p>"
    return page("hbmp demo", "hbmp: codes of a few bytes that keep who is close", told, sections, style=_STYLE)


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
        f"<details><summary>Every reading and cost</summary>{found.details.html()}</details>"
        f"<p class=caption>{html.escape(found.caption)}</p>"
    )


def _bits(shown: Shown) -> str:
    words = "Each line is a method. Longer codes cost more bytes; a good method needs few of them."
    return _figure(as_svg(shown.comparison.plot()), words, sideways=True)


def _curves(shown: Shown) -> str:
    n_bits = shown.lengths[len(shown.lengths) // 2]
    curves = {row.method: row.curve for row in shown.comparison.rows if row.bits == n_bits and row.curve}
    words = (
        f"Going down the ranking of {n_bits}-bit codes: the share of neighbours among what was looked at (precision) "
        "against the share of all neighbours found so far (recall). Up and to the right is better."
    )
    return _figure(curves_plot(curves, n_bits), words)


def _residual(shown: Shown) -> str:
    curves = figures.residual_curves(shown.book)
    left = {name: f"{curve[-1]:.0%}" for name, curve in curves.items()}
    words = (
        f"Every bit of the pursuit explains a little more of the affinity. {shown.book.n_bits} bits leave "
        f"{left['constant']} of it with plain Hamming distance (constant), {left['greedy']} with a weight for each "
        f"bit (greedy), {left['regress']} with all weights refitted at every step (regress). The model's own weights "
        f"are held small by a ridge, so that no bit counts for most: {left['the model']}."
    )
    return _figure(figures.residuals(curves), words)


def _affinity(shown: Shown) -> str:
    book = shown.book
    words = (
        "Left: who should be close, from blue (+1, the same class) to red (−1, nothing in common); classes whose "
        f"features are alike on average are a little closer than others. Then what the first {_listed(shown.lengths)} "
        "bits of one code book make of it. Codes are nested: the first bits of a long code are a short code, with "
        "weights of its own."
    )
    return _figure(figures.affinity(book, shown.example.names, shown.lengths), words, sideways=True)


def _codes(shown: Shown) -> str:
    apart = hamming.distances(shown.book.codes, shown.book.codes, None)
    closest = int(apart[~np.eye(len(apart), dtype=bool)].min())
    targets = shown.book.codes[shown.query_labels]
    missed = float((shown.query_codes["hbmp"] != targets).mean())
    words = (
        f"Above, the codes that the pursuit gave the classes: the closest two differ in {closest} of "
        f"{shown.book.n_bits} bits. Below, what the hash function gives queries it has never seen, sorted by class: "
        f"{missed:.1%} of their bits differ from their class's code."
    )
    picture = figures.codes(shown.book, shown.query_codes["hbmp"], shown.query_labels, shown.example.names)
    return _figure(picture, words, sideways=True)


def _map(shown: Shown) -> str:
    words = (
        "Each point is the code of a query, placed by t-SNE so that near codes are near, and coloured by its class. "
        f"Left HBMP, right {shown.rival}; both at {shown.book.n_bits} bits."
    )
    drawn = figures.places(shown.query_codes, shown.query_labels, shown.example.names, shown.example.title)
    return _figure(drawn, words, sideways=True)


def _queries(shown: Shown) -> str:
    hits = {record["settings"]["method"]: int(np.sum(record["hits"])) for record in shown.retrieved}
    total = np.size(shown.retrieved[0]["hits"])
    counted = ", ".join(f"{method} {count} of {total}" for method, count in hits.items())
    words = (
        f"The first of each row asks; the nearest items by {shown.book.n_bits}-bit codes follow, framed green where "
        "they have the query's class and red where they do not. By the average precision of both methods together the "
        "first query is the median of all, the second does better than one in ten, and the third is the worst of all. "
        f"Right: {counted}."
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
    """Where HBMP stands, in a sentence whose numbers are the table's."""
    found = shown.comparison
    scores = {(row.method, row.bits): row.score(found.measure) for row in found.rows}
    told = []
    for n_bits in shown.lengths:
        mine = scores["hbmp", n_bits]
        others = {name: score for (name, bits), score in scores.items() if bits == n_bits and name != "hbmp" and score}
        best = max(others, key=lambda name: others[name])
        told.append(f"{mine:.3f} at {n_bits} bits (best other: {best}, {others[best]:.3f})")
    return f"HBMP's mean average precision: {'; '.join(told)}."


def _figure(content: str, words: str, *, sideways: bool = False) -> str:
    """sideways: too fine for a phone's width, so that it scrolls there."""
    kind = " class=sideways" if sideways else ""
    return f"<figure{kind}>{content}</figure><p class=caption>{html.escape(words)}</p>"


def _listed(numbers) -> str:
    words = [str(number) for number in numbers]
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"
