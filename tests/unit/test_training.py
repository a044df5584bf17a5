"""The training loop against loops written out here, and trainings that stop and go on."""

import copy

import numpy as np
import pytest
import torch
from torch import nn

from hbmp._training.loop import ArrayBatches, Recipe, seeded, train
from hbmp._training.losses import code_loss


@pytest.fixture
def task():
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.standard_normal((96, 6)).astype(np.float32))
    targets = torch.from_numpy(np.where(X.numpy()[:, :3] > 0, 1.0, -1.0).astype(np.float32))
    return X, targets


def network(dropout=0.0):
    with seeded(5):
        return nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Dropout(dropout), nn.Linear(8, 3))


def weights(module):
    return torch.cat([value.reshape(-1) for value in module.state_dict().values()])


def run(module, task, recipe, *, dropout_seed=1, **options):
    data = ArrayBatches(*task, batch_size=recipe.batch_size)
    with seeded(dropout_seed):
        return train(module, data, code_loss("hinge"), recipe, seed=3, **options)


def test_the_loop_is_plain_gradient_descent(task):
    recipe = Recipe(epochs=3, batch_size=32, lr=0.1, optimizer="sgd", momentum=0.0, weight_decay=0.0, schedule="step")
    ours, theirs = network(), network()
    history = run(ours, task, recipe)
    order, loss = torch.Generator().manual_seed(3), code_loss("hinge")
    expected = []
    for _ in range(3):
        losses = []
        for rows in torch.randperm(96, generator=order).split(32):
            value = loss(theirs(task[0][rows]), task[1][rows])
            theirs.zero_grad()
            value.backward()
            losses.append(value.item())
            with torch.no_grad():
                for parameter in theirs.parameters():
                    parameter.sub_(0.1 * parameter.grad)
        expected.append(np.mean(losses))
    torch.testing.assert_close(weights(ours), weights(theirs), rtol=1e-5, atol=1e-6)
    assert history == pytest.approx(expected, rel=1e-5)


def test_a_batch_in_parts_gives_the_same_step(task):
    whole, parts = network(), network()
    run(whole, task, Recipe(epochs=2, batch_size=32))
    run(parts, task, Recipe(epochs=2, batch_size=32, accumulate=4))
    torch.testing.assert_close(weights(whole), weights(parts), rtol=1e-4, atol=1e-5)


def test_rates_slow_the_named_parameters_down(task):
    slow = network()
    before = slow[0].weight.detach().clone()
    run(slow, task, Recipe(epochs=1, rates=(("0.", 0.0),), weight_decay=0.0))
    assert torch.equal(slow[0].weight, before)
    assert not torch.equal(slow[3].weight, network()[3].weight)


def test_averaged_weights_are_the_running_mean_of_the_steps(task):
    seen = []

    class Spy(nn.Sequential):
        def forward(self, inputs):
            if self.training:
                seen.append(weights(self).clone())
            return super().forward(inputs)

    with seeded(5):
        module = Spy(*network())
    plain = copy.deepcopy(module)
    run(plain, task, Recipe(epochs=2, batch_size=32))
    seen.append(weights(plain))
    steps = list(seen)
    run(module, task, Recipe(epochs=2, batch_size=32, ema=0.6))
    mean = steps[0]
    for number, value in enumerate(steps[1:]):
        keep = min(0.6, (1 + number) / (10 + number))
        mean = keep * mean + (1 - keep) * value
    torch.testing.assert_close(weights(module), mean, rtol=1e-5, atol=1e-6)


def test_training_that_stops_anywhere_goes_on_to_the_same_bits(task, tmp_path, monkeypatch):
    recipe = Recipe(epochs=3, batch_size=20, ema=0.9)  # a last batch of 16
    straight = network(dropout=0.5)
    history = run(straight, task, recipe)
    for stop in (1, 4, 5, 6, 13):
        folder, count = tmp_path / str(stop), 0

        class Stopped(Exception):
            pass

        def stopping(loss, stop=stop):
            def counted(scores, targets):
                nonlocal count
                count += 1
                if count > stop:
                    raise Stopped
                return loss(scores, targets)

            return counted

        first = network(dropout=0.5)
        data = ArrayBatches(*task, batch_size=20)
        options = {"seed": 3, "checkpoint": str(folder), "checkpoint_minutes": 0.0}
        with pytest.raises(Stopped), seeded(1):
            train(first, data, stopping(code_loss("hinge")), recipe, **options)
        again = network(dropout=0.5)
        with torch.no_grad():
            again[0].weight.zero_()  # whatever it starts from, the checkpoint decides
        with seeded(99):
            resumed = train(again, data, code_loss("hinge"), recipe, **options)
        assert torch.equal(weights(again), weights(straight))
        assert resumed == history


def test_finished_training_is_not_repeated(task, tmp_path):
    recipe = Recipe(epochs=2, batch_size=32)
    first, again = network(), network()
    run(first, task, recipe, checkpoint=str(tmp_path))
    epochs = []
    run(again, task, recipe, checkpoint=str(tmp_path), callbacks=[epochs.append])
    assert not epochs
    assert torch.equal(weights(first), weights(again))


def test_checkpoint_of_another_training_is_refused(task, tmp_path):
    run(network(), task, Recipe(epochs=1), checkpoint=str(tmp_path))
    with pytest.raises(ValueError, match=r"holds a checkpoint of another training: recipe differ. Choose another"):
        run(network(), task, Recipe(epochs=2), checkpoint=str(tmp_path))


def test_validation_keeps_the_best_weights_and_stops(task):
    scores = iter([0.2, 0.7, 0.6, 0.5, 0.9])
    kept = []

    def validate(module):
        kept.append(weights(module).clone())
        return next(scores)

    module, facts = network(), []
    history = run(module, task, Recipe(epochs=20, patience=1), validate=validate, callbacks=[facts.append])
    assert len(history) == 4  # epochs 3 and 4 are not better than 2
    assert torch.equal(weights(module), kept[1])
    assert [fact["validation"] for fact in facts] == [0.2, 0.7, 0.6, 0.5]


def test_monitor_is_the_mean_over_the_epoch(task):
    facts, seen = [], []

    def monitor(scores, targets):
        seen.append(float(((scores >= 0) != (targets > 0)).float().mean()))
        return torch.tensor(seen[-1])

    run(network(), task, Recipe(epochs=1, batch_size=32), monitor=monitor, callbacks=[facts.append])
    assert facts[0]["unmatched"] == pytest.approx(np.mean(seen), rel=1e-5)


def test_half_precision_trains_to_nearly_the_same(task):
    full, half = network(), network()
    run(full, task, Recipe(epochs=40, batch_size=32, lr=3e-2))
    history = run(half, task, Recipe(epochs=40, batch_size=32, lr=3e-2, precision="bf16"))
    assert half[0].weight.dtype == torch.float32
    assert history[-1] < 0.5 * history[0]
    assert float((half(task[0]).sign() == full(task[0]).sign()).float().mean()) > 0.9


def test_unknown_precision_is_named(task):
    with pytest.raises(ValueError, match="precision must be one of 'float32', 'bf16', 'fp16'; found 'int8'"):
        run(network(), task, Recipe(precision="int8"))
