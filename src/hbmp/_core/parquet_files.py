"""Opening Parquet files: what the footer says of rows and names is checked before anything relies on it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from hbmp._core.reading import reading


def open_parquet(path: str | Path, **options: Any) -> Any:
    """A `pyarrow.parquet.ParquetFile` with a checked footer."""
    from pyarrow import parquet

    with reading(path, "Parquet"):
        file = parquet.ParquetFile(path, **options)
        try:
            check_footer(file)
        except BaseException:
            file.close()
            raise
        return file


def check_footer(file: Any) -> None:
    """Raise ValueError if the rows of the groups do not add up, or a name of a column is not text."""
    sizes = [file.metadata.row_group(i).num_rows for i in range(file.num_row_groups)]
    if min([0, *sizes]) < 0 or sum(sizes) != file.metadata.num_rows:
        raise ValueError(f"it names {file.metadata.num_rows} rows, and its groups have {sum(sizes)}")
    list(file.schema_arrow.names)  # pyarrow decodes them here


def read_schema(path: str | Path) -> Any:
    """The Arrow schema of a file with a checked footer."""
    with open_parquet(path) as file:
        return file.schema_arrow
