"""The training loop against loops written out here, and trainings that stop and go on."""

import copy
import functools

import numpy as np
import pytest
import torch
from torch import nn

from hbmp._training.fingerprint import fingerprint
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

        class Stopping(ArrayBatches):
            def batches(self, generator, start=0, stop=stop):
                nonlocal count
                for batch in super().batches(generator, start):
                    count += 1
                    if count > stop:
                        raise Stopped
                    yield batch

        first = network(dropout=0.5)
        data = ArrayBatches(*task, batch_size=20)
        options = {"seed": 3, "checkpoint": str(folder), "checkpoint_minutes": 0.0}
        with pytest.raises(Stopped), seeded(1):
            train(first, Stopping(*task, batch_size=20), code_loss("hinge"), recipe, **options)
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


def other_tasks(task):
    """The same sizes and settings with other data: what is compared, and the parts of the training."""
    X, targets = task
    weights = torch.linspace(0.5, 1.5, 3)
    return {
        "data": (ArrayBatches(X + 1e-6, targets, batch_size=32), code_loss("hinge")),
        "targets": (ArrayBatches(X, -targets, batch_size=32), code_loss("hinge")),
        "loss": (ArrayBatches(X, targets, batch_size=32), code_loss("logistic")),
        "loss, weighted": (ArrayBatches(X, targets, batch_size=32), code_loss("hinge", weights)),
        "loss of the user's own": (ArrayBatches(X, targets, batch_size=32), lambda scores, u: (scores - u).abs().sum()),
    }


@pytest.mark.parametrize("what", other_tasks((torch.zeros(1, 1), torch.zeros(1, 1))))
def test_checkpoint_of_other_data_of_the_same_size_is_refused(task, tmp_path, what):
    recipe = Recipe(epochs=1, batch_size=32)
    run(network(), task, recipe, checkpoint=str(tmp_path))
    data, loss = other_tasks(task)[what]
    with pytest.raises(ValueError, match=f"another training: {what.split()[0].rstrip(',')} differ. Choose another"):
        train(network(), data, loss, recipe, seed=3, checkpoint=str(tmp_path))
    with pytest.raises(ValueError, match="another training: validation differ"):
        run(network(), task, recipe, checkpoint=str(tmp_path), about={"validation": "other"})


def test_damaged_checkpoint_is_refused(task, tmp_path):
    recipe = Recipe(epochs=1, batch_size=32)
    run(network(), task, recipe, checkpoint=str(tmp_path))
    (file,) = tmp_path.iterdir()
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    digest = whole.index(b'"sha256"')
    for place in [*range(digest, digest + 75), *rng.integers(len(whole), size=100)]:
        damaged = bytearray(whole)
        damaged[place] ^= 32 if digest <= place < digest + 75 else 1 << rng.integers(8)  # 32 makes a letter a capital
        file.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"damaged.*Remove it|another training|earlier version"):
            run(network(), task, recipe, checkpoint=str(tmp_path))
    for claimed in (len(whole), 2**62, 2**63, 2**64 - 1):  # bytes of the header
        file.write_bytes(claimed.to_bytes(8, "little") + whole[8:])
        with pytest.raises(ValueError, match=r"is damaged: its header does not end within the file\. Remove it"):
            run(network(), task, recipe, checkpoint=str(tmp_path))
    for length in (0, 7, 8, 100, len(whole) - 1):
        file.write_bytes(whole[:length])
        with pytest.raises(ValueError, match=r"damaged.*Remove it to start this training afresh"):
            run(network(), task, recipe, checkpoint=str(tmp_path))
    file.write_bytes(whole)
    run(network(), task, recipe, checkpoint=str(tmp_path))


def test_fingerprints_follow_content_not_identity():
    loss = code_loss("hinge", torch.ones(3))
    assert fingerprint(loss) == fingerprint(code_loss("hinge", torch.ones(3)))
    values = [
        0, 0.0, "0", b"0", None, (), [], {}, {"a": 1}, {"b": 1}, np.zeros(2), np.zeros((2, 1)), np.zeros(2, "f4"),
        torch.zeros(2), torch.zeros(3), nn.Linear(2, 2), nn.Linear(2, 3), len, np.add, functools.partial(max, 1),
        functools.partial(max, 2), lambda: 1, lambda: 2, torch.Generator().manual_seed(1),
        torch.Generator().manual_seed(2), np.random.default_rng(1), np.random.default_rng(2), {1, 2}, {1, 3},
        code_loss("hinge"), loss, code_loss("squared"),
    ]  # fmt: skip
    assert len({fingerprint(value) for value in values}) == len(values)
    itself = []
    itself.append(itself)
    assert fingerprint(itself) == fingerprint(itself)
    assert fingerprint(nn.Linear(2, 2)) == fingerprint(nn.Linear(2, 2))  # parameters count by their shape


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
