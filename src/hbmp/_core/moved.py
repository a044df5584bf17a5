"""Module names of before 0.1.0 that still work: `hbmp.comparison` is `hbmp.evaluation.comparison`."""

from __future__ import annotations

import importlib
import importlib.abc
import importlib.machinery
import sys

MOVED = {
    "catalog": "_core.catalog",
    "cli": "app.cli",
    "comparison": "evaluation.comparison",
    "demo": "app.demo",
    "experiment": "experiments",
    "recipes": "experiments.recipes",
    "report": "experiments.report",
    "training": "_training.loop",
    "web": "app.web",
}


class _Finder(importlib.abc.MetaPathFinder):
    """Finder of moved modules and their contents under their former names."""

    def find_spec(self, fullname, path=None, target=None):
        """The specification of an alias, or None for every other name."""
        package, _, rest = fullname.partition(".")
        name, dot, inside = rest.partition(".")
        if package != "hbmp" or name not in MOVED:
            return None
        return importlib.machinery.ModuleSpec(fullname, _Alias(f"hbmp.{MOVED[name]}{dot}{inside}"))


class _Alias(importlib.abc.Loader):
    """Loader that returns the moved module unchanged."""

    def __init__(self, name: str):
        self._name = name

    def create_module(self, spec):
        """The module itself; its own specification is kept for `exec_module`."""
        module = importlib.import_module(self._name)
        self._spec = module.__spec__
        return module

    def exec_module(self, module):
        """Undo the changes of the import system to a module that it takes for new."""
        module.__spec__ = self._spec


def install() -> None:
    """Let `import` find moved modules, once per process."""
    if not any(isinstance(finder, _Finder) for finder in sys.meta_path):
        sys.meta_path.append(_Finder())
