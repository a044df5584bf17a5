"""What HBMP can infer a code book from: an affinity, and whether a constant is free beside the bits.

An "auto" affinity is what labels say, centred or not, mixed with mean features. Where shares are left to HBMP and it
can hold out instances there are several candidates, and the code book that retrieves best is kept (`_held_out`): for
classes of four feature shares; for label sets, whose code books are dear, of three plans, and where codes are short of
two feature shares. The first plan is the paper's and safe: where sets hardly overlap, as those of one label do not, a
constant explains nearly all and leaves nothing to the bits.
"""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from numbers import Real

from hbmp._core.labels import has_label_sets
from hbmp.affinities._shared.base import Affinity
from hbmp.affinities.centred import Centred
from hbmp.affinities.mean_features import MeanFeatures

FEATURE_SHARES = (0.3, 0.5, 0.7, 0.85)
PLANS = ((0.0, False), (0.0, True), (0.25, True))  # of label sets: centre share, free constant
MOST_ITEMS = 5000  # with more label sets the first plan stands
SHARES_OF_FEW_BITS, FEW_BITS = (0.5, 0.7), 16
"""Of label sets, below so many bits. On VOC 2007 held-out instances then choose 0.7, and mAP at 12 bits is 0.806 where
it was 0.794 (three seeds); on MS-COCO they choose 0.5. With more bits 0.7 is no better (16 bits 0.832 and 0.833, 32
bits 0.876 and 0.881, two seeds), and choosing cost three tenths of a point at 24."""
_FEATURE_SHARE = 0.5  # where there is no choice


@dataclass(frozen=True)
class Candidate:
    """A fitted affinity, and whether the pursuit fits a constant too."""

    affinity: Affinity
    intercept: bool

    @property
    def shares(self) -> tuple[float, float]:
        """(feature share, centre share)."""
        base, feature_share = self.affinity, 0.0
        if isinstance(base, MeanFeatures):
            base, feature_share = base.base_, float(base.share)
        return feature_share, float(base.share) if isinstance(base, Centred) else 0.0


def candidates(
    affinity, features, y, *, n_bits: int, feature_share, centre_share, intercept, can_choose: bool
) -> list[Candidate]:
    """affinity: of the labels alone, not fitted; shares and intercept: as given to HBMP, "auto" or values."""
    sets = has_label_sets(y)
    shares = _feature_shares(sets, n_bits, can_choose) if feature_share == "auto" else (feature_share,)
    found: list[Candidate] = []
    fitted: dict[float, MeanFeatures] = {}  # by centre share: it learns the same whatever else the plan says
    for centre, constant in _plans(centre_share, intercept, can_choose and sets and feature_share != 0):
        base = Centred(affinity, share=centre) if centre else affinity
        if feature_share == 0:
            return [Candidate(base.fit(features, y), constant)]
        if centre not in fitted:
            fitted[centre] = MeanFeatures(base, share=shares[0]).fit(features, y)
        found += [Candidate(copy(fitted[centre]).set_params(share=share), constant) for share in shares]
        if fitted[centre].n_items_ > MOST_ITEMS:
            break
    return found


def check_shares(**shares) -> None:
    """Refuse what is neither "auto" nor between 0 and 1."""
    for name, share in shares.items():
        if share != "auto" and not (isinstance(share, Real) and 0 <= float(share) <= 1):
            raise ValueError(f"{name} must be 'auto' or lie between 0 and 1, found {share!r}.")


def _feature_shares(sets: bool, n_bits: int, can_choose: bool) -> tuple[float, ...]:
    if not can_choose or (sets and n_bits >= FEW_BITS):
        return (_FEATURE_SHARE,)
    return SHARES_OF_FEW_BITS if sets else FEATURE_SHARES


def _plans(centre_share, intercept, can_choose: bool) -> list[tuple[float, bool]]:
    """The plans that agree with what is given; one of its own where none does."""
    agreeing = [
        plan for plan in PLANS if centre_share in ("auto", plan[0]) and (intercept == "auto" or plan[1] == intercept)
    ]
    if agreeing:
        return agreeing if can_choose else agreeing[:1]
    return [(0.0 if centre_share == "auto" else centre_share, False if intercept == "auto" else intercept)]
