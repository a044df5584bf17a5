"""Feature arrays from Parquet: one list column `features`, or one number column a feature; `labels` and `split` beside.

`labels` may hold one class a row, or a list of label names a row, which become an (n, c) matrix of 0 and 1.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

_RESERVED = ("labels", "label", "split", "id", "ids")


def read_parquet(path: Path) -> dict:
    """The arrays of a Parquet file by name: features, and labels, classes and split where there are any."""
    try:
        from pyarrow import ArrowInvalid, parquet
    except ImportError as error:
        raise ValueError(f"Reading {path} needs pyarrow: pip install 'hbmp[ray]'.") from error
    try:
        table = parquet.read_table(path)
    except ArrowInvalid as error:
        raise ValueError(f"{path} cannot be read as Parquet; write it again.") from error
    arrays = {"features": _features(table, path)}
    label_column = next((name for name in ("labels", "label") if name in table.column_names), None)
    if label_column:
        arrays.update(_labels(table.column(label_column)))
    if "split" in table.column_names:
        arrays["split"] = table.column("split").to_numpy()
    return arrays


def _features(table, path: Path) -> np.ndarray:
    if "features" in table.column_names:
        from pyarrow import compute

        column = table.column("features").combine_chunks()
        lengths = compute.list_value_length(column).unique().to_pylist()
        if len(lengths) != 1 or None in lengths:
            raise ValueError(
                f"The lists in column 'features' of {path} must all be of one length; found {lengths[:4]}."
            )
        return column.flatten().to_numpy(zero_copy_only=False).reshape(len(column), -1)
    columns = [name for name in table.column_names if name not in _RESERVED]
    if not columns:
        raise ValueError(f"{path} has no column 'features' and no number columns; found {table.column_names}.")
    return np.column_stack([table.column(name).to_numpy() for name in columns])


def _labels(column) -> dict:
    import pyarrow

    if not (pyarrow.types.is_list(column.type) or pyarrow.types.is_large_list(column.type)):
        return {"labels": column.to_numpy()}
    from hbmp.datasets._label_sets import matrix_of

    matrix, label_names = matrix_of(column.to_pylist())
    return {"labels": matrix, "classes": label_names}
