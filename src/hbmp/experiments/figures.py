"""Shared by the figures: measurements as JSON lines, one look, and files under `results/figures/`.

A figure first runs the measurements that are missing from the results, and is then drawn from the results alone.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from hbmp import datasets, hamming
from hbmp._core import machine
from hbmp._core.arrays import read_npz
from hbmp._core.device import pick_device
from hbmp._core.files import beside
from hbmp.datasets import Data
from hbmp.experiments import image_grid, store
from hbmp.experiments.running import Folder
from hbmp.experiments.store import Record

BLUE, RED, GREEN, GREY = "#1f5fa8", "#c8402f", "#2b8a3e", "#8a8f98"
PALETTE = ("#1f5fa8", "#c8402f", "#2b8a3e", "#e08e0b", "#7a4fa3", "#0f8b8d", "#b5578e", "#6b4f2a", "#5c6670", "#a5b32b")


def measured(
    results: Folder, figure: str, settings: dict[str, Any], compute: Callable[[], Record], *, device: str = "cpu"
) -> Record:
    """Return a measurement from `results/<figure>.jsonl`; compute and append it if it is missing.

    Parameters
    ----------
    results : str or Path
        Folder of results.
    figure : str
        Name of the figure.
    settings : dict
        Settings of the measurement, which identify it.
    compute : callable
        Returns the measured values.
    device : str, default="cpu"
        Device on record.

    Returns
    -------
    dict
        The record.

    Examples
    --------
    >>> import tempfile
    >>> from hbmp.experiments.figures import measured
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     measured(folder, "fig9", {"seed": 0}, lambda: {"value": 1})["value"]
    1
    """
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


def kept(results: Folder, figure: str, settings: dict[str, Any]) -> Record | None:
    """The record of these settings, or None."""
    key = _key(figure, settings)
    records = store.read(Path(results) / f"{figure}.jsonl")
    return next((record for record in records if record["key"] == key), None)


def from_images(
    results: Folder,
    figure: str,
    panel: str,
    methods: Sequence[str],
    n_bits: int,
    seed: int,
    data_dir: Folder | None,
    compute: Callable[..., Record],
) -> list[Record] | None:
    """The records of networks trained on CIFAR-10, one per method, from codes that a run kept; None if one is missing.

    `compute(data, codes, seed)` measures; codes are the arrays of `results/codes/<key>.npz` with unpacked signs.
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


def _compute(compute: Callable[..., Record], data: Data, path: Path, seed: int) -> Record:
    codes = read_npz(path)
    n_bits = int(codes["n_bits"])
    signs = {name: hamming.unpack(codes[name], n_bits) for name in ("query", "database")}
    return compute(data, codes | signs, seed)


def _key(figure: str, settings: dict[str, Any]) -> str:
    text = json.dumps({"figure": figure, **settings}, sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def pyplot() -> Any:
    """matplotlib without a display, in our look, or an error of one sentence if it is not installed."""
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


def save(figure: Any, results: Folder, name: str, *, dpi: int = 160) -> Path:
    """Write `results/figures/<name>.png`, first beside it and then renamed into place."""
    folder = Path(results) / "figures"
    folder.mkdir(parents=True, exist_ok=True)
    path, settings = folder / f"{name}.png", {"bbox_inches": "tight", "facecolor": "white", "dpi": dpi}
    with beside(path) as part, open(part, "wb") as file:
        figure.savefig(file, format="png", metadata={"Software": None}, **settings)
    pyplot().close(figure)
    return path


def drawn(draw: Callable[[], Path]) -> str:
    """One line with the path of the picture, or the reason why there is none."""
    try:
        return f"The picture: {draw()}"
    except RuntimeError as error:
        return f"The measurements are kept. {error}"
