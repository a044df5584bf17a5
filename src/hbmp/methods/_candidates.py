"""The affinities that HBMP can infer a code book from: what labels say, centred or not, mixed with mean features.

Where shares are left to HBMP and it can hold out instances, there are several, and the code book that retrieves best is
kept (`_held_out`): for classes of four feature shares; for label sets, whose code books are dear, of two centre shares.
"""

from __future__ import annotations

from copy import copy

from hbmp.affinities.centred import Centred
from hbmp.affinities.mean_features import MeanFeatures
from hbmp.labels import is_label_matrix

FEATURE_SHARES = (0.3, 0.5, 0.7, 0.85)
CENTRE_SHARES = (0.0, 0.25)  # the first alone where there are more label sets than MOST_ITEMS
MOST_ITEMS = 5000
_FEATURE_SHARE, _CENTRE_SHARE = 0.5, 0.0  # where nothing can be held out


def candidates(affinity, features, y, *, feature_share, centre_share, can_choose: bool) -> list[MeanFeatures]:
    """The fitted affinities; affinity: of the labels alone, not fitted; shares: as given to HBMP, "auto" or numbers."""
    sets = is_label_matrix(y) and y.shape[1] > 1
    shares = _choices(feature_share, FEATURE_SHARES if can_choose and not sets else (_FEATURE_SHARE,))
    found = []
    for centre in _choices(centre_share, CENTRE_SHARES if can_choose and sets else (_CENTRE_SHARE,)):
        base = Centred(affinity, share=centre) if centre else affinity
        fitted = MeanFeatures(base, share=shares[0]).fit(features, y)  # learns the same whatever the share
        found += [copy(fitted).set_params(share=share) for share in shares]
        if fitted.n_items_ > MOST_ITEMS:
            break
    return found


def shares_of(affinity) -> tuple[float, float]:
    """(feature share, centre share) of any fitted affinity."""
    if not isinstance(affinity, MeanFeatures):
        return 0.0, 0.0
    return float(affinity.share), float(affinity.base_.share) if isinstance(affinity.base_, Centred) else 0.0


def _choices(given, choices: tuple) -> tuple:
    return choices if given == "auto" else (given,)
