"""What the figures share: measurements kept as JSON lines, one look, and files under `results/figures/`.

A figure first measures, where a measurement is not in the results yet, and then draws from the results alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path

from hbmp import _experiment_machine, _experiment_store
from hbmp.device import pick_device

BLUE, RED, GREEN, GREY = "#1f5fa8", "#c8402f", "#2b8a3e", "#8a8f98"
PALETTE = ("#1f5fa8", "#c8402f", "#2b8a3e", "#e08e0b", "#7a4fa3", "#0f8b8d", "#b5578e", "#6b4f2a", "#5c6670", "#a5b32b")


def measured(results, figure: str, settings: dict, compute: Callable[[], dict], *, device: str = "cpu") -> dict:
    """The record of these settings from `results/<figure>.jsonl`; computed and appended where it is not there."""
    path = Path(results) / f"{figure}.jsonl"
    text = json.dumps({"figure": figure, **settings}, sort_keys=True)
    key = hashlib.sha256(text.encode()).hexdigest()[:16]
    for record in _experiment_store.read(path):
        if record["key"] == key:
            return record
    device = pick_device(device)
    record = {
        "key": key,
        "figure": figure,
        "settings": settings,
        **compute(),
        "device": device,
        "machine": _experiment_machine.describe(device),
        "versions": _experiment_machine.versions(),
    }
    _experiment_store.append(path, record)
    return record


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
