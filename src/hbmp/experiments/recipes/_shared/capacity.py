"""Figure 1 (f) in the paper's own setting: bit errors of one layer on GIST, one layer on fc7, and the whole network.

32 bits on the official training images of CIFAR-10. GIST needs the images alone; the other two need VGG-F.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hbmp import datasets, encoders
from hbmp.encoders import Encoder
from hbmp.experiments import Cell, figures
from hbmp.experiments.encoded import write_encoded
from hbmp.experiments.paper_setting import VGGF, PaperSetting, checkpoint_of, network_encoder, of_this_machine
from hbmp.experiments.running import Folder
from hbmp.experiments.store import Record

SETTING = PaperSetting("cifar10", "vggf", VGGF)
ON_GIST, ON_FC7, WHOLE = "one layer\non GIST", "one layer\non fc7 of VGG-F", "whole VGG-F"
BITS, GIST_SIZE = 32, 32


def measure(results: Folder, data_dir: Folder | None, device: str) -> tuple[list[Record], str]:
    """The measurements that the available data allow, and the missing data of the others."""
    lacking = SETTING.lacking(data_dir)
    try:
        data = datasets.load(SETTING.images, data_dir)
    except FileNotFoundError:
        return [], _told(lacking)
    whole = Cell("hbmp", "cifar-2", SETTING.images, BITS, 0, SETTING.params("hbmp", "cifar-2", {}))
    gist = encoders.get("gist", size=GIST_SIZE)
    wanted: dict[str, Any] = {ON_GIST: partial(_one_layer, data, "gist", gist, data_dir, device)}
    if not lacking:
        fc7 = network_encoder(SETTING, data_dir, device)
        wanted[ON_FC7] = partial(_one_layer, data, SETTING.backbone, fc7, data_dir, device)
        wanted[WHOLE] = partial(_whole, data, whole, results, data_dir, device)
    records = []
    for name, compute in wanted.items():
        params = whole.params if name == WHOLE else PaperSetting().params("hbmp", "cifar-2", {})
        settings = {"panel": "functions", "name": name, "data": data.name, "bits": BITS, "params": params}
        if name == ON_GIST:
            settings["size"] = GIST_SIZE
        records.append(figures.measured(results, "fig1", settings, compute, device=device))
    return records, _told(lacking)


def _one_layer(data: Any, name: str, encoder: Encoder, data_dir: Folder | None, device: str) -> Record:
    """Bit errors of one layer on features less their mean, of unit length; the features are kept."""
    from hbmp.methods import make_method

    folder = Path(datasets.data_dir(data_dir)) / f"{data.name}-{name}"
    if not (folder / "features.npy").is_file():
        write_encoded(data, encoder, folder)
    rows = np.flatnonzero(data.split == 1)
    features: Any = datasets.load(folder.name, data_dir).features
    X = np.asarray(features[rows], dtype=np.float32)
    X -= X.mean(axis=0)
    X /= np.maximum(np.linalg.norm(X, axis=1, keepdims=True), 1e-12)
    method: Any = make_method("hbmp", BITS, PaperSetting().params("hbmp", "cifar-2", {}), seed=0, device=device)
    return {"unmatched": float(method.fit(X, data.labels[rows]).unmatched_)}


def _whole(data: Any, cell: Cell, results: Folder, data_dir: Folder | None, device: str) -> Record:
    """Bit errors of the whole network on its training images; a stopped training is resumed."""
    import shutil

    from hbmp.methods import make_method

    rows = np.flatnonzero(data.split == 1)
    here = of_this_machine(cell, len(rows), device, results=results, data_dir=data_dir)
    method: Any = make_method(cell.method, cell.bits, cell.params, seed=cell.seed, device=device).set_params(**here)
    found = {"unmatched": float(method.fit(data.images[rows], data.labels[rows]).unmatched_)}
    shutil.rmtree(checkpoint_of(cell, results), ignore_errors=True)
    return found


def _told(lacking: list[str]) -> str:
    return "\n".join(f"Missing for part (f): {line}" for line in lacking)
