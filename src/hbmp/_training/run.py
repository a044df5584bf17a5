"""The state of a training: its steps, and everything that a checkpoint must hold to resume from any of them."""

from __future__ import annotations

import contextlib
from dataclasses import asdict

from hbmp._core.device import autocast
from hbmp._training import distributed
from hbmp._training.fingerprint import fingerprint

PRECISIONS = ("float32", "bf16", "fp16")


class TrainingRun:
    """Everything that changes while a network is trained; a checkpoint contains it."""

    def __init__(self, module, data, loss, recipe, seed: int, monitor):
        import torch
        from torch import nn

        if recipe.precision not in PRECISIONS:
            raise ValueError(
                f"precision must be one of {', '.join(map(repr, PRECISIONS))}; found {recipe.precision!r}."
            )
        self.module, self.data, self.loss, self.recipe, self.monitor = module, data, loss, recipe, monitor
        self.trained = nn.ModuleList([module, loss] if isinstance(loss, nn.Module) else [module])
        self.device = next(module.parameters()).device
        names = [*module.named_parameters(), *(loss.named_parameters() if isinstance(loss, nn.Module) else ())]
        self.optimizer = recipe.make_optimizer(names)
        self.scaler = torch.amp.GradScaler(self.device.type, enabled=recipe.precision == "fp16")
        self.forward = distributed.wrap(torch.compile(module) if recipe.compile else module)
        self.average = [value.detach().clone() for value in module.state_dict().values()] if recipe.ema else None
        self.order = torch.Generator().manual_seed(seed)
        self.order_at_start = self.order.get_state()
        self.epoch = self.batch = 0
        self.history: list[float] = []
        self.totals = torch.zeros(2, device=self.device)  # of the loss and of the monitor in this epoch
        self.best: tuple[float, int, list] | None = None  # validation score, its epoch, its weights
        self.seed = seed
        self.trained.train()

    def about(self) -> dict:
        """What decides this training, by which a checkpoint recognises it. Call it before the first step."""
        described = self.data.about() if hasattr(self.data, "about") else {"data": fingerprint(self.data)}
        return {
            "recipe": {**asdict(self.recipe), "rates": [list(rate) for rate in self.recipe.rates]},
            "seed": self.seed,
            "batches": len(self.data),
            "parameters": {name: list(parameter.shape) for name, parameter in self.trained.named_parameters()},
            "loss": fingerprint(self.loss),
            **described,
        }

    @property
    def step(self) -> int:
        """Number of batches since the start of training."""
        return self.epoch * len(self.data) + self.batch

    @property
    def stopped(self) -> bool:
        """Whether the validation score has not risen for more epochs than the recipe's patience."""
        patience = self.recipe.patience
        return patience is not None and self.best is not None and self.epoch - self.best[1] > patience

    def steps(self):
        """Train on the remaining batches of this epoch; yield the count after each."""
        self.order.set_state(self.order_at_start)
        for batch in self.data.batches(self.order, self.batch):
            self._take_step(*batch)
            self.batch += 1
            yield self.batch

    def _take_step(self, inputs, *rest) -> None:
        recipe = self.recipe
        factor = recipe.lr_factor(self.step / max(1, recipe.epochs * len(self.data)))
        for group in self.optimizer.param_groups:
            group["lr"] = recipe.lr * factor * group["factor"]
        parts = list(zip(*(tensor.chunk(recipe.accumulate) for tensor in (inputs, *rest)), strict=True))
        for part, *part_rest in parts:
            with autocast(self.device.type, recipe.precision):
                scores = self._scores(part)
            scores = distributed.gather(scores.float())
            gathered = [distributed.gather(item) for item in part_rest]
            value = self.loss(scores, *gathered) / len(parts)
            self.scaler.scale(value).backward()
            self.totals[0] += value.detach()
            if self.monitor is not None:
                self.totals[1] += self.monitor(scores.detach(), *gathered) / len(parts)
        self.scaler.step(self.optimizer)
        self.scaler.update()
        self.optimizer.zero_grad(set_to_none=True)
        self._notify_loss("after_step")
        self._update_average()

    def _scores(self, inputs):
        """Scores (n, b); (n, views, b) for a loss with `views`."""
        make_views = getattr(self.loss, "views", None)
        if make_views is None:
            return self.forward(inputs)
        views = make_views(inputs)
        scores = self.forward(views.flatten(0, 1))
        return scores.unflatten(0, views.shape[:2]).transpose(0, 1)

    def _notify_loss(self, moment: str) -> None:
        """Call `after_step` or `after_epoch` of the loss, or of a loss inside it, if it has one."""
        for part in self.loss.modules() if hasattr(self.loss, "modules") else ():
            getattr(part, moment, _nothing)()

    def _update_average(self) -> None:
        import torch

        if self.average is None:
            return
        # early averages decay faster, so that the initial weights do not dominate
        keep = min(self.recipe.ema, (1 + self.step) / (10 + self.step))
        real = [place for place, average in enumerate(self.average) if average.is_floating_point()]
        values = self._values()
        with torch.no_grad():
            torch._foreach_lerp_([self.average[i] for i in real], [values[i] for i in real], 1 - keep)
            for place in set(range(len(values))).difference(real):
                self.average[place].copy_(values[place])

    def end_epoch(self, validate, seconds: float) -> dict:
        """Close the epoch and return its figures."""
        self._notify_loss("after_epoch")
        loss, unmatched = (self.totals / max(1, self.batch)).tolist()
        rate = self.batch * self.recipe.batch_size / max(seconds, 1e-9)
        self.history.append(loss)
        self.totals.zero_()
        self.order_at_start = self.order.get_state()
        self.epoch, self.batch = self.epoch + 1, 0
        facts = {"epoch": self.epoch, "loss": loss, "samples_per_second": rate}
        if self.monitor is not None:
            facts["unmatched"] = unmatched
        if validate is not None:
            facts["validation"] = self._validate(validate)
        return facts

    def _validate(self, validate) -> float:
        with self._averaged():
            self.trained.eval()
            score = float(validate(self.module))
            if self.best is None or score > self.best[0]:
                self.best = (score, self.epoch, [value.detach().clone() for value in self._values()])
            self.trained.train()
        return score

    @contextlib.contextmanager
    def _averaged(self):
        """Inside this context the module has the averaged weights, if there are any."""
        if self.average is None:
            yield
            return
        current = [value.detach().clone() for value in self._values()]
        self._put(self.average)
        try:
            yield
        finally:
            self._put(current)

    def _values(self) -> list:
        return list(self.module.state_dict().values())

    def _put(self, values) -> None:
        for value, new in zip(self._values(), values, strict=True):
            value.copy_(new)

    def finish(self) -> None:
        """Put the best or the averaged weights into the module and set it to evaluation mode."""
        if self.best is not None:
            self._put(self.best[2])
        elif self.average is not None:
            self._put(self.average)
        self.trained.eval()

    def state(self) -> dict:
        """Everything that a checkpoint must hold to resume exactly from here."""
        import torch

        return {
            "trained": dict(self.trained.state_dict()),
            "optimizer": self.optimizer.state_dict(),
            "scaler": self.scaler.state_dict(),
            "average": self.average,
            "best": self.best,
            "order": self.order_at_start,
            "epoch": self.epoch,
            "batch": self.batch,
            "history": self.history,
            "totals": self.totals,
            "random": torch.get_rng_state(),
            "random_device": torch.cuda.get_rng_state(self.device) if self.device.type == "cuda" else None,
        }

    def restore(self, state: dict) -> None:
        """Return to the state of a checkpoint."""
        import torch

        self.trained.load_state_dict(state["trained"])
        self.optimizer.load_state_dict(state["optimizer"])
        for parameter, moments in self.optimizer.state.items():  # fused kernels pair elements by their place in memory
            for name, value in moments.items():
                if value.shape == parameter.shape:
                    moments[name] = torch.empty_like(parameter, dtype=value.dtype).copy_(value)
        self.scaler.load_state_dict(state["scaler"])
        if self.average is not None:
            for average, value in zip(self.average, state["average"], strict=True):
                average.copy_(value)
        if state["best"] is not None:
            score, epoch, values = state["best"]
            self.best = (score, epoch, [value.to(self.device) for value in values])
        self.order_at_start = state["order"]
        self.order.set_state(state["order"])
        self.epoch, self.batch, self.history = state["epoch"], state["batch"], list(state["history"])
        self.totals.copy_(state["totals"])
        torch.set_rng_state(state["random"])
        if state["random_device"] is not None:
            torch.cuda.set_rng_state(state["random_device"], self.device)


def _nothing() -> None:
    """Do nothing: most losses have no hook."""
