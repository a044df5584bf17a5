"""The first thing a new user runs: HBMP on real handwritten digits, next to the signs of principal components."""

from __future__ import annotations

import sys
import time

import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

import hbmp
from hbmp import hamming, metrics


def main() -> None:
    """Fit on 1,397 digits, search with 400 others, print what happened."""
    images, classes = load_digits(return_X_y=True)
    database, queries, database_y, query_y = train_test_split(
        images, classes, test_size=400, random_state=0, stratify=classes
    )
    print(f"Real digits: {len(database):,} in the database, {len(queries)} queries, 64 pixels each, 10 classes.\n")
    print(f"{'':24}{'bits':>6}{'mAP':>9}{'tie-aware':>11}{'fit':>9}")
    for n_bits in (12, 24, 48):
        for name, model in _contestants(n_bits).items():
            started = time.perf_counter()
            model.fit(database, database_y)
            seconds = time.perf_counter() - started
            scores = _scores(model, queries, database, query_y, database_y)
            print(f"{name:24}{n_bits:>6}{scores[0]:>9.3f}{scores[1]:>11.3f}{seconds:>8.1f}s", flush=True)
    _describe(model, database)


def _contestants(n_bits: int) -> dict[str, hbmp.Hasher]:
    return {
        "signs of PCA": hbmp.get_method("pca_sign")(n_bits, random_state=0),
        "HBMP, as published": hbmp.HBMP.paper(n_bits, random_state=0),
        "HBMP": hbmp.HBMP(n_bits, random_state=0, verbose=sys.stderr.isatty()),
    }


def _scores(model, queries, database, query_y, database_y) -> tuple[float, float]:
    """Mean average precision over the whole ranking, ties in database order and averaged."""
    codes = model.transform(queries), model.transform(database), query_y, database_y
    plain = metrics.mean_average_precision(*codes, bit_weights=model.bit_weights_)
    aware = metrics.mean_average_precision(*codes, bit_weights=model.bit_weights_, ties="average")
    return plain, aware


def _describe(model, database) -> None:
    """What stage one and stage two left, and what the codes look like."""
    book, statistics = model.codebook_, hamming.statistics(model.transform(database))
    shown = ", ".join(f"{t}: {book.relative_residuals[t]:.3f}" for t in (0, 12, 24, 36, 48))
    apart = (book.n_bits - book.codes.astype(int) @ book.codes.T) // 2
    closest = apart[~np.eye(len(apart), dtype=bool)].min()
    print("\nThe last model, 48 bits:")
    print(f"  share of the affinity left unexplained, by bits   {shown}")
    print(f"  closest two class codes differ in                 {closest} bits")
    print(f"  target bits the hash function misses (training)   {model.unmatched_:.2%}")
    print(f"  distinct codes in the database                    {statistics['distinct_codes']:,} of {len(database):,}")
    print(f"  how far a bit is from balanced, 0 to 1, mean      {np.abs(statistics['balance']).mean():.2f}")
    print(f"  bytes an item                                     {hamming.bytes_for(book.n_bits)} (pixels: 512)")


if __name__ == "__main__":
    main()
