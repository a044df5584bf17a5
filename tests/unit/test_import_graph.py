"""The layers of the package: no cycle, no import against their order, no private module of another package."""

from __future__ import annotations

import ast
import graphlib
from collections.abc import Iterator
from pathlib import Path

import pytest

import hbmp

SRC = Path(hbmp.__file__).parent
MOST_ENTRIES = 27
LAYERS = (
    {"_core"},
    {"hamming", "images"},
    {"metrics", "affinities", "_training"},
    {"hasher", "pursuit", "functions", "backbones", "encoders"},
    {"methods"},
    {"index", "encode", "stores", "dedup"},
    {"database", "export"},
    {"datasets"},
    {"protocols"},
    {"evaluation"},
    {"experiments"},
    {"app"},
)
"""Each layer may import the layers above it in this list; within a layer the graph only has to be free of cycles."""
SHARED = ("_core", "_training")
"""Private packages that every package may import."""


class Module:
    """One source file: its dotted name, and the modules of this package that it imports."""

    def __init__(self, path: Path, root: Path, known: frozenset[str]):
        self.name = name_of(path, root)
        self.package = self.name if path.name == "__init__.py" else self.name.rpartition(".")[0]
        tree = ast.parse(path.read_text(encoding="utf-8"))
        self.imports = {self._resolved(target, known) for target in imported(tree, self.package)}

    @staticmethod
    def _resolved(target: str, known: frozenset[str]) -> str:
        """The longest prefix of a dotted name that is a module."""
        while target not in known:
            target = target.rpartition(".")[0]
        return target


def name_of(path: Path, root: Path) -> str:
    parts = (root.name, *path.relative_to(root).with_suffix("").parts)
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(tree: ast.AST, package: str) -> Iterator[str]:
    """Every name of this package that a file imports, at its top or inside a function, or uses as `hbmp.name`."""
    homes = {**hbmp._HOMES, **{name: f"hbmp.{name}" for name in hbmp._MODULES}}
    for node in ast.walk(tree):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name != "hbmp"]
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(package.split(".")[: len(package.split(".")) - node.level + 1]) if node.level else ""
            source = ".".join(part for part in (base, node.module) if part)
            names = [f"{source}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "hbmp":
            names = [f"hbmp.{node.attr}"]
        for name in names:
            if name.partition(".")[0] == "hbmp":
                yield homes.get(name.removeprefix("hbmp."), name)


def modules_of(root: Path) -> list[Module]:
    paths = sorted(root.rglob("*.py"))
    known = frozenset(name_of(path, root) for path in paths)
    return [Module(path, root, known) for path in paths]


def wing(name: str) -> str:
    """The top package or module: `index` of `hbmp.index.exact`; nothing of the root itself."""
    return name.split(".")[1] if "." in name else ""


def folder(module: Module) -> str:
    """The package that a file lies in; files of the root stand for themselves."""
    return module.name if module.package == "hbmp" else module.package


def edges(modules: list[Module], place) -> dict[str, set[str]]:
    """The graph of places; imports of the root package, which loads everything lazily, are no edges."""
    graph: dict[str, set[str]] = {}
    for module in modules:
        here = place(module)
        targets = {place(other) for other in modules if other.name in module.imports and other.name != "hbmp"}
        graph.setdefault(here, set()).update(targets - {here})
    return graph


def cycle_in(graph: dict[str, set[str]]) -> list[str]:
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return error.args[1]
    return []


def against_the_order(modules: list[Module]) -> list[str]:
    rank = {name: number for number, layer in enumerate(LAYERS) for name in layer}
    return [
        f"{module.name} imports {target}"
        for module in modules
        for target in module.imports
        if wing(module.name) not in ("", "__main__") and wing(target) and rank[wing(target)] > rank[wing(module.name)]
    ]


def private_imports(modules: list[Module]) -> list[str]:
    found = []
    for module in modules:
        for target in module.imports:
            parts = target.split(".")
            hidden = next((place for place, part in enumerate(parts) if part.startswith("_") and part != "__main__"), 0)
            owner = ".".join(parts[:hidden])
            inside = module.name == owner or module.name.startswith(f"{owner}.")
            if hidden and not inside and parts[1] not in SHARED:
                found.append(f"{module.name} imports {target}")
    return found


@pytest.fixture(scope="module")
def modules():
    return modules_of(SRC)


def test_every_top_package_has_its_layer(modules):
    placed = set().union(*LAYERS)
    assert {wing(module.name) for module in modules} - {"", "__main__"} <= placed


def test_no_cycle_between_top_packages(modules):
    assert cycle_in(edges(modules, lambda module: wing(module.name))) == []


def test_no_cycle_between_sub_packages(modules):
    assert cycle_in(edges(modules, folder)) == []


def test_no_import_against_the_order_of_the_layers(modules):
    assert against_the_order(modules) == []


def test_no_import_of_a_private_module_of_another_package(modules):
    assert private_imports(modules) == []


def test_few_entries_at_the_top():
    entries = [path.name for path in SRC.iterdir() if path.name != "__pycache__"]
    assert len(entries) <= MOST_ENTRIES, sorted(entries)


def test_each_rule_fails_on_a_package_that_breaks_it(tmp_path):
    root = tmp_path / "hbmp"
    sources = {
        "__init__.py": "",
        "hamming.py": "def f():\n    from hbmp.index import exact",
        "index/__init__.py": "import hbmp\nhbmp.hamming",
        "index/exact.py": "from hbmp.metrics import _ties",
        "metrics/__init__.py": "",
        "metrics/_ties.py": "from .inner import a",
        "metrics/inner/__init__.py": "",
        "metrics/inner/a.py": "from hbmp.metrics import _ties",
    }
    for name, text in sources.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    broken = modules_of(root)
    assert set(cycle_in(edges(broken, lambda module: wing(module.name)))) == {"hamming", "index"}
    assert set(cycle_in(edges(broken[4:], folder))) == {"hbmp.metrics", "hbmp.metrics.inner"}
    assert against_the_order(broken) == ["hbmp.hamming imports hbmp.index.exact"]
    assert private_imports(broken) == ["hbmp.index.exact imports hbmp.metrics._ties"]
