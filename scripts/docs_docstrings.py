"""How the reference reads our docstrings: `Parameters` with one `name : what it is` a line, no types in words.

That is numpydoc's outline without its types, which the signature tells. Here such a section becomes one that the
documentation builder knows ("Args:"), and names that share a line get a row each.
"""

from __future__ import annotations

import re

import griffe

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
        if obj.docstring:
            obj.docstring.value = as_args(obj.docstring.value)
