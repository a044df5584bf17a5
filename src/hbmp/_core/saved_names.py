"""Stable names of the classes that a saved model may contain; files of the package can move without breaking models.

A method, hash function, affinity, backbone or encoder is named by its folder and file, `methods/itq`, as in the
catalog. Every other part of a model has a name of its own in `PARTS`, the one place to edit when its file moves. A
class without a stable name can neither be saved nor loaded.
"""

from __future__ import annotations

import importlib
import re

from hbmp._core import catalog

FOLDERS = ("affinities", "backbones", "encoders", "functions", "methods")
PARTS = {
    "parts/anchor_kernel": "hbmp.methods._shared.anchors:AnchorKernel",
    "parts/code_book": "hbmp.pursuit.codebook:CodeBook",
    "parts/encoder": "hbmp.methods.hbmp.encoder:BitEncoder",
    "parts/label_queries": "hbmp.methods.hbmp.label_queries:LabelQueries",
    "parts/label_votes": "hbmp.methods.hbmp.label_votes:LabelVotes",
    "parts/plan": "hbmp.methods.hbmp.plan:Plan",
    "parts/recall-estimate": "hbmp.methods.hbmp.recall:RecallEstimate",
    "parts/rebuilding": "hbmp.methods.hbmp.unlabelled:Rebuilding",
    "parts/rebuilding_lengths": "hbmp.methods.hbmp.lengths:RebuildingLengths",
    "parts/rebuilding_offsets": "hbmp.methods.hbmp.offsets:RebuildingOffsets",
    "parts/detail_bits": "hbmp.methods.hbmp.detail:DetailBits",
}
FORMAT_1 = {  # format 1 named the file and class of each part; this list is complete
    "hbmp.methods._anchors:AnchorKernel": "parts/anchor_kernel",
    "hbmp.pursuit.codebook:CodeBook": "parts/code_book",
    "hbmp.methods._label_queries:LabelQueries": "parts/label_queries",
    "hbmp.methods._label_votes:LabelVotes": "parts/label_votes",
    "hbmp.methods._unlabelled:Rebuilding": "parts/rebuilding",
}
_CATALOG_IN_FORMAT_1 = re.compile(rf"hbmp\.({'|'.join(FOLDERS)})\.([a-z]\w*):\w+")


class Refused(ValueError):
    """A class that is not loaded, whatever the rest of the model contains."""


def name_of(cls: type) -> str | None:
    """The stable name of a class, or None for a class that models cannot contain."""
    for name, home in PARTS.items():
        if home == f"{cls.__module__}:{cls.__qualname__}":
            return name
    for folder in FOLDERS:
        for name in catalog.names(folder):
            if name.replace("_", "") == cls.__name__.lower() and catalog.load(folder, name) is cls:
                return f"{folder}/{name}"
    return None


def class_of(name: str) -> type:
    """The class of a stable name, or of a name from format 1."""
    known = _stable(name)
    if known in PARTS:
        module, _, attribute = PARTS[known].partition(":")
        return getattr(importlib.import_module(module), attribute)
    folder, _, file = known.partition("/")
    if folder in FOLDERS and file in catalog.names(folder):
        return catalog.load(folder, file)
    if not name.startswith(("hbmp.", "parts/", *(f"{folder}/" for folder in FOLDERS))):
        raise Refused(f"The model contains {name}, which is not part of hbmp; it is not loaded.")
    raise Refused(f"The model contains {name}, which is not a part models are made of in this version of hbmp.")


def _stable(name: str) -> str:
    found = _CATALOG_IN_FORMAT_1.fullmatch(name)
    return f"{found[1]}/{found[2]}" if found else FORMAT_1.get(name, name)
