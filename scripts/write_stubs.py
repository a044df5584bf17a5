"""Write the type stubs of the packages whose names are imported lazily, so that editors and mypy see real classes.

    python scripts/write_stubs.py

Run it after adding a file to a plug-in folder. A test compares the stubs with what this script writes.
"""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path

import hbmp
from hbmp._core import catalog

FOLDERS = ("affinities", "backbones", "datasets", "encoders", "functions", "methods", "protocols", "stores")
_NOTE = "# Written by scripts/write_stubs.py: the eager form of the lazy imports in __init__.py.\n"


def stubs() -> Iterator[tuple[Path, str]]:
    """(path, text) of every stub."""
    root = Path(hbmp.__file__).parent
    yield root / "__init__.pyi", _package_stub()
    for folder in FOLDERS:
        yield root / folder / "__init__.pyi", _folder_stub(folder)


def _package_stub() -> str:
    modules = [f"from . import {name} as {name}" for name in sorted(hbmp._MODULES)]
    names = [f"from {home} import {name} as {name}" for name, home in hbmp._HOMES.items()]
    return "\n".join([_NOTE, *modules, *sorted(names), "", "__version__: str", ""])


def _folder_stub(folder: str) -> str:
    package = importlib.import_module(f"hbmp.{folder}")
    tree = ast.parse(Path(package.__file__ or "").read_text(encoding="utf-8"))
    public = set(getattr(package, "__all__", ()))
    imports, functions = [], []
    typed = [node for block in tree.body if isinstance(block, ast.If) for node in block.body]  # TYPE_CHECKING
    for node in [*typed, *tree.body]:
        if isinstance(node, ast.ImportFrom) and node.module != "__future__":
            names = [alias.name for alias in node.names]
            imports += [f"from {node.module} import {name}" + f" as {name}" * (name in public) for name in names]
        elif isinstance(node, ast.FunctionDef) and node.name in public:
            node.body = [ast.Expr(ast.Constant(...))]
            functions.append(ast.unparse(node).replace("\n    ...", " ..."))
    imports = [line for line in imports if " as " in line]
    for name in catalog.names(folder):
        found = catalog.load(folder, name)
        imports.append(f"from hbmp.{folder}.{name} import {found.__name__} as {found.__name__}")
    parts = [_NOTE, *sorted(imports), ""]
    if any("Any" in function for function in functions):
        parts.insert(1, "from typing import Any\n")
    return "\n".join([*parts, *functions, ""] if functions else parts)


def main() -> None:
    """Write every stub."""
    for path, text in stubs():
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
