"""Texts of the demo: docstrings of functions and classes in the installed scientific Python packages.

Every installation has them, they are real, and a reader of the report can judge a search by its items. The label of a
text is the part of its package, such as `scipy.signal`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import numpy as np

from hbmp.evaluation.trial import draw_evenly

PACKAGES = ("numpy", "scipy", "sklearn", "matplotlib")
_SKIPPED = frozenset({"tests", "testing", "externals", "_examples", "distutils"})
_SHORTEST, _LONGEST = 60, 1200  # characters of a text
_FEWEST = 20  # texts that a part of a package must have


@dataclass(frozen=True)
class Texts:
    """Names such as "scipy.signal.medfilt", their descriptions, and the subpackage of each; all (n,)."""

    names: np.ndarray
    texts: np.ndarray
    labels: np.ndarray

    def __len__(self) -> int:
        return len(self.names)

    def drawn(self, count: int | None, seed: int) -> Texts:
        """At most so many of them, drawn evenly over the labels."""
        if count is None or count >= len(self):
            return self
        kinds = np.unique(self.labels, return_inverse=True)[1]
        rows = draw_evenly(count, np.arange(len(self)), kinds, np.random.default_rng(seed))
        return Texts(self.names[rows], self.texts[rows], self.labels[rows])

    @property
    def about(self) -> str:
        """The data in words."""
        kinds = len(np.unique(self.labels))
        packages = sorted({label.split(".")[0] for label in self.labels})
        return (
            f"{len(self):,} descriptions of functions and classes in {', '.join(packages)}, as installed here. The "
            f"label of a description is the part of the package it comes from, one of {kinds}. Nothing is downloaded."
        )


def documentation() -> Texts:
    """The descriptions of all public functions and classes, in parts of packages that have enough of them."""
    found = {name: (name, text, part) for package in PACKAGES for name, text, part in _descriptions(package)}
    counts = Counter(part for _, _, part in found.values())
    kept = sorted(entry for entry in found.values() if counts[entry[2]] >= _FEWEST)
    return Texts(*(np.array(column, dtype=object) for column in zip(*kept, strict=True)))


def _descriptions(package: str) -> Iterator[tuple[str, str, str]]:
    """(name, description, part) of what the source files of a package define."""
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return
    root = Path(spec.origin).parent
    for path in sorted(root.rglob("*.py")):
        module = path.relative_to(root.parent).with_suffix("").parts
        if len(module) < 3 or _SKIPPED & set(module) or module[1].startswith("_"):
            continue
        for name, text in _documented(path):
            yield ".".join([*module[:2], name]), text, ".".join(module[:2])


def _documented(path: Path) -> Iterator[tuple[str, str]]:
    """Public functions and classes of a file, with the beginning of their documentation."""
    try:
        nodes = ast.parse(path.read_text(encoding="utf-8")).body
    except (SyntaxError, ValueError):  # templates, and files for other Pythons
        return
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.ClassDef) and not node.name.startswith("_"):
            text = " ".join((ast.get_docstring(node) or "").split("\nParameters\n")[0].split())
            if len(text) >= _SHORTEST:
                yield node.name, text[:_LONGEST]
