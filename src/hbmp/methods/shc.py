"""Semantic hash centres: classes that a classifier confuses get near codes, and no two codes are nearer than a bound.

Stage one trains a classifier and compares classes by its logits. Stage two searches centres whose products follow these
similarities under a least distance. Stage three trains the hash function towards the centres.
Chen, Liu, Zhou, Ma, Chen & Zhang, "Deep Hashing with Semantic Hash Centers for Image Retrieval", arXiv 2507.08404,
2025.

    m_i    mean logits   (c, c)   of the training samples of class i
    s_ij   similarity    (c, c)   cosine of m_i and m_j, each less its mean
    h_i    centres       (c, b)   min Σ_{i≠j} (h_i · h_j / b − s_ij)² with every distance ≥ d
    d      distance               Gilbert–Varshamov, as in MDSH
    L      L_C + β L_P + λ L_Q    of `_shared/centre_softmax.py`
"""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import nn
from torch.nn import functional as F

from hbmp._core.seeds import RandomState
from hbmp.functions import HashFunction
from hbmp.functions.linear import Linear
from hbmp.methods._shared.centre_softmax import CentreSoftmaxLoss
from hbmp.methods._shared.centres import bernoulli_centres, nearest
from hbmp.methods._shared.deep import DeepHasher
from hbmp.methods._shared.function import make_function
from hbmp.methods._shared.memory import memory_size
from hbmp.methods._shared.separated import gilbert_varshamov, separated_centres


def class_similarity(logits: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Cosines (c, c) of the classes' mean logits, from logits and 0/1 labels of the samples, (n, c) each."""
    means = labels.T @ logits / np.maximum(labels.sum(axis=0), 1)[:, None]
    means = means - means.mean(axis=1, keepdims=True)
    lengths = np.maximum(np.linalg.norm(means, axis=1), 1e-12)
    return (means @ means.T) / lengths[:, None] / lengths


def semantic_centres(similarity: np.ndarray, n_bits: int, rng: np.random.Generator) -> np.ndarray:
    """Centres (c, b), int8, whose products follow the similarities, at the Gilbert–Varshamov distance or above."""
    wanted = n_bits * similarity

    def misfit(products: np.ndarray, i: int) -> np.ndarray:
        squares = np.square(products - wanted[i])
        return squares.sum(axis=1) - squares[:, i]

    start = bernoulli_centres(len(similarity), n_bits, rng)
    return separated_centres(start, misfit, gilbert_varshamov(len(similarity), n_bits), rng)


def _classification(scores: torch.Tensor, labels: torch.Tensor) -> torch.Tensor:
    return F.cross_entropy(scores.float(), labels)


class SHC(DeepHasher):
    """Centres that follow the similarity of classes to a classifier, with a guaranteed least distance.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    pair_weight : float, default=1.0
        β, weight of pairs of one class.
    quantisation : float, default=1e-4
        λ, weight of the distance of scores from ±1.
    memory : int or "auto", default="auto"
        Training samples to which a batch is compared in one step. "auto" is 1,000, and 0 (the batch itself) for a
        network on images.
    function : str or HashFunction, default="auto"
        Hash function trained by gradients, by name or as an object; the classifier is another one like it. "auto" is a
        kernel, an MLP from 20,000 samples, or a network for images.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Where gradients are computed.
    random_state : int, Generator, RandomState or None, default=None
        Seed. The same seed gives the same model.
    verbose : bool, default=False
        Show progress on stderr.

    Attributes
    ----------
    similarity_ : ndarray of shape (n_classes, n_classes)
        Similarity of classes in the logits of the classifier.
    centres_ : ndarray of shape (n_classes, n_bits)
        Code of each class in sorted order.
    least_distance_ : int
        The Hamming distance of the two nearest centres.
    function_ : HashFunction
        The fitted hash function.

    Notes
    -----
    The publication was not available; this is an interpretation of its outline. Choices made:
    similarity is the cosine of mean logits, the least distance is the Gilbert–Varshamov distance, and the loss towards
    the centres is the one of MDSH. Flips of single bits under a growing penalty replace the relaxed optimisation.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hbmp.methods import SHC
    >>> from hbmp.functions import Linear
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = SHC(8, function=Linear(epochs=20, device="cpu"), random_state=0).fit(X, y)
    >>> model.similarity_.shape
    (3, 3)
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Chen, Liu, Zhou, Ma, Chen & Zhang, arXiv 2507.08404, 2025"
    single_label = True
    smoke = {"function": Linear(epochs=2)}
    search = {"pair_weight": [0.0, 1.0, 3.0], "quantisation": [1e-4, 0.1]}

    def __init__(
        self,
        n_bits: int = 32,
        *,
        pair_weight: float = 1.0,
        quantisation: float = 1e-4,
        memory: int | str = "auto",
        function: str | HashFunction = "auto",
        device: str = "auto",
        random_state: RandomState = None,
        verbose: bool = False,
    ):
        self.n_bits = n_bits
        self.pair_weight = pair_weight
        self.quantisation = quantisation
        self.memory = memory
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def prepare(self, X: Any, labels: np.ndarray, seed: int) -> None:
        """Train the classifier and compare the classes."""
        classifier = make_function(self.function, X, device=self.device, verbose=self.verbose)
        classifier.learn(X, _classification, labels, n_bits=labels.shape[1], random_state=seed)
        self.similarity_ = class_similarity(classifier.project(X).astype(np.float64), labels)

    def make_loss(self, labels: np.ndarray, seed: int) -> nn.Module:
        """The loss towards centres that are searched from the seed."""
        rng = np.random.default_rng(seed)
        similarity = getattr(self, "similarity_", np.eye(labels.shape[1]))
        centres = semantic_centres(similarity, self.n_bits, rng)
        size = memory_size(self.memory, getattr(self, "function_", None))
        return CentreSoftmaxLoss(centres, labels, self.pair_weight, self.quantisation, size)

    def finish(self, loss: Any) -> None:
        """Keep the centres and the distance they keep."""
        self.centres_ = loss.centres.cpu().numpy().astype(np.int8)
        self.least_distance_ = nearest(self.centres_)
