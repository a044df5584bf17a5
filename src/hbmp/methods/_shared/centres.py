"""Distant points of Hamming space, one per class or label, and the centre of a multi-label sample.

Rows of a Hadamard matrix are orthogonal: any two differ in exactly half of their bits, and a row and its negative in
all of them. So n bits hold up to 2n centres (Yuan et al., CVPR 2020). Where there is no such matrix, or there
are more centres than that, they are drawn at random.

    H      hadamard    (b, b)   entries ±1, H Hᵀ = b I
    c_i    centres     (c, b)   entries ±1
"""

from __future__ import annotations

import numpy as np
import torch

from hbmp.methods._shared.pairs import inner

CHOICES = ("auto", "hadamard", "bernoulli")
_DRAWS = 20
_MOST_COMPARED = 4096  # centres whose distances are worth a matrix


def make_centres(choice: str, n_centres: int, n_bits: int, rng: np.random.Generator) -> np.ndarray:
    """Centres (n_centres, n_bits), float32 in {-1, +1}: "hadamard", "bernoulli", or "auto" for the first possible."""
    if choice not in CHOICES:
        raise ValueError(f"centres must be one of {', '.join(map(repr, CHOICES))}; found {choice!r}.")
    matrix = hadamard(n_bits) if choice != "bernoulli" and n_centres <= 2 * n_bits else None
    if matrix is not None:
        return _some_rows(matrix, n_centres, rng).astype(np.float32)
    if choice == "hadamard":
        raise ValueError(
            f"{n_centres} Hadamard centres of {n_bits} bits do not exist: n_bits must be a multiple of four, and "
            "there are at most twice as many centres as bits. Use centres='auto'."
        )
    return bernoulli_centres(n_centres, n_bits, rng).astype(np.float32)


def hadamard(order: int) -> np.ndarray | None:
    """A Hadamard matrix (order, order), int8, or None if Sylvester and Paley (with a prime) give none."""
    if order == 1:
        return np.ones((1, 1), dtype=np.int8)
    if order % 2 or (order % 4 and order != 2):
        return None
    half = hadamard(order // 2)
    if half is not None:  # Sylvester
        return np.kron(np.array([[1, 1], [1, -1]], dtype=np.int8), half)
    if (order - 1) % 4 == 3 and _is_prime(order - 1):  # Paley's first: the core is skew
        return _bordered(order - 1, -1) + np.eye(order, dtype=np.int8)
    if (order // 2 - 1) % 4 == 1 and _is_prime(order // 2 - 1):  # Paley's second: the core is symmetric
        core = _bordered(order // 2 - 1, 1)
        on_diagonal = np.kron(np.eye(order // 2, dtype=np.int8), np.array([[1, -1], [-1, -1]], dtype=np.int8))
        return np.kron(core, np.array([[1, 1], [1, -1]], dtype=np.int8)) + on_diagonal
    return None


def bernoulli_centres(n_centres: int, n_bits: int, rng: np.random.Generator) -> np.ndarray:
    """Random centres, each bit +1 for half of them; the draw whose two nearest centres are farthest apart.

    Departs from CSQ, which draws every bit alone: halves make the mean distance of two centres at least
    half of the bits in every draw, as CSQ defines centres, and not only on average.
    """
    drawn = [_balanced(n_centres, n_bits, rng) for _ in range(_DRAWS if n_centres <= _MOST_COMPARED else 1)]
    return max(drawn, key=nearest) if len(drawn) > 1 else drawn[0]


def nearest(centres: np.ndarray) -> int:
    """The smallest Hamming distance between two centres; the number of bits for a single centre."""
    signs = centres.astype(np.float32)
    products = signs @ signs.T
    np.fill_diagonal(products, -signs.shape[1])
    return int(signs.shape[1] - products.max()) // 2


def majority(labels: torch.Tensor, centres: torch.Tensor, ties: torch.Tensor) -> torch.Tensor:
    """The centre of each multi-label sample: per bit the majority of the centres of its labels, `ties` (b,) for ties.

    labels (n, c) 0/1, centres (c, b) -> (n, b), torch.
    """
    votes = inner(labels, centres.T)
    return torch.where(votes == 0, ties, votes.sign())


def _some_rows(matrix: np.ndarray, n_centres: int, rng: np.random.Generator) -> np.ndarray:
    """Random rows, each as it is or negated; both only if there are too few rows.

    Signs leave rows orthogonal and spread what is uneven over all bits: without them the first bit of Sylvester's
    matrix is +1 for every centre and carries no information. Of several draws, the most balanced one is kept.
    """
    drawn = []
    for _ in range(_DRAWS):
        rows = rng.permutation(matrix) * rng.choice(np.array([-1, 1], dtype=np.int8), (len(matrix), 1))
        drawn.append(np.concatenate([rows, -rows])[:n_centres])
    return min(drawn, key=lambda centres: np.abs(centres.sum(axis=0)).max())


def _balanced(n_centres: int, n_bits: int, rng: np.random.Generator) -> np.ndarray:
    halves = np.where(np.arange(n_centres) % 2, np.int8(1), np.int8(-1))[:, None]
    shuffled = rng.permuted(np.repeat(halves, n_bits, axis=1), axis=0)
    return shuffled * rng.choice(np.array([-1, 1], dtype=np.int8), n_bits)  # the odd one out may be of either sign


def _bordered(prime: int, sign: int) -> np.ndarray:
    """Which differences are squares modulo a prime, with a border of ones, the left one times `sign`."""
    squares = np.unique(np.arange(1, prime) ** 2 % prime)
    character = np.full(prime, -1, dtype=np.int8)
    character[0], character[squares] = 0, 1
    numbers = np.arange(prime)
    bordered = np.ones((prime + 1, prime + 1), dtype=np.int8)
    bordered[0, 0], bordered[1:, 0] = 0, sign
    bordered[1:, 1:] = character[(numbers[:, None] - numbers) % prime]
    return bordered


def _is_prime(number: int) -> bool:
    return number > 1 and all(number % divisor for divisor in range(2, int(number**0.5) + 1))
