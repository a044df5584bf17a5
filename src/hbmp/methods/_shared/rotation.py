"""Rotations of a projection before the sign: a random one, and the one that iterative quantisation learns.

A rotation balances the information of the bits, and the learned one also moves the points close to the corners of the
cube. With fewer dimensions r than bits b it is a set of b directions in r dimensions whose rows are orthonormal,
which is a b × b rotation of points padded with zeros.

    V      projections  (n, r)   r ≤ b
    R      rotation     (r, b)   R Rᵀ = I
    B      signs        (n, b)   sign(V R)
    loss                         ‖B - V R‖² / n

Reference: Gong & Lazebnik, Iterative Quantization, CVPR 2011.
"""

from __future__ import annotations

import numpy as np


def random_rotation(n_dimensions: int, n_bits: int, rng: np.random.Generator) -> np.ndarray:
    """Orthonormal rows drawn uniformly, (n_dimensions, n_bits), float64."""
    basis, triangle = np.linalg.qr(rng.standard_normal((n_bits, n_dimensions)))
    return (basis * np.where(np.diag(triangle) >= 0, 1.0, -1.0)).T  # without the signs a QR is not uniform


def learn_rotation(
    projections: np.ndarray, n_bits: int, n_iter: int, rng: np.random.Generator
) -> tuple[np.ndarray, list[float]]:
    """(R, the loss at the start and after each iteration), by alternating between B and R from a random rotation."""
    rotation = random_rotation(projections.shape[1], n_bits, rng)
    scores = projections @ rotation.astype(projections.dtype)
    signs = as_signs(scores)
    losses = [quantisation_loss(signs, scores)]
    for _ in range(n_iter):
        rotation = nearest_rotation(projections, signs)
        scores = projections @ rotation.astype(projections.dtype)
        signs = as_signs(scores)
        losses.append(quantisation_loss(signs, scores))
    return rotation, losses


def nearest_rotation(projections: np.ndarray, signs: np.ndarray) -> np.ndarray:
    """The R with orthonormal rows that brings V R closest to given signs (the orthogonal Procrustes problem)."""
    left, _, right = np.linalg.svd((projections.T @ signs).astype(np.float64), full_matrices=False)
    return left @ right


def as_signs(scores: np.ndarray) -> np.ndarray:
    """Signs as floats of the same precision; sign(0) is +1."""
    return np.where(scores >= 0, scores.dtype.type(1), scores.dtype.type(-1))


def quantisation_loss(signs: np.ndarray, scores: np.ndarray) -> float:
    """‖B - V R‖² per sample."""
    return float(np.square(signs - scores).sum(dtype=np.float64) / len(signs))
