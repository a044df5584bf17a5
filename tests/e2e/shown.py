"""The blocks of a page that run, and whether what they print is what the page shows below them.

Output is shown in a block of kind `text` that directly follows. Numbers may differ by a twentieth, because processors
round differently, and `…` stands for anything. Output that varies has a comment above: `<!-- varies: seconds -->`.

    python tests/e2e/shown.py docs/texts.md      run a page and write what its blocks print into it, beyond any `…`
"""

from __future__ import annotations

import contextlib
import io
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from hbmp.app import cli

BLOCK = re.compile(r"(?P<above>[^\n]*)\n```(?P<language>\w*)[^\n]*\n(?P<code>.*?)^```", flags=re.S | re.M)
_REASON = re.compile(r"<!-- not run: \S.{9,} -->")
_VARIES = re.compile(r"<!-- varies: \S.{3,} -->")
_TOKEN = re.compile(r"\d[\d,]*(?:\.\d+)?(?:e[-+]?\d+)?|[^\W\d]+|…|[^\w\s|:-]")


class Block(NamedTuple):
    """Code to run, the output that the page shows for it, and where in the page that is."""

    language: str
    code: str
    shown: str | None = None
    place: tuple[int, int] | None = None


def blocks(text: str) -> list[Block]:
    """The blocks to run, in order."""
    found: list[Block] = []
    end = -1  # of the last block that runs
    for match in BLOCK.finditer(text):
        runs = match["language"] in ("python", "sh") and not _REASON.fullmatch(match["above"])
        if runs:
            found.append(Block(match["language"], match["code"]))
        elif match["language"] == "text" and end >= 0 and not text[end : match.start("above")].strip():
            varies = _VARIES.fullmatch(match["above"])
            found[-1] = found[-1]._replace(shown=None if varies else match["code"], place=match.span("code"))
        end = match.end() if runs else -1
    return found


def run(block: Block, namespace: dict[str, Any], name: str) -> str:
    """What the block prints."""
    printed = io.StringIO()
    with contextlib.redirect_stdout(printed):
        if block.language == "sh":
            _run_commands(block.code, printed)
        else:
            exec(compile(block.code, name, "exec", dont_inherit=True), namespace)
    return printed.getvalue()


def _run_commands(code: str, printed: io.StringIO) -> None:
    """Commands of hbmp in this process, which saves seconds a command; anything else in a shell."""
    for line in code.replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words[:1] == ["hbmp"] and not {"|", ">", "&&"} & set(words):
            assert cli.main(words[1:]) == 0, line
        elif words:
            path = f"PATH={Path(sys.executable).parent}:$PATH; "
            command = ["bash", "-euo", "pipefail", "-c", path + line]
            printed.write(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def is_shown(shown: str, printed: str) -> bool:
    """Whether the output is the one shown, up to spaces, rulers of tables, small differences of numbers, and `…`."""
    places = {0}
    found = _TOKEN.findall(printed)
    for part in shown.split("…"):
        wanted = _TOKEN.findall(part)
        places = {end for start in places for end in _ends(wanted, found, start)}
        if not places:
            return False
        if "…" in shown:  # anything may follow
            places = set(range(min(places), len(found) + 1))
    return len(found) in places


def _ends(wanted: list[str], found: list[str], start: int) -> Iterator[int]:
    end = start + len(wanted)
    if end <= len(found) and all(map(_alike, wanted, found[start:end])):
        yield end


def _alike(one: str, other: str) -> bool:
    if one[0].isdigit() and other[0].isdigit():
        a, b = (float(text.replace(",", "")) for text in (one, other))
        return abs(a - b) <= 0.021 + 0.05 * abs(a)
    return one == other


def fill(page: Path) -> None:
    """Run a page in an empty folder and write what its blocks print; output that still is as shown is kept."""
    text, namespace = page.read_text(encoding="utf-8"), {"__name__": "block"}
    found = blocks(text)
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        printed = [run(block, namespace, page.name) for block in found]
    for block, now in reversed(list(zip(found, printed, strict=True))):
        if block.place and not (block.shown and is_shown(block.shown, now)):
            text = text[: block.place[0]] + now.strip("\n") + "\n" + text[block.place[1] :]
    page.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    for given in sys.argv[1:]:
        fill(Path(given).resolve())
