"""Hashing with Binary Matrix Pursuit: affinity, target codes, hash function, composed.

Stage one finds target codes for the items that define the neighbourhood (classes, label sets, or instances) by
`infer_codes`. Stage two trains a hash function to give every instance the code of its item (Eq. 11, 12). Distances
are weighted by the weights of stage one.

Three shares carry it past the paper, each 0, 0 and 1 in `HBMP.paper`: how much features say in the affinity
(`affinities.MeanFeatures`), how much labels vote on bits (`_label_votes`), and how far the weights are trusted
(`_held_out`).
"""

from __future__ import annotations

import numpy as np
from sklearn.utils.validation import check_is_fitted

from hbmp import catalog
from hbmp.affinities.mean_features import MeanFeatures
from hbmp.functions.kernel import Kernel
from hbmp.functions.linear import Linear
from hbmp.hasher import Hasher
from hbmp.images import is_images
from hbmp.labels import is_label_matrix
from hbmp.methods import _held_out
from hbmp.methods._function import copied, make_function
from hbmp.methods._label_votes import LabelVotes, joint_loss, label_targets, make_votes, n_labels
from hbmp.pursuit import infer_codes
from hbmp.seeds import as_generator, draw_seed


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
    affinity : "auto" (classes: same_class, label sets: shared_labels, no labels: distance_levels), a name from
        `hbmp.affinities`, or an object from there
    feature_share : how much of an "auto" affinity says how alike the mean features of two classes or label sets are.
        Departs from Eq. 1, because codes of alike classes are then alike and easier to learn: on 100 kinds of MS-COCO
        images mAP at 32 bits rises from 0.363 to 0.418 (docs/beyond-the-paper.md)
    function : "auto" (kernel with a smoothed logistic loss for features, network for images), a name from
        `hbmp.functions` or an object from there. Departs from Eq. 12, the hinge, by half a point of mAP on VOC 2007
    label_share : how much of a score comes from labels that vote with their codes, 0 to 1; "auto" chooses on held-out
        training instances. Departs from Eq. 11, because that lifts mAP@5K on MS-COCO at 16 bits from 0.758 to 0.790
    weight_share : how far bits are weighted, from all the same (0) to the weights of the pursuit (1); "auto" chooses
        on held-out training instances, so that weights do not hurt
    item_weights : "auto" (label sets count as often as instances carry them, classes all the same), or as for
        `hbmp.infer_codes`. Departs from Eq. 6 for label sets, because there it lifts mAP@5K on MS-COCO from 0.668 to
        0.711 (12 bits) and from 0.732 to 0.778 (24 bits), and mAP on VOC 2007 at 12 bits from 0.719 to 0.781
    improve, diagonal, intercept, refine, restarts : see `hbmp.infer_codes`
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

    def __init__(
        self,
        n_bits=32,
        *,
        scheme="regress",
        affinity="auto",
        feature_share=0.5,
        function="auto",
        label_share="auto",
        weight_share="auto",
        improve="one-flip",
        item_weights="auto",
        diagonal="ignore",
        weighting="ridge",
        ridge=0.1,
        intercept=False,
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
        self.function = function
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
        images = is_images(X)
        if images and y is None:
            raise ValueError("Images are hashed by their labels: pass y. Without labels, pass features of the images.")
        rows = self._training_rows(X, y, rng)
        X, y = X[rows], None if y is None else _take(y, rows)
        self.function_ = self._function(images)
        affinity = self._fitted_affinity(X, y)
        self.codebook_ = self.infer(affinity, y, draw_seed(rng))
        targets = self.codebook_.codes[affinity.item_of_]
        self._learn(X, y, targets, affinity, rng)
        self.bit_weights_ = _held_out.shrink(self.codebook_.weights, self.weight_share_)
        self.unmatched_ = float(((self._project(X) >= 0) != (targets > 0)).mean())
        if y is None:
            self.codebook_.affinity = None  # instances are placed by the hash function

    def _learn(self, X, y, targets, affinity, rng):
        """Stage two: the hash function, with label scores beside its bits where labels are to vote."""
        self.votes_: LabelVotes | None = None
        self.label_share_ = 0.0
        self.weight_share_ = 1.0 if self.weight_share == "auto" else self.weight_share
        if y is None or self.label_share == 0 or not self.function_.by_gradients:
            weights = self.codebook_.weights
            self.function_.fit(X, targets, bit_weights=weights, random_state=draw_seed(rng))
            return
        labels = label_targets(y)
        self.votes_ = make_votes(labels, affinity, self.codebook_.codes)
        self._choose_shares(X, targets, labels, rng)
        self._learn_jointly(self.function_, X, targets, labels, draw_seed(rng))

    def _choose_shares(self, X, targets, labels, rng):
        """label_share_ and weight_share_: as given, or by what held-out instances retrieve."""
        given = {"label_share_": self.label_share, "weight_share_": self.weight_share}
        chosen = dict(zip(given, _held_out.DEFAULTS, strict=True))
        if "auto" in given.values() and len(X) >= _held_out.FEWEST and not is_images(X):
            trial = self._held_out_trial(X, targets, labels, self.votes_, rng)
            fixed = () if self.label_share == "auto" else ((self.label_share,),)
            chosen["label_share_"] = trial.best_label_share(*fixed)
            weights = self.codebook_.weights
            chosen["weight_share_"] = trial.best_weight_share(chosen["label_share_"], weights)
        for name, value in given.items():
            setattr(self, name, float(chosen[name] if value == "auto" else value))

    def _held_out_trial(self, X, targets, labels, votes, rng):
        learned, held = _held_out.parts(len(X), rng)
        function = self._function(images=False)
        self._learn_jointly(function, X[learned], targets[learned], labels[learned], draw_seed(rng))
        of_held, of_learned = (votes.split(function.project(X[rows])) for rows in (held, learned))
        return _held_out.Trial(of_held, of_learned, labels[held], labels[learned])

    def _learn_jointly(self, function, X, targets, labels, seed):
        loss = joint_loss(function.code_loss(self.codebook_.weights), self.n_bits)
        n_scores = self.n_bits + n_labels(labels)
        function.learn(X, loss, targets, labels, n_bits=n_scores, random_state=seed)

    def _project(self, X):
        scores = self.function_.project(X)
        if self.votes_ is None or self.label_share_ == 0:
            return scores[:, : self.n_bits]
        return _held_out.blend(*self.votes_.split(scores), self.label_share_)

    def weights_for(self, k: int) -> np.ndarray:
        """Weights of the first k bits, which are a code of their own."""
        check_is_fitted(self)
        return _held_out.shrink(self.codebook_.weights_for(k), self.weight_share_)

    def codes_for(self, labels) -> np.ndarray:
        """Target codes of classes or label sets, also of ones never seen in training. Shape (m, n_bits), int8."""
        check_is_fitted(self)
        if self.codebook_.affinity is None:
            raise ValueError("This model was fitted without labels; `transform` gives the code of any feature vector.")
        return self.codebook_.encode(labels)

    def infer(self, affinity, y, seed: int):
        """The code book of stage one, by this method's settings; affinity: fitted on labels like y."""
        return infer_codes(
            affinity,
            self.n_bits,
            scheme=self.scheme,
            improve=self.improve,
            item_weights=self._item_weights(y),
            diagonal=self.diagonal,
            tol=0,
            random_state=seed,
            restarts=self.restarts,
            weighting=self.weighting,
            ridge=self.ridge,
            intercept=self.intercept,
            refine=self.refine,
            device=self.device,
            progress=self.verbose,
        )

    def _item_weights(self, y):
        if not (isinstance(self.item_weights, str) and self.item_weights == "auto"):
            return self.item_weights
        return "count" if y is not None and is_label_matrix(y) else None

    def _function(self, images: bool):
        if images or not (isinstance(self.function, str) and self.function == "auto"):
            return make_function(self.function, images=images, device=self.device, verbose=self.verbose)
        shared = {"device": self.device, "verbose": self.verbose}
        return Kernel(linear=Linear(loss="smooth", lr=1e-2, **shared), **shared)

    def _fitted_affinity(self, X, y):
        affinity = self.label_affinity(y)
        if not isinstance(self.affinity, str) or self.affinity != "auto" or y is None or self.feature_share == 0:
            return affinity.fit(X, y)
        features = self.function_.pretrained_features(X) if is_images(X) else X
        return MeanFeatures(affinity, share=self.feature_share).fit(features, y)

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


def _take(y, rows):
    return y if isinstance(rows, slice) else y[rows]
