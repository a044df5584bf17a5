"""Settings of codes without labels, chosen on training rows: coupling and radial weight by leave-one-set-out regret.

    python benchmarks/without_labels_settings.py --data data           runs what the results do not hold yet
    python benchmarks/without_labels_settings.py --table               the regrets as Markdown

Of the 5,000 training rows of `without_labels.py`, 300 are queries, the other 4,700 are searched and 4,000 of these are
fitted; the queries and the rest of the database of that benchmark are never read. Four readings of recall@10:

float, codes             real-valued queries, or codes as queries, by weighted Hamming distance
float rebuilt, codes rebuilt    the same by the cosine to rebuilt vectors

The score of a setting is the mean of its readings; without Hamming distance of codes from two bits per feature on. Its
regret is the score less the best setting's, on the same set and number of bits. For each set the setting with the least
mean regret on the *other* sets is chosen; the table shows what it loses on the set left out.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path

import numpy as np

import hbmp
from hbmp.methods.hbmp.unlabelled import Rebuilding
from without_labels import SETS, Task

RESULTS = Path(__file__).parent.parent / "results" / "without-labels-settings.jsonl"
GRID = [{"coupling": coupling, "radial": radial} for coupling, radial in product((0.5, 0.6, 0.75, 1.0), (0.0, 2.0))]


class TrainingTask(Task):
    """Queries, database and training rows, all from the training rows of a benchmark task."""

    def __init__(self, folder, name, metric, seed):
        super().__init__(folder, name, metric, seed)
        rows = self.train[np.random.default_rng(seed).permutation(len(self.train))]
        self.queries, self.database, self.train = rows[:300], rows[300:], rows[300:4300]
        self.nearest = np.argsort(-self.similarity(self.queries, self.database), axis=1, kind="stable")[:, :10]


def readings(task, n_bits, setting, seed):
    model = hbmp.HBMP(n_bits, function=Rebuilding(**setting), random_state=seed).fit(task.train)
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
    return [json.loads(line) for line in RESULTS.read_text().splitlines()] if RESULTS.exists() else []


def run(given):
    done = {(row["data"], row["bits"], json.dumps(row["setting"])) for row in stored()}
    for name in given.sets:
        task = None
        for ratio, setting in product(given.ratios, [{**each, **given.more} for each in GRID]):
            task = task or TrainingTask(given.data, name, given.metric, 0)
            n_bits = int(ratio * task.n_features) // 8 * 8
            if (name, n_bits, json.dumps(setting)) in done or n_bits > given.most_bits:
                continue
            found = {"data": name, "ratio": ratio, "bits": n_bits, "setting": setting}
            found |= {"readings": readings(task, n_bits, setting, 0)}
            with RESULTS.open("a") as file:
                file.write(json.dumps(found) + "\n")
            print(*found.values(), flush=True)


def regrets(ratios):
    """(settings, {set: mean regret of each setting}) over the given bits per feature."""
    scores: dict = {}
    for row in stored():
        if row["ratio"] in ratios:
            names = [name for name in row["readings"] if row["ratio"] < 2 or name != "codes"]
            cell = scores.setdefault((row["data"], row["ratio"]), {})
            cell[json.dumps(row["setting"])] = float(np.mean([row["readings"][name] for name in names]))
    settings = sorted(set.intersection(*(set(cell) for cell in scores.values())))
    by_set: dict = {}
    for (name, _), cell in scores.items():
        values = np.array([cell[setting] for setting in settings])
        by_set.setdefault(name, []).append(values.max() - values)
    return settings, {name: np.mean(rows, axis=0) for name, rows in by_set.items()}


def table(ratios):
    settings, by_set = regrets(ratios)
    lines = ["| set left out | chosen on the others | its regret | best on this set |", "|:---|:---|---:|:---|"]
    for name, own in by_set.items():
        chosen = int(np.argmin(np.mean([each for other, each in by_set.items() if other != name], axis=0)))
        lines.append(f"| {name} | {settings[chosen]} | {own[chosen]:.4f} | {settings[int(np.argmin(own))]} |")
    mean = np.mean(list(by_set.values()), axis=0)
    lines += ["", "| setting | mean regret |", "|:---|---:|"]
    lines += [f"| {settings[i]} | {mean[i]:.4f} |" for i in np.argsort(mean)]
    return "\n".join(lines)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="folder of the sets")
    parser.add_argument("--sets", choices=SETS, nargs="+", default=[name for name in SETS if name != "power-means"])
    parser.add_argument("--ratios", type=float, nargs="+", default=(0.25, 0.5, 1))
    parser.add_argument("--most-bits", type=int, default=256)
    parser.add_argument("--more", type=json.loads, default={}, help='further settings, such as {"n_iter": 5}')
    parser.add_argument("--table", action="store_true", help="print the stored results as Markdown")
    given = parser.parse_args()
    if given.table:
        return print(table(given.ratios))
    run(given)


if __name__ == "__main__":
    main()
