"""Origin of a result: version, commit, and a hash of the source that its method runs.

The hash of a method covers its own module and every module that it imports, directly or not, from the packages that
learn and encode (`PACKAGES`). Where one of them loads pieces by name, the whole folder of pieces counts. Docstrings,
comments, annotations and import statements do not count, so documented, reformatted or moved code keeps its hash.
A result is stale when its hash differs from the hash of today's source. A result without a hash has an unknown source.
"""

from __future__ import annotations

import ast
import hashlib
import subprocess
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any

import hbmp

PACKAGES = ("_training", "affinities", "backbones", "functions", "hamming", "methods", "pursuit")
_ROOT = Path(hbmp.__file__).parent
_IGNORED_FIELDS = {"annotation", "returns", "type_comment", "type_params", "kind", "ctx"}
_IMPORTS = (ast.Import, ast.ImportFrom)


def origin(method: str) -> dict[str, str]:
    """Describe the source that makes results of a method now.

    Parameters
    ----------
    method : str
        Name of the method.

    Returns
    -------
    dict of str to str
        "version"; "method", the hash of the method's source; and "commit" in a git checkout of this package.

    Examples
    --------
    >>> from hbmp.experiments import provenance
    >>> sorted(provenance.origin("itq"))[-2:]
    ['method', 'version']
    """
    commit = _commit()
    return {"version": hbmp.__version__, "method": source_hash(method)} | ({"commit": commit} if commit else {})


def is_stale(record: dict[str, Any]) -> bool:
    """Whether the method of a record has changed since the record was made.

    Parameters
    ----------
    record : dict
        A result line.

    Returns
    -------
    bool
        False also where the source of the record is unknown; see `has_source`.

    Examples
    --------
    >>> from hbmp.experiments import provenance
    >>> provenance.is_stale({"cell": {"method": "itq"}, "source": {"method": "0" * 16}})
    True
    >>> provenance.is_stale({"cell": {"method": "itq"}, "source": provenance.origin("itq")})
    False
    """
    return has_source(record) and record["source"]["method"] != source_hash(record["cell"]["method"])


def has_source(record: dict[str, Any]) -> bool:
    """Whether a record contains the hash of its method's source.

    Parameters
    ----------
    record : dict
        A result line. Version 0.1.0 wrote its first lines without a hash.

    Returns
    -------
    bool
        True where the line has a hash.

    Examples
    --------
    >>> from hbmp.experiments import provenance
    >>> provenance.has_source({"versions": {"hbmp": "0.1.0"}})
    False
    """
    return "method" in record.get("source", {})


@cache
def source_hash(method: str) -> str:
    """Hash the source that a method runs.

    Parameters
    ----------
    method : str
        Name of the method.

    Returns
    -------
    str
        Sixteen hexadecimal digits.

    Examples
    --------
    >>> from hbmp.experiments import provenance
    >>> provenance.source_hash("itq") == provenance.source_hash("lsh")
    False
    """
    path = _path_of(f"hbmp.methods.{method}")
    if path is None:
        raise LookupError(f"No method called {method!r}. `hbmp list methods` shows all.")
    found: set[Path] = set()
    waiting = [path, *(path.parent.rglob("*.py") if path.name == "__init__.py" else ())]
    while waiting:
        path = waiting.pop()
        if path not in found:
            found.add(path)
            waiting += _used_by(path)
    digests = sorted(_digest(path) for path in found)
    return hashlib.sha256("".join(digests).encode()).hexdigest()[:16]


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def _digest(path: Path) -> str:
    text = "".join(_code(_tree(path)))
    return hashlib.sha256(text.encode()).hexdigest()


def _code(node: Any) -> Iterator[str]:
    """The code of a syntax tree as text, without docstrings, annotations and imports."""
    if isinstance(node, _IMPORTS):
        return
    if isinstance(node, ast.AST):
        yield f"({type(node).__name__}"
        for name, value in ast.iter_fields(node):
            if name not in _IGNORED_FIELDS and value not in (None, []):
                yield f" {name}="
                yield from _code(value)
        yield ")"
    elif isinstance(node, list):
        for value in node:
            if not _is_text(value):
                yield from _code(value)
    else:
        yield repr(node)


def _is_text(node: Any) -> bool:
    """Whether a statement is a bare string: a docstring."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


@cache
def _used_by(path: Path) -> tuple[Path, ...]:
    """The counted modules that one module imports, and all pieces of the folders that it loads from by name."""
    used: set[Path] = set()
    for node in ast.walk(_tree(path)):
        names: list[str] = []
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module, *(f"{node.module}.{alias.name}" for alias in node.names)]
        elif isinstance(node, ast.Call):
            used |= set(_pieces_loaded(node))
        used |= {found for name in names if _counts(name) and (found := _path_of(name))}
    return tuple(sorted(used))


def _counts(module: str) -> bool:
    package, _, rest = module.partition(".")
    return package == "hbmp" and rest.partition(".")[0] in PACKAGES


def _pieces_loaded(call: ast.Call) -> Iterator[Path]:
    """The files of a folder that a call such as `catalog.resolve("functions", …)` loads from."""
    function = call.func
    if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)):
        return
    if function.value.id == "catalog" and call.args and isinstance(call.args[0], ast.Constant):
        folder = str(call.args[0].value)
        if folder in PACKAGES and folder != "methods":
            yield from (_ROOT / folder).rglob("*.py")


def _path_of(module: str) -> Path | None:
    """The file of a module, or None where the name is no module."""
    place = _ROOT.joinpath(*module.split(".")[1:])
    for path in (place.with_suffix(".py"), place / "__init__.py"):
        if path.is_file():
            return path
    return None


@cache
def _commit() -> str:
    """The commit of the checkout that holds this package, "+" added where the source was edited since."""

    def git(*arguments: str) -> str:
        done = subprocess.run(["git", "-C", str(_ROOT), *arguments], capture_output=True, text=True, check=True)
        return done.stdout.strip()

    try:
        git("ls-files", "--error-unmatch", "__init__.py")  # fails in a checkout of something else
        return git("rev-parse", "HEAD") + ("+" if git("status", "--porcelain", "--", ".") else "")
    except (OSError, subprocess.CalledProcessError):
        return ""
