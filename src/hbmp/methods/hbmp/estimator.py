"""Hashing with Binary Matrix Pursuit: affinity, target codes, hash function, composed.

plan       every "auto" resolved                         `plan.resolve`
stage 1    which items are close (HBMP Eq. 1 to 3)              `targets.pursue`
stage 2    target codes, one rank-one step per bit       `targets.pursue`, `hbmp.infer_codes`
           which target codes, on held-out rows          `select.select`
           how many bits rank within a class             `select.spare_bits`
stage 3    hash functions (HBMP Eq. 11, 12)                   `encoder.BitEncoder`, `objective.Objective`
           bits that rank within a class                 `detail.DetailBits`
"""

from __future__ import annotations

from contextlib import nullcontext
from functools import partial
from typing import Any, Literal, Self

import numpy as np
from sklearn.base import clone
from sklearn.utils.validation import check_is_fitted

from hbmp._core.device import one_thread, require_torch
from hbmp._core.labels import are_label_lists, as_classes, as_label_rows
from hbmp._core.progress import shown, stage
from hbmp._core.seeds import as_generator, draw_seed
from hbmp.functions import HashFunction
from hbmp.functions.linear import Linear
from hbmp.hasher import Hasher
from hbmp.images import is_images
from hbmp.methods._shared.weights import read_weights
from hbmp.methods.hbmp.detail import join_weights
from hbmp.methods.hbmp.encoder import BitEncoder
from hbmp.methods.hbmp.lengths import with_lengths
from hbmp.methods.hbmp.offsets import for_floats
from hbmp.methods.hbmp.plan import DataFacts, Plan, resolve
from hbmp.methods.hbmp.published import PUBLISHED
from hbmp.methods.hbmp.select import select, spare_bits
from hbmp.methods.hbmp.targets import Target, infer, pursue, shrink
from hbmp.methods.hbmp.unlabelled import Rebuilding
from hbmp.pursuit.codebook import CodeBook

Share = float | Literal["auto"]
Switch = bool | Literal["auto"]


