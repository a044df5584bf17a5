"""Codes without labels, one function per method: bytes per vector, and the similarity of queries and database.

Each function takes a task of `without_labels.py`, a number of bits and a seed, and yields

    queries      "float": real-valued queries; "codes": queries that are codes themselves; with " hamming", ranked by
                 (weighted) Hamming distance, otherwise by the metric between queries and the vectors codes stand for
    bytes        everything kept per vector
    similarity   (queries, rows of the database), larger is nearer

or nothing where a method is not defined. Methods that keep factors beside their codes get fewer principal axes, so that
their bytes are not more.
"""

from __future__ import annotations

import faiss
import numpy as np

import hbmp
from hbmp.methods._shared.rotation import random_rotation
from hbmp.methods.hbmp.unlabelled import Rebuilding
from hbmp.pursuit.features import fit_atoms

PEERS = ("lsh", "pca_sign", "sh")  # published methods that learn without labels
NETWORKS = ("bihalf", "cibhash", "crovca", "oh")  # the same, trained by gradients


def both(task, rebuild, encode, n_bytes):
    """Float and coded queries against the vectors that codes stand for."""
    rows = rebuild(encode(task.database))
    yield "float", n_bytes, task.similarity(task.queries, rows)
    yield "codes", n_bytes, task.similarity(rebuild(encode(task.queries)), rows)


def signs(scores):
    return np.where(scores >= 0, np.float32(1), np.float32(-1))


