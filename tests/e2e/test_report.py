"""Tables, figures and the report, from a few real cells on the digits; and the committed tables against `results/`."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path

import numpy as np
import pytest

from hbmp.experiments import Cell, grids, load_results, recipes, report, run_all
from hbmp.experiments import scores as result_tables
from hbmp.experiments.paper import DataSource
from hbmp.experiments.recipes import fig1, fig2, fig4, table1, table5
from hbmp.experiments.recipes._shared import reproduce
from hbmp.experiments.report.methods import methods_tables
from hbmp.experiments.report.tables import describe

ROOT = Path(__file__).parents[2]
SMALL = {"train_per_class": 10, "query_per_class": 4}


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    folder = tmp_path_factory.mktemp("results")
    cells = [
        Cell("hbmp", "cifar-1", "digits", bits, seed, {"function": ["linear", {"epochs": 2}], **scheme}, SMALL)
        for bits in (6, 12)
        for seed in (0, 1)
        for scheme in ({}, {"scheme": "constant"})
    ]
    cells.append(Cell("pca_sign", "cifar-1", "digits", 6, 0, {}, SMALL))
    run_all(cells, results=folder, device="cpu", progress=False)
    return folder


class _Page(HTMLParser):
    def __init__(self):
        super().__init__()
        self.open, self.cells, self.links, self.anchors, self.sources = [], [], [], set(), []

    def handle_starttag(self, tag, attributes):
        values = dict(attributes)
        self.links += [values["href"]] if "href" in values and tag == "a" else []
        self.sources += [values[key] for key in ("src", "data", "srcset") if key in values]
        self.anchors |= {values["id"]} if "id" in values else set()
        self.open.append(tag)

    def handle_data(self, data):
        if self.open and self.open[-1] == "td":
            self.cells.append(data)

    def handle_endtag(self, tag):
        while self.open and self.open.pop() != tag:
            pass


def test_page_is_self_contained_and_holds_the_numbers(results, tmp_path):
    path = report.write(results, tmp_path / "out" / "report.html")
    text = path.read_text(encoding="utf-8")
    page = _Page()
    page.feed(text)
    assert all(source.startswith("data:") for source in page.sources)
    assert not re.search(r"@import|<script|<link|url\((?!#)", text)
    assert all(link.startswith("#") and link[1:] in page.anchors for link in page.links)
    assert 'name="viewport"' in text
    assert text.count("<svg") == 2
    records = [record for record in load_results(results) if record["cell"]["bits"] == 12]
    weighted = [record["scores"]["map.weighted"] for record in records if "map.weighted" in record["scores"]]
    expected = f"{np.mean(weighted):.3f} ± {np.std(weighted, ddof=1):.3f}"
    assert expected in page.cells
    assert records[0]["caption"].split(" map:")[0] in text
    assert "function__epochs" in text


def test_page_of_nothing(tmp_path):
    text = report.write(tmp_path / "none", tmp_path / "report.html").read_text()
    assert "0 finished cells" in text
    assert "— (0.799)" in text


def test_markdown_tables_are_filled_between_markers(results, tmp_path):
    tables = report.markdown_tables(results)
    assert {"summary", "timings", *(f"table{n}" for n in range(1, 8))} <= set(tables)
    end = "<!-- /results -->"
    text = f"Before\n<!-- results:timings -->\nold\n{end}\nbetween\n<!-- results:nothing -->\n{end}\n"
    path = tmp_path / "page.md"
    path.write_text(text)
    assert report.fill_files([path], results) == [path]
    filled = path.read_text()
    assert "old" not in filled
    assert tables["timings"] in filled
    assert "No results for `nothing` yet." in filled
    assert filled.startswith("Before\n")
    assert "\nbetween\n" in filled
    assert report.fill_files([path], results) == []


@pytest.mark.parametrize("name", ["README.md", "docs/index.md", "docs/results.md", "docs/bits.md", "docs/lab-log.md"])
def test_committed_tables_are_those_of_the_results(name):
    path = ROOT / name
    if not path.exists() or "<!-- results:" not in path.read_text(encoding="utf-8"):
        pytest.skip(f"{name} shows no results")
    text = path.read_text(encoding="utf-8")
    assert report.fill(text, report.markdown_tables(ROOT / "results")) == text, (
        f"{name} shows other numbers than results/: run hbmp report --fill {name}"
    )


def test_every_table_has_its_place_in_the_documentation():
    tables = report.markdown_tables(ROOT / "results")
    pages = [ROOT / "docs" / "results.md", *sorted((ROOT / "docs" / "results").glob("*.md"))]
    shown = [name for page in pages for name in re.findall(r"<!-- results:([\w.-]+) -->", page.read_text("utf-8"))]
    elsewhere = {"beyond", "front-page"}  # docs/lab-log.md and the front pages
    assert sorted(shown) == sorted(set(tables) - elsewhere)
    index = pages[0].read_text(encoding="utf-8")
    assert all(f"(results/{page.name})" in index for page in pages[1:])
    assert all(page.stat().st_size < 8000 for page in pages[1:]), "pages hold marks; the build fills them"


def test_table_shows_ours_the_papers_and_the_difference(tmp_path, monkeypatch):
    here = DataSource("digits", "cifar-1", stand_in="digits")
    part = replace(table5.PARTS[0], sources=(DataSource("absent", "cifar-1", "Get it."), here), bits=(16, 32))
    rows = tuple(replace(row, params={**row.params, "function": ["linear", {"epochs": 2}]}) for row in part.rows)
    unknown = replace(rows[0], name="unheard", method="unheard")
    part = replace(part, rows=(*rows, unknown))
    monkeypatch.setattr(table5, "PARTS", (part,))
    monkeypatch.setattr(reproduce.run_all, "__kwdefaults__", {**reproduce.run_all.__kwdefaults__, "progress": False})
    with pytest.raises(RuntimeError, match="class 0 has 178"):  # the digits are too few for the real cifar-1
        recipes.reproduce("table5", data_dir=tmp_path, bits=[16], seeds=[0], results=tmp_path, device="cpu")
    cell = part.cell(part.rows[0], here, 16, 0)
    made = {"key": cell.key, "scores": {"map": 0.75, "map.weighted": 0.80}}
    text = result_tables.part_table(part, here, {cell.key: made}, seeds=[0]).markdown()
    assert "| constant | 0.800 (0.766, +0.034) | — (0.818) |" in text
    assert "| unheard | — (0.766) | — (0.818) |" in text
    elsewhere = result_tables.part_table(part, replace(here, other_items=True), {}, seeds=[0])
    assert "differences are left out" in elsewhere.caption


def test_reproduce_says_what_is_missing(tmp_path, capsys):
    text = recipes.reproduce("table3", data_dir=tmp_path, results=tmp_path / "results")
    assert capsys.readouterr().out.strip() == text.strip()
    assert "| HBMP | — (0.574) | — (0.692) | — (0.712) | — (0.742) |" in text
    assert "Missing: " in text
    assert "imagenet100-alexnet/features.npy" in text
    with pytest.raises(LookupError, match="table1"):
        recipes.reproduce("table11")


def test_every_recipe_has_its_numbers():
    assert set(recipes.names()) == {*(f"table{n}" for n in range(1, 8)), *(f"fig{n}" for n in range(1, 5))}
    for part in table1.PARTS:
        assert part.rows[-1].name == "HBMP"
        assert all(len(row.paper) == len(part.bits) for row in part.rows)


def test_methods_stand_side_by_side_best_first(tmp_path):
    cells = [
        Cell(method, "cifar-1", "digits", bits, 0, {}, SMALL)
        for method in ("pca_sign", "cca_itq", "lsh")
        for bits in (4, 8)
    ]
    records = {(r["cell"]["method"], r["cell"]["bits"]): r for r in run_all(cells, results=tmp_path, progress=False)}
    run_all([Cell("lsh", "cifar-1", "digits", 8, 1, {}, SMALL)], results=tmp_path, progress=False)  # one seed more
    (table,) = methods_tables(load_results(tmp_path)).values()
    assert table.rows[0][0] == "cca_itq"
    assert {row[0] for row in table.rows} == {"pca_sign", "cca_itq", "lsh"}
    for row in table.rows:
        assert row[1] == ("labels" if row[0] == "cca_itq" else "none")
        assert row[2:4] == tuple(f"{records[row[0], bits]['scores']['map']:.3f}" for bits in (4, 8))
    scores = [float(row[3]) for row in table.rows]
    assert scores == sorted(scores, reverse=True)


def test_leaders_are_the_best_of_both_lengths(tmp_path):
    lines = [
        {"key": cell.key, "cell": asdict(cell), "finished": "2026", "scores": {"map": score}}
        for method, score in (("itq", 0.4), ("sdh", 0.9), ("ksh", 0.7))
        for cell in [
            Cell(method, "cifar-1", "cifar10-efficientnet-lite0", bits, 0)
            for bits in ((16, 32) if method != "ksh" else (16,))
        ]
    ]
    (tmp_path / "cifar-1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    assert grids.leaders(tmp_path) == ["sdh", "itq"]  # ksh has no result at 32 bits yet
    cells = grids.cells_of("leaders", results=tmp_path)
    assert {cell.method for cell in cells} == {"sdh", "itq"}
    assert {(cell.protocol, cell.bits) for cell in cells} >= {("cifar-1", 12), ("cifar-2", 48), ("coco", 64)}


def test_descriptions_tell_cells_apart():
    settings = [
        {},
        {"scheme": "constant"},
        {"item_weights": None},
        {"affinity": "label_overlap"},
        {"function": ["mlp", {"hidden": [5]}]},
        {"refine": 2},
    ]
    kinds = ("function", "target", "target-all")
    cells = [{"method": "hbmp", "params": params, "codes": codes} for params in settings for codes in kinds]
    assert len({describe(cell) for cell in cells}) == len(cells)


def test_class_codes_beat_instance_codes(monkeypatch):
    monkeypatch.setattr(fig1, "N_INSTANCES", 200)
    monkeypatch.setattr(fig1, "N_QUERIES", 40)
    of_classes = fig1.codes("classes", (8, 16), 0)
    of_instances = fig1.codes("instances", (8, 16), 0)
    assert of_classes["residual"][1] < of_instances["residual"][1]
    assert of_classes["map"][1] >= of_instances["map"][1]


def test_figures_draw_from_the_digits(tmp_path, monkeypatch):
    small = {"function": ["linear", {"epochs": 2}]}
    monkeypatch.setattr(fig4, "BEST_HBMP", small)
    monkeypatch.setattr("hbmp.experiments.recipes.fig3.BEST_HBMP", small)
    monkeypatch.setattr(fig1, "N_INSTANCES", 120)
    monkeypatch.setattr(fig1, "N_QUERIES", 20)
    for module in ("fig3", "fig4"):
        monkeypatch.setattr(f"hbmp.experiments.recipes.{module}.DIGITS", SMALL)
    figures = {"fig1": {"bits": [4, 8], "seeds": [0, 1]}, "fig2": {"bits": [12]}, "fig3": {"bits": [16]}, "fig4": {}}
    for name, options in figures.items():
        text = recipes.reproduce(name, data_dir=tmp_path, results=tmp_path, device="cpu", **options)
        assert "The picture: " in text
        picture = tmp_path / "figures" / f"{name}.png"
        assert picture.read_bytes().startswith(b"\x89PNG")
        before = (tmp_path / f"{name}.jsonl").read_bytes()
        recipes.reproduce(name, data_dir=tmp_path, results=tmp_path, device="cpu", **options)
        assert (tmp_path / f"{name}.jsonl").read_bytes() == before
    assert "left out" in fig2.reproduce(data_dir=tmp_path, results=tmp_path, bits=[12], device="cpu")
    page = report.write(tmp_path, tmp_path / "report.html").read_text()
    assert page.count("data:image/png;base64,") == 4


def test_a_stale_number_is_marked_and_counted(results):
    records = load_results(results)
    assert report.tables.source_note(records) == ""
    stale = [{**record, "source": {**record["source"], "method": "0" * 16}} for record in records]
    old = [{key: value for key, value in record.items() if key != "source"} for record in records]
    (tables,) = report.tables.protocol_tables(stale).values()
    assert all(text.endswith("†") for table in tables for row in table.rows for text in row[2:] if text != "—")
    assert "†" in tables[-1].caption
    assert "†" not in str(report.tables.protocol_tables(old))
    (row,) = report.tables.source_table([*records[:1], *stale[:2], *old[:3]]).rows
    assert row[1:] == ("1", "2", "3 of version 0.1.0")
