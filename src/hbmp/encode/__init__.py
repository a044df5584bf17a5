"""Encode data that does not fit in memory, or on one machine: `hbmp.encode_dataset`.

The source is cut into parts first, and each part becomes one Parquet file with a fixed name. So the local loop and Ray
write the same folder, and a stopped run or a dead worker costs only its unfinished parts: run the same call again to
resume. `_hbmp.json` in the folder describes source and model; a run with others is refused.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from hbmp import hamming
from hbmp._core.files import remove_leftovers, write_if_absent
from hbmp._core.parquet_files import check_footer
from hbmp._core.reading import json_object
from hbmp.encode.images import stamp_of, warn_of_skipped
from hbmp.encode.parts import Job, Part, encode_head, encode_part, is_whole, plan_parts, skipped_in

_DESCRIPTION = "_hbmp.json"  # readers of Parquet folders skip names with a leading underscore
_FORMAT = 2  # 1 had no modification times


@dataclass(frozen=True)
class Encoded:
    """The result of `encode_dataset`.

    Attributes
    ----------
    path : Path
        The folder.
    n_rows : int
        Number of rows in the folder.
    n_parts : int
        Number of Parquet files.
    n_resumed : int
        Number of parts from an earlier run.
    skipped : tuple of str
        Names of images that could not be read and have no row.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hbmp.encode import Encoded
    >>> Encoded(Path("codes"), n_rows=100, n_parts=3, n_resumed=0).skipped
    ()
    """

    path: Path
    n_rows: int
    n_parts: int
    n_resumed: int
    skipped: tuple[str, ...] = ()


def encode_dataset(
    model: Any,
    source: str | Path,
    destination: str | Path,
    *,
    column: str = "features",
    batch_size: int | None = None,
    rows_per_part: int | None = None,
    engine: Literal["local", "ray"] = "local",
    num_workers: int | None = None,
    on_error: Literal["refuse", "skip"] = "refuse",
    files: Sequence[str] | None = None,
) -> Encoded:
    """Encode a source of any size into a folder of Parquet files with a column `code` of packed bits.

    Parameters
    ----------
    model : Hasher
        A fitted model: any object with `transform`, of features or of `hbmp.Images`.
    source : path
        A .npy file (n, n_features), a .parquet file or a folder of them, or a folder of images. The other columns of
        a Parquet file are copied; a .npy file gets its row numbers as `id`, images their paths relative to the folder.
    destination : path
        The folder to write; with Ray, on storage shared by all workers.
    column : str, default="features"
        The Parquet column of features, one list per row, or of encoded images.
    batch_size : int, default=None
        Rows encoded at a time, which bounds the memory; 8,192, or 1,024 images, if None.
    rows_per_part : int, default=None
        Rows per output file, the most that a restart repeats; Parquet sources are cut between row groups. 262,144, or
        16,384 images, if None.
    engine : {"local", "ray"}, default="local"
        "ray" uses the connected cluster, or one it finds, or this machine.
    num_workers : int, default=None
        Parts encoded at a time with Ray; the number of CPUs if None.
    on_error : {"refuse", "skip"}, default="refuse"
        "refuse" stops at an image that cannot be read; "skip" leaves it out and names it in a warning at the end.
    files : sequence of str, default=None
        Only these images of a folder, relative to it, in this order; all of them, sorted, if None.

    Returns
    -------
    Encoded

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import hbmp
    >>> X = np.random.default_rng(0).standard_normal((100, 8)).astype(np.float32)
    >>> model = hbmp.get_method("lsh")(16, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/features.npy", X)
    ...     encoded = hbmp.encode_dataset(model, f"{folder}/features.npy", f"{folder}/codes", rows_per_part=40)
    ...     table, codes = next(hbmp.encode.read_codes(encoded.path))
    >>> encoded.n_rows, encoded.n_parts, codes.shape
    (100, 3, (40, 16))
    """
    if on_error not in ("refuse", "skip"):
        raise ValueError(f"on_error must be 'refuse' or 'skip', found {on_error!r}.")
    if engine not in ("local", "ray"):
        raise ValueError(f"engine must be 'local' or 'ray', found {engine!r}.")
    if engine == "local" and num_workers is not None:
        raise ValueError("num_workers needs engine='ray'; the local engine uses all cores for each batch.")
    for name, value in {"batch_size": batch_size, "rows_per_part": rows_per_part, "num_workers": num_workers}.items():
        if value is not None and (int(value) != value or value < 1):
            raise ValueError(f"{name} must be a whole number, at least 1, found {value!r}.")
    _require_pyarrow()
    if Path(destination).resolve().is_relative_to(Path(source).resolve()):
        raise ValueError(f"The destination {destination} is inside the source {source}; choose a folder outside it.")
    if files is not None and not Path(source).is_dir():
        raise ValueError(f"files= names images of a folder, but {source} is not a folder.")
    parts = plan_parts(Path(source).absolute(), column, rows_per_part, files)
    job = Job(column, str(Path(destination).absolute()), batch_size, n_bits=0, on_error=on_error)
    sample = encode_head(model, parts, job, 64)
    job = replace(job, n_bits=sample.shape[1])
    folder = Path(job.destination)
    description = _describe(parts, job, sample)
    _claim(folder, description)
    missing = [part for part in parts if not is_whole(part, job)]
    if engine == "ray":
        _encode_with_ray(model, missing, job, num_workers)
    else:
        for part in missing:
            encode_part(model, part, job)
    remove_leftovers(folder, {_DESCRIPTION, *(part.name for part in parts)})
    if _source_digest(parts) != description["source"]:
        raise ValueError(f"{source} changed while it was encoded; delete {folder} and encode it again.")
    n_rows = sum(part.stop - part.start for part in parts)
    skipped = [name for part in parts if part.kind == "images" for name in skipped_in(folder / part.name)]
    warn_of_skipped(skipped, n_rows)
    return Encoded(folder, n_rows - len(skipped), len(parts), len(parts) - len(missing), tuple(skipped))


def read_codes(folder: str | Path) -> Iterator[tuple[Any, NDArray[np.int8]]]:
    """Read an encoded folder part by part.

    Parameters
    ----------
    folder : path
        A folder that `encode_dataset` wrote.

    Yields
    ------
    table : pyarrow.Table
        All columns of the part.
    codes : ndarray of shape (n_rows, n_bits), int8
        Signs, -1 and +1.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> import hbmp
    >>> X = np.random.default_rng(0).standard_normal((5, 8)).astype(np.float32)
    >>> model = hbmp.get_method("lsh")(16, random_state=0).fit(X)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     np.save(f"{folder}/features.npy", X)
    ...     encoded = hbmp.encode_dataset(model, f"{folder}/features.npy", f"{folder}/codes")
    ...     parts = list(hbmp.encode.read_codes(encoded.path))
    >>> [(table.num_rows, codes.shape) for table, codes in parts]
    [(5, (5, 16))]
    """
    _require_pyarrow()
    import pyarrow as pa
    import pyarrow.parquet as pq

    files = sorted(Path(folder).glob("part-*.parquet"))
    if not files:
        raise ValueError(f"{folder} holds no encoded parts; write some with hbmp.encode_dataset.")
    for file in files:
        try:
            with pq.ParquetFile(file, page_checksum_verification=True) as parquet:
                check_footer(parquet)
                table = parquet.read()
        except (OSError, ValueError, pa.ArrowException) as error:
            first = str(error).partition("\n")[0].rstrip(".")
            raise ValueError(f"{file} is damaged ({first}); delete it and run encode_dataset again.") from error
        yield table, _unpack(table, file)


def _unpack(table: Any, file: Path) -> NDArray[np.int8]:
    n_bits = (table.schema.metadata or {}).get(b"hbmp.n_bits", b"")
    if not n_bits.isdigit() or "code" not in table.column_names:
        raise ValueError(f"{file} was not written by hbmp.encode_dataset: it has no code width.")
    width = hamming.bytes_for(int(n_bits))
    packed = np.frombuffer(b"".join(table["code"].to_pylist()), np.uint8)
    if len(packed) != table.num_rows * width:
        raise ValueError(f"{file} is damaged: its codes are not of {int(n_bits)} bits; delete it and encode it again.")
    return hamming.unpack(packed.reshape(table.num_rows, width), int(n_bits))


def _describe(parts: list[Part], job: Job, sample: NDArray[np.int8]) -> dict[str, Any]:
    """The facts that decide the content of every part; runs with equal facts may share a folder."""
    return {
        "format": _FORMAT,
        "n_bits": job.n_bits,
        "bit_order": "little",
        "column": job.column,
        "n_parts": len(parts),
        "source": _source_digest(parts),
        "model": hashlib.sha256(hamming.pack(sample).tobytes()).hexdigest(),
    }


def _source_digest(parts: list[Part]) -> str:
    """SHA-256 of the plan, and of names, sizes and modification times of the source files."""
    plan = json.dumps([_plan_of(part) for part in parts])
    stamps = sorted({(Path(part.file).name, *stamp_of(part.file)) for part in parts if not part.images})
    return hashlib.sha256(f"{plan}{stamps}".encode()).hexdigest()


def _plan_of(part: Part) -> dict[str, Any]:
    """A part as it enters the digest: without its folder, and with the fields of images only for images."""
    plan = asdict(part) | {"file": Path(part.file).name}
    if part.images:
        return plan | {"stamps": [stamp_of(Path(part.file, name)) for name in part.images]}
    return {name: value for name, value in plan.items() if name != "images" and (name, value) != ("kind", "features")}


def _claim(folder: Path, description: dict[str, Any]) -> None:
    """Make the folder, or check that its parts have the same source, plan and model."""
    folder.mkdir(parents=True, exist_ok=True)
    path = folder / _DESCRIPTION
    if not path.exists():
        if any(folder.glob("*.parquet")):
            raise ValueError(f"{folder} holds other Parquet files; choose an empty folder.")
        if write_if_absent(path, json.dumps(description, indent=1) + "\n"):
            return
    try:
        found = json_object(path.read_bytes())
    except ValueError as error:
        raise ValueError(f"{path} is damaged ({error}); delete {folder} and encode again.") from error
    differing = [key for key, value in description.items() if found.get(key) != value]
    if differing:
        raise ValueError(
            f"{folder} was begun with another {' and '.join(differing)}; use the same model, source, column and "
            "rows_per_part, or choose an empty folder."
        )


def _encode_with_ray(model: Any, parts: list[Part], job: Job, num_workers: int | None) -> None:
    """Encode the parts as a Ray dataset with one part per block; Ray repeats the parts of a dead worker."""
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
        # An existing cluster keeps its dashboard; one started here needs none.
        ray.init(log_to_driver=False, include_dashboard=None if "RAY_ADDRESS" in os.environ else False)
    try:
        shared_model = ray.put(model)

        def encode_row(row: dict[str, Any]) -> dict[str, Any]:
            part = parts[row["id"]]
            try:
                # A repeated part may be done already.
                if not is_whole(part, job):
                    encode_part(ray.get(shared_model), part, job)
            except ValueError as error:  # wrong data stay wrong, so the part is not repeated
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
