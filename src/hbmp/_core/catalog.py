"""The catalog: a folder is its own registry, and each file is named after the class it defines.

`names("methods")` reads the folder without importing anything. `load("methods", "itq")` imports one file and returns
its one public class. To add a method, an affinity or a hash function, add a file.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import inspect
import pkgutil
from pathlib import Path
from types import ModuleType

_ROOT = Path(__file__).parent.parent
_HOMES = {"commands": "app/commands", "recipes": "experiments/recipes"}  # folders that lie deeper than the root
_SINGULAR = {"affinities": "affinity", "functions": "hash function", "datasets": "data set"}


@functools.cache
def names(folder: str) -> tuple[str, ...]:
    """The sorted names in a folder, without files that start with an underscore."""
    modules = pkgutil.iter_modules([str(home(folder))])
    return tuple(sorted(module.name for module in modules if not module.name.startswith("_")))


def home(folder: str) -> Path:
    """The path of a folder of the catalog."""
    return _ROOT / _HOMES.get(folder, folder)


def load_module(folder: str, name: str) -> ModuleType:
    """Import the module `name` of a folder. Without torch, ImportError names the extra that installs it."""
    try:
        return importlib.import_module(f"hbmp.{_HOMES.get(folder, folder).replace('/', '.')}.{name}")
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise ImportError(f"The {_singular(folder)} {name!r} needs torch: pip install 'hbmp[learn]'") from None


def load(folder: str, name: str) -> type:
    """The class that the file `name` of `folder` defines."""
    if name not in names(folder):
        raise LookupError(unknown(folder, name))
    module = load_module(folder, name)
    classes = [value for key, value in vars(module).items() if not key.startswith("_") and _belongs_to(value, module)]
    if len(classes) != 1:
        raise TypeError(f"{module.__name__} must define exactly one public class, found {len(classes)}.")
    return classes[0]


def _belongs_to(value, module: ModuleType) -> bool:
    """Whether this is a class of the module, or of a package that exports it in `__init__`."""
    inside = getattr(value, "__module__", "")
    return inspect.isclass(value) and (inside == module.__name__ or inside.startswith(f"{module.__name__}."))


def load_class(folder: str, class_name: str) -> type:
    """The class called `SameClass` from the file `same_class`, so that `hbmp.affinities.SameClass` works."""
    for name in names(folder):
        if name.replace("_", "") == class_name.lower():
            return load(folder, name)
    raise AttributeError(f"module 'hbmp.{folder}' has no attribute {class_name!r}")


def resolve(folder: str, piece):
    """The object itself, or for a name an object with default settings."""
    return load(folder, piece)() if isinstance(piece, str) else piece


def unknown(folder: str, name: str) -> str:
    """Error message for a name that does not exist, with the nearest existing one."""
    known = names(folder)
    close = difflib.get_close_matches(str(name), known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"No {_singular(folder)} called {name!r}.{hint} There are {len(known)}: {', '.join(known)}."


def _singular(folder: str) -> str:
    return _SINGULAR.get(folder, folder.removesuffix("s"))
