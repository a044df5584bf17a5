"""Hashing with Binary Matrix Pursuit: affinity, target codes, hash function, composed.

Stage one finds target codes for the items that define the neighbourhood (classes, label sets, or instances) by
`infer_codes`. Stage two trains a hash function to give every instance the code of its item (Eq. 11, 12). Distances
are weighted by the weights of stage one.

Shares carry it past the paper, all 0 in `HBMP.paper` but the last, which is 1: how much features say in the affinity
(`affinities.MeanFeatures`), how much of their mean affinity label sets lose (`affinities.Centred`), how much the code
counts as a whole in training (`_lessons`), how much labels vote on bits (`_label_votes`), and how far the weights are
trusted (`held_out`). Where labels have scores, real-valued queries ask for labels (`_label_queries`).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hbmp import hamming
from hbmp._core import catalog
from hbmp._core.device import require_torch
from hbmp._core.labels import has_label_sets, is_label_matrix
from hbmp._core.seeds import as_generator, draw_seed
from hbmp.functions.kernel import Kernel
from hbmp.functions.linear import Linear
from hbmp.functions.mlp import MLP
from hbmp.hasher import Hasher
from hbmp.images import is_images
from hbmp.methods._shared.function import copied, make_function, suited_to
from hbmp.methods.hbmp import held_out
from hbmp.methods.hbmp.candidates import Candidate, candidates, check_shares
from hbmp.methods.hbmp.label_queries import LabelQueries, make_queries
from hbmp.methods.hbmp.label_votes import LabelVotes, label_targets, make_votes
from hbmp.methods.hbmp.lessons import Lesson, n_labels, teach
from hbmp.methods.hbmp.training_plan import TrainingPlan, by_neighbours, check_plan, many_images, usual_plan
from hbmp.methods.hbmp.unlabelled import Rebuilding
from hbmp.pursuit import infer_codes


class _Paper(str):
    """The publication, as every method names it; called, `HBMP.paper(n_bits)` is the estimator as published."""

    __slots__ = ()

    def __call__(self, n_bits=32, **settings) -> HBMP:
        """Eigenvector and sign, redrawn until the match is positive; weights by Eq. 10; hinge loss; SGD with momentum
        0.9, halved every 20 of 100 epochs, batches of 256, on one linear layer.

        Eq. 10 sums over all pairs, an item with itself included; the code behind the paper's numbers leaves those
        out, and so does this: with them ten classes at 48 bits get weights from -8 to 11 (`diagonal="fit"`).
        """
        function = Linear(loss="hinge", epochs=100, lr=1e-2, weight_decay=5e-4, optimizer="sgd", schedule="step")
        published = {
            "improve": "resample",
            "item_weights": None,
            "weighting": "least-squares",
            "feature_share": 0,
            "centre_share": 0,
            "intercept": False,
            "contrast_share": 0,
            "bagging": False,
            "extra_bits": 0,
            "label_share": 0,
            "weight_share": 1,
            "restarts": 1,
            "function": function,
        }
        return HBMP(n_bits, **{**published, **settings})


class HBMP(Hasher):
    """Learned binary codes from classes, label sets or distances.

    Parameters
    ----------
    n_bits : length of the codes
    scheme : "regress" (weighted bits), "greedy" or "constant" (plain Hamming)
    affinity : "auto" (classes: same_class, label sets: shared_labels), a name from `hbmp.affinities`, or an object from
        there. Without labels "auto", with an "auto" function, finds bits that rebuild the features (`_unlabelled`);
        "distance_levels" is the paper's neighbourhood. Departs from its Sec. 4, because on GIST descriptors it leads
        ITQ, which levels do not: NDCG 0.897 at 32 bits against 0.885 and 0.858 (docs/beyond-the-paper.md)
    feature_share : how much of an "auto" affinity says how alike the mean features of two classes or label sets are, 0
        to 1; "auto" is a half, for classes the best of four and for label sets below 16 bits the best of two on
        held-out training instances. Departs from Eq. 1, because codes of alike classes are then alike and easier to
        learn: on 100 kinds of MS-COCO images mAP at 32 bits rises from 0.347 to 0.413 (docs/beyond-the-paper.md)
    centre_share : how much of its mean affinity an "auto" affinity takes off each label set, 0 to 1
        (`affinities.Centred`); "auto" is 0, and for label sets 0 or a quarter, chosen on held-out training instances
    function : "auto" (a kernel, from 20,000 instances on a small network, with a smoothed logistic loss; for images
        a whole network), a name from `hbmp.functions` or an object from there. Departs from Eq. 12, the hinge, by half
        a point of mAP on VOC 2007
    contrast_share : how much the function learns to be nearest to the right code, the rest bit by bit, 0 to 1; "auto"
        is a quarter, for features of label sets a half, for images of classes three quarters, and 0 where label_share
        is or where there are fewer than 2,000 feature vectors. Departs from Eq. 12, because a code may be nearest with
        wrong bits (docs/beyond-the-paper.md)
    bagging : whether each bit learns from a sample of its own, so that bits err at different instances; "auto" is for
        2,000 feature vectors of classes and more, unless label_share is 0
    extra_bits : how many bits more the function learns, which are then dropped; "auto" is what is missing to 48 for
        2,000 images of classes and more and a pretrained network, and 0 otherwise. Departs from Eq. 12, because such a
        network learns better features from more bits: mAP on cifar-1 images with 12 of 48 bits is 0.909, with 12 alone
        0.902 (`_training_plan`)
    label_share : how much of a score comes from labels that vote with their codes, 0 to 1; "auto" chooses on held-out
        training instances, is 0 for 2,000 images of classes and more, and beyond 2,000 labels. Departs from Eq. 11,
        because that lifts mAP@5K on MS-COCO at 16 bits from 0.754 to 0.790
    weight_share : how far bits are weighted, from all the same (0) to the weights of the pursuit (1); "auto" chooses
        on held-out training instances, so that weights do not hurt
    item_weights : "auto" (label sets count as often as instances carry them, classes all the same), or as for
        `hbmp.infer_codes`. Departs from Eq. 6 for label sets, because there it lifts mAP@5K on MS-COCO from 0.668 to
        0.711 (12 bits) and from 0.732 to 0.778 (24 bits), and mAP on VOC 2007 at 12 bits from 0.719 to 0.781
    intercept : whether the pursuit fits a constant beside the bits, see `hbmp.infer_codes`; "auto" chooses for label
        sets, on held-out training instances. Departs from Eq. 3, because no ranking sees a constant while bits spent on
        it are lost: plain mAP on VOC 2007 at 32 bits rises from 0.858 to 0.878; at 16 bits it does not help
    improve, diagonal, refine, restarts : see there
    weighting, ridge : how bits are weighted, see there. Departs from Eq. 10 by a ridge of 0.1, because plain least
        squares gives a few bits most of the weight: on CIFAR-10 features at 24 and 32 bits it loses 2 and 3 points of
        mAP against plain Hamming distance, the ridge less than half a point (docs/inference.md)
    max_items : without labels every instance is an item; more instances than this are sampled down to it
    device : "auto", "cpu" or "cuda"
    random_state : seed; the same seed gives the same model
    verbose : show progress on stderr
    """

    paper = _Paper("Cakir, He & Sclaroff, ECCV 2018")
    takes_images = True
    smoke = {"function": Linear(epochs=2), "max_items": 60}
    search = {"feature_share": [0.3, 0.5, 0.7], "label_share": [0.0, 0.5]}

    votes_: LabelVotes | None
    queries_: LabelQueries | None

    def __init__(
        self,
        n_bits=32,
        *,
        scheme="regress",
        affinity="auto",
        feature_share="auto",
        centre_share="auto",
        function="auto",
        contrast_share="auto",
        bagging="auto",
        extra_bits="auto",
        label_share="auto",
        weight_share="auto",
        improve="one-flip",
        item_weights="auto",
        diagonal="ignore",
        weighting="ridge",
        ridge=0.1,
        intercept="auto",
        refine=0,
        restarts="auto",
        max_items=5000,
        device="auto",
        random_state=None,
        verbose=False,
    ):
        self.n_bits = n_bits
        self.scheme = scheme
        self.affinity = affinity
        self.feature_share = feature_share
        self.centre_share = centre_share
        self.function = function
        self.contrast_share = contrast_share
        self.bagging = bagging
        self.extra_bits = extra_bits
        self.label_share = label_share
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

    def _fit(self, X, y):
        rng = as_generator(self.random_state)
        self._check_settings()
        if is_images(X) and y is None:
            raise ValueError("Images are hashed by their labels: pass y. Without labels, pass features of the images.")
        if y is None and (self.affinity, self.function, self.scheme) == ("auto", "auto", "regress"):
            self._fit_without_labels(X, rng)
            return
        rows = self._training_rows(X, y, rng)
        X, y = X[rows], None if y is None else _take(y, rows)
        self.function_ = self._function(X)
        if self.function_.by_gradients:
            require_torch("HBMP with labels" if y is not None else f"function={self.function!r}")
        plan = self._plan(X, y)
        self._note(plan)
        labels = self._voting_labels(X, y)
        found = self._candidates(X, y, labels)
        seed = draw_seed(rng)
        books = [self.infer(each.affinity, y, seed, intercept=each.intercept, extra=plan.extra_bits) for each in found]
        shares = self._shares(X, y, found[0].affinity, books, labels, rng)
        affinity, book = found[shares.book].affinity, books[shares.book]
        self.codebook_ = book.prefix(self.n_bits) if plan.extra_bits else book
        self.feature_share_, self.centre_share_ = found[shares.book].shares
        self.label_share_, self.weight_share_ = float(shares.label_share), float(shares.weight_share)
        self.bit_weights_ = held_out.shrink(self.codebook_.weights, self.weight_share_)
        self._learn(X, y, book, labels, affinity, draw_seed(rng))
        self._look_back(X, labels, affinity, asks=shares.asks)
        if y is None:
            self.codebook_.affinity = None  # instances are placed by the hash function

    def _check_settings(self) -> None:
        check_shares(
            feature_share=self.feature_share,
            centre_share=self.centre_share,
            contrast_share=self.contrast_share,
            label_share=self.label_share,
            weight_share=self.weight_share,
        )
        check_plan(bagging=self.bagging, extra_bits=self.extra_bits)
        if self.intercept not in ("auto", True, False):
            raise ValueError(f"intercept must be 'auto', True or False, found {self.intercept!r}.")

    def _fit_without_labels(self, X, rng):
        """Bits that rebuild the features: code book and hash function come from one pursuit."""
        self.votes_ = self.queries_ = None
        self.feature_share_, self.centre_share_, self.label_share_ = 1.0, 0.0, 0.0
        self._note(TrainingPlan())
        self.weight_share_ = 1.0 if self.weight_share == "auto" else float(self.weight_share)
        self.function_ = Rebuilding()
        settings = {"weighting": self.weighting, "ridge": self.ridge, "random_state": draw_seed(rng)}
        self.codebook_ = self.function_.pursue(X, self.n_bits, **settings)
        self.bit_weights_ = held_out.shrink(self.codebook_.weights, self.weight_share_)
        self.unmatched_ = 0.0

    def _learn(self, X, y, book, labels, affinity, seed):
        """Stage two: the hash function, with label scores beside its bits where labels vote."""
        if labels is None and self.contrast_share_ == 0 and not self.bagging_:
            self.function_.fit(X, book.codes[affinity.item_of_], bit_weights=book.weights, random_state=seed)
        else:
            self._teach(self.function_, X, y, [book], affinity, labels, seed)
        if self.extra_bits_:
            self.function_.drop(range(self.n_bits, book.n_bits))
        self.votes_ = self.queries_ = None
        if labels is not None:
            self.votes_ = make_votes(labels, affinity, self.codebook_.codes)

    def _look_back(self, X, labels, affinity, *, asks: bool):
        """What the trained function makes of its instances: how many bits it misses, which codes the labels get."""
        odds, label_scores = self._odds(X)
        codes = hamming.signs(odds)
        self.unmatched_ = float((codes != self.codebook_.codes[affinity.item_of_]).mean())
        if labels is not None and asks:
            self.queries_ = make_queries(codes, labels, label_scores.shape[1]).levelled(odds, label_scores)

    def _teach(self, function, X, y, books, affinity, labels, seed, rows=slice(None)):
        """Train a function on these rows to give the bits of all books, then label scores."""
        certain = _are_classes(y) and affinity.n_items_ == len(np.unique(y))
        how = (self.contrast_share_, self.bagging_, certain and many_images(X), by_neighbours(X, y))
        lessons = [Lesson(book.codes, book.weights, *how) for book in books]
        labels = None if labels is None else labels[rows]
        teach(function, X[rows], lessons, affinity.item_of_[rows], labels=labels, certain=certain, random_state=seed)

    def _voting_labels(self, X, y) -> np.ndarray | None:
        """What label scores learn, or None where labels do not vote."""
        if y is None or self.label_share == 0 or not self.function_.by_gradients:
            return None
        if self.label_share == "auto" and many_images(X) and not has_label_sets(y):
            return None
        labels = label_targets(y)
        return None if self.label_share == "auto" and n_labels(labels) > held_out.MOST_LABELS else labels

    def _can_choose(self, X, labels) -> bool:
        return labels is not None and len(X) >= held_out.FEWEST and not is_images(X)

    def _shares(self, X, y, affinity, books, labels, rng) -> held_out.Shares:
        """The shares as given, the others by what held-out instances retrieve, or the defaults where none can be.

        affinity : one of those behind the books, which are all of the same items
        """
        given = {"label_share": self.label_share, "weight_share": self.weight_share}
        fixed = {name: share for name, share in given.items() if share != "auto"}
        if labels is None:
            weight_share = 0.5 if is_images(X) else 1.0
            return held_out.Shares(**{"weight_share": weight_share, **fixed, "label_share": 0.0})
        if not self._can_choose(X, labels) or (len(fixed) == len(given) and len(books) == 1):
            return held_out.Shares(**fixed)
        learned, held, searched = held_out.parts(len(X), rng)
        function = self._function(X)
        self._teach(function, X, y, books, affinity, labels, draw_seed(rng), rows=learned)
        scored = {"held": (held, function.project(X[held])), "learned": (searched, function.project(X[searched]))}
        return held_out.judged(**scored, affinity=affinity, books=books, labels=labels, fixed=fixed)

    def _plan(self, X, y) -> TrainingPlan:
        """How the function is taught: as given, or by what is known of the instances."""
        usual = TrainingPlan()
        if self.function_.by_gradients and y is not None and self.label_share != 0:
            nested = self.scheme != "constant" and not self.refine
            usual = usual_plan(X, y, n_bits=self.n_bits, nested=nested, pretrained=self.function_.pretrained)
        given = {name: getattr(self, name) for name in ("contrast_share", "bagging", "extra_bits")}
        plan = replace(usual, **{name: value for name, value in given.items() if value != "auto"})
        if plan.extra_bits and not self.function_.by_gradients:
            raise ValueError(
                f"extra_bits help functions that learn all bits together, which {type(self.function_).__name__} does "
                "not. Leave extra_bits at 0, or use function='mlp', 'kernel' or a network."
            )
        return plan

    def _note(self, plan: TrainingPlan) -> None:
        self.contrast_share_, self.bagging_ = float(plan.contrast_share), bool(plan.bagging)
        self.extra_bits_ = int(plan.extra_bits)

    def _project(self, X):
        odds, label_scores = self._odds(X)
        return odds if self.queries_ is None else self.queries_.ask(odds, label_scores)

    def _odds(self, X) -> tuple[np.ndarray, np.ndarray]:
        """(log-odds of the bits, label scores) of these instances."""
        scores = self.function_.project(X)
        odds, label_scores = scores[:, : self.n_bits], scores[:, self.n_bits :]
        if self.votes_ is not None and self.label_share_ > 0:
            odds = held_out.blend(odds, self.votes_.expected_codes(label_scores), self.label_share_)
        return odds, label_scores

    def after_load(self) -> None:
        """What models saved before there were shares do not hold: they had the paper's."""
        shares = {"feature_share_": 0.0, "centre_share_": 0.0, "label_share_": 0.0, "weight_share_": 1.0}
        for name, value in {
            "votes_": None,
            "queries_": None,
            "contrast_share_": 0.0,
            "bagging_": False,
            "extra_bits_": 0,
            **shares,
        }.items():
            if not hasattr(self, name):
                setattr(self, name, value)

    def weights_for(self, k: int) -> np.ndarray:
        """Weights of the first k bits, which are a code of their own."""
        check_is_fitted(self)
        return held_out.shrink(self.codebook_.weights_for(k), self.weight_share_)

    def codes_for(self, labels) -> np.ndarray:
        """Target codes of classes or label sets, also of ones never seen in training. Shape (m, n_bits), int8."""
        check_is_fitted(self)
        if self.codebook_.affinity is None:
            raise ValueError("This model was fitted without labels; `transform` gives the code of any feature vector.")
        return self.codebook_.encode(labels)

    def infer(self, affinity, y, seed: int, *, intercept: bool | None = None, extra: int = 0):
        """The code book of stage one, by this method's settings; affinity: fitted on labels like y.

        intercept : of the plan that is tried; None where only a constant that was asked for is free
        extra : how many bits more than `n_bits`
        """
        return infer_codes(
            affinity,
            self.n_bits + extra,
            scheme=self.scheme,
            improve=self.improve,
            item_weights=self._item_weights(y),
            diagonal=self.diagonal,
            tol=0,
            random_state=seed,
            restarts=self.restarts,
            weighting=self.weighting,
            ridge=self.ridge,
            intercept=self.intercept is True if intercept is None else intercept,
            refine=self.refine,
            device=self.device,
            progress=self.verbose,
        )

    def _item_weights(self, y):
        if not (isinstance(self.item_weights, str) and self.item_weights == "auto"):
            return self.item_weights
        return "count" if y is not None and is_label_matrix(y) else None

    def _function(self, X):
        shared = {"device": self.device, "verbose": self.verbose}
        if is_images(X) or not (isinstance(self.function, str) and self.function == "auto"):
            return make_function(self.function, X, **shared)
        if suited_to(X) == "mlp":
            return MLP(loss="smooth", **shared)
        return Kernel(linear=Linear(loss="smooth", lr=1e-2, **shared), **shared)

    def _candidates(self, X, y, labels) -> list[Candidate]:
        """What the code book is inferred from; where there is a choice several."""
        affinity = self.label_affinity(y)
        if not isinstance(self.affinity, str) or self.affinity != "auto" or y is None:
            return [Candidate(affinity.fit(X, y), self.intercept is True)]
        return candidates(
            affinity,
            self.function_.pretrained_features(X) if is_images(X) and self.feature_share != 0 else X,
            y,
            n_bits=self.n_bits,
            feature_share=self.feature_share,
            centre_share=self.centre_share,
            intercept=self.intercept if self.scheme == "regress" or self.intercept is True else False,
            can_choose=self._can_choose(X, labels),
        )

    def label_affinity(self, y):
        """The affinity that the labels alone ask for, not fitted; without labels that of distances."""
        if not isinstance(self.affinity, str):
            return copied(self.affinity, "affinity", "affinities", "A matrix of affinities goes to hbmp.infer_codes.")
        name = self.affinity
        if name == "auto":
            name = "distance_levels" if y is None else "shared_labels" if is_label_matrix(y) else "same_class"
        return catalog.resolve("affinities", name)

    def _training_rows(self, X, y, rng) -> np.ndarray | slice:
        if y is not None or len(X) <= self.max_items:
            return slice(None)
        return np.sort(rng.choice(len(X), self.max_items, replace=False))


def _are_classes(y) -> bool:
    return y is not None and not has_label_sets(y)


def _take(y, rows):
    return y if isinstance(rows, slice) else y[rows]
