"""Training and encoding images: what hashing adds to a network's own step, and how near it all is to the card's limits.

    python benchmarks/training.py                 on a GPU EfficientNet-Lite0 at 224 px, about three minutes
    python benchmarks/training.py --skip compile  the same without torch.compile, which takes one of them
    python benchmarks/training.py --device cpu    the tiny network, a few seconds
    python benchmarks/training.py --only encoding --output FILE   measured again, beside the rest of the file
    python benchmarks/training.py --table         what is there, as docs/images.md shows it

`bare` is the backbone with a linear classifier and cross-entropy, on inputs that lie ready. `hashing` is the library's
own step on the same inputs: the head of bits, the loss to target codes, the monitor and the schedule. `pipeline` is
that step on uint8 images of 32 px, enlarged and augmented on the device. All take turns; the best of several rounds
counts. Limits: a large matrix product for arithmetic, a large copy for memory. What the network computes and moves is
counted layer by layer forward, and twice that backward.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

import numpy as np
import torch
from torch import nn

import hbmp
from hbmp._core import catalog, machine
from hbmp._core.device import pick_device
from hbmp._training.loop import Recipe, seeded
from hbmp._training.losses import code_loss
from hbmp._training.run import TrainingRun
from hbmp.functions import Network
from hbmp.functions._shared.encoder import folded
from hbmp.functions._shared.hashing import Hashing
from hbmp.functions._shared.image_batches import ImageBatches
from hbmp.functions._shared.network_training import unmatched

N_BITS = 32
TARGETS = {"overhead": 0.03, "training": 6000, "encoding": 20000}  # the last two in images a second, on an H200


class Bench:
    """One network on one device: its steps as functions of no argument."""

    def __init__(self, backbone: str, device: str):
        self.described, self.device = catalog.load("backbones", backbone)(pretrained=False), device
        self.cuda = device.startswith("cuda")
        self.function = Network(self.described, device=device)
        self.precision = torch.bfloat16 if self.cuda else torch.float32

    def module(self, n_outputs: int, *, compiled: bool):
        """The network with so many scores, ready to train."""
        with seeded(0, self.device):
            module = Hashing(self.described.build(), n_outputs).to(self.device, memory_format=torch.channels_last)
        if compiled:
            self.function._compile(module.backbone, self.device)
        return module.train()

    def inputs(self, batch: int):
        """A batch of inputs on the device."""
        size = self.described.size
        values = torch.randn(batch, 3, size, size, device=self.device)
        return values.contiguous(memory_format=torch.channels_last)

    def autocast(self, **options):
        """Low precision on a GPU."""
        return torch.autocast(self.device.split(":")[0], dtype=self.precision, enabled=self.cuda, **options)

    def bare(self, batch: int, *, compiled=False, graph=False):
        """A step of the backbone with a classifier."""
        module, inputs = self.module(10, compiled=compiled), self.inputs(batch)
        classes = torch.randint(0, 10, (batch,), device=self.device)
        optimizer = torch.optim.AdamW(module.parameters(), lr=1e-3, fused=self.cuda or None, capturable=graph)

        def step():
            with self.autocast(cache_enabled=not graph):
                scores = module(inputs)
            nn.functional.cross_entropy(scores.float(), classes).backward()
            optimizer.step()
            optimizer.zero_grad(set_to_none=not graph)

        return captured(step) if graph else step

    def hashing(self, batch: int, *, compiled=False):
        """A step of the library on inputs that lie ready."""
        inputs = self.inputs(batch)
        targets = torch.randint(0, 2, (batch, N_BITS), device=self.device).float() * 2 - 1
        return self._step(batch, lambda: (inputs, targets), compiled)

    def pipeline(self, batch: int, *, compiled=False):
        """A step of the library from uint8 images on."""
        rng = np.random.default_rng(0)
        images = hbmp.Images.from_array(rng.integers(0, 256, (4 * batch, 32, 32, 3), dtype=np.uint8))
        targets = rng.choice(np.array([-1, 1], np.int8), (len(images), N_BITS))
        view = self.function._view(self.described, self.device)
        options = {"view": view, "batch_size": batch, "device": self.device, "workers": 0, "on_error": "refuse"}
        batches = ImageBatches(images, targets, mixup=0.0, **options)
        generator = torch.Generator().manual_seed(0)

        def endless():
            while True:
                yield from batches.batches(generator)

        source = endless()
        return self._step(batch, lambda: next(source), compiled)

    def _step(self, batch: int, next_batch, compiled: bool):
        recipe = Recipe(epochs=1, batch_size=batch, precision="bf16" if self.cuda else "float32")
        run = TrainingRun(
            self.module(N_BITS, compiled=compiled), range(10**6), code_loss("logistic"), recipe, 0, unmatched
        )
        return lambda: run._take_step(*next_batch())

    def encoder(self, batch: int, *, fold: bool, compiled=False):
        """The trained network in use, on inputs that lie ready."""
        module, inputs = self.module(N_BITS, compiled=False).eval(), self.inputs(batch)
        module = folded(module) if fold else module
        if compiled:
            self.function._compile(module, self.device)

        def step():
            with torch.inference_mode(), self.autocast():
                module(inputs)

        return step

    def project(self, n_images: int):
        """The library's own encoding of images in memory, transfers included."""
        rng = np.random.default_rng(0)
        images = rng.integers(0, 256, (n_images, 32, 32, 3), dtype=np.uint8)
        targets = rng.choice(np.array([-1, 1], np.int8), (64, N_BITS))
        function = Network(self.described, epochs=1, batch_size=64, device=self.device).fit(images[:64], targets)
        return lambda: function.project(images)

    def per_image(self) -> dict:
        """Operations of a training step and bytes that its layers move, for one image."""
        module, inputs = self.module(N_BITS, compiled=False), self.inputs(2)
        moved, operations = [0], [0]

        def count(layer, given, result):
            moved[0] += sum(each.numel() for each in (*given, result))
            if isinstance(layer, (nn.Conv2d, nn.Linear)):
                operations[0] += 2 * result.numel() * layer.weight[0].numel()

        hooks = [part.register_forward_hook(count) for part in module.modules() if not list(part.children())]
        with torch.no_grad():
            module(inputs)
        for hook in hooks:
            hook.remove()
        width = 2 if self.cuda else 4
        return {
            "training_gflop": 3 * operations[0] / len(inputs) / 1e9,
            "training_mb_moved": 3 * width * moved[0] / len(inputs) / 1e6,
        }


