"""What the figures share: measurements kept as JSON lines, one look, and files under `results/figures/`.

A figure first measures, where a measurement is not in the results yet, and then draws from the results alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from functools import partial
from pathlib import Path

import numpy as np

from hbmp import datasets, hamming
from hbmp._core import machine
from hbmp._core.device import pick_device
from hbmp.experiments import image_grid, store

BLUE, RED, GREEN, GREY = "#1f5fa8", "#c8402f", "#2b8a3e", "#8a8f98"
PALETTE = ("#1f5fa8", "#c8402f", "#2b8a3e", "#e08e0b", "#7a4fa3", "#0f8b8d", "#b5578e", "#6b4f2a", "#5c6670", "#a5b32b")


def measured(results, figure: str, settings: dict, compute: Callable[[], dict], *, device: str = "cpu") -> dict:
    """The record of these settings from `results/<figure>.jsonl`; computed and appended where it is not there."""
    found = kept(results, figure, settings)
    if found is not None:
        return found
    path = Path(results) / f"{figure}.jsonl"
    device = pick_device(device)
    record = {
        "key": _key(figure, settings),
        "figure": figure,
        "settings": settings,
        **compute(),
        "device": device,
        "machine": machine.describe(device),
        "versions": machine.versions(),
    }
    store.append(path, record)
    return record


def kept(results, figure: str, settings: dict) -> dict | None:
    """The record of these settings, where there is one."""
    key = _key(figure, settings)
    records = store.read(Path(results) / f"{figure}.jsonl")
    return next((record for record in records if record["key"] == key), None)


def from_images(
    results, figure: str, panel: str, methods, n_bits: int, seed: int, data_dir, compute: Callable[..., dict]
) -> list[dict] | None:
    """The records of networks trained on CIFAR-10, one a method, from codes that a run kept; None where one is missing.

    compute(data, codes, seed): what the figure shows; codes: the arrays of `results/codes/<key>.npz`, signs unpacked
    """
    try:
        data = datasets.load("cifar10", data_dir)
    except FileNotFoundError:
        return None
    records = []
    for method in methods:
        cell = image_grid.figure_cell(method, n_bits, seed)
        what = {"method": method, "params": cell.params, "data": cell.data}
        settings = {"panel": panel, **what, "bits": n_bits, "seed": seed}
        path = Path(results) / "codes" / f"{cell.key}.npz"
        if kept(results, figure, settings) is None and not path.is_file():
            return None
        records.append(measured(results, figure, settings, partial(_compute, compute, data, path, seed)))
    return records


def _compute(compute: Callable[..., dict], data, path: Path, seed: int) -> dict:
    with np.load(path, allow_pickle=False) as stored:
        codes = {name: stored[name] for name in stored.files}
    n_bits = int(codes["n_bits"])
    signs = {name: hamming.unpack(codes[name], n_bits) for name in ("query", "database")}
    return compute(data, codes | signs, seed)


def _key(figure: str, settings: dict) -> str:
    text = json.dumps({"figure": figure, **settings}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def pyplot():
    """matplotlib without a display, in our look; one sentence where it is not installed."""
    try:
        import matplotlib as mpl
    except ImportError:
        raise RuntimeError("Drawing needs matplotlib. Install it with `pip install hbmp[plots]`.") from None
    mpl.use("Agg")
    import matplotlib.pyplot as plt

    plt.rcParams.update(
        {
            "font.size": 9,
            "axes.titlesize": 9.5,
            "axes.spines.top": False,
            "axes.spines.right": False,
            "axes.grid": True,
            "grid.color": "#e6e8eb",
            "grid.linewidth": 0.7,
            "axes.axisbelow": True,
            "legend.frameon": False,
            "lines.linewidth": 1.8,
            "figure.dpi": 100,
        }
    )
    return plt


def save(figure, results, name: str, *, dpi: int = 160) -> Path:
    """Write `results/figures/<name>.png` beside and rename it into place."""
    folder = Path(results) / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder / f".{name}.png"
    figure.savefig(beside, bbox_inches="tight", facecolor="white", dpi=dpi, metadata={"Software": None})
    pyplot().close(figure)
    return beside.replace(folder / f"{name}.png")


def drawn(draw: Callable[[], Path]) -> str:
    """One line that says where the picture is, or why there is none."""
    try:
        return f"The picture: {draw()}"
    except RuntimeError as error:
        return f"The measurements are kept. {error}"
