"""The README's picture: the neighbours of handwritten digits by HBMP codes and by PCA signs.

    python scripts/make_pictures.py                 writes docs/pictures/retrieval.png

Both methods use 16 bits per image, train on the same 1,397 digits and search them with unseen digits. The three queries
are drawn by a seed, one digit each, and not selected by their results.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import hbmp
from hbmp.metrics import mean_average_precision

PICTURE = Path(__file__).parent.parent / "docs" / "pictures" / "retrieval.png"
N_BITS, N_NEIGHBOURS, SEED = 16, 10, 0
RIGHT, WRONG, INK = "#2e9e5b", "#d3453b", "#3c434b"


def neighbours_of(model, database, queries) -> np.ndarray:
    """Positions in the database of the nearest to each query, shape (queries, N_NEIGHBOURS)."""
    index = hbmp.Index(N_BITS, bit_weights=model.bit_weights_).add(model.transform(database))
    return index.search(model.transform(queries), N_NEIGHBOURS)[1]


def score(model, database, queries, database_y, query_y) -> float:
    """Mean average precision of all queries, equal distances averaged."""
    codes = model.transform(queries), model.transform(database)
    return mean_average_precision(*codes, query_y, database_y, bit_weights=model.bit_weights_, ties="average")


def draw(path: Path) -> None:
    """Fit both methods, search, and draw one block of rows per method."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    pixels, classes = load_digits(return_X_y=True)
    split = train_test_split(pixels, classes, test_size=400, random_state=SEED, stratify=classes)
    database, queries, database_y, query_y = split
    rng = np.random.default_rng(SEED)
    shown = [int(rng.choice(np.flatnonzero(query_y == digit))) for digit in rng.choice(10, 3, replace=False)]
    models = {
        "HBMP": hbmp.HBMP(N_BITS, random_state=SEED).fit(database, database_y),
        "PCA signs": hbmp.get_method("pca_sign")(N_BITS, random_state=SEED).fit(database),
    }
    figure = plt.figure(figsize=(11, 2.9), dpi=150, facecolor="white")
    for place, (name, model) in enumerate(models.items()):
        found = neighbours_of(model, database, queries[shown])
        value = score(model, database, queries, database_y, query_y)
        block = figure.add_gridspec(
            3, N_NEIGHBOURS + 1, left=0.01 + place * 0.5, right=0.49 + place * 0.5, top=0.78, bottom=0.03,
            width_ratios=[1.35] + [1] * N_NEIGHBOURS, wspace=0.14, hspace=0.14,
        )  # fmt: skip
        title = f"{name}, {N_BITS} bits: mAP {value:.2f} over {len(queries)} queries"
        figure.text(0.01 + place * 0.5, 0.9, title, fontsize=12, color=INK, fontweight="bold")
        figure.text(
            0.01 + place * 0.5, 0.815, "the query and its ten nearest (green: same digit)", fontsize=9, color=INK
        )
        for row, query in enumerate(shown):
            _image(figure.add_subplot(block[row, 0]), queries[query], INK, anchor="W")
            for column, item in enumerate(found[row], start=1):
                colour = RIGHT if database_y[item] == query_y[query] else WRONG
                _image(figure.add_subplot(block[row, column]), database[item], colour)
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, metadata={"Software": None})


def _image(axes, pixels: np.ndarray, frame: str, anchor: str = "C") -> None:
    """One digit in a coloured frame."""
    axes.imshow(pixels.reshape(8, 8), cmap="gray_r", interpolation="nearest")
    axes.set(xticks=[], yticks=[])
    axes.set_anchor(anchor)
    for side in axes.spines.values():
        side.set(color=frame, linewidth=2.2)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=PICTURE, help="default: docs/pictures/retrieval.png")
    draw(parser.parse_args().output)
