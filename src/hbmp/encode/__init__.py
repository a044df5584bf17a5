"""Encode data that does not fit in memory, or on one machine: `hbmp.encode_dataset`.

The source is cut into parts before anything is encoded, and each part becomes one Parquet file with the same name
whoever encodes it. So the local loop and Ray give the same folder, and a run that was stopped, or a worker that died,
costs only the parts it had not finished: start it again and it goes on. `_hbmp.json` in the folder says what the parts
were made from, and a run with another model or source is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp._core.files import write_into_place
from hbmp.encode.images import sizes_of, warn_of_skipped
from hbmp.encode.parts import Job, Part, encode_head, encode_part, plan_parts, skipped_in

_DESCRIPTION = "_hbmp.json"  # readers of Parquet folders skip names that begin with an underscore
_FORMAT = 1


@dataclass(frozen=True)
class Encoded:
    """What `encode_dataset` did: the folder, its rows and parts, and how many parts were there from an earlier run.

    `skipped` names the images that could not be read and have no row.
    """

    path: Path
    n_rows: int
    n_parts: int
    n_resumed: int
    skipped: tuple[str, ...] = ()


def encode_dataset(
    model,
    source: str | Path,
    destination: str | Path,
    *,
    column: str = "features",
    batch_size: int | None = None,
    rows_per_part: int | None = None,
    engine: str = "local",
    num_workers: int | None = None,
    on_error: str = "refuse",
    files: Sequence[str] | None = None,
) -> Encoded:
    """Encode a source of any size into a folder of Parquet files with a column `code` of packed bits.

    model         a fitted method: anything with `transform`, of features or of `hbmp.Images`
    source        a .npy file (n, n_features), a .parquet file or a folder of them, or a folder of images; all other
                  columns of a Parquet file are carried along, a .npy file gets its row numbers as `id`, images get
                  their paths relative to the folder
    destination   the folder to write; with Ray, on storage that every worker sees
    column        the Parquet column with the features, one list a row, or with encoded images
    batch_size    rows encoded at once: what bounds the memory; 8,192, or 1,024 images
    rows_per_part rows of one output file (Parquet sources are cut between row groups only): what a restart may repeat;
                  262,144, or 16,384 images
    engine        "local", or "ray": on the cluster Ray is connected to or finds, on this machine if there is none
    num_workers   parts encoded at once, with Ray; as many as there are CPUs by default
    on_error      "refuse" stops at an image that cannot be read; "skip" leaves those out and names them at the end
    files         of a folder of images these alone, named relative to it, in this order; all of them, sorted, if None
    """
    if on_error not in ("refuse", "skip"):
        raise ValueError(f"on_error must be 'refuse' or 'skip', found {on_error!r}.")
    if engine not in ("local", "ray"):
        raise ValueError(f"engine must be 'local' or 'ray', found {engine!r}.")
    if engine == "local" and num_workers is not None:
        raise ValueError("num_workers belongs to engine='ray'; the local engine uses all cores for each batch.")
    for name, value in {"batch_size": batch_size, "rows_per_part": rows_per_part, "num_workers": num_workers}.items():
        if value is not None and (int(value) != value or value < 1):
            raise ValueError(f"{name} must be a whole number, at least 1, found {value!r}.")
    _require_pyarrow()
    if Path(destination).resolve().is_relative_to(Path(source).resolve()):
        raise ValueError(f"The destination {destination} lies inside the source {source}; name a folder beside it.")
    if files is not None and not Path(source).is_dir():
        raise ValueError(f"files= names images of a folder, and {source} is none.")
    parts = plan_parts(Path(source).absolute(), column, rows_per_part, files)
    job = Job(column, str(Path(destination).absolute()), batch_size, n_bits=0, on_error=on_error)
    sample = encode_head(model, parts, job, 64)
    job = replace(job, n_bits=sample.shape[1])
    folder = Path(job.destination)
    _claim(folder, _describe(parts, job, sample))
    missing = [part for part in parts if not (folder / part.name).exists()]
    if engine == "ray":
        _encode_with_ray(model, missing, job, num_workers)
    else:
        for part in missing:
            encode_part(model, part, job)
    for leftover in folder.glob(".part-*.tmp"):  # of runs that were killed while writing
        leftover.unlink(missing_ok=True)
    n_rows = sum(part.stop - part.start for part in parts)
    skipped = [name for part in parts if part.kind == "images" for name in skipped_in(folder / part.name)]
    warn_of_skipped(skipped, n_rows)
    return Encoded(folder, n_rows - len(skipped), len(parts), len(parts) - len(missing), tuple(skipped))


def read_codes(folder: str | Path) -> Iterator[tuple]:
    """Read an encoded folder part by part: a pyarrow table of all columns, and the codes int8 (rows, n_bits)."""
    _require_pyarrow()
    import pyarrow.parquet as pq

    files = sorted(Path(folder).glob("part-*.parquet"))
    if not files:
        raise ValueError(f"{folder} holds no encoded parts; write them with hbmp.encode_dataset.")
    for file in files:
        table = pq.read_table(file)
        yield table, _unpack(table, file)


def _unpack(table, file: Path) -> NDArray[np.int8]:
    n_bits = (table.schema.metadata or {}).get(b"hbmp.n_bits")
    if n_bits is None or "code" not in table.column_names:
        raise ValueError(f"{file} was not written by hbmp.encode_dataset: it has no codes of a known width.")
    packed = np.frombuffer(b"".join(table["code"].to_pylist()), np.uint8)
    return hamming.unpack(packed.reshape(table.num_rows, hamming.bytes_for(int(n_bits))), int(n_bits))


def _describe(parts: list[Part], job: Job, sample: NDArray[np.int8]) -> dict:
    """What decides the content of every part; two runs that agree on it may share a folder."""
    plan = json.dumps([_plan_of(part) for part in parts])
    sizes = sorted({(Path(part.file).name, os.path.getsize(part.file)) for part in parts if not part.images})
    return {
        "format": _FORMAT,
        "n_bits": job.n_bits,
        "bit_order": "little",
        "column": job.column,
        "n_parts": len(parts),
        "source": hashlib.sha256(f"{plan}{sizes}".encode()).hexdigest(),
        "model": hashlib.sha256(hamming.pack(sample).tobytes()).hexdigest(),
    }


def _plan_of(part: Part) -> dict:
    """A part as its folder remembers it: without what moves with the files, and only of images what features lack."""
    plan = asdict(part) | {"file": Path(part.file).name}
    if part.images:
        return plan | {"sizes": sizes_of(part.file, part.images)}
    return {name: value for name, value in plan.items() if name != "images" and (name, value) != ("kind", "features")}


def _claim(folder: Path, description: dict) -> None:
    """Make the folder, or check that what it holds belongs to the same source, plan and model."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _DESCRIPTION
    if not path.exists():
        if any(folder.glob("*.parquet")):
            raise ValueError(f"{folder} holds Parquet files of something else; name an empty folder.")
        write_into_place(path, json.dumps(description, indent=1) + "\n")
        return
    found = json.loads(path.read_text())
    differing = [key for key, value in description.items() if found.get(key) != value]
    if differing:
        raise ValueError(
            f"{folder} was begun with another {' and '.join(differing)}; go on with the same model, source, column and "
            "rows_per_part, or name an empty folder."
        )


