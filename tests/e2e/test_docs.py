"""The pages do what they say: every block of Python and of commands runs, the notebook too, and the site builds.

A page is run from top to bottom in an empty directory, Python in one namespace. A block that cannot run has a comment
above it that says why: `<!-- not run: needs a server -->`. The page that needs databases is run by the tests of those.
"""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest
from shown import BLOCK, Block, blocks, is_shown, run

from hbmp.app import cli
from hbmp.experiments import report

ROOT = Path(__file__).parents[2]
ELSEWHERE = {"stores.md": "test_stores.py starts the databases"}


def runnable_pages() -> list[Path]:
    pages = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    return [page for page in pages if page.name not in ELSEWHERE and blocks(page.read_text(encoding="utf-8"))]


@pytest.mark.parametrize("page", runnable_pages(), ids=lambda page: page.name)
def test_every_block_runs_and_prints_what_is_shown(page, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    namespace = {"__name__": "block"}
    for number, block in enumerate(blocks(page.read_text(encoding="utf-8")), start=1):
        printed = run(block, namespace, f"{page.name}, block {number}")
        assert block.shown is None or is_shown(block.shown, printed), f"{page.name} should show:\n{printed}"


@pytest.mark.parametrize(
    ("shown", "printed", "same"),
    [
        ("| a | 0.50 |\n|---|---|", "| a  | 0.51 |\n|:--|--:|\n", True),
        ("mAP 0.50", "mAP 0.60", False),
        ("rank 1", "rank 1 of 3", False),
        ("rank 1\n…", "rank 1 of 3", True),
        ("one … four", "one two three four", True),
        ("one … five", "one two three four", False),
        ("2,305 texts", "2,290 texts", True),
    ],
)
def test_output_is_compared_up_to_rounding(shown, printed, same):
    assert is_shown(shown, printed) == same


def test_blocks_that_are_not_run_say_why():
    text = "<!-- not run: needs a server -->\n```sh\na\n```\n\n<!-- not run: no -->\n```sh\nb\n```\n```python\nc\n```\n"
    assert blocks(text) == [Block("sh", "b\n"), Block("python", "c\n")]
    text = "\n```sh\na\n```\n\n```text\nb\n```\n\n```python\nc\n```\n<!-- varies: seconds -->\n```text\nd\n```\n"
    assert [block[:3] for block in blocks(text)] == [("sh", "a\n", "b\n"), ("python", "c\n", None)]


@pytest.mark.parametrize(
    "page", [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))], ids=lambda page: page.name
)
def test_every_command_shown_parses(page):
    """Also those that are not run."""
    shown = [match["code"] for match in BLOCK.finditer(page.read_text(encoding="utf-8")) if match["language"] == "sh"]
    for line in "".join(shown).replace("\\\n", " ").splitlines():
        words = shlex.split(line, comments=True)
        if words and Path(words[0]).name == "hbmp" and "--completion" not in words:
            assert callable(cli._parser(words[1:]).parse_args(words[1:]).run), line


def test_no_command_hides_in_an_indented_block():
    """Blocks without a fence would not be run."""
    for page in (ROOT / "README.md", *(ROOT / "docs").glob("*.md")):
        text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
        assert re.findall(r"^    (?:\$ )?(?:hbmp|pip|python) .*", text, flags=re.M) == [], page.name


def test_the_notebook_runs_from_top_to_bottom(tmp_path, monkeypatch):
    nbformat, nbclient = pytest.importorskip("nbformat"), pytest.importorskip("nbclient")
    notebook = nbformat.read(ROOT / "docs" / "tour.ipynb", as_version=4)
    assert len(notebook.cells) == 10
    shown = [bool(cell.get("outputs")) for cell in notebook.cells]
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    monkeypatch.setenv("JUPYTER_RUNTIME_DIR", str(tmp_path / "runtime"))
    monkeypatch.setenv("OMP_NUM_THREADS", "1")
    client = nbclient.NotebookClient(notebook, timeout=300, resources={"metadata": {"path": str(tmp_path)}})
    client.execute()
    assert [bool(cell.get("outputs")) for cell in notebook.cells] == shown, "committed with its outputs"
    assert sum(shown) >= 6


def test_the_table_of_bits_is_that_of_the_results():
    text = (ROOT / "docs" / "bits.md").read_text(encoding="utf-8")
    tables = report.markdown_tables(ROOT / "results")
    assert report.fill(text, tables) == text, "run hbmp report --fill docs/bits.md"


class _Links(HTMLParser):
    """The addresses a built page loads or leads to, and the places in it that others can lead to."""

    def __init__(self, text: str):
        super().__init__()
        self.leads: list[str] = []
        self.loads: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        self.places |= {found[name] for name in ("id", "name") if found.get(name)}
        if tag == "a" and found.get("href"):
            self.leads.append(found["href"])
        elif found.get("src") or (tag == "link" and found.get("href")):
            self.loads.append(found.get("src") or found["href"])


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The site, built so that any warning is an error."""
    pytest.importorskip("mkdocs")
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return {path: _Links(path.read_text(encoding="utf-8")) for path in folder.rglob("*.html")}


def test_links_of_the_site_lead_somewhere(site):
    missing = []
    for page, links in site.items():
        for target in links.leads + links.loads:
            parts = urlsplit(target)
            if page.name == "404.html" or parts.scheme in ("http", "https", "data"):
                continue
            there = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            lost = parts.fragment and there in site and unquote(parts.fragment) not in site[there].places
            if not there.exists() or lost:
                missing.append(f"{page.name}: {target}")
    assert missing == []
    assert len(site) > 20


def test_the_site_asks_no_other_machine(site):
    assert [target for links in site.values() for target in links.loads if urlsplit(target).scheme] == []


def test_the_site_shows_formulae_sources_and_parameters(site):
    pages = {page.relative_to(min(site, key=lambda path: len(path.parts)).parent).as_posix(): page for page in site}
    mathematics = pages["mathematics.html"].read_text(encoding="utf-8")
    formulae = re.findall(r"<math.*?</math>", mathematics, flags=re.S)
    assert len(formulae) > 40
    assert [
        text for formula in formulae for text in re.findall(r"\\\w+", formula)
    ] == []  # commands that were not known
    assert "L-17" in site[pages["source/src/hbmp/pursuit/pursuit.py.html"]].places
    methods = pages["api-methods.html"].read_text(encoding="utf-8")
    assert "Seed of the randomised solver" in methods
