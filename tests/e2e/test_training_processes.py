"""Trainings in processes of their own: killed at any moment, and several that train one network together."""

import signal
import subprocess
import sys
import textwrap
import time

import numpy as np
import pytest

SCRIPT = textwrap.dedent(
    """
    import sys
    import numpy as np
    import torch
    from torch import nn
    from hbmp._training import distributed
    from hbmp.methods.dpsh import DPSH
    from hbmp._training.losses import code_loss
    from hbmp._training.loop import ArrayBatches, Recipe, seeded, train

    torch.set_num_threads(1)
    out, checkpoint, kind = sys.argv[1:4]
    epochs = int(sys.argv[4])
    rng = np.random.default_rng(0)
    X = torch.from_numpy(rng.standard_normal((256, 16)).astype(np.float32))
    labels = torch.from_numpy(np.eye(4, dtype=np.float32)[rng.integers(4, size=256)])
    targets = torch.from_numpy(np.where(rng.random((256, 6)) > 0.5, 1.0, -1.0).astype(np.float32))
    distributed.join("cpu")
    with seeded(7):
        dropout = 0.3 if checkpoint else 0.0
        module = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Dropout(dropout), nn.Linear(32, 6))
        if kind == "codes":
            loss, data = code_loss("hinge"), ArrayBatches(X, targets, batch_size=64)
        else:
            loss = DPSH(6).make_loss(labels.numpy(), 0)
            data = ArrayBatches(X, labels, torch.arange(256), batch_size=64)
        recipe = Recipe(epochs=epochs, batch_size=64)
        options = {"checkpoint": checkpoint, "checkpoint_minutes": 0.0} if checkpoint else {}
        train(module, data, loss, recipe, seed=3, **options)
    if distributed.rank() == 0:
        np.savez(out, *[value.numpy() for value in module.state_dict().values()])
    """
)


@pytest.fixture
def script(tmp_path):
    path = tmp_path / "training.py"
    path.write_text(SCRIPT)
    return path


def weights(path):
    with np.load(path) as stored:
        return [stored[name] for name in stored.files]


def start(script, out, checkpoint="", kind="codes", epochs=60, launcher=()):
    command = [sys.executable, *launcher, str(script), str(out), str(checkpoint), kind, str(epochs)]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def finish(process):
    _, errors = process.communicate(timeout=120)
    assert process.returncode == 0, errors.decode()


def finish_together(begin):
    """Once more if a process aborted on leaving, as threads of gloo on a busy machine rarely make it do."""
    process = begin()
    _, errors = process.communicate(timeout=120)
    if process.returncode and b"terminate called without an active exception" in errors:
        finish(begin())
    else:
        assert process.returncode == 0, errors.decode()


def test_killed_training_goes_on_to_identical_weights(script, tmp_path):
    finish(start(script, tmp_path / "straight.npz", tmp_path / "whole"))
    folder = tmp_path / "killed"
    rng, kills = np.random.default_rng(0), 0
    while not (tmp_path / "resumed.npz").exists():
        process = start(script, tmp_path / "resumed.npz", folder)
        while process.poll() is None and not folder.exists():
            time.sleep(0.01)  # the import takes a second; a kill before the first checkpoint proves nothing
        if kills < 2:
            time.sleep(rng.random())
        else:
            process.wait(timeout=120)
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            kills += 1
        process.communicate()
    assert kills >= 1
    for one, other in zip(weights(tmp_path / "straight.npz"), weights(tmp_path / "resumed.npz"), strict=True):
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("kind", [pytest.param("codes", marks=pytest.mark.slow), "pairs"])
def test_two_processes_train_as_one_with_the_same_batch(script, tmp_path, kind):
    torchrun = ("-m", "torch.distributed.run", "--standalone", "--nproc-per-node", "2")
    finish(start(script, tmp_path / "one.npz", kind=kind, epochs=5))
    finish_together(lambda: start(script, tmp_path / "two.npz", kind=kind, epochs=5, launcher=torchrun))
    for one, two in zip(weights(tmp_path / "one.npz"), weights(tmp_path / "two.npz"), strict=True):
        np.testing.assert_allclose(one, two, rtol=1e-3, atol=1e-4)