def _encode_with_ray(model, parts: list[Part], job: Job, num_workers: int | None) -> None:
    """Hand out the parts as a Ray dataset of one part a block; Ray gives the parts of a dead worker to another."""
    if not parts:
        return
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    try:
        import ray
        import ray.data
    except ImportError:
        raise ImportError("engine='ray' needs Ray: pip install 'hbmp[ray]'.") from None
    started_here = not ray.is_initialized()
    if started_here:
        # A cluster that is there keeps its dashboard; one that is started for this needs none.
        ray.init(log_to_driver=False, include_dashboard=None if "RAY_ADDRESS" in os.environ else False)
    try:
        shared_model = ray.put(model)

        def encode_row(row: dict) -> dict:
            part = parts[row["id"]]
            try:
                # A part may be done already when it is handed out a second time.
                if not (Path(job.destination) / part.name).exists():
                    encode_part(ray.get(shared_model), part, job)
            except ValueError as error:  # wrong data stays wrong: say so instead of trying again
                return {"number": part.number, "error": str(error)}
            return {"number": part.number, "error": ""}

        dataset = ray.data.range(len(parts), override_num_blocks=len(parts))
        rows = dataset.map(encode_row, compute=ray.data.TaskPoolStrategy(size=num_workers)).take_all()
    finally:
        if started_here:
            ray.shutdown()
    for row in sorted(rows, key=lambda row: row["number"]):
        if row["error"]:
            raise ValueError(row["error"])


def _require_pyarrow() -> None:
    try:
        import pyarrow.parquet  # noqa: F401
    except ImportError:
        raise ImportError("encode_dataset reads and writes Parquet: pip install 'hbmp[images]'.") from None
