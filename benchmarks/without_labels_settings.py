"""Settings of codes without labels, chosen on training rows by leave-one-set-out regret.

    python benchmarks/without_labels_settings.py --data data --jobs 2      runs what the results do not hold yet
    python benchmarks/without_labels_settings.py --table                   the regrets as Markdown

Of the 5,000 training rows of `without_labels.py`, 300 are queries, the other 4,700 are searched and 4,000 of these are
fitted; the queries and the rest of the database of that benchmark are never read. Four readings of recall@10:

float, codes             real-valued queries, or codes as queries, by weighted Hamming distance
float rebuilt, codes rebuilt    the same by the metric to rebuilt vectors

The score of a setting is the mean of its readings; without Hamming distance of codes from two bits per feature on. Its
regret is the score less the best setting's, on the same set, metric and number of bits. For each set the setting with
the least mean regret on the *other* sets is chosen; the table shows what it loses on the set left out. One setting at a
time differs from the defaults.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path

import numpy as np

import hbmp
from hbmp.methods.hbmp.unlabelled import Rebuilding
from parallel_cells import read_lines
from without_labels import SETS, Task, add_run_options, run

RESULTS = Path(__file__).parent.parent / "results" / "without-labels-settings.jsonl"
TRIED = {
    "coupling": (0.5, 0.75, 1.0),
    "radial": (0.0, 1.0, 4.0),
    "gain": (1.1, 1.2),
    "n_iter": (5, 30),
    "length_bits": (0, 2, 3, 4, 5),
}
SETTINGS = [{}, *({name: value} for name, values in TRIED.items() for value in values)]


class TrainingTask(Task):
    """Queries, database and training rows, all from the training rows of a benchmark task."""

    def __init__(self, folder, name, metric, seed):
        super().__init__(folder, name, metric, seed)
        rows = self.train[np.random.default_rng(seed).permutation(len(self.train))]
        self.queries, self.database, self.train = rows[:300], rows[300:], rows[300:4300]
        self.find_nearest()


def measured(folder, cell):
    """The line of one cell: (set, metric, bits per feature, setting)."""
    name, metric, ratio, setting = cell
    task = TrainingTask(folder, name, metric, 0)
    n_bits = int(ratio * task.n_features) // 8 * 8
    found = readings(task, n_bits, setting, 0)
    return {"data": name, "metric": metric, "ratio": ratio, "bits": n_bits, "setting": setting, "readings": found}


def readings(task, n_bits, setting, seed):
    model = hbmp.HBMP(
        n_bits, function=Rebuilding(metric="ip" if task.metric == "ip" else "l2", **setting), random_state=seed
    ).fit(task.train)
    codes, asked = model.transform(task.database), model.transform(task.queries)
    weighted = (codes * model.bit_weights_).astype(np.float32)
    rows, rebuilt = model.function_.rebuild(codes), model.function_.rebuild(asked)
    similarities = {
        "float": model.project(task.queries) @ weighted.T,
        "codes": asked.astype(np.float32) @ weighted.T,
        "float rebuilt": task.similarity(task.queries, rows),
        "codes rebuilt": task.similarity(rebuilt, rows),
    }
    return {name: task.measure(similarity)["at_10"] for name, similarity in similarities.items()}


def stored():
    return read_lines(RESULTS)


def missing(given):
    """The cells without results, few bits first."""
    done = {(row["data"], row["metric"], row["ratio"], json.dumps(row["setting"])) for row in stored()}
    cells = product(given.ratios, given.sets, given.metrics, SETTINGS)
    return [
        (name, metric, ratio, setting)
        for ratio, name, metric, setting in cells
        if (name, metric, ratio, json.dumps(setting)) not in done
    ]


def regrets(ratios):
    """(settings, {set: mean regret of each setting}) over the given bits per feature."""
    scores: dict = {}
    for row in stored():
        if row["ratio"] in ratios:
            names = [name for name in row["readings"] if row["ratio"] < 2 or name != "codes"]
            cell = scores.setdefault((row["data"], row["metric"], row["ratio"]), {})
            cell[json.dumps(row["setting"])] = float(np.mean([row["readings"][name] for name in names]))
    scores = {key: cell for key, cell in scores.items() if len(cell) == len(SETTINGS)}  # cells with every setting
    settings = [json.dumps(setting) for setting in SETTINGS]
    by_set: dict = {}
    for (name, *_), cell in scores.items():
        values = np.array([cell[setting] for setting in settings])
        by_set.setdefault(name, []).append(values.max() - values)
    return settings, {name: np.mean(rows, axis=0) for name, rows in by_set.items()}


def named(setting):
    """A setting in words."""
    return ", ".join(f"{name} {value:g}" for name, value in json.loads(setting).items()) or "defaults"


def table(ratios):
    settings, by_set = regrets(ratios)
    names = [named(setting) for setting in settings]
    lines = ["| set left out | chosen on the others | its regret | best on this set |", "|:---|:---|---:|:---|"]
    for name, own in by_set.items():
        others = [each for other, each in by_set.items() if other != name] or [own]
        chosen = int(np.argmin(np.mean(others, axis=0)))
        lines.append(f"| {name} | {names[chosen]} | {own[chosen]:.4f} | {names[int(np.argmin(own))]} |")
    mean = np.mean(list(by_set.values()), axis=0)
    found = sorted(
        {(row["metric"], row["ratio"]) for row in stored() if row["ratio"] in ratios and row["data"] in by_set}
    )
    lines += [
        "",
        "Measured: " + ", ".join(f"{metric} at {ratio:g} bits per dimension" for metric, ratio in found) + ".",
    ]
    lines += ["", "| setting | mean regret | " + " | ".join(by_set) + " |", "|:---|---:|" + "---:|" * len(by_set)]
    for i in np.argsort(mean, kind="stable"):
        row = " | ".join(f"{each[i]:.4f}" for each in by_set.values())
        lines.append(f"| {names[i]} | {mean[i]:.4f} | {row} |")
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the sets, or of their packed rows")
    parser.add_argument("--sets", choices=SETS, nargs="+", default=[name for name in SETS if name != "power-means"])
    parser.add_argument("--metrics", nargs="+", default=("cosine", "l2"))
    parser.add_argument("--ratios", type=float, nargs="+", default=(0.25, 0.5, 1))
    parser.add_argument("--table", action="store_true", help="print the stored results as Markdown")
    add_run_options(parser)
    given = parser.parse_args()
    if given.table:
        return print(table(given.ratios))
    run(measured, missing(given), given, RESULTS)


if __name__ == "__main__":
    main()
