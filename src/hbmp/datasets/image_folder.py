"""A folder of images: the class is the folder's name, or `labels.csv` gives a class or several labels per file.

`labels.csv` has lines of `file,label`, with or without that header; `dog;grass` stands for two labels. Folders called
`train`, `test`, `val`, `query` or `database` above the classes become the split.
"""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np

from hbmp._core.label_matrix import matrix_of
from hbmp._core.reading import reading
from hbmp.datasets._shared.base import Data, DataSet
from hbmp.images.files import ENDINGS, classes_of, image_files, is_image_file, split_of

_HEADERS = {"file", "filename", "path", "image"}


class ImageFolder(DataSet):
    """Your own images.

    Examples
    --------
    >>> from hbmp import datasets
    >>> datasets.get("image-folder").title
    'A folder of images'
    """

    title = "A folder of images"
    licence = "Yours."
    layout = (
        "NAME/CLASS/picture.jpg, or NAME/train/CLASS/picture.jpg and NAME/test/CLASS/…, or any files with labels.csv."
    )
    how_to_get = "Put images there in one folder per class, or with a labels.csv."

    def load(self, folder: Path) -> Data:
        """Read a folder of images.

        Parameters
        ----------
        folder : Path
            Folder of the data set.

        Returns
        -------
        Data
            Images as a sorted list of paths; labels (n,) class names, or (n, c) 0/1.
        """
        folder = Path(folder)
        if not folder.is_dir():
            raise self.missing(folder)
        table = folder / "labels.csv"
        return from_table(table, folder) if table.is_file() else self._from_folders(folder)

    def _from_folders(self, folder: Path) -> Data:
        files = image_files(folder)
        if not files:
            raise self.missing(folder, f"images ({', '.join(sorted(ENDINGS))})")
        classes = classes_of(files)
        if classes is None:
            loose = next(file for file in files if len(Path(file).parts) == 1)
            raise ValueError(
                f"{folder / loose} is outside every class; put each image into its class's folder, or add labels.csv."
            )
        splits = split_of(files)
        return Data(
            name=folder.name,
            labels=np.array(classes),
            images=[str(folder / file) for file in files],
            label_names=tuple(sorted(set(classes))),
            split=None if splits is None else np.array(splits, dtype=np.int8),
        )


def from_table(table: Path, folder: Path) -> Data:
    """Read the images that a table of `file,label` lists.

    Parameters
    ----------
    table : Path
        The CSV file.
    folder : Path
        Folder that relative paths start from.

    Returns
    -------
    Data
        Images as paths, with their labels.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from hbmp.datasets.image_folder import from_table
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     (Path(folder) / "a.jpg").touch()
    ...     _ = (Path(folder) / "labels.csv").write_text("file,label\\na.jpg,cat;tree\\n")
    ...     from_table(Path(folder) / "labels.csv", Path(folder)).label_names
    ('cat', 'tree')
    """
    files, texts = _read_table(table)
    images = [folder / file for file in files]
    absent = [image for image in images if not image.is_file()]
    if absent:
        raise ValueError(f"{table} names {absent[0]}, which does not exist ({len(absent)} such files).")
    if any(";" in text or not text for text in texts):
        labels, label_names = matrix_of([[part.strip() for part in text.split(";") if part.strip()] for text in texts])
    else:
        labels, label_names = np.array(texts), tuple(sorted(set(texts)))
    return Data(
        name=folder.resolve().name, labels=labels, images=[str(image) for image in images], label_names=label_names
    )


def names_files(table: Path) -> bool:
    """Whether a file of labels is such a table: CSV with a first column `file`, or of image files.

    Parameters
    ----------
    table : Path
        The file.

    Returns
    -------
    bool
        True for a table of `file,label`.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hbmp.datasets.image_folder import names_files
    >>> names_files(Path("labels.npy"))
    False
    """
    if table.suffix.lower() != ".csv" or not table.is_file():
        return False
    with reading(table, "CSV in UTF-8"), table.open(newline="", encoding="utf-8-sig") as lines:
        first = next((row for row in csv.reader(lines) if row), [""])
    return first[0].strip().lower() in _HEADERS or is_image_file(first[0].strip())


def _read_table(table: Path) -> tuple[list[str], list[str]]:
    """The files and their label texts."""
    with reading(table, "CSV in UTF-8"), table.open(newline="", encoding="utf-8-sig") as lines:
        rows = [row for row in csv.reader(lines) if row]
    if rows and rows[0][0].strip().lower() in _HEADERS:
        rows = rows[1:]
    wrong = next((row for row in rows if len(row) != 2), None)
    if wrong is not None or not rows:
        raise ValueError(f"{table} must hold lines of file,label (several labels as a;b); found {wrong or 'no lines'}.")
    return [row[0].strip() for row in rows], [row[1].strip() for row in rows]
