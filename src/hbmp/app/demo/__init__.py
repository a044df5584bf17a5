"""The demo: HBMP and six other methods on real data, a database to search, and a report.

    done = hbmp.app.demo.run("demo")

demo/report.html       figures, tables, and further commands       demo/demo.json   the same numbers for programs
demo/model, demo/db    model and database of the digits            demo/queries.npy three queries
demo/thumbnails.npy    pictures of the items                       demo/cifar10/    the same files for CIFAR-10
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from joblib import cpu_count

import hbmp
from hbmp import metrics
from hbmp._core.device import pick_device
from hbmp._core.files import beside, write_into_place
from hbmp.app.demo import data as demo_data
from hbmp.app.demo import page
from hbmp.app.demo.data import Example
from hbmp.database import Database
from hbmp.evaluation.comparison import Comparison
from hbmp.hasher import Hasher

METHODS = ("hbmp", "lsh", "itq", "cca_itq", "ksh", "sdh", "greedyhash")
RIVALS = ("itq", "lsh")  # the first that has codes of that length is drawn beside HBMP
BITS = (12, 24, 48)
QUERIES = {"typical": 0.5, "hard": 0.1, "hardest": 0.0}  # by the fraction of queries with a lower score
N_SHOWN = 10
_MARK = "demo.json"


@dataclass(frozen=True)
class Shown:
    """Results on one data set; `retrieved` holds records for `hbmp.experiments.recipes.fig4`."""

    example: Example
    comparison: Comparison
    databases: dict[str, Database]  # of HBMP and the rival, with the longest codes
    query_labels: np.ndarray
    query_codes: dict[str, np.ndarray]
    retrieved: list[dict]

    @property
    def lengths(self) -> list[int]:
        """Code lengths, ascending."""
        return sorted({row.bits for row in self.comparison.rows})

    @property
    def book(self):
        """The code book of HBMP with the longest codes."""
        return self.databases["hbmp"].model.codebook_

    @property
    def rival(self) -> str:
        """The method drawn beside HBMP."""
        return next(name for name in self.databases if name != "hbmp")


def run(
    output="demo",
    *,
    data_dir=None,
    bits: Sequence[int] = BITS,
    rows: int | None = None,
    device: str = "auto",
    seed: int = 0,
) -> dict:
    """Compare, fit, index, search, and write the report.

    Parameters
    ----------
    output : path, default="demo"
        A new folder, or the folder of an earlier demo, whose files are replaced.
    data_dir : path, default=None
        Data directory, for CIFAR-10.
    bits : sequence of int, default=(12, 24, 48)
        Code lengths.
    rows : int, default=None
        Largest number of rows per data set, for a quicker run.
    device : {"auto", "cpu", "cuda"}, default="auto"
        Device of the methods.
    seed : int, default=0
        Seed of splits and methods.

    Returns
    -------
    dict
        The content of `demo.json`.
    """
    from hbmp.evaluation.plot import need_matplotlib

    started, folder, device = time.perf_counter(), Path(output), pick_device(device)
    need_matplotlib()
    lengths = _check_sizes(bits, rows)
    replaced = _check_folder(folder)
    _log("looking for data")
    examples, note = demo_data.at_hand(data_dir, rows=rows, device=device, seed=seed)
    shown = [_show(example, lengths, device, seed) for example in examples]
    folder.mkdir(parents=True, exist_ok=True)
    write_into_place(folder / _MARK, "{}\n")  # marks the folder as a demo's, should the run be stopped
    kept = [_keep(each, folder if number == 0 else folder / each.example.name) for number, each in enumerate(shown)]
    _log("drawing the report")
    content = page.render(shown, lead=_lead(shown, note), commands=_commands(kept))
    write_into_place(folder / "report.html", content)
    done = {
        "hbmp": hbmp.__version__,
        "report": str(folder / "report.html"),
        "bits": lengths,
        "data": [{**_facts(each), **files} for each, files in zip(shown, kept, strict=True)],
        "left_out": note,
        "replaced": replaced,
        "seconds": round(time.perf_counter() - started, 1),
    }
    write_into_place(folder / _MARK, json.dumps(done, indent=1, ensure_ascii=False) + "\n")
    return done


def text(done: dict) -> str:
    """The result of `run` as text."""
    parts = []
    for data in done["data"]:
        width = max(len(query["label"]) for query in data["queries"])
        examples = "\n".join(
            f"  {query['kind']:8} {query['label']:>{width}} → {' '.join(query['nearest'])}   {query['hits']} right"
            for query in data["queries"]
        )
        parts += [f"{data['title']}. {data['about']}", data["table"], data["standing"]]
        parts.append(f"The nearest items of three queries, {max(done['bits'])}-bit codes:\n{examples}")
        parts.append(f"{data['items']:,} items in {data['db']}, {data['bytes']} bytes per code.")
    parts += [done["left_out"]] if done["left_out"] else []
    if done["replaced"]:
        parts.append(f"The files of an earlier demo in {Path(done['report']).parent} were replaced.")
    lines = [f"Report:      {done['report']}"]
    for data in done["data"]:
        lines += [f"Web app:     {data['serve']}", f"Search:      {data['search']}"]
    return "\n\n".join([*parts, "\n".join(lines), f"Done in {done['seconds']:.0f} s."])


def _show(example: Example, lengths: list[int], device: str, seed: int) -> Shown:
    """Compare all methods, then search three queries with HBMP and a rival, with the longest codes."""
    _log(f"{example.title}: {len(METHODS)} methods at {', '.join(map(str, lengths))} bits")
    drawn: dict[str, Any] = {"queries": example.queries, "train": example.train, "seed": seed, "device": device}
    found = hbmp.compare(
        example.features,
        example.labels,
        methods=METHODS,
        bits=lengths,
        name=example.title,
        keep=("hbmp", *RIVALS),
        jobs=min(2, cpu_count()) if device == "cpu" else 1,  # small fits are faster with processes than with threads
        **drawn,
    )
    failed = [row for row in found.rows if row.method == "hbmp" and row.error]
    if failed:
        raise ValueError(f"HBMP could not be fitted on {example.title}: {failed[0].error}")
    _log(f"{example.title}: databases and queries")
    longest = {
        name: found.models[name, lengths[-1]] for name in ("hbmp", *RIVALS) if (name, lengths[-1]) in found.models
    }
    databases = {name: _database(model, example, found.split) for name, model in list(longest.items())[:2]}
    rows = found.split.query
    codes = {name: database.model.transform(example.features[rows]) for name, database in databases.items()}
    chosen = rows[_three_queries(codes, rows, databases, example.labels)]
    return Shown(
        example,
        found,
        databases,
        query_labels=example.labels[rows].astype(np.int64),
        query_codes=codes,
        retrieved=[_retrieve(name, database, example, chosen) for name, database in databases.items()],
    )


def _database(model: Hasher, example: Example, split) -> Database:
    """A database of the rows that are searched; ids are row numbers."""
    labels = np.array(example.names)[example.labels[split.database]]
    source = {"name": example.title, "rows": len(split.database)}
    return Database.build(model, example.features[split.database], ids=split.database, labels=labels, source=source)


def _three_queries(codes: dict, rows: np.ndarray, databases: dict[str, Database], labels: np.ndarray) -> np.ndarray:
    """Positions of three query rows: a typical query, and two that are hard for both methods."""
    precision = [
        metrics.average_precision_per_query(
            codes[name], each.codes(), labels[rows], labels[each.ids], bit_weights=each.index.bit_weights
        )
        for name, each in databases.items()
    ]
    order = np.argsort(np.mean(precision, axis=0), kind="stable")
    return order[[int(share * (len(order) - 1)) for share in QUERIES.values()]]


def _retrieve(name: str, database: Database, example: Example, rows: np.ndarray) -> dict:
    ids = database.search(example.features[rows], N_SHOWN)[1]
    hits = example.labels[ids] == example.labels[rows][:, None]
    return {
        "settings": {"method": name, "bits": database.index.n_bits},
        "queries": rows.tolist(),
        "nearest": ids.tolist(),
        "hits": hits.tolist(),
    }


def _keep(shown: Shown, folder: Path) -> dict:
    """Write model, database, queries and thumbnails; return their paths and the commands that use them."""
    database, example = shown.databases["hbmp"], shown.example
    folder.mkdir(parents=True, exist_ok=True)
    database.model.save(folder / "model")
    database.save(folder / "db")
    _save_array(folder / "queries.npy", example.features[shown.retrieved[0]["queries"]])
    served = ["serve", str(folder / "model"), "--index", str(folder / "db")]
    if example.images is not None:
        _save_array(folder / "thumbnails.npy", np.ascontiguousarray(example.images[database.ids]))
        served += ["--thumbnails", str(folder / "thumbnails.npy")]
    else:
        (folder / "thumbnails.npy").unlink(missing_ok=True)  # an earlier demo may have written it
    return {
        "model": str(folder / "model"),
        "db": str(folder / "db"),
        "serve": shlex.join([*_program(), *served]),
        "search": shlex.join([*_program(), "search", str(folder / "db"), str(folder / "queries.npy"), "-k", "5"]),
    }


def _facts(shown: Shown) -> dict:
    """The numbers of one data set for JSON."""
    found, example, retrieved = shown.comparison, shown.example, shown.retrieved[0]
    queries = [
        {"kind": kind, "label": _names(example, [row])[0], "nearest": _names(example, ids), "hits": sum(hits)}
        for kind, row, ids, hits in zip(
            QUERIES, retrieved["queries"], retrieved["nearest"], retrieved["hits"], strict=True
        )
    ]
    return {
        "name": example.name,
        "title": example.title,
        "about": example.about,
        "items": len(shown.databases["hbmp"]),
        "bytes": hbmp.hamming.bytes_for(shown.book.n_bits),
        "scores": {method: _by_length(found, method) for method in found.ranking},
        "measure": f"{found.measure}, tie-aware, with the distance of each method",
        "queries": queries,
        "standing": page.standing(shown),
        "table": found.summary.text(),
        "caption": found.caption,
    }


def _by_length(found: Comparison, method: str) -> dict[str, float | None]:
    return {str(row.bits): row.score(found.measure) for row in found.rows if row.method == method}


def _names(example: Example, ids) -> list[str]:
    return [example.names[example.labels[number]] for number in ids]


def _lead(shown: list[Shown], note: str) -> str:
    data = " and ".join(each.example.title for each in shown)
    lengths = ", ".join(map(str, shown[0].lengths))
    return (
        f"{data}: Hashing with Binary Matrix Pursuit (ECCV 2018) and {len(METHODS) - 1} other methods on real data, "
        f"with codes of {lengths} bits. All methods have their default settings, the same split and the same score. "
        f"{note}"
    ).strip()


def _commands(kept: list[dict]) -> list[tuple[str, str]]:
    commands = []
    for files in kept:
        commands.append((f"Search {files['db']} in the browser{_needs_web()}:", files["serve"]))
        commands.append(("Print the five nearest items of its three queries:", files["search"]))
    own = shlex.join([*_program(), "compare", "features.npy", "--labels", "labels.npy"])
    commands.append(("Run the same comparison on your own features:", own))
    return commands


def _needs_web() -> str:
    there = all(find_spec(name) for name in ("fastapi", "uvicorn", "multipart", "prometheus_client", "PIL"))
    return "" if there else " (first: pip install 'hbmp[web]')"


def _program() -> list[str]:
    """The command that starts this program: its name if the shell finds it, else its path."""
    beside_python = Path(sys.executable).parent / "hbmp"
    found = shutil.which("hbmp")
    if found and Path(found).resolve() == beside_python.resolve():
        return ["hbmp"]
    if not beside_python.is_file():
        return [sys.executable, "-m", "hbmp"]
    here = Path.cwd()
    return [str(beside_python.relative_to(here) if beside_python.is_relative_to(here) else beside_python)]


def _check_sizes(bits: Sequence[int], rows: int | None) -> list[int]:
    """The code lengths, ascending."""
    if rows is not None and rows < 200:
        raise ValueError(f"The demo needs at least 200 rows, found {rows}.")
    lengths = sorted(set(bits))
    if not lengths or lengths[0] < 2:
        raise ValueError(f"The demo needs code lengths of at least 2 bits, found {list(bits)}; try 12 24 48.")
    return lengths


def _check_folder(folder: Path) -> bool:
    """Whether the folder is that of an earlier demo; refuse one where other files would be replaced."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; name a folder for the demo with --output.")
    if (folder / _MARK).is_file():
        return True
    ours = ("report.html", "model", "db", "queries.npy", "thumbnails.npy", "cifar10", _MARK)
    found = [name for name in ours if (folder / name).exists()]
    if found:
        raise ValueError(f"{folder} holds {found[0]}, but no demo wrote it; choose another --output.")
    return False


def _save_array(path: Path, array: np.ndarray) -> None:
    with beside(path) as part, open(part, "wb") as file:
        np.save(file, array, allow_pickle=False)


def _log(words: str) -> None:
    if sys.stderr.isatty():
        print(f"demo: {words}", file=sys.stderr, flush=True)
