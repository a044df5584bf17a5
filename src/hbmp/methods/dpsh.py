"""Deep pairwise-supervised hashing: the likelihood of "these two are similar" under inner products of scores.

Scores are pulled to their own signs, so that little is lost when they become bits. The batch is compared with the
latest scores of all training samples.

Li, Wang & Kang, "Feature learning based deep supervised hashing with pairwise labels", IJCAI 2016.

    u_i     scores         (n, b)
    s_ij    similar        (n, m)   whether i and j share a label
    Θ_ij    half agreement (n, m)   ½ u_iᵀu_j; P(s_ij = 1) = σ(Θ_ij)
    b_i     sgn(u_i)       (n, b)
    η       quantisation
"""

from __future__ import annotations

from torch import nn
from torch.nn import functional as F

from hbmp.functions.linear import Linear
from hbmp.methods._shared.deep import DeepHasher
from hbmp.methods._shared.memory import Memory
from hbmp.methods._shared.pairs import at_least, inner, mean_over, quantisation_error, similar_and_not

_PAIRS = 5000
"""Pairs against which η is counted. The paper sums over the pairs of all n samples, so that η = 10 stands against n
pairs of each, 5,000 in its experiments. Departs from that for other n, because with 50,000 samples the term would
vanish: CIFAR-10 features at 32 bits then have mAP 0.789, counted against 5,000 pairs 0.831."""


def pair_loss(half_agreement, similar):
    """-log P(s | Θ) = log(1 + e^Θ) - sΘ of each pair (Eq. 3)."""
    return F.softplus(half_agreement) - similar * half_agreement


class _DPSHLoss(nn.Module):
    """Eq. 5 divided by the number of pairs: mean over pairs, η counted against the pairs of one sample."""

    def __init__(self, memory: Memory, quantisation: float):
        super().__init__()
        self.memory, self.quantisation = memory, quantisation / _PAIRS

    def forward(self, scores, labels, rows):
        scores = scores.float()
        self.memory.keep(scores, rows)
        others, other_labels, other_rows = self.memory.draw(rows)
        alike, unlike = similar_and_not(labels, rows, other_labels, other_rows)
        pairs = pair_loss(inner(scores, others) / 2, alike)
        return mean_over(pairs, alike | unlike) + self.quantisation * quantisation_error(scores)


class DPSH(DeepHasher):
    """Codes whose inner products tell similar pairs from dissimilar ones, by logistic regression on pairs.

    Parameters
    ----------
    n_bits : length of the codes
    quantisation : η, weight of the distance between scores and their signs, against the pairs of one sample
    memory : training samples that a batch is compared with in one step, drawn from all; "auto" is 1,000, and 0, the
        batch itself, for a whole network, which outgrows what it gave an epoch ago (2,000 images of CIFAR-10 at 64 px,
        five epochs, 32 bits: mAP 0.274, with a memory 0.143). Departs from the paper, which takes all of them: the cost
        of a step then grows with the training set, the mean of the gradient is the same
    function : "auto" (kernel or mlp), a name from `hbmp.functions` or an object from there
    device : "auto", "cpu" or "cuda"
    random_state : seed; the same seed gives the same model
    verbose : show progress on stderr
    """

    citation = "Li, Wang & Kang, IJCAI 2016"
    smoke = {"function": Linear(epochs=2), "memory": 40}
    search = {"quantisation": [1.0, 10.0, 30.0, 100.0]}

    def __init__(
        self,
        n_bits=32,
        *,
        quantisation=10.0,
        memory="auto",
        function="auto",
        device="auto",
        random_state=None,
        verbose=False,
    ):
        self.n_bits = n_bits
        self.quantisation = quantisation
        self.memory = memory
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels, seed):
        """Pairs of the batch with the memory, and the distance to the signs."""
        size = self.memory
        if size == "auto":
            function = getattr(self, "function_", None)  # the loss may be asked for alone
            size = 0 if function is not None and function.takes_images else 1000
        at_least(0, memory=size)
        return _DPSHLoss(Memory(labels, self.n_bits, size), self.quantisation)
