"""hbmp: learned binary codes for search.

All public names are available here and imported on first use, so `import hbmp` is fast.
"""

from __future__ import annotations

import importlib

from hbmp._core.moved import MOVED, install

__version__ = "0.1.0"

_HOMES = {
    "HBMP": "hbmp.methods.hbmp",
    "Hasher": "hbmp.hasher",
    "load": "hbmp.hasher",
    "get_method": "hbmp.hasher",
    "list_methods": "hbmp.hasher",
    "infer_codes": "hbmp.pursuit",
    "CodeBook": "hbmp.pursuit",
    "Index": "hbmp.index",
    "rescore": "hbmp.index.rescoring",
    "encode_dataset": "hbmp.encode",
    "Images": "hbmp.images",
    "deduplicate": "hbmp.dedup",
    "compare": "hbmp.evaluation.comparison",
    "evaluate": "hbmp.evaluation",
    "Database": "hbmp.database",
    "resumable": "hbmp._training.resuming",
}
_MODULES = [
    "affinities",
    "backbones",
    "database",
    "datasets",
    "dedup",
    "encode",
    "encoders",
    "evaluation",
    "experiments",
    "export",
    "functions",
    "hamming",
    "hasher",
    "images",
    "index",
    "methods",
    "metrics",
    "protocols",
    "pursuit",
    "stores",
]

install()

__all__ = ["__version__", *_HOMES, *_MODULES]


def __getattr__(name: str):
    if name in _HOMES:
        return getattr(importlib.import_module(_HOMES[name]), name)
    if name in _MODULES or name in MOVED:
        return importlib.import_module(f"hbmp.{name}")
    raise AttributeError(f"module 'hbmp' has no attribute {name!r}")


def __dir__():
    return sorted(__all__)
