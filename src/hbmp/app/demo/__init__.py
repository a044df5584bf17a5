"""The demo: from raw texts to a database that can be searched by sentences, compared with every alternative.

    done = hbmp.app.demo.run("demo")

demo/report.html    scores, searches, figures       demo/demo.json   the same numbers for programs
demo/model          the model, with its encoder     demo/db          the database
"""

from __future__ import annotations

import json
import shlex
import shutil
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
from joblib import cpu_count

import hbmp
from hbmp._core.device import pick_device
from hbmp._core.files import write_into_place
from hbmp.app.demo import data as demo_data
from hbmp.app.demo import page
from hbmp.app.demo.data import Texts
from hbmp.database import Database
from hbmp.encoders import WordLlama
from hbmp.evaluation.comparison import Comparison
from hbmp.hasher import Hasher

METHODS = ("hbmp", "orthohash", "greedyhash", "itq", "pca_sign")
BITS = (16, 32, 64)
SEARCHES = (
    "cross-validation of a classifier",
    "hierarchical clustering of observations",
    "solve a system of differential equations",
    "median filter for images",
)
N_SHOWN = 5
_QUERIES = 400
_RESCORED = 50  # candidates whose vectors are compared
_MARK = "demo.json"


@dataclass(frozen=True)
class SentenceSearch:
    """A sentence, and the names of the nearest items by each kind of search."""

    sentence: str
    found: dict[str, list[str]]


@dataclass(frozen=True)
class Shown:
    """Data of the report."""

    texts: Texts
    comparison: Comparison
    model: hbmp.HBMP  # of the database, with detail bits
    searches: tuple[SentenceSearch, ...]

    @property
    def lengths(self) -> list[int]:
        """Code lengths, ascending."""
        return sorted({row.bits for row in self.comparison.rows})


