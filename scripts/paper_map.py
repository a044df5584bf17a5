"""docs/paper-map.md from the marks in the code: where each equation is computed, and where the code departs from it.

    python scripts/paper_map.py          writes docs/paper-map.md

A mark names a statement of this paper with its tag: "HBMP Eq. 10", "HBMP Theorem 2", "HBMP Alg. 1, line 7" in a
docstring or comment, or `test_hbmp_theorem_2_…` as the name of a test. Without the tag a number belongs to another
paper and is no mark. A departure is a sentence that begins with "Departs from".
"""

from __future__ import annotations

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "paper-map.md"
FOLDERS = ("src/hbmp", "tests/claims")
OWN_CODE = ("src/hbmp/affinities", "src/hbmp/functions", "src/hbmp/methods/hbmp", "src/hbmp/pursuit")
"""Code of this paper; all other departures are from other publications."""

STATEMENTS = {
    "Eq. 1": "the goal: Hamming distances equal the scaled distances between items",
    "Eq. 2": "the same goal with inner products of codes and affinities, 1 − 2d/d_max",
    "Eq. 3": "the same with one weight per bit: ½ ‖U − R‖² over all pairs of items",
    "Eq. 4": "U is a weighted sum of rank-one sign matrices v vᵀ",
    "Eq. 5": "each step adds one bit to that sum",
    "Eq. 6": "the next bit: the sign vector that matches the residual best",
    "Eq. 7": "its relaxation: the residual's top eigenvector",
    "Eq. 8": "each step multiplies the residual by at most η ≤ 1",
    "Eq. 9": "all weights refitted, as a least-squares problem",
    "Eq. 10": "the solution of that problem",
    "Eq. 11": "a hash function is the sign of a score",
    "Eq. 12": "hash functions minimise the bit errors against the target codes, through a margin loss as upper bound",
    "Property 1": "with unit steps some affinities are never fitted",
    "Theorem 2": "with free step sizes the residual never rises",
    "Corollary 3": "it falls strictly while the direction is not orthogonal to it",
    "Property 4": "refitting the weights never raises it",
    "Alg. 1": "binary code inference as a whole",
    "Alg. 1, line 1": "the affinity from distances, scaled by the number of bits if steps are constant",
    "Alg. 1, line 3": "the top eigenvector",
    "Alg. 1, line 4": "its signs",
    "Alg. 1, line 5": "the optional Improve step",
    "Alg. 1, line 7": "the weights of all bits so far",
    "Alg. 1, line 8": "the bit is appended",
}
_NUMBERED = re.compile(r"HBMP (Eq\.|Property|Theorem|Corollary) (\d+(?:(?:, | and |-)\d+)*)")
_ALGORITHM = re.compile(r"HBMP Alg(?:\.|orithm) 1(?:, lines? (\d+(?:(?:, | and |-)\d+)*))?")
_TESTED = re.compile(r"def test_hbmp_(property|theorem|corollary)_(\d+)_")
_DEPARTS = re.compile(r"Departs from ")


@dataclass(frozen=True)
class Place:
    """A line of the code and the function or class around it."""

    file: str
    line: int
    inside: str

    def link(self) -> str:
        """Markdown, relative to docs/."""
        shown = self.file.removeprefix("src/hbmp/")
        inside = f" `{self.inside}`" if self.inside else ""
        return f"[{shown}:{self.line}](../{self.file}#L{self.line}){inside}"


def page() -> str:
    """The whole page as Markdown."""
    places, departures = collect()
    parts = [
        "# From the paper to the code",
        "Written by `python scripts/paper_map.py` from the marks in the code; do not edit. The paper: Cakir, He & "
        "Sclaroff, *Hashing with Binary Matrix Pursuit*, ECCV 2018.",
        "| in the paper | what it says | where |\n|:---|:---|:---|\n" + _rows(places),
        "## Departures from the paper",
        _sentences(departures, of_this_paper=True),
        "## Departures of the other methods from their publications",
        _sentences(departures, of_this_paper=False),
        "## Tables and figures",
        "\n".join(_recipes()),
    ]
    return "\n\n".join(parts) + "\n"


