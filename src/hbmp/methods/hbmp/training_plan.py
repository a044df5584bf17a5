"""How HBMP teaches its hash function, where that is left to it: by the kind of the instances and how many there are.

    contrast_share   how much the code counts as a whole, the rest bit by bit (`_lessons`)
    bagging          whether each bit learns from a sample of its own (`_lessons`)
    extra_bits       bits that are learned beside those asked for, and dropped

The pursuit adds bits one by one, so that a longer code begins with the shorter one, and a network that also learns the
next bits of its images has more to learn its features from. What is dropped costs nothing once trained.
"""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Integral

from hbmp._core.labels import has_label_sets
from hbmp.images import is_images

FEW = 2000
"""Feature vectors up to which bits are learned one by one. With 600 digits, four seeds, mAP at 16 and 32 bits was 0.985
and 0.985 that way, and 0.981 and 0.983 as whole codes with bagging."""

MANY_IMAGES = 2000
"""Images of classes from which on a network is trained for long enough that normalised scores help and votes do not.
With 200 photographs of five classes, 32 bits and 20 steps mAP was 0.69 that way, and 0.75 with votes and without
normalisation; with 3,500 of CIFAR-10 and 1,400 steps it was 0.90, and by votes alone 0.86."""

LEAST_BITS = 48
"""Bits that a pretrained network learns at least from that many images of classes. On held-out training images of
cifar-1, seed 0, mAP at 12 bits was 0.868 with 12 bits learned and 0.880 with 48, at 32 bits 0.896 and 0.895; on its
test 0.902 and 0.909, 0.922 and 0.920. Features gain nothing: 12 bits of CIFAR-10 0.838 alone, 0.826 beside 36 more. A
network that starts from random weights loses: AlexNet at 12 bits of cifar-1 0.602 alone, 0.569 beside 36 more."""


@dataclass(frozen=True)
class TrainingPlan:
    """What is taught; the defaults are the paper's."""

    contrast_share: float = 0.0
    bagging: bool = False
    extra_bits: int = 0


def usual_plan(X, y, *, n_bits: int, nested: bool, pretrained: bool) -> TrainingPlan:
    """The plan for labelled instances and a function trained by gradients.

    nested: whether codes begin with shorter ones; pretrained: whether the function starts from a trained network
    """
    if is_images(X) and not has_label_sets(y):
        extra = max(0, LEAST_BITS - n_bits) if many_images(X) and nested and pretrained else 0
        return TrainingPlan(0.75, False, extra)
    if is_images(X):
        return TrainingPlan(0.25)
    if len(X) < FEW:
        return TrainingPlan()
    return TrainingPlan(0.5) if has_label_sets(y) else TrainingPlan(0.25, bagging=True)


def many_images(X) -> bool:
    """Whether these are images, and enough of them to train a network for long."""
    return is_images(X) and len(X) >= MANY_IMAGES


def by_neighbours(X, y) -> bool:
    """Whether the code as a whole is also judged by who shares a label (`_lessons`): for features of label sets. With
    networks it has not been measured."""
    return has_label_sets(y) and not is_images(X)


def check_plan(*, bagging, extra_bits) -> None:
    """Refuse what is neither "auto" nor a plan."""
    if bagging not in ("auto", True, False):
        raise ValueError(f"bagging must be 'auto', True or False, found {bagging!r}.")
    whole = isinstance(extra_bits, Integral) and not isinstance(extra_bits, bool)
    if extra_bits != "auto" and not (whole and extra_bits >= 0):
        raise ValueError(f"extra_bits must be 'auto' or a number of bits from 0 on, found {extra_bits!r}.")
