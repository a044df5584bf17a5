"""Stage two: what a hash function is taught about code books, and how (Eq. 11, 12, and past them).

    ψ      scores           (n, b)
    u      codes            (n, b)       of the samples' items
    U      code book        (items, b)
    λ      contrast_share
    k      counts           (n, b)       how often each bit draws each sample, twice on average, over two

    L  =  (1 - λ) Σ_t k_t loss(ψ_t u_t)  +  λ b H(p, softmax(U ψ / ‖ψ‖))

The first part asks every bit to be right, whatever the others do. The second asks for the right code to be the nearest:
cross-entropy over the cosines of the scores with codes, times √b. For classes p is certain of the class, U holds the
codes of all, and a margin of 0.2 is taken off the cosine with the right one; for items that resemble each other U holds
the codes of the batch, and p is softmax(U u / √b), or half that and half even over those of the batch that share a
label.

Bagging draws a sample of its own for each bit, twice as large as the data and with repeats. Bits of one item then err
at different instances, so that a distance counts how doubtful an instance is; bits that learn the same rows err
together. It helps where a few classes have many bits, and hurts where each class has few instances.

Past the paper (docs/beyond-the-paper.md); λ = 0 and no bagging is Eq. 12.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from hbmp._core.seeds import as_generator, draw_seed

DRAWS = 2  # how often a bit draws a sample on average
_BLOCK = 2**15  # samples drawn at a time


@dataclass(frozen=True)
class Lesson:
    """A code book to learn, and how."""

    codes: np.ndarray  # (items, bits)
    bit_weights: np.ndarray  # (bits,)
    contrast_share: float = 0.0
    bagging: bool = False
    normalise: bool = False  # scores over each batch, so that bits are balanced
    neighbours: bool = False  # whether p counts who shares a label, where items resemble each other


def teach(function, X, lessons: list[Lesson], item_of, *, labels=None, certain=True, random_state=None) -> None:
    """Train a function to give the bits of all lessons side by side, then label scores.

    item_of : (n,) the row of each sample in the code books
    labels : (n,) classes or (n, labels) rows of 0/1 that are learned beside the bits, or None
    certain : whether items are as unlike as classes, for the contrast
    """
    from hbmp.methods.hbmp.lesson_loss import LessonLoss

    rng = as_generator(random_state)
    targets = np.concatenate([lesson.codes for lesson in lessons], axis=1)[item_of]
    rest = [np.ascontiguousarray(targets), np.asarray(item_of, dtype=np.int64)]
    n_scores = targets.shape[1]
    if labels is not None:
        rest.append(labels)
        n_scores += n_labels(labels)
    if any(lesson.bagging for lesson in lessons):
        rest.append(draw_counts(len(item_of), lessons, rng))
    code_losses = [function.code_loss(lesson.bit_weights) for lesson in lessons]
    loss = LessonLoss(lessons, code_losses, certain=certain, labelled=labels is not None)
    function.learn(X, loss, *rest, n_bits=n_scores, random_state=draw_seed(rng))
    if any(lesson.normalise for lesson in lessons):
        function.rescale(*_over_all(loss.affine(), n_scores))


def n_labels(labels: np.ndarray) -> int:
    """How many label scores there are for these targets of theirs."""
    return int(labels.max()) + 1 if labels.ndim == 1 else labels.shape[1]


def draw_counts(n: int, lessons: list[Lesson], rng: np.random.Generator) -> np.ndarray:
    """How often each bit draws each sample, (n, bits of all lessons) uint8; `DRAWS` throughout without bagging."""
    parts = [np.full((n, lesson.codes.shape[1]), DRAWS, dtype=np.uint8) for lesson in lessons]
    for part, lesson in zip(parts, lessons, strict=True):
        for start in range(0, n if lesson.bagging else 0, _BLOCK):
            rows = part[start : start + _BLOCK]
            rows[:] = rng.poisson(DRAWS, rows.shape)
    return np.concatenate(parts, axis=1)


def _over_all(of_bits, n_scores: int) -> tuple[np.ndarray, np.ndarray]:
    """Factor and shift of all scores from those of the bits; label scores stay."""
    factor, shift = of_bits
    more = n_scores - len(factor)
    return np.concatenate([factor, np.ones(more)]), np.concatenate([shift, np.zeros(more)])