def without_line_numbers(text: str) -> str:
    """The page without line numbers, which move while marks stay; a test compares pages in this form."""
    return re.sub(r"\.py:\d+\]|#L\d+\)", "", text)


def collect() -> tuple[dict[str, list[Place]], list[tuple[Place, str]]]:
    """(places of each statement, departures with their sentences), in the order of files and lines."""
    places: dict[str, list[Place]] = defaultdict(list)
    departures: list[tuple[Place, str]] = []
    for path in sorted(path for folder in FOLDERS for path in (ROOT / folder).rglob("*.py")):
        text = path.read_text(encoding="utf-8")
        lines, surroundings = text.splitlines(), _surroundings(ast.parse(text))
        for number, line in enumerate(lines, start=1):
            place = Place(path.relative_to(ROOT).as_posix(), number, _innermost(surroundings, number))
            for name in marks(line):
                places[name].append(place)
            if _DEPARTS.search(line):
                departures.append((place, paragraph_from_mark(lines, number - 1)))
    return places, departures


def marks(line: str) -> list[str]:
    """The statements of the paper that a line names: "HBMP Eq. 11, 12" names two."""
    found = [f"{match[1]} {number}" for match in _NUMBERED.finditer(line) for number in _numbers(match[2])]
    for match in _ALGORITHM.finditer(line):
        found += [f"Alg. 1, line {number}" for number in _numbers(match[1])] if match[1] else ["Alg. 1"]
    found += [f"{match[1].capitalize()} {match[2]}" for match in _TESTED.finditer(line)]
    return list(dict.fromkeys(found))


def _numbers(text: str) -> Iterator[int]:
    """The numbers of "3-5" or "11, 12"."""
    for part in re.split(r", | and ", text):
        first, _, last = part.partition("-")
        yield from range(int(first), int(last or first) + 1)


def paragraph_from_mark(lines: list[str], at: int) -> str:
    """The sentences of a departure: from its mark to the end of its paragraph or comment."""
    said = [lines[at][_DEPARTS.search(lines[at]).start() :]]  # type: ignore[union-attr]
    comment = lines[at].lstrip().startswith("#")
    indents = set()
    for line in lines[at + 1 :]:
        indents.add(len(line) - len(line.lstrip()))
        if not line.strip() or len(indents) > 1 or line.lstrip().startswith("#") != comment or '"""' in said[-1]:
            break
        said.append(line.strip().removeprefix("# "))
    return " ".join(said).replace('"""', "").strip()


def _surroundings(tree: ast.Module) -> list[tuple[int, int, str]]:
    """(first line, last line, dotted name) of every function and class, outer before inner."""
    found = []

    def visit(node: ast.AST, prefix: str) -> None:
        for child in ast.iter_child_nodes(node):
            if isinstance(child, (ast.FunctionDef, ast.ClassDef)):
                name = f"{prefix}{child.name}"
                found.append((child.lineno, child.end_lineno or child.lineno, name))
                visit(child, f"{name}.")

    visit(tree, "")
    return found


def _innermost(surroundings: list[tuple[int, int, str]], line: int) -> str:
    inside = [name for first, last, name in surroundings if first <= line <= last]
    return inside[-1] if inside else ""


def _rows(places: dict[str, list[Place]]) -> str:
    unknown = sorted(set(places) - set(STATEMENTS))
    if unknown:
        raise ValueError(f"The code marks {', '.join(unknown)}, which the paper does not have.")
    return "\n".join(
        f"| {name} | {words} | {'<br>'.join(place.link() for place in places.get(name, ())) or '—'} |"
        for name, words in STATEMENTS.items()
    )


def _sentences(departures: list[tuple[Place, str]], *, of_this_paper: bool) -> str:
    """The departures of this paper's own code, or of the other methods, as a list."""
    return "\n".join(
        f"- {place.link()}: {sentence}"
        for place, sentence in departures
        if place.file.startswith(OWN_CODE) == of_this_paper
    )


def _recipes() -> Iterator[str]:
    for path in sorted((ROOT / "src/hbmp/experiments/recipes").glob("[a-z]*.py")):
        headline = (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").partition("\n")[0]
        yield f"- [{path.stem}](../src/hbmp/experiments/recipes/{path.name}): {headline.partition(': ')[2]}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    print(PAGE.relative_to(ROOT))
