"""Tables in the guides are those of the last benchmark, not edited and not older."""

import importlib.util
import json
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize(
    ("name", "guide", "place"),
    [
        ("search_learned", "search.md", "measured"),
        ("list_recall", "search.md", "lists"),
        ("database", "database.md", "measured"),
        ("rescoring", "search.md", "rescoring"),
        ("fits", "compare.md", "measured"),
        ("training", "images.md", "measured"),
        ("image_recipe", "images.md", "recipe"),
    ],
)
def test_the_guide_shows_the_table_of_the_last_benchmark(name, guide, place, monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    spec = importlib.util.spec_from_file_location(f"{name}_benchmark", ROOT / "benchmarks" / f"{name}.py")
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    expected = benchmark.table(json.loads((ROOT / "results" / f"benchmark-{name.replace('_', '-')}.json").read_text()))
    text = (ROOT / "docs" / guide).read_text()
    shown = text.split(f"<!-- {place}: begin -->")[1].split(f"<!-- {place}: end -->")[0]
    assert shown.strip() == expected, f"run `python benchmarks/{name}.py --table` and put its output into docs/{guide}"


def test_no_method_failed_to_fit_fifty_thousand_rows():
    timed = json.loads((ROOT / "results" / "benchmark-fits.json").read_text())["methods"]
    assert len(timed) >= 28
    assert not [name for name, facts in timed.items() if "failed" in facts or facts["seconds"] > 600]


def test_the_page_of_codes_shows_the_stored_lines(monkeypatch):
    monkeypatch.syspath_prepend(str(ROOT / "benchmarks"))
    import codes_page

    assert codes_page.page() == (ROOT / "docs" / "codes.md").read_text(), "run `python benchmarks/codes_page.py`"


@pytest.fixture(scope="module")
def replication():
    with pytest.MonkeyPatch.context() as patch:
        patch.syspath_prepend(str(ROOT / "benchmarks"))
        yield importlib.import_module("replication_page")


def test_the_replication_report_shows_the_stored_lines(replication):
    text = (ROOT / "docs" / "replication.md").read_text(encoding="utf-8")
    found = replication.tables()
    assert {name for _, name, _ in replication.MARKED.findall(text)} == set(found)
    assert replication.fill(text, found) == text, "run `python benchmarks/replication_page.py`"


@pytest.mark.usefixtures("replication")
def test_verdicts_follow_their_rules():
    import replication_verdicts

    verdict = replication_verdicts.of_difference
    assert verdict([0.03, 0.04, 0.035], "positive") == "holds"
    assert verdict([0.03, -0.04, 0.035], "positive") == "holds in part"
    assert verdict([-0.03, -0.04, -0.035], "positive") == "does not hold"
    assert verdict([0.03], "positive") == "holds in part"
    assert verdict([0.003, 0.002, 0.004], "none") == "holds"
    assert verdict([0.03, 0.031, 0.029], "none") == "does not hold"
    mean, half = replication_verdicts.interval([1.0, 2.0, 3.0])
    assert (mean, round(half, 3)) == (2.0, 2.484)  # Student's t with two degrees of freedom: 4.303 / √3
