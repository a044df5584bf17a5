"""List methods, hash functions, encoders, data sets, protocols, tables and figures by name."""

from __future__ import annotations

import argparse
import ast
import json
from typing import TYPE_CHECKING

from hbmp._core import catalog

if TYPE_CHECKING:
    from collections.abc import Iterator

EXAMPLE = "hbmp list methods"
_FOLDERS = ("methods", "affinities", "functions", "backbones", "encoders", "datasets", "protocols", "recipes", "stores")
_HYPHENS = ("datasets", "protocols")  # their names are written fashion-mnist, cifar-1


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """One kind, or all."""
    parser.add_argument("kind", nargs="?", choices=_kinds(), metavar="KIND", help=f"one of {', '.join(_kinds())}")
    parser.add_argument("--json", action="store_true", help="print a list of {kind, name, about}")


def run(options: argparse.Namespace) -> None:
    """Print names with the first line of their files, without importing them."""
    kinds = (options.kind,) if options.kind else _kinds()
    found = [{"kind": kind, "name": name, "about": about} for kind in kinds for name, about in _entries(kind)]
    if options.json:
        print(json.dumps(found, ensure_ascii=False))
        return
    width = max(len(entry["name"]) for entry in found) + 2
    for kind in kinds:
        if not options.kind:
            print(f"{kind}:")
        for entry in (entry for entry in found if entry["kind"] == kind):
            print(f"{'' if options.kind else '  '}{entry['name']:{width}}{entry['about']}")


def _kinds() -> tuple[str, ...]:
    return tuple(folder for folder in _FOLDERS if catalog.names(folder))


def _entries(kind: str) -> Iterator[tuple[str, str]]:
    folder = catalog.home(kind)
    for name in catalog.names(kind):
        file = folder / f"{name}.py"
        text = (file if file.is_file() else folder / name / "__init__.py").read_text(encoding="utf-8")
        about = (ast.get_docstring(ast.parse(text)) or "").partition("\n")[0]
        yield name.replace("_", "-") if kind in _HYPHENS else name, about
