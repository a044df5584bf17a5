"""Docstrings with one `name : description` per line under `Parameters`, which are not numpydoc, for the reference.

Such a section becomes one that the documentation builder reads ("Args:"), and names that share a line get one row each.
Docstrings in numpydoc, with types and `Examples`, pass unchanged. This file goes when no other kind is left.
"""

from __future__ import annotations

import re

import griffe

_NUMPYDOC = re.compile(r"^(Examples|Returns|Attributes)\n-+$", flags=re.M)
_SECTION = re.compile(r"^Parameters\n-+\n(?P<lines>(?:.+\n?)+)", flags=re.M)


def parameters(lines: str) -> list[tuple[str, str]]:
    """(name, text) for each name of a section; lines that are indented go on with the text above them."""
    found: list[tuple[str, str]] = []
    for line in lines.splitlines():
        if line.startswith(" ") and found:
            names, text = found[-1]
            ended = "" if text.endswith((".", ",", ";", ":")) or not line.strip()[0].isupper() else "."
            found[-1] = (names, f"{text}{ended} {line.strip()}")
        else:
            names, _, text = line.partition(" : ")
            found.append((names.strip(), text.strip()))
    return [(name.strip(), text) for names, text in found for name in names.split(",")]


def as_args(docstring: str) -> str:
    """The docstring with its section of parameters in the builder's outline."""

    def replaced(match: re.Match) -> str:
        rows = (f"    {name}: {text}\n" for name, text in parameters(match["lines"]))
        return "Args:\n" + "".join(rows)

    return _SECTION.sub(replaced, docstring)


class Parameters(griffe.Extension):
    """Changes docstrings while the package is read."""

    def on_object(self, *, obj: griffe.Object, **_) -> None:
        """Every module, class and function passes here once."""
        if obj.docstring and not _NUMPYDOC.search(obj.docstring.value):
            obj.docstring.value = as_args(obj.docstring.value)