def run(
    output: str = "demo",
    *,
    bits: Sequence[int] = BITS,
    rows: int | None = None,
    device: str = "auto",
    seed: int = 0,
) -> dict[str, Any]:
    """Encode texts, compare methods, build a database, search it by sentences, and write the report.

    Parameters
    ----------
    output : path, default="demo"
        A new folder, or the folder of an earlier demo, whose files are replaced.
    bits : sequence of int, default=(16, 32, 64)
        Code lengths.
    rows : int, default=None
        Largest number of texts, for a quicker run.
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
    _log("reading texts and encoding them with WordLlama")
    texts, encoder = demo_data.documentation().drawn(rows, seed), WordLlama()
    X = encoder.encode(texts.texts.tolist())
    _log(f"comparing {len(METHODS)} methods at {', '.join(map(str, lengths))} bits with search without hashing")
    found = _compare(X, texts, lengths, device, seed)
    _log("building the database")
    folder.mkdir(parents=True, exist_ok=True)
    write_into_place(folder / _MARK, "{}\n")  # marks the folder as a demo's, should the run be stopped
    model = hbmp.HBMP(lengths[-1], detail_bits="auto", device=device, random_state=seed)
    model.fit(X[found.split.train], texts.labels[found.split.train].astype(str))
    model.with_encoder(encoder).save(folder / "model")
    database = _database(model, X, texts, found.split.database, folder / "db")
    with database:
        searches = tuple(_search(sentence, database, X, texts, encoder) for sentence in SEARCHES)
    shown = Shown(texts, found, model, searches)
    _log("drawing the report")
    commands = _commands(folder)
    write_into_place(folder / "report.html", page.render(shown, commands=commands))
    done = {"hbmp": hbmp.__version__, "report": str(folder / "report.html"), "bits": lengths, **_facts(shown)}
    done |= {"database": str(folder / "db"), "commands": dict(commands), "replaced": replaced}
    done["seconds"] = round(time.perf_counter() - started, 1)
    write_into_place(folder / _MARK, json.dumps(done, indent=1, ensure_ascii=False) + "\n")
    return done


def text(done: dict[str, Any]) -> str:
    """The result of `run` as text."""
    parts = [done["about"], done["table"], done["recommendation"], done["alternatives"]]
    for search in done["searches"]:
        found = "\n".join(f"  {kind}: {', '.join(names[:3])}" for kind, names in search["found"].items())
        parts.append(f"“{search['sentence']}”\n{found}")
    if done["replaced"]:
        parts.append(f"The files of an earlier demo in {Path(done['report']).parent} were replaced.")
    lines = [f"Report: {done['report']}", *(f"{words}\n    {line}" for words, line in done["commands"].items())]
    return "\n\n".join([*parts, "\n".join(lines), f"Done in {done['seconds']:.0f} s."])


def _compare(X: np.ndarray, texts: Texts, lengths: list[int], device: str, seed: int) -> Comparison:
    found = hbmp.compare(
        X,
        texts.labels.astype(str),
        methods=METHODS,
        bits=lengths,
        queries=min(_QUERIES, len(texts) // 5),
        train=0.5,
        name="documentation",
        jobs=min(2, cpu_count()) if device == "cpu" else 1,  # small fits are faster with processes than with threads
        seed=seed,
        device=device,
    )
    failed = [row for row in found.rows if row.method == "hbmp" and row.error]
    if failed:
        raise ValueError(f"HBMP could not be fitted on the texts: {failed[0].error}")
    return found


def _database(model: Hasher, X: np.ndarray, texts: Texts, rows: np.ndarray, path: Path) -> Database:
    """The items that are searched: text, label, code, and the vector in half precision; names are ids."""
    payload = [{"text": texts.texts[row]} for row in rows]
    ids, labels = texts.names[rows].tolist(), texts.labels[rows].astype(str)
    source = {"name": "documentation", "rows": len(rows)}
    return Database.build(
        model,
        X[rows],
        ids=ids,
        labels=labels,
        payload=payload,
        vectors="float16",
        path=path,
        replace=True,
        source=source,
    )


def _search(sentence: str, database: Database, X: np.ndarray, texts: Texts, encoder: WordLlama) -> SentenceSearch:
    """The nearest items by codes, by codes and vectors, and by vectors alone."""
    n_bytes, width = hbmp.hamming.bytes_for(database.model.n_bits), X.shape[1]
    known = np.isin(texts.names, database.ids)
    cosines = X[known] @ encoder.encode([sentence])[0]
    by_codes = partial(database.search, [sentence], N_SHOWN, real_valued=True)
    nearest = {
        f"codes of {n_bytes} bytes": by_codes()[1][0],
        f"codes, rescored by {2 * width} bytes": by_codes(rescore=_RESCORED)[1][0],
        f"cosine of {4 * width:,} bytes": texts.names[known][np.argsort(-cosines, kind="stable")[:N_SHOWN]],
    }
    return SentenceSearch(sentence, {kind: [str(name) for name in names] for kind, names in nearest.items()})


def _facts(shown: Shown) -> dict[str, Any]:
    """The numbers for JSON."""
    found = shown.comparison
    return {
        "about": shown.texts.about,
        "items": len(found.split.database),
        "label_bits": shown.model.n_bits - shown.model.detail_bits_,
        "scores": {method: _by_length(found, method) for method in found.ranking},
        "measure": f"{found.measure}, tie-aware, with the distance of each method",
        "baselines": {each.name: {"bytes": each.bytes_per_item, "score": each.score} for each in found.baselines},
        "recommendation": found.recommendation,
        "searches": [{"sentence": each.sentence, "found": each.found} for each in shown.searches],
        "table": found.summary.text(),
        "alternatives": found.alternatives.text(),
        "caption": found.caption,
    }


def _by_length(found: Comparison, method: str) -> dict[str, float | None]:
    return {str(row.bits): row.score(found.measure) for row in found.rows if row.method == method}


def _commands(folder: Path) -> list[tuple[str, str]]:
    program, model, database = _program(), str(folder / "model"), str(folder / "db")
    served = shlex.join([*program, "serve", model, "--index", database])
    return [
        ("Search for your own sentence:", shlex.join([*program, "search", database, SEARCHES[0], "-k", "5"])),
        (f"Search in the browser{_needs_web()}:", served),
        (
            "Compare methods on your own features:",
            shlex.join([*program, "compare", "features.npy", "--labels", "y.csv"]),
        ),
    ]


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
        raise ValueError(f"The demo needs code lengths of at least 2 bits, found {list(bits)}; try 16 32 64.")
    return lengths


def _check_folder(folder: Path) -> bool:
    """Whether the folder is that of an earlier demo; refuse one where other files would be replaced."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; choose a folder for the demo with --output.")
    if (folder / _MARK).is_file():
        return True
    found = [name for name in ("report.html", "model", "db", _MARK) if (folder / name).exists()]
    if found:
        raise ValueError(f"{folder} holds {found[0]}, but no demo wrote it; choose another --output.")
    return False


def _log(words: str) -> None:
    if sys.stderr.isatty():
        print(f"demo: {words}", file=sys.stderr, flush=True)
