"""Feature arrays from Parquet: one list column, or one number column per feature, with `labels` and `split`. Labels
alone too, for images.

The list column is called `features`, or anything where it is the only one. `labels` may hold one class per row, or a
list of label names per row, which becomes an (n, c) matrix of 0 and 1.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from hbmp._core.arrays import as_labels
from hbmp._core.parquet_files import open_parquet, read_schema
from hbmp._core.parquet_rows import read_rows
from hbmp._core.reading import reading

_RESERVED = ("labels", "label", "split", "id", "ids")


def read_parquet(path: Path) -> dict:
    """The arrays of a Parquet file by name: features, and labels, classes and split if there are any."""
    lists = _list_column(path)
    if lists is None:
        table = _table(path)
        features = _features(table, path)
    else:
        table = _table(path, [name for name in column_names(path) if name in _RESERVED])
        features = read_rows(path, lists)
    arrays = {"features": features}
    label_column = next((name for name in ("labels", "label") if name in table.column_names), None)
    if label_column:
        arrays.update(_labels(table.column(label_column)))
    if "split" in table.column_names:
        arrays["split"] = table.column("split").to_numpy()
    return arrays


def read_parquet_labels(path: Path, names: tuple[str, ...]) -> dict:
    """Labels alone, and classes where they are lists: the first column of these names, the only one, or all as 0/1."""
    table = _table(path)
    columns = [name for name in table.column_names if name not in ("id", "ids")]
    named = [name for name in names if name in columns]
    if named or len(columns) == 1:
        return _labels(table.column(named[0] if named else columns[0]))
    return {"labels": np.column_stack([table.column(name).to_numpy() for name in columns]), "classes": columns}


def parquet_labels(files: list[Path], names: Sequence[str]) -> tuple[np.ndarray | None, tuple[str, ...]]:
    """Labels of the first column of these names over several files, and the names of label lists; None without one."""
    from pyarrow import concat_tables

    columns = {file: column_names(file) for file in files}
    found = next((name for name in names if any(name in of_file for of_file in columns.values())), None)
    if found is None:
        return None, ()
    without = next((file for file, of_file in columns.items() if found not in of_file), None)
    if without is not None:
        raise ValueError(f"{without} has no column {found!r}, which others have; every image needs its label.")
    column = concat_tables([_table(file, [found]) for file in files], promote_options="permissive").column(found)
    if column.null_count:
        raise ValueError(f"Column {found!r} of {files[0].parent} has {column.null_count} rows without a label.")
    arrays = _labels(column)
    return as_labels(arrays["labels"], files[0]), tuple(arrays.get("classes", ()))


def column_kinds(path: Path) -> dict[str, str]:
    """The kind of each column of a Parquet file: "vector", "image", "text" or "other". Empty without pyarrow."""
    try:
        from pyarrow import types
    except ImportError:
        return {}
    kinds = {}
    for field in read_schema(path):
        numbers = _is_list(field) and not types.is_string(field.type.value_type)
        text = types.is_string(field.type) or types.is_large_string(field.type)
        image = field.name == "image"
        kinds[field.name] = "image" if image else "vector" if numbers else "text" if text else "other"
    return kinds


def column_names(path: Path) -> list[str]:
    """The columns of a Parquet file."""
    names: list[str] = read_schema(path).names
    return names


def _table(path: Path, columns: list[str] | None = None):
    _need_pyarrow(path)
    from pyarrow import parquet

    with open_parquet(path) as file:
        n_rows = file.metadata.num_rows
    with reading(path, "Parquet"):
        table = parquet.read_table(path, columns=columns)
        if table.num_columns and len(table) != n_rows:
            raise ValueError(f"it names {n_rows} rows and holds {len(table)}")
        table.validate(full=True)  # damaged pages give texts that are not UTF-8
        return table


def _features(table, path: Path) -> np.ndarray:
    columns = [name for name in table.column_names if name not in _RESERVED]
    if not columns:
        raise ValueError(f"{path} has no column 'features' and no number columns; found {table.column_names}.")
    return np.column_stack([table.column(name).to_numpy() for name in columns])


def _list_column(path: Path) -> str | None:
    """The column `features`, or the only other column of lists; None where each feature has a column of its own."""
    _need_pyarrow(path)
    schema = read_schema(path)
    lists = [field.name for field in schema if field.name not in _RESERVED and _is_list(field)]
    if "features" in lists:
        return "features"
    return lists[0] if len(lists) == 1 and "features" not in schema.names else None


def _need_pyarrow(path: Path) -> None:
    try:
        import pyarrow  # noqa: F401
    except ImportError as error:
        raise ValueError(f"Reading {path} needs pyarrow: pip install 'hbmp[ray]'.") from error


def _is_list(column) -> bool:
    from pyarrow import types

    return any(kind(column.type) for kind in (types.is_list, types.is_large_list, types.is_fixed_size_list))


def _labels(column) -> dict:
    if not _is_list(column):
        return {"labels": column.to_numpy()}
    from hbmp._core.label_matrix import matrix_of

    matrix, label_names = matrix_of(column.to_pylist())
    return {"labels": matrix, "classes": label_names}
