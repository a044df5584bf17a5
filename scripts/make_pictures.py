"""The pictures of search in the README and the gallery: real texts searched by floats, by signs and by hbmp codes.

    python scripts/make_pictures.py         writes front.png, strips.png, codes.png and curves.png into docs/pictures/

The texts are those of `benchmarks/front_page.py`: descriptions of functions in packages that `pip install -c
constraints.txt '.[learn,plots,text]'` installs, with the part of the package as class. Half of the texts that are not
queries train, all are searched. The queries shown are the most typical ones of one line: every search finds about as
many right items for them as it finds on average. An item of another class is named with the last part of its class.
"""

from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from pictures_of_codes import draw_codes, draw_curves, suite_lines

import hbmp

ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(ROOT / "benchmarks"))
FOLDER = ROOT / "docs" / "pictures"
BITS, SHOWN = 256, 5  # as many bytes as signs have
FEW_BITS = 64  # of the picture of codes, where each bit is to be seen
RIGHT, WRONG, INK, FAINT = "#1f7a44", "#b3261e", "#1c1f23", "#6a717b"


@dataclass(frozen=True)
class Search:
    """One way to search: its name, its bytes per text, and the nearest items of every query, (queries, 10)."""

    name: str
    n_bytes: int
    nearest: np.ndarray


def searches(X, split, model) -> list[Search]:
    """The nearest ten of every query by floats, signs and codes."""
    queries, items = X[split.query], X[split.database]
    index = hbmp.Index(BITS, bit_weights=model.bit_weights_).add(model.transform(items))
    signs = np.where(queries > 0, 1, -1) @ np.where(items > 0, 1, -1).T
    return [
        Search("floats", 4 * X.shape[1], _first(queries @ items.T)),
        Search("signs", X.shape[1] // 8, _first(signs)),
        Search("hbmp", BITS // 8, index.search(model.project(queries), 10)[1]),
    ]


def _first(similarity) -> np.ndarray:
    return np.argsort(-similarity, axis=1, kind="stable")[:, :10]


def draw(path: Path, texts, y, split, found: list[Search], rows) -> None:
    """One block per query: its text, and a column of names for each search."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    height = 2.62
    figure = plt.figure(figsize=(10, 0.95 + height * len(rows)), dpi=120, facecolor="white")
    top = 0.95 + height * len(rows)
    page = figure.add_axes((0, 0, 1, 1), xlim=(0, 10), ylim=(0, top))
    page.axis("off")
    for column, search in enumerate(found):
        right = np.mean(y[split.database][search.nearest] == y[split.query][:, None])
        left = 0.15 + 3.33 * column
        bold = {"fontweight": "bold", "color": INK}
        page.text(left, top - 0.38, f"{search.name}: {search.n_bytes:,} bytes", fontsize=18, **bold)
        page.text(left, top - 0.7, f"{100 * right:.0f} % of the first ten are right", fontsize=14.5, color=FAINT)
    for block, row in enumerate(rows):
        start, query = top - 0.95 - height * block, split.query[row]
        page.add_patch(plt.Rectangle((0.08, start - 0.42), 9.84, 0.44, color="#eef1f5"))
        page.text(0.15, start - 0.28, f"“{_cut(_sentence(texts.texts[query]), 58)}”", fontsize=15, color=INK)
        page.text(9.85, start - 0.28, f"{y[query]}", fontsize=15, color=INK, fontweight="bold", ha="right")
        for column, search in enumerate(found):
            for place, item in enumerate(split.database[search.nearest[row, :SHOWN]]):
                same = y[item] == y[query]
                line = start - 0.78 - 0.36 * place
                mark = "✓" if same else "✗"
                name = texts.names[item].removeprefix(y[item] + ".")
                words = name if same else f"{y[item].split('.')[-1]}.{name}"
                page.text(0.15 + 3.33 * column, line, mark, fontsize=15, color=RIGHT if same else WRONG)
                page.text(0.42 + 3.33 * column, line, _cut(words, 24), fontsize=15, color=RIGHT if same else WRONG)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})


def typical(texts, y, split, found: list[Search], count: int) -> list[int]:
    """Rows of queries, one per class, for which every search finds about its average number of right items."""
    right = np.array([y[split.database][search.nearest] == y[split.query][:, None] for search in found])
    depths = (SHOWN, right.shape[2])
    hits = np.array([right[:, :, :depth].mean(axis=2) for depth in depths])
    away = np.abs(hits - hits.mean(axis=2, keepdims=True)).sum(axis=(0, 1))
    lengths = [len(_sentence(texts.texts[row])) for row in split.query]
    chosen: list[int] = []
    for row in np.argsort(away, kind="stable"):
        if y[split.query[row]] not in y[split.query[chosen]] and 30 <= lengths[row] <= 58:
            chosen.append(int(row))
    return chosen[:count]


def _sentence(text: str) -> str:
    return text.split(". ", maxsplit=1)[0].rstrip(".")


def _cut(text: str, longest: int) -> str:
    return text if len(text) <= longest else text[: longest - 1].rstrip() + "…"


def main() -> None:
    """Fit, search, and draw the pictures."""
    from front_page import QUERIES, documentation

    texts, X, y = documentation()
    split = hbmp.evaluation.trial.draw_split(len(X), y, queries=QUERIES, train=0.5, seed=0)
    model, short = (
        hbmp.HBMP(bits, detail_bits="auto", device="cpu", random_state=0).fit(X[split.train], y[split.train])
        for bits in (BITS, FEW_BITS)
    )
    found = searches(X, split, model)
    rows = typical(texts, y, split, found, 8)
    draw(FOLDER / "front.png", texts, y, split, found, rows[:2])
    draw(FOLDER / "strips.png", texts, y, split, found, rows[2:])
    new = np.setdiff1d(split.database, split.train)
    draw_codes(FOLDER / "codes.png", short.transform(X[new]), y[new], short.detail_bits_)
    draw_curves(FOLDER / "curves.png", suite_lines())


if __name__ == "__main__":
    main()
