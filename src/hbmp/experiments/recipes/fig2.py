"""Figure 2 (supplement): residual by iteration, constant against regress, in the paper's four neighbourhoods.

Above: ten items sampled from each neighbourhood, as in the paper. Below: all items. The diagonal is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from hbmp import affinities, datasets, protocols
from hbmp.experiments import figures
from hbmp.experiments.running import Folder
from hbmp.experiments.store import Record

STEPS_FEW, STEPS_ALL = 60, 64
NEIGHBOURHOODS = {
    "classes-10": ("CIFAR-10: 10 classes", ""),
    "label-sets": ("NUS-WIDE: label sets", "nuswide"),
    "levels": ("LabelMe stand-in: GIST levels", "gist22k"),
    "classes-100": ("ImageNet100: 100 classes", ""),
}


def reproduce(
    *,
    data_dir: Folder | None = None,
    bits: Sequence[int] | None = None,
    seeds: Sequence[int] | None = None,
    results: Folder = "results",
    device: str = "auto",
) -> str:
    """Run missing measurements, draw the figure, and describe the result.

    Parameters
    ----------
    data_dir : str or Path, default=None
        Data directory.
    bits : sequence of int, default=None
        Code lengths instead of the figure's own.
    seeds : sequence of int, default=None
        Seeds instead of the figure's own.
    results : str or Path, default="results"
        Folder of results.
    device : str, default="auto"
        "auto", "cpu" or "cuda".

    Returns
    -------
    str
        A description of the result, and the path of the picture.
    """
    seed = seeds[0] if seeds else 0
    records, missing = [], []
    for name, (_, source) in NEIGHBOURHOODS.items():
        try:
            data = datasets.load(source, data_dir) if source else None
        except FileNotFoundError as error:
            missing.append(f"{name} is left out. {error}")
            continue
        for few in (True, False):
            steps = max(bits) if bits else STEPS_FEW if few else STEPS_ALL
            for scheme in ("constant", "regress"):
                settings = {"panel": name, "few": few, "scheme": scheme, "steps": steps, "seed": seed}
                compute = partial(residuals, name, data, settings, device)
                records.append(figures.measured(results, "fig2", settings, compute, device=device))
    return "\n".join([*map(_summary, records), *missing, figures.drawn(lambda: draw(records, results))])


def neighbourhood(name: str, data: Any, *, few: bool, seed: int) -> Any:
    """The fitted affinity: of ten sampled items, or of all."""
    rng = np.random.default_rng(seed)
    if name.startswith("classes"):
        n_classes = int(name.rpartition("-")[2])
        chosen = rng.choice(n_classes, 10, replace=False) if few else np.arange(n_classes)
        return affinities.SameClass().fit(None, np.sort(chosen))
    if name == "label-sets":
        labels: Any = protocols.get("nus-1").labels(data)
        sets = np.unique(labels[labels.any(axis=1)], axis=0)
        return affinities.SharedLabels().fit(None, sets[rng.choice(len(sets), 10, replace=False)] if few else sets)
    labelme = protocols.LabelMe()
    split = labelme.split(data, seed)
    levels = affinities.DistanceLevels(levels=(10, 5, 2, 1)).fit(labelme.features(data, split)[split.train])
    if not few:
        return levels
    ten = np.sort(rng.choice(5000, 10, replace=False))
    return levels.block(ten, ten, device="cpu").astype(np.float64)


def residuals(name: str, data: Any, settings: Record, device: str) -> Record:
    """Relative residuals of the pursuit after 0, 1, 2 … steps."""
    from hbmp import infer_codes

    affinity = neighbourhood(name, data, few=settings["few"], seed=settings["seed"])
    book = infer_codes(
        affinity, settings["steps"], scheme=settings["scheme"], tol=0, random_state=settings["seed"], device=device
    )
    return {"items": len(book.codes), "residuals": np.round(book.relative_residuals, 5).tolist()}


def _summary(record: Record) -> str:
    settings, steps = record["settings"], len(record["residuals"]) - 1
    return (
        f"{NEIGHBOURHOODS[settings['panel']][0]}, {record['items']:,} items, {settings['scheme']}: relative residual "
        f"{record['residuals'][-1]:.3f} after {steps} bits"
    )


def draw(records: list[Record], results: Folder) -> Path:
    """Two rows of four panels."""
    plt = figures.pyplot()
    figure, axes = plt.subplots(2, 4, figsize=(11, 5.2), sharey=True)
    for column, (name, (title, _)) in enumerate(NEIGHBOURHOODS.items()):
        for row, few in enumerate((True, False)):
            axis = axes[row, column]
            mine = [each for each in records if (each["settings"]["panel"], each["settings"]["few"]) == (name, few)]
            for record in mine:
                scheme = record["settings"]["scheme"]
                colour = figures.BLUE if scheme == "constant" else figures.RED
                axis.plot(record["residuals"], color=colour, label=scheme)
            count = "no data here" if not mine else "ten items" if few else f"all {mine[0]['items']:,} items"
            axis.set_title(f"{title}\n{count}" if row == 0 else count)
            axis.set_ylim(0, 1.04)
        axes[1, column].set_xlabel("bits")
    for row in (0, 1):
        axes[row, 0].set_ylabel("relative residual")
    axes[0, 0].legend()
    figure.tight_layout(h_pad=1.5)
    return figures.save(figure, results, "fig2")
