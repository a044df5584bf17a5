"""Descriptions of functions and classes, read from the source files of installed packages without importing them."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path

_SKIPPED = frozenset({"tests", "testing", "externals", "_examples", "distutils"})
_SHORTEST, _LONGEST = 60, 1200  # characters of a text

Description = tuple[str, str, str]  # name, such as scipy.signal.medfilt; text; part of the package


def describe(packages: Sequence[str], fewest: int) -> list[Description]:
    """Every public function and class of the packages, sorted by name; parts with fewer than `fewest` are left out."""
    found = {name: (name, text, part) for package in packages for name, text, part in _package(package)}
    counts = Counter(part for _, _, part in found.values())
    return sorted(entry for entry in found.values() if counts[entry[2]] >= fewest)


@lru_cache
def _package(package: str) -> tuple[Description, ...]:
    spec = find_spec(package)
    if spec is None or spec.origin is None:
        return ()
    root, found = Path(spec.origin).parent, []
    for path in sorted(root.rglob("*.py")):
        module = path.relative_to(root.parent).with_suffix("").parts
        if len(module) < 3 or _SKIPPED & set(module) or module[1].startswith("_"):
            continue
        for name, text in _documented(path):
            found.append((".".join([*module[:2], name]), text, ".".join(module[:2])))
    return tuple(found)


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