def hbmp_codes(queries="codes", **settings):
    """HBMP without labels; by inner product where the task ranks by it."""

    def run(task, n_bits, seed):
        function = Rebuilding(**settings, metric="ip" if task.metric == "ip" else "l2")
        model = hbmp.HBMP(n_bits, queries=queries, function=function, random_state=seed).fit(task.train)
        codes, n_bytes = model.transform(task.database), n_bits / 8
        weighted = codes.astype(np.float32) * model.bit_weights_.astype(np.float32)
        yield "float hamming", n_bytes, model.project(task.queries) @ weighted.T
        yield "codes hamming", n_bytes, model.transform(task.queries).astype(np.float32) @ weighted.T
        yield from both(task, model.function_.rebuild, model.transform, n_bytes)
        if settings.get("nested"):
            for part in (8, 4, 2):
                yield from prefix(task, model, codes, n_bits // part, f"1/{part} ")

    return run


def prefix(task, model, codes, n_bits, name):
    """The first bits of nested codes alone."""
    decoder, mean = model.function_.decoder_[:n_bits], model.function_.mean_
    rows = mean + codes[:, :n_bits].astype(np.float32) @ decoder
    asked = mean + model.transform(task.queries)[:, :n_bits].astype(np.float32) @ decoder
    yield f"{name}float", n_bits / 8, task.similarity(task.queries, rows)
    yield f"{name}codes", n_bits / 8, task.similarity(asked, rows)


def linear(directions_of):
    """Signs of linear scores; a code stands for the mean and its bits along the directions, at the best length."""

    def run(task, n_bits, seed):
        found = directions_of(task, n_bits, seed)
        if found is None:
            return
        mean, directions = found
        codes = signs((task.train - mean) @ directions)
        back = codes @ np.linalg.pinv(directions)
        length = float((back * (task.train - mean)).sum() / np.square(back).sum())
        decoder = np.float32(length) * np.linalg.pinv(directions)

        def encode(X):
            return signs((X - mean) @ directions)

        database = encode(task.database).T
        yield "float hamming", n_bits / 8, (task.queries - mean) @ directions @ database
        yield "codes hamming", n_bits / 8, encode(task.queries) @ database
        yield from both(task, lambda codes: mean + codes @ decoder, encode, n_bits / 8)

    return run


def sign(centred):
    def directions(task, n_bits, seed):
        if n_bits != task.n_features:
            return None
        mean = task.train.mean(axis=0) if centred else np.zeros(n_bits, np.float32)
        return mean, np.eye(n_bits, dtype=np.float32)

    return directions


def published(name):
    def directions(task, n_bits, seed):
        if n_bits > task.n_features:
            return None
        model = hbmp.get_method(name)(n_bits, random_state=seed).fit(task.train)
        return model.mean_, model.directions_

    return directions


def peer(name):
    """A published method with its defaults; codes stand for the vectors that least squares rebuilds from them."""

    def run(task, n_bits, seed):
        if name in ("pca_sign", "sh", "oh") and n_bits > task.n_features:
            return
        model = hbmp.get_method(name)(n_bits, random_state=seed).fit(task.train)
        mean = task.train.mean(axis=0)
        decoder = fit_atoms(model.transform(task.train).astype(np.float32), task.train - mean)
        weighted = (model.transform(task.database) * model.bit_weights_).astype(np.float32)
        yield "float hamming", n_bits / 8, model.project(task.queries) @ weighted.T
        yield "codes hamming", n_bits / 8, model.transform(task.queries).astype(np.float32) @ weighted.T
        yield from both(task, lambda codes: mean + codes.astype(np.float32) @ decoder, model.transform, n_bits / 8)

    return run


def new_quantiser(width, parts, seed):
    quantiser = faiss.ProductQuantizer(width, parts, 8)
    quantiser.cp.seed, quantiser.cp.min_points_per_centroid = seed + 1234, 1
    return quantiser


def product_quantiser(rotated):
    def run(task, n_bits, seed):
        parts = n_bits // 8
        width = -(-task.n_features // parts) * parts  # parts of equal width: pad with zeros

        def padded(rows):
            return np.ascontiguousarray(np.pad(rows, ((0, 0), (0, width - rows.shape[1]))), dtype=np.float32)

        rotation = None
        if rotated:
            inner = new_quantiser(width, parts, seed)
            rotation = faiss.OPQMatrix(width, parts)
            rotation.niter, rotation.pq = 8, inner
            rotation.train(padded(task.train))
        quantiser = new_quantiser(width, parts, seed)
        turned = padded if rotation is None else lambda rows: rotation.apply(padded(rows))
        quantiser.train(turned(task.train))

        def rebuild(codes):
            rows = quantiser.decode(codes)
            return (rows if rotation is None else rotation.reverse_transform(rows))[:, : task.n_features]

        yield from both(task, rebuild, lambda rows: quantiser.compute_codes(turned(rows)), parts)

    return run


def principal(task, n_axes, seed):
    """(mean, d x n leading principal axes under a random rotation): every coordinate holds as much variance."""
    mean = task.train.mean(axis=0)
    _, components = np.linalg.eigh(np.cov((task.train - mean).T))
    axes = components[:, ::-1][:, :n_axes] @ random_rotation(n_axes, n_axes, np.random.default_rng(seed))
    return mean, np.ascontiguousarray(axes, dtype=np.float32)


def rabitq(bits_per_axis):
    def run(task, n_bits, seed):
        budget = n_bits // 8
        overhead = faiss.IndexRaBitQ(64, faiss.METRIC_L2, bits_per_axis).code_size - 8 * bits_per_axis
        n_axes = min(task.n_features, int((budget - overhead) * 8 // bits_per_axis) // 8 * 8 or 0)
        if n_axes < 8:
            return
        mean, axes = principal(task, n_axes, seed)
        by_product = task.metric == "ip"
        index = faiss.IndexRaBitQ(n_axes, faiss.METRIC_INNER_PRODUCT if by_product else faiss.METRIC_L2, bits_per_axis)
        index.qb = 0  # queries in full precision
        index.train((task.train - mean) @ axes)
        index.add((task.database - mean) @ axes)
        queries = (task.queries if by_product else task.queries - mean) @ axes  # q·mean moves no ranking
        values, items = index.search(queries, len(task.database))
        similarity = np.full_like(values, -np.inf)
        np.put_along_axis(similarity, items, values if by_product else -values, axis=1)
        yield "float", index.code_size, similarity

    return run


def scalar(bits_per_axis):
    """Scalar quantisation by FAISS of as many rotated principal axes as fit."""
    kind = {4: faiss.ScalarQuantizer.QT_4bit, 8: faiss.ScalarQuantizer.QT_8bit}[bits_per_axis]

    def run(task, n_bits, seed):
        n_axes = min(task.n_features, n_bits // bits_per_axis)
        if n_axes < 2:
            return
        mean, axes = principal(task, n_axes, seed)
        quantiser = faiss.ScalarQuantizer(n_axes, kind)
        quantiser.train((task.train - mean) @ axes)
        yield from both(
            task,
            lambda codes: mean + quantiser.decode(codes) @ axes.T,
            lambda rows: quantiser.compute_codes(np.ascontiguousarray((rows - mean) @ axes)),
            n_axes * bits_per_axis / 8,
        )

    return run


def turboquant(task, n_bits, seed):
    """TurboQuant: a random rotation of the unit vector, the best scalar codes of a Gaussian, and the length beside.

    The rebuilt vector gets the length of the original, which is kept in two bytes where rows differ in length. Below
    one bit per dimension, and where the length would exceed the bytes, the leading axes of the vectors are coded.
    Reference: Zandieh et al., TurboQuant, 2025.
    """
    d = task.n_features
    bits = max(1, round(n_bits / d))
    if bits * d / 8 <= n_bits / 8 + 1 and task.metric == "cosine":  # n_bits is rounded down to whole bytes
        axes, n_bytes = random_rotation(d, d, np.random.default_rng(seed)), bits * d / 8
    else:
        n_axes = min(d, (n_bits - 16) // bits)
        if n_axes < 2:
            return
        _, components = np.linalg.eigh(task.train.T @ task.train)
        axes = components[:, ::-1][:, :n_axes] @ random_rotation(n_axes, n_axes, np.random.default_rng(seed))
        n_bytes = n_axes * bits / 8 + 2
    axes = axes.astype(np.float32)
    levels = gaussian_levels(2**bits)
    edges = (levels[1:] + levels[:-1]) / 2

    def encode(X):
        turned = X @ axes
        lengths = np.maximum(np.linalg.norm(turned, axis=1, keepdims=True), 1e-12)
        codes = np.searchsorted(edges, turned / lengths * np.sqrt(axes.shape[1]))
        return codes, lengths.astype(np.float16).astype(np.float32)

    def rebuild(encoded):
        rows = levels.astype(np.float32)[encoded[0]]
        return encoded[1] * (rows / np.linalg.norm(rows, axis=1, keepdims=True)) @ axes.T

    yield from both(task, rebuild, encode, n_bytes)


def gaussian_levels(n_levels):
    """Lloyd's levels of a standard normal, on its quantiles."""
    from scipy.stats import norm

    sample = norm.ppf((np.arange(100_000) + 0.5) / 100_000)
    levels = norm.ppf((np.arange(n_levels) + 0.5) / n_levels)
    for _ in range(200):
        parts = np.searchsorted((levels[1:] + levels[:-1]) / 2, sample)
        levels = np.bincount(parts, sample, n_levels) / np.bincount(parts, minlength=n_levels)
    return levels


METHODS = {
    "HBMP": hbmp_codes(),
    "HBMP, float queries": hbmp_codes("floats"),
    "HBMP nested": hbmp_codes(nested=True),
    "ITQ": linear(published("itq")),
    "PCA rotation": linear(published("pca_rotation")),
    "sign": linear(sign(False)),
    "centred sign": linear(sign(True)),
    "PQ": product_quantiser(False),
    "OPQ": product_quantiser(True),
    "RaBitQ 1": rabitq(1),
    "RaBitQ 2": rabitq(2),
    "RaBitQ 3": rabitq(3),
    "RaBitQ 4": rabitq(4),
    "scalar 4": scalar(4),
    "scalar 8": scalar(8),
    "TurboQuant": turboquant,
    **{hbmp.get_method(name).__name__: peer(name) for name in (*PEERS, *NETWORKS)},
}
TRAINED = tuple(hbmp.get_method(name).__name__ for name in NETWORKS)
