"""Deep regularised similarity hashing: triplets on a weighted Hamming affinity whose bit weights are learned along.

A bit that separates well gets a large weight, so that light bits can be left out of a code after training. A Laplacian
term draws samples that share a label together.

Zhang, Lin, Zhang, Zuo & Zhang, "Bit-scalable deep hashing with regularized similarity learning", TIP 2015.

    h_i     relaxed codes     (n, b)   2σ(β u_i) - 1
    w_k²    weights of bits   (b,)     learned, 1 at the start
    M_ij    affinity          (n, n)   Σ_k w_k² h_ik h_jk
    C       margin            b/2 where not given
    S_ij    similar           (n, n)   whether i and j share a label
    λ       smoothness        weight of the mean over similar pairs of Σ_k w_k² (h_ik - h_jk)²
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from hbmp._core.device import to_numpy
from hbmp.functions.linear import Linear
from hbmp.methods._shared.deep import DeepHasher
from hbmp.methods._shared.pairs import at_least, drawn_triplets, inner, mean_over, similar_and_not


class _DRSCHLoss(nn.Module):
    """Mean over triplets of max(0, C - M(q, positive) + M(q, negative)), and the Laplacian term."""

    def __init__(self, n_bits: int, margin: float, smoothness: float, slope: float, partners: int):
        super().__init__()
        self.margin, self.smoothness, self.slope, self.partners = margin, smoothness, slope, partners
        self.weights = nn.Parameter(torch.ones(n_bits))

    def forward(self, scores, labels, rows):
        weighted = self.weights * torch.tanh(self.slope / 2 * scores.float())  # w∘h, with h = 2σ(β u) - 1
        affinity = inner(weighted, weighted)
        alike, unlike = similar_and_not(labels, rows)
        near, far, real = drawn_triplets(affinity, alike, unlike, self.partners)
        triplets = F.relu(self.margin - near[:, :, None] + far[:, None, :])
        squares = affinity.diagonal()
        spread = squares[:, None] + squares - 2 * affinity  # Σ_k w_k² (h_ik - h_jk)²
        return mean_over(triplets, real) + self.smoothness * mean_over(spread, alike)


class DRSCH(DeepHasher):
    """Codes with learned weights of bits, from triplets.

    Parameters
    ----------
    n_bits : length of the codes
    margin : C, by how much affinities should differ, or None for n_bits / 2
    smoothness : λ, weight of the Laplacian term. Departs from the released code, whose 0.001 stands between sums,
        because between means it does nothing: a linear function on CIFAR-10 features has mAP 0.750 at 32 bits
        (cifar-1), with 0.03 it has 0.804
    slope : β of the sigmoid that relaxes bits. Departs from the released code, which raises it by a schedule, because
        the steps of that are not published and the scores grow by themselves
    partners : positives and as many negatives of each query in one step
    function : "auto" (kernel or mlp), a name from `hbmp.functions` or an object from there
    device : "auto", "cpu" or "cuda"
    random_state : seed; the same seed gives the same model
    verbose : show progress on stderr
    """

    citation = "Zhang, Lin, Zhang, Zuo & Zhang, TIP 2015"
    smoke = {"function": Linear(epochs=2), "partners": 4}
    search = {"margin": [None, 5.0], "smoothness": [0.01, 0.03, 0.1]}

    def __init__(
        self,
        n_bits=32,
        *,
        margin=None,
        smoothness=0.03,
        slope=1.0,
        partners=20,
        function="auto",
        device="auto",
        random_state=None,
        verbose=False,
    ):
        self.n_bits = n_bits
        self.margin = margin
        self.smoothness = smoothness
        self.slope = slope
        self.partners = partners
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels, seed):
        """Triplets drawn from the batch under weights that are trained along."""
        at_least(1, partners=self.partners)
        margin = self.n_bits / 2 if self.margin is None else self.margin
        return _DRSCHLoss(self.n_bits, margin, self.smoothness, self.slope, self.partners)

    def finish(self, loss):
        """The squares of the learned weights are those of weighted Hamming distance."""
        self.bit_weights_ = to_numpy(loss.weights).astype(float) ** 2
