"""What a fit will do, decided before it starts: every "auto" of `HBMP` becomes a value, or values to choose from.

    DataFacts    what decisions depend on: how many rows, images or features, how many classes or labels
    Plan         every decision; a tuple is a menu that `select` chooses from on held-out rows
    resolve      settings and facts to a plan: a pure function, and the table below

| decision        | features, classes              | features, multi-label | images, classes     | images, multi-label |
|:----------------|:-------------------------------|:----------------------|:--------------------|:--------------------|
| function        | kernel, mlp from 20,000 rows   | the same              | network             | network             |
| feature_share   | chosen from `FEATURE_SHARES`   | 0.7                   | 0.5                 | 0.5                 |
| intercept       | no                             | where sets overlap    | no                  | no                  |
| label_share     | 0.5                            | 0.25                  | 0.25, many images 0 | 0.25                |
| label_queries   | no                             | yes                   | with label scores   | yes                 |
| weight_share    | 0.5                            | 0.5                   | 0.5                 | 0.5                 |
| contrast_share  | 0.25                           | 0.5, few rows 0       | 0.75                | 0.25                |
| dither          | from 6 bits per class on       | 0                     | 0                   | 0                   |
| extra_bits      | as many as detail_bits         | the same              | many: up to 48 bits | as detail_bits      |
| normalise       | no                             | no                    | many: yes           | no                  |
| item_weights    | none                           | "count"               | none                | "count"             |
| detail_bits     | chosen, below 200 rows 0       | the same              | an eighth of 32 on  | the same            |

The last row is what "auto" stands for; by default there are no detail bits. To choose their number for images would
train the network twice. So they get what features get where held-out rows are too few to choose. Where bits are learned
together, the label bits that details replace are learned with the others and dropped: the label bits that stay are
then those of a code without details, and their price is what was measured.
Below `FEWEST` rows the feature share of classes is 0.5. Few rows are fewer than `FEW`. Label sets overlap where there
are more than twice as many of them as labels. Dither is 0.3 after the first 3 bits per class; of two classes 0.6 after
the first 2 bits. Only an "auto" function is dithered: a linear function that could not tell the classes apart lost by
it. Without labels there is one decision: "auto" settings rebuild the features, any other affinity is inferred on the
rows themselves, with the weights of the pursuit.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields, replace
from itertools import product
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from sklearn.base import BaseEstimator, clone

from hbmp._core import catalog
from hbmp._core.labels import as_classes, as_label_sets, distinct_rows, has_label_sets
from hbmp.functions import HashFunction
from hbmp.functions.kernel import Kernel
from hbmp.functions.linear import Linear
from hbmp.functions.mlp import MLP
from hbmp.images import is_images
from hbmp.methods._shared.function import copied, function_for, suited_to
from hbmp.methods.hbmp.detail_choice import FLOOR_FROM, DetailChoice
from hbmp.methods.hbmp.unlabelled import Rebuilding

FEATURE_SHARES = (0.0, 0.1, 0.3, 0.5, 0.7)
FEATURE_SHARE, OF_LABEL_SETS = 0.5, 0.7  # where there is no choice

FEWEST = 200  # rows from which on something is held out
MOST_LABELS = 2000  # from which on label scores would cost more than the bits
FEW = 2000  # multi-label feature vectors up to which bits are learned one by one
DITHER, OF_TWO_CLASSES = 0.3, 0.6  # of two classes all bits are the same decision
PLAIN_PER_CLASS, PLAIN_OF_TWO = 3, 1  # label bits that tell a class; from twice as many on others tell how certain
MANY_IMAGES = 2000  # of classes, from which on normalised scores help a network and votes do not
LEAST_BITS = 48  # that a pretrained network learns from many images of classes, however few are kept


@dataclass(frozen=True)
class DataFacts:
    """What decisions depend on; n_classes is 0 for multi-label rows, n_labels and n_label_sets are 0 for classes."""

    n_rows: int
    images: bool = False
    n_classes: int = 0
    n_labels: int = 0
    n_label_sets: int = 0

    @classmethod
    def of(cls, X: Any, y: Any) -> DataFacts:
        """The facts of these rows; y: classes, label sets or None."""
        n_rows, images = len(X), is_images(X)
        if y is None:
            return cls(n_rows, images)
        if has_label_sets(y):
            sets = as_label_sets(y)
            return cls(n_rows, images, n_labels=sets.shape[1], n_label_sets=len(distinct_rows(sets)[0]))
        return cls(n_rows, images, n_classes=len(np.unique(as_classes(y))))

    @property
    def labelled(self) -> bool:
        """Whether there are classes or labels."""
        return self.n_classes > 0 or self.n_labels > 0

    @property
    def overlapping(self) -> bool:
        """Whether label sets share so many labels that a constant leaves something to the bits."""
        return self.n_label_sets > 2 * self.n_labels

    @property
    def many_images(self) -> bool:
        """Whether these are images, and enough to train a network for long."""
        return self.images and self.n_rows >= MANY_IMAGES


@dataclass(frozen=True)
class Plan:
    """Every decision of a fit. `feature_share` and `intercept` may be tuples: menus to choose from.

    Weights of detail bits are in label bits, see `detail_choice`.
    """

    n_bits: int = 32  # label bits and detail bits
    unlabelled: bool = False  # bits that rebuild the features
    affinity: BaseEstimator | None = None  # of the labels or distances alone, not fitted
    feature_share: Any = 0.0
    intercept: Any = False
    inference: dict[str, Any] = field(default_factory=dict)  # further arguments of `infer_codes`
    function: HashFunction | None = None  # not fitted
    n_classes: int = 0  # 0 for multi-label rows and without labels
    learns_labels: bool = False  # label scores beside the bits
    label_share: float = 0.0
    label_queries: bool = False
    weight_share: float = 1.0
    contrast_share: float = 0.0
    dither: Any = 0.0  # "auto" until the number of label bits is known
    extra_bits: int = 0
    normalise: bool = False
    detail_bits: Any = 0  # "auto" until `with_details`
    queries: str = "codes"  # without labels: what the codes are searched with
    detail_total: float = 0.0  # sum of their weights
    detail_total_real: float = 0.0  # the same for real-valued queries
    unexplained: tuple[float, ...] = ()  # share of the features left by nothing, by label bits and by all bits

    retired: ClassVar = ("bagging", "centre_share", "neighbours")  # in plans of earlier development versions

    @property
    def n_label_bits(self) -> int:
        """Bits that the pursuit infers; all of them until the number of detail bits is chosen."""
        return self.n_bits - (0 if _is_auto(self.detail_bits) else self.detail_bits)

    @property
    def open(self) -> bool:
        """Whether anything is left to choose on held-out rows."""
        return len(self.target_settings()) > 1

    @property
    def learns_bits_alone(self) -> bool:
        """Whether the function learns HBMP Eq. 12 and nothing else, which any function can."""
        return not (self.learns_labels or self.contrast_share)

    def target_settings(self) -> list[TargetSettings]:
        """One for each code book to infer."""
        menus = [_menu(value) for value in (self.feature_share, self.intercept)]
        return [TargetSettings(*values) for values in product(*menus)]

    def settled(self, settings: TargetSettings) -> Plan:
        """The same plan with nothing open."""
        return replace(self, **vars(settings))

    def with_details(self, choice: DetailChoice) -> Plan:
        """The same plan with these detail bits."""
        plan = replace(self, detail_bits=choice.n_bits)
        if choice.n_bits:
            plan = replace(plan, detail_total=choice.total, detail_total_real=choice.total_real)
        return plan.for_label_bits()

    def for_label_bits(self) -> Plan:
        """The same plan with its dither and extra bits, which depend on the number of label bits."""
        if _is_auto(self.detail_bits):
            return self
        extra = max(self.extra_bits, self.detail_bits) if self.learns_replaced else self.extra_bits
        dither = self.dither
        if _is_auto(dither):
            usual = OF_TWO_CLASSES if self.n_classes == 2 else DITHER
            dither = usual if self.n_plain_bits else 0.0
        return replace(self, extra_bits=extra, dither=dither)

    @property
    def n_plain_bits(self) -> int:
        """Leading label bits without dither; 0 where classes need most of the bits, and of label sets."""
        found = self.n_classes * (PLAIN_OF_TWO if self.n_classes == 2 else PLAIN_PER_CLASS)
        return found if 2 * found <= self.n_label_bits else 0

    @property
    def learns_replaced(self) -> bool:
        """Whether label bits that details replace are learned too: where bits are learned together and are nested."""
        nested = self.inference["scheme"] != "constant" and not self.inference["refine"]
        return nested and self.function is not None and self.function.by_gradients

    def explained(self, shares: Any) -> Plan:
        """The same plan with the shares of the features that are left unexplained."""
        return replace(self, unexplained=tuple(round(float(share), 4) for share in shares))

    def as_dict(self) -> dict[str, Any]:
        """Decisions by name, as JSON can hold them; parts by their class."""
        found = {item.name: getattr(self, item.name) for item in fields(self)}
        inference = found.pop("inference")
        return {name: _plain(value) for name, value in {**found, **inference}.items()}


@dataclass(frozen=True)
class TargetSettings:
    """How one candidate for the target codes is inferred."""

    feature_share: float = 0.0
    intercept: bool = False


def resolve(params: Mapping[str, Any], facts: DataFacts) -> Plan:
    """The plan for these settings of `HBMP` and data with these facts."""
    check(params)
    if facts.images and not facts.labelled:
        raise ValueError("Images are hashed by their labels: pass y. Without labels, pass features of the images.")
    plan = Plan(n_bits=int(params["n_bits"]), n_classes=facts.n_classes, inference=_inference(params, facts))
    plan = _with_details(plan, params["detail_bits"], facts)
    if not facts.labelled and _rebuilds(params):
        weight_share = 1.0 if _is_auto(params["weight_share"]) else float(params["weight_share"])
        plan = replace(plan, unlabelled=True, queries=params["queries"])
        return replace(plan, feature_share=1.0, weight_share=weight_share)
    if params["queries"] != "codes":
        found = "labels" if facts.labelled else "an affinity, a function or a scheme of your own"
        raise ValueError(
            f"queries={params['queries']!r} applies to codes that rebuild features without labels, found {found}. "
            "Leave queries at 'codes'; `project` gives real-valued queries of every model."
        )
    function = hash_function(params, facts)
    plan = replace(plan, function=function, affinity=label_affinity(params["affinity"], facts))
    plan = _with_objective(plan, params, facts)
    return replace(plan, **_targets(params, facts)).for_label_bits()


def _rebuilds(params: Mapping[str, Any]) -> bool:
    """Whether settings leave it to the features which bits rebuild them."""
    function = "auto" if isinstance(params["function"], Rebuilding) else params["function"]
    settings = (params["affinity"], function, params["scheme"])
    return all(isinstance(value, str) for value in settings) and settings == ("auto", "auto", "regress")


def _targets(params: Mapping[str, Any], facts: DataFacts) -> dict[str, Any]:
    """What stage one infers, and how far its weights are trusted."""
    mixes = facts.labelled and _is_auto(params["affinity"])
    found: dict[str, Any] = {"feature_share": 0.0, "intercept": False, "weight_share": 1.0}
    if facts.labelled:
        found["weight_share"] = 0.5
    if not facts.images:
        found["intercept"] = facts.overlapping and params["scheme"] == "regress"
    if not mixes:  # an affinity of the user's own is not mixed with features
        params = {**params, "feature_share": "auto"}
    elif facts.images:
        found["feature_share"] = FEATURE_SHARE
    else:
        several = facts.n_classes > 0 and facts.n_rows >= FEWEST
        found["feature_share"] = OF_LABEL_SETS if facts.n_labels else FEATURE_SHARES if several else FEATURE_SHARE
    return {name: value if _is_auto(params[name]) else params[name] for name, value in found.items()}


def _with_objective(plan: Plan, params: Mapping[str, Any], facts: DataFacts) -> Plan:
    """What stage two minimises."""
    assert plan.function is not None
    trains = plan.function.by_gradients and facts.labelled
    usual: dict[str, Any] = dict.fromkeys(("contrast_share", "dither", "extra_bits"), 0)
    if trains and params["label_share"] != 0:
        usual = _usual_objective(params, facts, plan.function, plan.n_label_bits)
    chosen = {name: value if _is_auto(params[name]) else params[name] for name, value in usual.items()}
    if chosen["extra_bits"] and not plan.function.by_gradients:
        raise ValueError(
            f"extra_bits help functions that learn all bits together, which {type(plan.function).__name__} does "
            "not. Leave extra_bits at 0, or use function='mlp', 'kernel' or a network."
        )
    queries = facts.images or facts.n_labels > 0  # of features of classes they gain nothing
    votes = trains and _label_share(params, facts) is not None
    return replace(
        plan,
        contrast_share=float(chosen["contrast_share"]),
        dither=chosen["dither"],
        extra_bits=int(chosen["extra_bits"]),
        normalise=facts.many_images and facts.n_classes > 0,
        learns_labels=votes,
        label_share=float(_label_share(params, facts) or 0) if votes else 0.0,
        label_queries=votes and _switch(params["label_queries"], queries),
    )


def _usual_objective(
    params: Mapping[str, Any], facts: DataFacts, function: HashFunction, n_label_bits: int
) -> dict[str, Any]:
    """Meaning of "auto" in the objective of functions trained by gradients."""
    found: dict[str, Any] = {"contrast_share": 0.0, "dither": 0.0, "extra_bits": 0}
    multi_label = facts.n_labels > 0
    if facts.images:
        found["contrast_share"] = 0.25 if multi_label else 0.75
        nested = params["scheme"] != "constant" and not params["refine"]
        if facts.many_images and not multi_label and nested and function.pretrained:
            found["extra_bits"] = max(0, LEAST_BITS - n_label_bits)
    elif multi_label:
        found["contrast_share"] = 0.5 if facts.n_rows >= FEW else 0.0
    else:
        found |= {"contrast_share": 0.25, "dither": "auto" if _is_auto(params["function"]) else 0.0}
    return found


def _label_share(params: Mapping[str, Any], facts: DataFacts) -> float | None:
    """Weight of the labels' votes; None where no label scores are learned."""
    given = params["label_share"]
    if not _is_auto(given):
        return float(given) or None
    if facts.many_images and facts.n_classes:
        return None
    if max(facts.n_classes, facts.n_labels) > MOST_LABELS:
        return None
    return 0.25 if facts.images or facts.n_labels else 0.5