class HBMP(Hasher):
    """Learned binary codes that keep a neighbourhood given by classes, labels or distances.

    Target codes are inferred for the classes, label sets or rows that define the neighbourhood. A hash function then
    learns to give every instance the code of its class or label set. Distances are weighted by `bit_weights_`.

    For measurements of each setting see docs/beyond-the-paper.md; `HBMP.paper` is the method as published.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    scheme : {"regress", "greedy", "constant"}, default="regress"
        How the pursuit weights bits: refitted after each bit, by one step size per bit, or all equal.
    affinity : str or Affinity, default="auto"
        Which items should be close: a name or an object from `hbmp.affinities`. "auto" is `same_class` for classes and
        `shared_labels` for multi-label data. Without labels "auto" rebuilds the features; "distance_levels" is the
        neighbourhood of the paper.
    feature_share : float or "auto", default="auto"
        Weight of feature similarity in an "auto" affinity, from 0 (labels alone) to 1. "auto" chooses on held-out
        training rows.
    function : str or HashFunction, default="auto"
        What maps features or images to bits: a name or an object from `hbmp.functions`. "auto" is a kernel, a small
        network from 20,000 rows on, and a whole network for images.
    contrast_share : float or "auto", default="auto"
        Weight of the loss that makes the right code the nearest, from 0 to 1; the rest makes every bit right.
    dither : float or "auto", default="auto"
        Spread of the bits' thresholds, as a share of their mean absolute score. Bits that repeat one another then rank
        items of a class by how certain the class is. "auto" is 0.3, for two classes 0.6, for features with at least
        six label bits per class and an "auto" function.
    extra_bits : int or "auto", default="auto"
        Additional bits that are learned with the `n_bits` and then dropped.
    detail_bits : int or "auto", default=0
        How many of the `n_bits` rank items within a class. They come last and encode what the label bits leave
        unexplained of the features, for images those of the layer before the last. "auto" chooses the number on
        held-out training rows; for images it is an eighth from 32 bits on. It is 0 without labels and below 200 rows.
        See docs/bits.md.
    queries : {"codes", "floats"}, default="codes"
        Kind of query that codes learned without labels are made for. "codes" ranks well by the Hamming distance between
        codes, as stores that count differing bits need, and by real-valued queries. "floats" finds more by real-valued
        queries (`project`), but the Hamming distance between its codes ranks badly. See docs/without-labels.md.
    label_share : float or "auto", default="auto"
        Weight of the votes of predicted labels in each bit, from 0 to 1. With 0 no label scores are learned.
    label_queries : bool or "auto", default="auto"
        Whether real-valued queries (`project`) favour bits that agree with their predicted labels.
    weight_share : float or "auto", default="auto"
        How far bits are weighted, from all equal (0) to the weights of the pursuit (1).
    improve : {"none", "resample", "one-flip", "tabu"}, default="one-flip"
        Local search in the pursuit, see `hbmp.infer_codes`.
    item_weights : None, str or array, default="auto"
        Weights of classes or label sets in the pursuit, see `hbmp.infer_codes`. "auto" counts instances of label sets
        and weights classes equally.
    diagonal : {"ignore", "fit"}, default="ignore"
        See `hbmp.infer_codes`.
    weighting : {"least-squares", "non-negative", "ridge"}, default="ridge"
        See `hbmp.infer_codes`. Without labels a bit is weighted by the length of what it adds to a rebuilt vector.
    ridge : float, default=0.1
        See `hbmp.infer_codes`.
    intercept : bool or "auto", default="auto"
        Whether the pursuit fits a constant in addition to the bits, see `hbmp.infer_codes`.
    refine : int, default=0
        See `hbmp.infer_codes`.
    restarts : int or "auto", default="auto"
        See `hbmp.infer_codes`.
    max_items : int, default=5000
        Without labels each row is an item of the pursuit; more rows are sampled down to this many.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where the function is trained.
    random_state : int, Generator, RandomState or None, default=None
        Seed; the same seed gives the same model.
    verbose : bool, default=False
        Whether to show the stages of a fit and the time left: a bar in a terminal or a notebook, elsewhere a line on
        stderr every ten seconds.

    Attributes
    ----------
    bit_weights_ : ndarray of shape (n_bits,)
        Weight of each bit in the distance.
    codebook_ : CodeBook
        Target codes of the classes, label sets or rows, with the residuals of the pursuit. Without the detail bits.
    detail_bits_ : int
        Number of detail bits, at the end of the code.
    plan_ : Plan
        Every decision of this fit.
    encoder_ : BitEncoder
        The trained hash function with its label votes.
    function_ : HashFunction
        The trained hash function alone.
    recall_ : RecallEstimate or None
        Without labels: recall of the nearest rows, measured on held-out training rows.
    unmatched_ : float
        Share of label bits of the training rows that miss their target.
    n_features_in_ : int
        Number of features; absent for images.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> import hbmp
    >>> X, y = load_digits(return_X_y=True)
    >>> model = hbmp.HBMP(16, function=hbmp.functions.Linear(epochs=5), random_state=0).fit(X[:300], y[:300])
    >>> model.transform(X[300:302]).shape
    (2, 16)
    >>> model.codes_for([3, 7]).shape
    (2, 16)
    """

    citation = "Cakir, He & Sclaroff, ECCV 2018"
    takes_images = True
    not_saved = ("function_", "recall_")
    smoke = {"function": Linear(epochs=2), "max_items": 60}
    retired = ("bagging", "centre_share", "neighbours")  # settings of models saved by earlier development versions
    search = {"feature_share": [0.3, 0.5, 0.7], "label_share": [0.0, 0.5]}

    plan_: Plan
    encoder_: BitEncoder
    codebook_: CodeBook
    function_: HashFunction
    unmatched_: float

    def __init__(
        self,
        n_bits: int = 32,
        *,
        scheme: Literal["regress", "greedy", "constant"] = "regress",
        affinity: Any = "auto",
        feature_share: Share = "auto",
        function: Any = "auto",
        contrast_share: Share = "auto",
        dither: Share = "auto",
        extra_bits: int | Literal["auto"] = "auto",
        detail_bits: int | Literal["auto"] = 0,
        queries: Literal["codes", "floats"] = "codes",
        label_share: Share = "auto",
        label_queries: Switch = "auto",
        weight_share: Share = "auto",
        improve: str = "one-flip",
        item_weights: Any = "auto",
        diagonal: str = "ignore",
        weighting: str = "ridge",
        ridge: float = 0.1,
        intercept: Switch = "auto",
        refine: int = 0,
        restarts: int | Literal["auto"] = "auto",
        max_items: int = 5000,
        device: str = "auto",
        random_state: Any = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.scheme = scheme
        self.affinity = affinity
        self.feature_share = feature_share
        self.function = function
        self.contrast_share = contrast_share
        self.dither = dither
        self.extra_bits = extra_bits
        self.detail_bits = detail_bits
        self.queries = queries
        self.label_share = label_share
        self.label_queries = label_queries
        self.weight_share = weight_share
        self.improve = improve
        self.item_weights = item_weights
        self.diagonal = diagonal
        self.weighting = weighting
        self.ridge = ridge
        self.intercept = intercept
        self.refine = refine
        self.restarts = restarts
        self.max_items = max_items
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    @classmethod
    def paper(cls, n_bits: int = 32, **settings: Any) -> HBMP:
        """The estimator as published, with settings of your own.

        Eigenvector and sign, redrawn until the match is positive; weights by HBMP Eq. 10; hinge loss; SGD with momentum
        0.9, halved every 20 of 100 epochs, batches of 256, on one linear layer. HBMP Eq. 10 sums over all pairs, an
        item with itself included. The code behind the paper's numbers leaves those out, and so does this;
        `diagonal="fit"` includes them.

        Parameters
        ----------
        n_bits : int, default=32
            Length of the codes.
        **settings
            Settings of `HBMP` instead of the published ones.

        Returns
        -------
        HBMP

        Examples
        --------
        >>> import hbmp
        >>> hbmp.HBMP.paper(24).weight_share
        1
        """
        function = Linear(loss="hinge", epochs=100, lr=1e-2, weight_decay=5e-4, optimizer="sgd", schedule="step")
        return cls(n_bits, **{**PUBLISHED, "function": function, **settings})

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:  # type: ignore[override]
        """Learn codes.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n, d), or Images
            Features, or images.
        y : array-like of shape (n,) or (n, n_labels), sparse matrix or None, default=None
            Classes; or, for multi-label data, 0/1 labels or lists of names such as [["cat", "dog"], ["cat"]].
        sample_weight : array-like of shape (n,) or None, default=None
            Weights of the rows in the loss of the hash function, in the mean features of classes and labels, and in
            the counts of label sets; only ratios matter. A row of weight 0 is left out. Choices on held-out rows weigh
            rows equally. Without labels weights other than 0 and one further value are refused.

        Returns
        -------
        self : HBMP
            A fit that fails or is interrupted leaves the model as it was before.
        """
        return self._fit_or_restore(X, y, partial(self._fit, sample_weight=sample_weight))

    def _fit(self, X: Any, y: Any, sample_weight: Any = None) -> None:
        rows, weights = read_weights(sample_weight, len(X))
        if rows is not None:
            X, y = X[rows], None if y is None else y[rows]
        with shown("hbmp", self.verbose), nullcontext() if is_images(X) else one_thread():
            self._learn(X, y, weights)

    def _learn(self, X: Any, y: Any, weights: np.ndarray | None) -> None:
        """The three stages."""
        rng = as_generator(self.random_state)
        plan = resolve(self.get_params(deep=False), DataFacts.of(X, y))
        if plan.unlabelled:
            if weights is not None:
                raise ValueError("Without labels all rows have equal weight: pass y, or leave sample_weight out.")
            self._rebuild(X, plan, rng)
            return
        if plan.function is not None and plan.function.by_gradients:
            require_torch("HBMP with labels" if y is not None else type(plan.function).__name__)
        if y is None and len(X) > self.max_items:  # each row is an item
            drawn = np.sort(rng.choice(len(X), self.max_items, replace=False))
            X, weights = X[drawn], None if weights is None else weights[drawn]
        with stage("target codes", until=0.05):
            targets = pursue(plan, X, y, draw_seed(rng), weights)
        with stage("choice of target codes", until=0.1):
            target = select(targets, plan, X, y, rng)
        seed = draw_seed(rng)  # before the choice, so that label bits are those of a code without details
        with stage("choice of detail bits", until=0.45 if plan.detail_bits == "auto" else 0.1):
            target, plan = spare_bits(target, plan, X, y, rng, weights)
        encoder = BitEncoder.fit(X, y, target, plan, seed, weights)
        self._adopt(encoder, target, plan, labelled=y is not None)

    def _rebuild(self, X: Any, plan: Plan, rng: np.random.Generator) -> None:
        """Without labels: code book and hash function come from one pursuit on the features."""
        function = clone(self.function) if isinstance(self.function, Rebuilding) else Rebuilding()
        seed = draw_seed(rng)
        if plan.queries == "floats":
            function, self.codebook_ = for_floats(function, X, self.n_bits, seed)
        else:
            function = with_lengths(function, X, self.n_bits)
            self.codebook_ = function.pursue(X, self.n_bits, random_state=seed)
        self.plan_, self.encoder_ = plan, BitEncoder(function, self.n_bits)
        self._finish()

    def _adopt(self, encoder: BitEncoder, target: Target, plan: Plan, *, labelled: bool) -> None:
        """Store the learned parts and how they were chosen."""
        self.plan_, self.encoder_ = plan.settled(target.settings), encoder
        if encoder.detail is not None:
            self.plan_ = self.plan_.explained(encoder.detail.unexplained_)
        self.codebook_ = target.first_bits(plan.n_label_bits).book
        if not labelled:
            self.codebook_.affinity = None  # the hash function places instances
        self._finish()

    def _finish(self) -> None:
        self.bit_weights_ = shrink(self.codebook_.weights, self.plan_.weight_share)
        if (detail := self.encoder_.detail) is not None:
            self.bit_weights_ = join_weights(self.bit_weights_, detail.weights_, self.plan_.detail_total)
        self.unmatched_ = self.encoder_.unmatched
        self.function_ = self.encoder_.function
        self.recall_ = getattr(self.function_, "recall_", None)

    def _project(self, X: Any) -> np.ndarray:
        return self.encoder_.project(X)

    def _sign_scores(self, X: Any) -> np.ndarray:
        return self.encoder_.sign_scores(X)

    def weights_for(self, k: int) -> np.ndarray:
        """Weights of the first `k` bits, which form a shorter code.

        Parameters
        ----------
        k : int
            Number of bits, from 1 to `n_bits`.

        Returns
        -------
        ndarray of shape (k,)
        """
        check_is_fitted(self)
        if self.codebook_.n_bits < k <= self.n_bits:
            return self.bit_weights_[:k].copy()
        return shrink(self.codebook_.weights_for(k), self.plan_.weight_share)

    @property
    def detail_bits_(self) -> int:
        """Number of detail bits."""
        return self.plan_.detail_bits

    def codes_for(self, labels: Any) -> np.ndarray:
        """Target codes of classes or label sets; label sets never seen in training are placed among the known ones.

        A label has no detail bits. With `detail_bits_` > 0, search the index with these codes by their length:
        `index.search(codes, k, n_bits=codes.shape[1], bit_weights=model.weights_for(codes.shape[1]))`.

        Parameters
        ----------
        labels : array-like of shape (m,) or (m, n_labels)
            Classes, rows of 0/1 labels, or lists of label names, as `fit` took them.

        Returns
        -------
        ndarray of shape (m, n_bits - detail_bits_), int8

        Raises
        ------
        ValueError
            If a class or label name is not in the training data.
        """
        check_is_fitted(self)
        if self.codebook_.affinity is None:
            raise ValueError("This model was fitted without labels; `transform` gives the code of any feature vector.")
        if (names := getattr(self, "label_names_", None)) is not None and are_label_lists(labels):
            return self.codebook_.encode(as_label_rows(labels, names, "labels"))
        if (known := _known_classes(self.codebook_.affinity)) is not None:
            labels = as_classes(labels, "labels")
            unseen = ~np.isin(labels, known)
            if unseen.any() and labels.dtype.kind == known.dtype.kind:
                found = labels[unseen].tolist()[0]
                raise ValueError(f"No class {found!r} in the training data, which have {len(known)} classes.")
        return self.codebook_.encode(labels)

    def infer(self, y: Any, random_state: int = 0, *, X: Any = None) -> CodeBook:
        """Stages one and two alone: the code book that labels, or distances in X, give by the settings of this model.

        Parameters
        ----------
        y : array-like of shape (n,) or (n, n_labels), or None
            Classes, or rows of 0/1 labels.
        random_state : int, default=0
            Seed of the pursuit.
        X : array-like of shape (n, n_features), optional
            Features, where the affinity needs them. An "auto" affinity is the affinity of the labels alone.

        Returns
        -------
        CodeBook
        """
        rows = np.empty((len(y), 0), np.float32) if X is None else X
        params = self.get_params(deep=False)
        plan = resolve(params | {"function": "auto", "affinity": _named(self.affinity, y)}, DataFacts.of(rows, y))
        assert plan.affinity is not None
        affinity = plan.affinity.fit(X, y)
        return infer(plan, affinity, random_state, intercept=self.intercept is True)

    def after_load(self) -> None:
        """Models of format 1 hold the parts of the encoder as attributes, and no plan."""
        if not hasattr(self, "encoder_") and hasattr(self, "function_"):
            of_model: dict[str, Any] = self.__dict__
            for name in ("bagging_", "centre_share_"):
                of_model.pop(name, None)
            share = float(of_model.pop("label_share_", 0.0))
            votes, queries = of_model.pop("votes_", None), of_model.pop("queries_", None)
            unmatched = float(of_model.get("unmatched_", 0.0))
            self.encoder_ = BitEncoder(self.function_, self.n_bits, share, votes, queries, unmatched)
            self.plan_ = Plan(
                n_bits=self.n_bits,
                unlabelled=isinstance(self.function_, Rebuilding),
                feature_share=float(of_model.pop("feature_share_", 0.0)),
                learns_labels=votes is not None,
                label_share=share,
                label_queries=queries is not None,
                weight_share=float(of_model.pop("weight_share_", 1.0)),
                contrast_share=float(of_model.pop("contrast_share_", 0.0)),
                extra_bits=int(of_model.pop("extra_bits_", 0)),
            )
        if hasattr(self, "encoder_"):
            self.function_ = self.encoder_.function
            self.recall_ = getattr(self.function_, "recall_", None)


def _known_classes(affinity: Any) -> np.ndarray | None:
    """The classes of a fitted affinity; None if items are label sets."""
    while (found := getattr(affinity, "classes_", None)) is None and hasattr(affinity, "base_"):
        affinity = affinity.base_
    return found


def _named(affinity: Any, y: Any) -> Any:
    """An affinity that is not "auto" without labels, which would rebuild features."""
    return "distance_levels" if y is None and isinstance(affinity, str) and affinity == "auto" else affinity
