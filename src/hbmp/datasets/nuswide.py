"""NUS-WIDE: 269,648 flickr images with 81 concepts, reduced to the 21 most frequent ones as in hashing papers.

Images without any of the 21 are dropped, which leaves 195,834. Columns are in descending order of frequency.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp._core.arrays import as_features, read_npy, read_npz
from hbmp.datasets._shared.base import Data, DataSet, Remote
from hbmp.datasets._shared.files import locate

_PLACE = "http://dl.nextcenter.org/public/nuswide/"
_UNPACKED = ("Groundtruth", "ImageList", "ConceptsList", "NUS-WIDE", "NUS-WIDE/Groundtruth", "NUS-WIDE/ConceptsList")
_CONCEPT_WORDS = """
    airport animal beach bear birds boats book bridge buildings cars castle cat cityscape clouds computer coral cow
    dancing dog earthquake elk fire fish flags flowers food fox frost garden glacier grass harbor horses house lake leaf
    map military moon mountain nighttime ocean person plane plants police protest railroad rainbow reflection road rocks
    running sand sign sky snow soccer sports statue street sun sunset surf swimmers tattoo temple tiger tower town toy
    train tree valley vehicle water waterfall wedding whales window zebra
"""
_CONCEPTS = tuple(_CONCEPT_WORDS.split())
_KEPT = 21


class NUSWIDE(DataSet):
    """Web images with the ground truth of 81 concepts, of which 21 are kept.

    Examples
    --------
    >>> from hbmp import datasets
    >>> datasets.get("nuswide").title
    'NUS-WIDE'
    """

    title = "NUS-WIDE"
    files = (
        Remote(url=_PLACE + "Groundtruth.zip", filename="Groundtruth.zip"),
        Remote(url=_PLACE + "ImageList.zip", filename="ImageList.zip"),
    )
    licence = "Labels for research; cite Chua et al., CIVR 2009. Images belong to their flickr authors."
    layout = (
        "nuswide/Groundtruth/AllLabels/Labels_CONCEPT.txt, 81 files of 269,648 lines, or nuswide/AllLabels81.txt, or "
        "nuswide/labels81.npz (labels, concepts); nuswide/ImageList/Imagelist.txt; images under nuswide/Flickr; "
        "features.npy optionally, one row per image of the list."
    )
    how_to_get = (
        "`hbmp fetch nuswide` gets labels and the image list; the images are sent on request by the authors at "
        "https://lms.comp.nus.edu.sg/wp-content/uploads/2019/research/nuswide/NUS-WIDE.html."
    )

    def load(self, folder: Path) -> Data:
        """Read the ground truth, and images and features if there are any.

        Parameters
        ----------
        folder : Path
            Folder of the data set.

        Returns
        -------
        Data
            Labels (195834, 21) uint8; images and features if the folder holds them.
        """
        labels, concepts = self._ground_truth(folder)
        top = np.argsort(-labels.sum(axis=0, dtype=np.int64), kind="stable")[:_KEPT]
        kept = np.flatnonzero(labels[:, top].any(axis=1))
        return Data(
            name=self.name(),
            labels=np.ascontiguousarray(labels[np.ix_(kept, top)]),
            features=_features(folder, kept, len(labels)),
            images=_images(folder, kept, len(labels)),
            label_names=tuple(concepts[column] for column in top),
        )

    def _ground_truth(self, folder: Path) -> tuple[NDArray[Any], tuple[str, ...]]:
        """The whole ground truth (n, 81) uint8 and the names of its columns."""
        if path := locate(folder, "labels81.npz"):
            return _from_npz(path)
        if path := locate(folder, "AllLabels81.txt", _UNPACKED):
            return _zeros_and_ones(path, columns=len(_CONCEPTS)), _CONCEPTS
        if path := locate(folder, "AllLabels", _UNPACKED):
            return _from_concept_files(path)
        raise self.missing(folder, "its labels (AllLabels/, AllLabels81.txt or labels81.npz)")


def _from_npz(path: Path) -> tuple[NDArray[Any], tuple[str, ...]]:
    stored = read_npz(path)
    if "labels" not in stored or stored["labels"].ndim != 2:
        raise ValueError(f"{path} must hold labels (images, concepts); found {sorted(stored)}.")
    labels = stored["labels"].astype(np.uint8)
    concepts = stored.get("concepts", np.array(_CONCEPTS))
    if labels.shape[1] != len(concepts):
        raise ValueError(f"{path} has {labels.shape[1]} label columns but {len(concepts)} concept names.")
    return labels, tuple(str(concept) for concept in concepts)


def _from_concept_files(folder: Path) -> tuple[NDArray[Any], tuple[str, ...]]:
    paths = sorted(folder.glob("Labels_*.txt"))
    concepts = tuple(path.stem.removeprefix("Labels_") for path in paths)
    lacking = sorted(set(_CONCEPTS) - set(concepts))
    if lacking:
        raise ValueError(f"{folder} must hold 81 files Labels_CONCEPT.txt; it lacks {', '.join(lacking[:3])} "
                         f"({len(lacking)} in all). Fetch them again.")  # fmt: skip
    columns = [_zeros_and_ones(path, columns=1)[:, 0] for path in paths]
    lengths = {len(column) for column in columns}
    if len(lengths) != 1:
        short = paths[int(np.argmin([len(column) for column in columns]))]
        raise ValueError(
            f"The label files of {folder} must be equally long; found {sorted(lengths)}, shortest {short.name}."
        )
    return np.column_stack(columns), concepts


def _zeros_and_ones(path: Path, columns: int) -> NDArray[Any]:
    """A text of zeros and ones between blanks as a matrix with that many columns, uint8."""
    text = np.fromfile(path, dtype=np.uint8)
    digit = (text == ord("0")) | (text == ord("1"))
    blank = np.isin(text, np.frombuffer(b" \t\r\n", dtype=np.uint8))
    if not (digit | blank).all() or (digit[1:] & digit[:-1]).any():
        raise ValueError(f"{path} must hold zeros and ones between blanks and nothing else.")
    values = text[digit] - np.uint8(ord("0"))
    if values.size == 0 or values.size % columns:
        raise ValueError(f"{path} must hold {columns} values per line; found {values.size} values, so it is cut short.")
    matrix: NDArray[Any] = values.reshape(-1, columns)
    return matrix


def _images(folder: Path, kept: NDArray[Any], count: int) -> list[str] | None:
    """Paths of the kept images, or None without an image list or images."""
    listed, root = locate(folder, "Imagelist.txt", _UNPACKED), locate(folder, "Flickr") or locate(folder, "images")
    if listed is None or root is None:
        return None
    names = listed.read_text(encoding="utf-8", errors="replace").split("\n")
    names = [name.strip().replace("\\", "/") for name in names if name.strip()]
    if len(names) != count:
        raise ValueError(f"{listed} lists {len(names)} images, and there are labels for {count}.")
    return [str(root / names[row]) for row in kept]


def _features(folder: Path, kept: NDArray[Any], count: int) -> NDArray[Any] | None:
    path = locate(folder, "features.npy")
    if path is None:
        return None
    features = as_features(read_npy(path), path)
    if len(features) not in (count, len(kept)):
        raise ValueError(f"{path} has {len(features)} rows; NUS-WIDE has {count} images, {len(kept)} of them kept.")
    return features if len(features) == len(kept) else features[kept]
