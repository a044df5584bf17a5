"""Very deep supervised hashing: a deep network trained layer by layer, each layer with targets of its own.

Codes should predict the labels by least squares, and a network of rectified layers should give the codes. The outputs
and the inner sums of every layer become variables of their own, tied to the network by penalties; then every block of
variables has a closed-form minimum and no gradient travels through the layers.

    x_i     inputs         (n, d)   centred features over their mean deviation
    y_i     labels         (n, c)   0/1 rows, centred
    B       codes          (n, b)   in {-1, +1}
    U       readout        (b, c)   codes to labels
    z_m     outputs        (n, w)   of layer m, as targets: should equal max(0, a_m)
    a_m     sums           (n, w)   before the rectifier, as targets: should equal z_(m-1) W_m + c_m
    W_m     layers_                 weights and bias of each layer; the last one gives the codes' scores
    loss_                           the whole objective over n, after each round

    min  ‖Y - BU‖² + α‖B - z_M P - c‖² + Σ_m (‖z_m - max(0, a_m)‖² + ‖a_m - z_(m-1) W_m - c_m‖²) + β(‖U‖² + ‖W‖²)

On CIFAR-10 features (cifar-1, 32 bits) it reaches mAP 0.788, near the end of the supervised methods, as in
Table 1 of the paper. Its layers are fitted by least squares to the ±1 codes, so a sample far on the right side counts
as an error, and only the ridge keeps a wide layer from memorising 5,000 samples.

Reference: Zhang, Chen & Saligrama, Efficient Training of Very Deep Neural Networks for Supervised Hashing, CVPR 2016.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from hbmp._core.seeds import RandomState, as_generator
from hbmp.hasher import Hasher
from hbmp.methods._shared.checks import need_counts, need_positive
from hbmp.methods._shared.label_rows import label_rows
from hbmp.methods._shared.products import gram

Layer = tuple[np.ndarray, np.ndarray]  # weights, bias


def fit_layer(inputs: np.ndarray, outputs: np.ndarray, ridge: float) -> tuple[np.ndarray, np.ndarray]:
    """(weights, bias) that minimise ‖outputs - inputs W - c‖² + ridge ‖W‖², float32."""
    inputs_mean, outputs_mean = inputs.mean(axis=0, dtype=np.float64), outputs.mean(axis=0, dtype=np.float64)
    n_rows = len(inputs)
    squares = gram(inputs, inputs) - n_rows * np.outer(inputs_mean, inputs_mean)
    match = gram(inputs, outputs) - n_rows * np.outer(inputs_mean, outputs_mean)
    squares[np.diag_indices_from(squares)] += ridge
    weights = cho_solve(cho_factor(squares), match)
    return weights.astype(np.float32), (outputs_mean - inputs_mean @ weights).astype(np.float32)


def best_sums(outputs: np.ndarray, given: np.ndarray) -> np.ndarray:
    """a that minimises (z - max(0, a))² + (a - g)², entry by entry: the better of its two halves."""
    below, above = np.minimum(given, 0), np.maximum((outputs + given) / 2, 0)
    cost_below = outputs**2 + (below - given) ** 2
    cost_above = (outputs - above) ** 2 + (above - given) ** 2
    return np.where(cost_below <= cost_above, below, above)


def best_outputs(own: np.ndarray, weights: np.ndarray, wanted: np.ndarray, strength: float) -> np.ndarray:
    """z that minimises ‖z - own‖² + strength ‖wanted - z W‖², row by row."""
    system = strength * (weights @ weights.T).astype(np.float64)
    system[np.diag_indices_from(system)] += 1
    inverse = np.linalg.inv(system).astype(np.float32)
    return (own + strength * (wanted @ weights.T)) @ inverse


def best_codes(
    codes: np.ndarray, labels: np.ndarray, readout: np.ndarray, scores: np.ndarray, strength: float, sweeps: int = 3
) -> np.ndarray:
    """Codes that lower ‖Y - BU‖² + strength ‖B - scores‖², one bit after the other, each exactly."""
    codes = codes.copy()
    fixed = labels @ readout.T + strength * scores
    overlap = readout @ readout.T
    for _ in range(sweeps):
        before = codes.copy()
        for bit in range(codes.shape[1]):
            others = codes @ overlap[:, bit] - overlap[bit, bit] * codes[:, bit]
            codes[:, bit] = np.where(fixed[:, bit] - others >= 0, 1, -1)
        if (codes == before).all():
            break
    return codes


def objective(
    inputs: np.ndarray,
    labels: np.ndarray,
    codes: np.ndarray,
    readout: np.ndarray,
    layers: list[Layer],
    outputs: list[np.ndarray],
    sums: list[np.ndarray],
    strength: float,
    ridge: float,
) -> float:
    """The whole objective over n; the last of `layers` gives the scores."""
    parts = [labels - codes @ readout, np.sqrt(strength) * (codes - forward_one(outputs[-1], layers[-1]))]
    below = inputs
    for layer, output, total in zip(layers[:-1], outputs, sums, strict=True):
        parts += [output - np.maximum(total, 0), total - forward_one(below, layer)]
        below = output
    weights = [readout, *(weights for weights, _ in layers)]
    squares = sum(float(np.square(part, dtype=np.float64).sum()) for part in parts)
    return squares / len(inputs) + ridge * sum(float(np.square(part, dtype=np.float64).sum()) for part in weights)


def forward_one(inputs: np.ndarray, layer: Layer) -> np.ndarray:
    """Sums of one layer."""
    return inputs @ layer[0] + layer[1]


def train_layers(
    inputs: np.ndarray,
    labels: np.ndarray,
    n_bits: int,
    sizes: list[int],
    strength: float,
    ridge: float,
    rounds: int,
    rng: np.random.Generator,
) -> tuple[list[Layer], list[float]]:
    """(layers, loss after each round), by minimising over one block of variables after the other, codes to inputs."""
    decay = ridge * len(inputs)
    layers = [_random_layer(a, b, rng) for a, b in itertools.pairwise([inputs.shape[1], *sizes, n_bits])]
    sums, outputs, below = [], [], inputs
    for layer in layers[:-1]:
        sums.append(forward_one(below, layer))
        outputs.append(np.maximum(sums[-1], 0))
        below = outputs[-1]
    mixtures = rng.standard_normal((labels.shape[1], n_bits)).astype(np.float32)
    codes = np.where(labels @ mixtures >= 0, np.float32(1), np.float32(-1))  # random, but the same for equal labels
    layers[-1] = fit_layer(below, codes, decay / strength)
    history = []
    for _ in range(rounds):
        readout = fit_readout(codes, labels, decay)
        codes = best_codes(codes, labels, readout, forward_one(outputs[-1], layers[-1]), strength)
        layers[-1] = fit_layer(outputs[-1], codes, decay / strength)
        wanted, firm = codes, strength
        for at in reversed(range(len(sizes))):
            weights, bias = layers[at + 1]
            outputs[at] = best_outputs(np.maximum(sums[at], 0), weights, wanted - bias, firm)
            below = outputs[at - 1] if at else inputs
            sums[at] = best_sums(outputs[at], forward_one(below, layers[at]))
            layers[at] = fit_layer(below, sums[at], decay)
            wanted, firm = sums[at], 1.0
        history.append(objective(inputs, labels, codes, readout, layers, outputs, sums, strength, ridge))
    return _closed(inputs, layers, sums, codes, strength, decay), history


def fit_readout(codes: np.ndarray, labels: np.ndarray, ridge: float) -> np.ndarray:
    """U that minimises ‖Y - BU‖² + ridge ‖U‖²."""
    squares = gram(codes, codes) + ridge * np.eye(codes.shape[1])
    return np.linalg.solve(squares, gram(codes, labels)).astype(np.float32)


def _random_layer(n_inputs: int, n_outputs: int, rng: np.random.Generator) -> Layer:
    weights = rng.standard_normal((n_inputs, n_outputs)) * np.sqrt(2 / n_inputs)  # keeps sizes from layer to layer
    return weights.astype(np.float32), np.zeros(n_outputs, dtype=np.float32)


def _closed(
    inputs: np.ndarray, layers: list[Layer], sums: list[np.ndarray], codes: np.ndarray, strength: float, decay: float
) -> list[Layer]:
    """The layers fitted once more to their targets, bottom to top, each on the actual outputs of the layers below."""
    closed, below = [], inputs
    for target in sums:
        closed.append(fit_layer(below, target, decay))
        below = np.maximum(forward_one(below, closed[-1]), 0)
    return [*closed, fit_layer(below, codes, decay / strength)]


class VDSH(Hasher):
    """Deep network whose codes predict the labels, trained without back-propagation.

    Parameters
    ----------
    n_bits : int, default=32
        Length of the codes.
    n_layers : int, default=2
        Hidden layers.
    width : int, default=1024
        Units per hidden layer.
    code_penalty : float, default=10.0
        α, strength of the tie between codes and network.
    ridge : float, default=0.1
        β, weight decay of layers and readout, per sample.
    rounds : int, default=10
        Passes over all blocks of variables.
    random_state : int, Generator, RandomState or None, default=None
        Seed of the initial weights.

    Attributes
    ----------
    layers_ : list of (ndarray, ndarray)
        Weights and bias of each layer.
    mean_ : ndarray of shape (d,)
        Mean of the training features.
    scale_ : float
        Scale of the features.
    loss_ : list of float
        Objective after each round.

    Notes
    -----
    Departs from the publication in three ways. Sums and outputs of a layer are split, so that every block has a
    closed form. The weights have no copies per sample: copies serve distributed machines, and their agreement on one
    machine is the ridge regression done here. The default is two layers instead of sixteen to sixty-four: on features
    of a trained network, more layers cost time and gave no gain.

    Examples
    --------
    >>> from sklearn.datasets import make_blobs
    >>> from hbmp.methods import VDSH
    >>> X, y = make_blobs(90, n_features=8, centers=3, random_state=0)
    >>> model = VDSH(8, width=16, rounds=5, random_state=0).fit(X, y)
    >>> model.transform(X).shape
    (90, 8)
    >>> model.score(X, y) > 0.8
    True
    """

    citation = "Zhang et al., CVPR 2016"
    supervised = True
    smoke = {"width": 8, "rounds": 2}
    search = {"code_penalty": [3.0, 10.0], "ridge": [0.01, 0.03, 0.1, 0.3]}
    never_rises = "loss_"

    def __init__(
        self,
        n_bits: int = 32,
        *,
        n_layers: int = 2,
        width: int = 1024,
        code_penalty: float = 10.0,
        ridge: float = 0.1,
        rounds: int = 10,
        random_state: RandomState = None,
    ):
        self.n_bits = n_bits
        self.n_layers = n_layers
        self.width = width
        self.code_penalty = code_penalty
        self.ridge = ridge
        self.rounds = rounds
        self.random_state = random_state

    def _fit(self, X: Any, y: Any) -> None:
        need_counts(n_layers=self.n_layers, width=self.width, rounds=self.rounds)
        need_positive(code_penalty=self.code_penalty, ridge=self.ridge)
        labels = label_rows(y)
        self.mean_ = X.mean(axis=0)
        self.scale_ = max(float(X.std()), 1e-12)  # one for all: scaling each feature would raise noise to signal
        self.layers_, self.loss_ = train_layers(
            (X - self.mean_) / self.scale_,
            labels - labels.mean(axis=0),
            self.n_bits,
            [self.width] * self.n_layers,
            self.code_penalty,
            self.ridge,
            self.rounds,
            as_generator(self.random_state),
        )

    def _project(self, X: Any) -> np.ndarray:
        out = (X - self.mean_) / self.scale_
        for layer in self.layers_[:-1]:
            out = np.maximum(forward_one(out, layer), 0)
        return forward_one(out, self.layers_[-1])
