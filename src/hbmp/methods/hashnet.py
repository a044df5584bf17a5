"""HashNet: a weighted likelihood of pairs on tanh(βz), with β raised during training until codes are all but binary.

Similar pairs are few, so similar and dissimilar ones get the same weight in total; of two samples with label sets the
pair counts by how much of their labels they share.

Cao, Long, Wang & Yu, "HashNet: Deep learning to hash by continuation", ICCV 2017.

    z_i     scores         (n, b)
    h_i     relaxed codes  (n, b)   tanh(β z_i)
    s_ij    similar        (n, n)   whether i and j share a label
    c_ij    share          (n, n)   labels in both over labels in either, of similar pairs; 1 for dissimilar ones
    w_ij    weights        (n, n)   c_ij |S|/|S₁| or c_ij |S|/|S₀|, from the numbers of similar and dissimilar pairs
    α       steepness      10/b
    β_t     sharpness      (1 + γt)^p, held for 200 steps at a time; γ = 0.005, p = ½
"""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional as F

from hbmp.functions.linear import Linear
from hbmp.methods._shared.deep import DeepHasher
from hbmp.methods._shared.pairs import at_least, inner, jaccard, mean_over, similar_and_not


def sharpness(step, growth: float, power: float, hold: int):
    """β after so many steps, raised every `hold` of them."""
    return (1 + growth * (step // hold * hold)) ** power


class _HashNetLoss(nn.Module):
    """Eq. 4 divided by the number of pairs: with w that is the mean over similar pairs plus that over the others."""

    step: torch.Tensor

    def __init__(self, n_bits: int, steepness: float, growth: float, power: float, hold: int):
        super().__init__()
        self.steepness, self.growth, self.power, self.hold = steepness / n_bits, growth, power, hold
        self.register_buffer("step", torch.zeros((), dtype=torch.int64))

    def forward(self, scores, labels, rows):
        relaxed = torch.tanh(sharpness(self.step, self.growth, self.power, self.hold) * scores.float())
        agreement = self.steepness * inner(relaxed, relaxed)
        alike, unlike = similar_and_not(labels, rows)
        share = jaccard(labels, labels)
        return mean_over(share * F.softplus(-agreement), alike) + mean_over(F.softplus(agreement), unlike)

    def after_step(self) -> None:
        """Count a step of the optimiser: t of β_t, however often the loss was asked in it."""
        self.step += 1


class HashNet(DeepHasher):
    """Codes by continuation: pairs of tanh(βz) are told apart while β grows.

    Parameters
    ----------
    n_bits : length of the codes
    steepness : α times the number of bits
    growth, power, hold : γ and p of β = (1 + γt)^p, and for how many steps β stays as it is
    function : "auto" (kernel or mlp), a name from `hbmp.functions` or an object from there
    device : "auto", "cpu" or "cuda"
    random_state : seed; the same seed gives the same model
    verbose : show progress on stderr
    """

    citation = "Cao, Long, Wang & Yu, ICCV 2017"
    smoke = {"function": Linear(epochs=2), "hold": 2}
    search = {"steepness": [5.0, 10.0, 20.0], "growth": [0.005, 0.02]}

    def __init__(
        self,
        n_bits=32,
        *,
        steepness=10.0,
        growth=0.005,
        power=0.5,
        hold=200,
        function="auto",
        device="auto",
        random_state=None,
        verbose=False,
    ):
        self.n_bits = n_bits
        self.steepness = steepness
        self.growth = growth
        self.power = power
        self.hold = hold
        self.function = function
        self.device = device
        self.random_state = random_state
        self.verbose = verbose

    def make_loss(self, labels, seed):
        """Pairs of the batch under the weights of their kind."""
        at_least(1, hold=self.hold)
        return _HashNetLoss(self.n_bits, self.steepness, self.growth, self.power, self.hold)