def _with_details(plan: Plan, given: Any, facts: DataFacts) -> Plan:
    """The number of detail bits, or "auto" where it is chosen on held-out rows."""
    if not facts.labelled and not _is_auto(given) and given:
        raise ValueError(
            "Without labels every bit is learned from the features already. Leave detail_bits at 0, or use 'auto'."
        )
    if not _is_auto(given):
        return plan.with_details(DetailChoice(int(given)))
    if not facts.labelled or facts.n_rows < FEWEST:
        return replace(plan, detail_bits=0)
    if not facts.images:
        return replace(plan, detail_bits="auto")
    return plan.with_details(DetailChoice(plan.n_bits // 8 if plan.n_bits >= FLOOR_FROM else 0))


def _inference(params: Mapping[str, Any], facts: DataFacts) -> dict[str, Any]:
    """Arguments of `infer_codes` that are the same for every candidate."""
    names = ("scheme", "improve", "diagonal", "restarts", "weighting", "ridge", "refine", "device")
    found = {name: params[name] for name in names}
    weights = params["item_weights"]
    if _is_auto(weights):
        weights = "count" if facts.n_labels else None
    return found | {"item_weights": weights}


def label_affinity(given: Any, facts: DataFacts) -> Any:
    """The affinity of the labels alone, or of distances without labels; not fitted."""
    if not isinstance(given, str):
        return copied(given, "affinity", "affinities", "A matrix of affinities goes to hbmp.infer_codes.")
    if given == "auto":
        given = "shared_labels" if facts.n_labels else "same_class" if facts.n_classes else "distance_levels"
    return catalog.resolve("affinities", given)


def hash_function(params: Mapping[str, Any], facts: DataFacts) -> HashFunction:
    """The function that will learn, with its settings, not fitted."""
    shared = {"device": params["device"], "verbose": params["verbose"]}
    if facts.images or not _is_auto(params["function"]):
        return function_for(params["function"], facts.images, facts.n_rows, **shared)
    if suited_to(facts.images, facts.n_rows) == "mlp":
        return MLP(loss="smooth", **shared)
    return Kernel(linear=Linear(loss="smooth", lr=1e-2, **shared), **shared)


def check(params: Mapping[str, Any]) -> None:
    """Refuse settings that no plan can follow."""
    for name in ("feature_share", "contrast_share", "dither", "label_share", "weight_share"):
        share = params[name]
        if not _is_auto(share) and not (isinstance(share, Real) and 0 <= float(share) <= 1):
            raise ValueError(f"{name} must be 'auto' or lie between 0 and 1, found {share!r}.")
    for name in ("intercept", "label_queries"):
        if params[name] not in ("auto", True, False):
            raise ValueError(f"{name} must be 'auto', True or False, found {params[name]!r}.")
    if params["queries"] not in ("codes", "floats"):
        raise ValueError(f"queries must be 'codes' or 'floats', found {params['queries']!r}.")
    extra = params["extra_bits"]
    whole = isinstance(extra, Integral) and not isinstance(extra, bool)
    if not _is_auto(extra) and not (whole and extra >= 0):
        raise ValueError(f"extra_bits must be 'auto' or a number of bits from 0 on, found {extra!r}.")
    details, most = params["detail_bits"], params["n_bits"] - 1
    whole = isinstance(details, Integral) and not isinstance(details, bool)
    if not _is_auto(details) and not (whole and 0 <= details <= most):
        raise ValueError(
            f"detail_bits must be 'auto' or a number of bits from 0 to n_bits - 1 = {most}, found {details!r}."
        )


def _is_auto(value: Any) -> bool:
    return isinstance(value, str) and value == "auto"


def _switch(given: Any, automatic: bool) -> bool:
    return automatic if _is_auto(given) else bool(given)


def _menu(value: Any) -> tuple[Any, ...]:
    return value if isinstance(value, tuple) else (value,)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseEstimator):
        return " ".join(repr(clone(value)).split())
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape}"
    if isinstance(value, np.generic):
        return value.item()
    return list(value) if isinstance(value, tuple) else value
