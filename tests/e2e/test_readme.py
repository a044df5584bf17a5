"""What the front pages say is true: their Python runs, their links lead somewhere, their commands exist."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from shown import blocks

from hbmp import list_methods
from hbmp.experiments import load_results
from hbmp.experiments.report.summary import summary_table

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]


def python_blocks(page: str) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(encoding="utf-8"), flags=re.S | re.M)


def load_script(path: str):
    spec = importlib.util.spec_from_file_location(Path(path).stem, ROOT / path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["Embeddings, no labels", "Labels", "Texts", "Pictures"])
def test_every_quickstart_is_short_and_shows_its_output(name):
    """Test_docs.py runs them and compares the output."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    section = re.search(rf"^### {name}\n(.*?)^##", text, flags=re.S | re.M)[1]
    found = blocks(section)
    assert found[-1].place
    assert all(len(block.code.split()) > 3 and block.code.count("\n") < 10 for block in found)


@pytest.mark.parametrize("page", ["docs/which-method.md"])
def test_tables_of_the_suite_are_current(page, monkeypatch):
    monkeypatch.syspath_prepend(ROOT / "benchmarks")
    text = (ROOT / page).read_text(encoding="utf-8")
    made = load_script("benchmarks/which_method.py").fill(text)
    assert made == text, f"run python benchmarks/which_method.py {page}"


def test_the_summary_compares_like_with_like():
    """At most eight rows, every one on the seeds that all its methods share."""
    table = summary_table(load_results(ROOT / "results"))
    assert 3 <= len(table.rows) <= 8
    for *_, ours, best, name, others, seeds in table.rows:
        assert re.fullmatch(r"\*{0,2}0\.\d{3}\*{0,2}", ours)
        assert re.fullmatch(r"\*{0,2}0\.\d{3}\*{0,2}", best)
        assert name in list_methods()
        assert int(others) >= 5
        assert int(seeds) >= 1


def test_readme_names_the_two_commands_and_the_makefile_has_them():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    for command in ("demo", "test"):
        assert re.search(rf"^make {command}\b", text, flags=re.M)
        assert re.search(rf"^{command}:", makefile, flags=re.M)


def test_the_method_shown_is_found_when_its_file_is_added(tmp_path):
    """The README's file in a copy of the package: nothing else is edited."""
    (shown,) = [block for block in python_blocks("README.md") if "class RandomPlanes(Hasher)" in block]
    shutil.copytree(ROOT / "src" / "hbmp", tmp_path / "hbmp", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "hbmp" / "methods" / "random_planes.py").write_text(shown, encoding="utf-8")
    program = """
import numpy as np, hbmp
X = np.random.default_rng(0).standard_normal((300, 20))
model = hbmp.get_method("random_planes")(64, random_state=1).fit(X)
model.save("planes")
assert (hbmp.load("planes").transform(X) == model.transform(X)).all()
apart = (model.transform(X[:1]) != model.transform(X)).mean(axis=1)
rows = X - X.mean(axis=0)
angles = np.arccos(np.clip(rows @ rows[0] / np.linalg.norm(rows, axis=1) / np.linalg.norm(rows[0]), -1, 1)) / np.pi
assert np.corrcoef(apart, angles)[0, 1] > 0.5
from hbmp.app.cli import main
main(["list", "methods"])
"""
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "random_planes" in done.stdout
    assert "Random hyperplanes" in done.stdout


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_to_files_that_exist(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.S)
    targets = re.findall(r"\]\(([^)\s]+)\)", text) + re.findall(r'href="([^"]+)"', text)
    local = [target.partition("#")[0] for target in targets if "://" not in target and not target.startswith("#")]
    missing = [target for target in local if not (page.parent / target).exists()]
    assert not missing


def test_the_map_of_pages_names_every_page():
    text = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    assert {page.name for page in PAGES[1:]} - {"index.md"} == set(re.findall(r"\]\((\w[\w-]*\.md)\)", text))


def test_paper_map_is_what_the_marks_say():
    script = load_script("scripts/paper_map.py")
    committed = (ROOT / "docs" / "paper-map.md").read_text(encoding="utf-8")
    assert script.without_line_numbers(committed) == script.without_line_numbers(script.page()), (
        "docs/paper-map.md and the marks in the code differ: run python scripts/paper_map.py"
    )


def test_every_statement_of_the_paper_has_a_mark():
    script = load_script("scripts/paper_map.py")
    assert set(script.STATEMENTS) >= {f"Eq. {number}" for number in range(1, 13)}
    assert set(script.STATEMENTS) >= {"Alg. 1", "Theorem 2", "Corollary 3", "Property 1", "Property 4"}
    places, _ = script.collect()
    unmarked = [name for name in script.STATEMENTS if not places[name]]
    assert not unmarked, f"No line is marked 'HBMP {unmarked[0]}'."
    rivals = {place.file for found in places.values() for place in found if "/methods/" in place.file}
    assert all(file.startswith("src/hbmp/methods/hbmp/") for file in rivals)


def test_marks_are_read_as_written():
    script = load_script("scripts/paper_map.py")
    assert script.marks("# weights by HBMP Eq. 10; a margin (HBMP Eq. 11, 12)") == ["Eq. 10", "Eq. 11", "Eq. 12"]
    assert script.marks("HBMP Alg. 1, lines 3-5") == ["Alg. 1, line 3", "Alg. 1, line 4", "Alg. 1, line 5"]
    assert script.marks('"""HBMP Algorithm 1 and HBMP Theorem 2."""') == ["Theorem 2", "Alg. 1"]
    assert script.marks("def test_hbmp_property_4_refitting():") == ["Property 4"]
    assert script.marks("Eq. 10 and Theorem 2 of another paper, Algorithm 1") == []
    assert script.marks("def test_property_4_of_another_paper():") == []
    lines = ["    a : one. Departs from Eq. 3 by", "        a half, because", "        it is so", "    b : two"]
    assert script.paragraph_from_mark(lines, 0) == "Departs from Eq. 3 by a half, because it is so"
    lines = ["# Departs from Eq. 1:", "# a comment.", "code = 1"]
    assert script.paragraph_from_mark(lines, 0) == "Departs from Eq. 1: a comment."


@pytest.mark.parametrize("name", ["inference", "inference_options"])
def test_the_guide_shows_the_last_benchmark(name):
    benchmark = load_script(f"benchmarks/{name}.py")
    if not benchmark.RESULTS.exists():
        pytest.skip(f"{benchmark.RESULTS.name} was not measured here")
    text = (ROOT / "docs" / "inference.md").read_text(encoding="utf-8")
    assert benchmark.fill(text) == text, f"run python benchmarks/{name}.py --fill docs/inference.md"