def captured(step):
    """A step as one CUDA graph, which is launched at once."""
    beside = torch.cuda.Stream()
    beside.wait_stream(torch.cuda.current_stream())
    with torch.cuda.stream(beside):
        for _ in range(3):
            step()
    torch.cuda.current_stream().wait_stream(beside)
    graph = torch.cuda.CUDAGraph()
    with torch.cuda.graph(graph):
        step()

    def replay():
        graph.replay()
        return step  # whose tensors the graph works on: they live as long as this function

    return replay


def rates(steps: dict, sizes: dict, *, cuda: bool, rounds: int, repeats: int) -> dict[str, float]:
    """Images a second of each step, all of them taking turns; the best round counts."""

    def seconds(step, times: int) -> float:
        _wait(cuda)
        begin = time.perf_counter()
        for _ in range(times):
            step()
        _wait(cuda)
        return (time.perf_counter() - begin) / times

    for step in steps.values():
        seconds(step, 3)
    best = dict.fromkeys(steps, np.inf)
    for _ in range(rounds):
        for name, step in steps.items():
            best[name] = min(best[name], seconds(step, repeats))
    return {name: sizes[name] / best[name] for name in steps}


def _wait(cuda: bool) -> None:
    if cuda:
        torch.cuda.synchronize()


def limits(device: str, cuda: bool) -> dict[str, float]:
    """TFLOP/s of a large matrix product and GB/s of a large copy, read and written bytes counted."""
    side, kind = (8192, torch.bfloat16) if cuda else (512, torch.float32)
    a, b = (torch.randn(side, side, device=device, dtype=kind) for _ in range(2))
    source = torch.zeros((2 << 30 if cuda else 16 << 20) // 4, device=device)
    target = torch.empty_like(source)
    steps = {"product": lambda: torch.matmul(a, b), "copy": lambda: target.copy_(source)}
    sizes = {"product": 2 * side**3 / 1e12, "copy": 2 * source.numel() * 4 / 1e9}
    found = rates(steps, sizes, cuda=cuda, rounds=3, repeats=10)
    return {"tflops": found["product"], "gb_per_second": found["copy"]}


def measure_training(bench: Bench, batches, skip, keep) -> None:
    """Every batch size, the middle one first and compiled too; `keep` after each."""
    rounds, repeats = (3, 15) if bench.cuda else (1, 2)
    training: dict[str, dict] = {}
    compiled = batches[len(batches) // 2]
    for batch in sorted(batches, key=lambda batch: batch != compiled):
        variants = {
            "bare": lambda batch=batch: bench.bare(batch),
            "hashing": lambda batch=batch: bench.hashing(batch),
            "pipeline": lambda batch=batch: bench.pipeline(batch),
        }
        if bench.cuda and "graph" not in skip:
            variants["bare, CUDA graph"] = lambda batch=batch: bench.bare(batch, graph=True)
        if bench.cuda and "compile" not in skip and batch == compiled:
            for name in ("bare", "hashing", "pipeline"):
                variants[f"{name}, compiled"] = lambda name=name, batch=batch: getattr(bench, name)(
                    batch, compiled=True
                )
        steps = {name: make() for name, make in variants.items()}
        found = rates(steps, dict.fromkeys(steps, batch), cuda=bench.cuda, rounds=rounds, repeats=repeats)
        overhead = {
            "eager": found["bare"] / found["hashing"] - 1,
            "with augmentation": found["bare"] / found["pipeline"] - 1,
        }
        if "bare, compiled" in found:
            overhead["compiled"] = found["bare, compiled"] / found["hashing, compiled"] - 1
        training[str(batch)] = {
            "images_per_second": {name: round(rate, 1) for name, rate in found.items()},
            "overhead": {name: round(share, 4) for name, share in overhead.items()},
        }
        print(json.dumps({batch: training[str(batch)]}), flush=True)
        keep({"training": training})
        del steps


def measure_encoding(bench: Bench, size: int, skip, n_encoded: int, keep) -> None:
    """The network in use, on batches of this size, and the library from images in memory to scores."""
    steps = {
        "network": bench.encoder(size, fold=False),
        "network, normalisation folded": bench.encoder(size, fold=True),
        "library, images in memory": bench.project(n_encoded),
    }
    if bench.cuda and "compile" not in skip:
        steps["network, folded and compiled"] = bench.encoder(size, fold=True, compiled=True)
    sizes = {**dict.fromkeys(steps, size), "library, images in memory": n_encoded}
    encoding = rates(steps, sizes, cuda=bench.cuda, rounds=2, repeats=3 if bench.cuda else 1)
    print(json.dumps({"encoding": encoding}), flush=True)
    keep({"encoding": {name: round(rate, 1) for name, rate in encoding.items()}})


def against_limits(found: dict, per_image: dict, top: dict) -> dict:
    """How much of the card's arithmetic and memory the quickest training step uses."""
    rate = max(max(each["images_per_second"].values()) for each in found["training"].values())
    tflops, moved = rate * per_image["training_gflop"] / 1e3, rate * per_image["training_mb_moved"] / 1e3
    return {
        "quickest_training_images_per_second": rate,
        "tflops": round(tflops, 2),
        "share_of_product": round(tflops / top["tflops"], 4),
        "gb_per_second": round(moved, 1),
        "share_of_copy": round(moved / top["gb_per_second"], 4),
    }


def table(report: dict) -> str:
    """The numbers as Markdown: images per second, one row per step, one column per batch size."""
    about, limits_, against = report["machine"], report["limits"], report["against_limits"]
    batches = sorted(report["training"], key=int)
    rows = {batch: report["training"][batch]["images_per_second"] for batch in batches}
    names = max(rows.values(), key=len)
    lines = [
        f"{report['what']}, {report['precision']}, on {about.get('gpu') or about['cpu']}; images per second.",
        "",
        "| training, batch size | " + " | ".join(batches) + " |",
        "|:---|" + "---:|" * len(batches),
    ]
    for name in names:
        lines.append(f"| {name} | " + " | ".join(_rate_text(rows[batch].get(name)) for batch in batches) + " |")
    if "encoding" in report:
        lines += ["", "| encoding | images per second |", "|:---|---:|"]
        lines += [f"| {name} | {rate:,.0f} |" for name, rate in report["encoding"].items()]
    lines += [
        "",
        f"The GPU multiplies matrices at {limits_['tflops']:,.0f} TFLOP/s and copies {limits_['gb_per_second']:,.0f} "
        f"GB/s in the same run. The fastest training step uses {against['share_of_product']:.0%} of the first and "
        f"{against['share_of_copy']:.0%} of the second.",
    ]
    return "\n".join(lines)


def _rate_text(rate: float | None) -> str:
    return "–" if rate is None else f"{rate:,.0f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="auto")
    parser.add_argument("--backbone", help="default: efficientnet_lite0 on a GPU, tiny elsewhere")
    parser.add_argument("--batches", type=int, nargs="+")
    parser.add_argument("--skip", nargs="+", choices=["graph", "compile"], default=[])
    parser.add_argument("--try-kernels", action="store_true", help="let cuDNN measure which kernels are quickest")
    parser.add_argument("--only", choices=["training", "encoding"], help="one of the two, and keep the file's other")
    parser.add_argument("--table", action="store_true", help="print what is there as Markdown, and measure nothing")
    parser.add_argument("--output", type=Path, default=Path("results/benchmark-training.json"))
    options = parser.parse_args()
    if options.table:
        print(table(json.loads(options.output.read_text())))
        return
    torch.backends.cudnn.benchmark = options.try_kernels
    device = pick_device(options.device)
    cuda = device.startswith("cuda")
    bench = Bench(options.backbone or ("efficientnet_lite0" if cuda else "tiny"), device)
    batches = options.batches or ([128, 256, 512] if cuda else [16, 32])
    top, per_image = limits(device, cuda), bench.per_image()
    print(json.dumps({"limits": top, "per_image": per_image}), flush=True)
    about = {
        "what": f"{type(bench.described).__name__} at {bench.described.size} px, {N_BITS} bits, channels last",
        "precision": str(bench.precision).removeprefix("torch."),
        "kernels_tried_out": options.try_kernels,
        "targets_on_an_h200": TARGETS,
        "per_image": {name: round(value, 3) for name, value in per_image.items()},
        "limits": {name: round(value, 1) for name, value in top.items()},
        "machine": machine.describe(device),
        "versions": machine.versions(),
    }
    options.output.parent.mkdir(parents=True, exist_ok=True)
    found: dict = {}
    if options.only and options.output.exists():
        before = json.loads(options.output.read_text())
        found = {part: before[part] for part in ("training", "encoding") if part in before and part != options.only}

    def keep(more: dict) -> None:
        found.update(more)
        report = {**about, **found, "load_average": os.getloadavg()}
        if "training" in found:
            report["against_limits"] = against_limits(found, per_image, top)
            print(json.dumps(report["against_limits"]), flush=True)
        options.output.write_text(json.dumps(report, indent=2) + "\n")

    if options.only != "encoding":
        measure_training(bench, batches, options.skip, keep)
    if options.only != "training":
        measure_encoding(bench, 1024 if cuda else batches[-1], options.skip, 30_000 if cuda else 200, keep)


if __name__ == "__main__":
    main()
