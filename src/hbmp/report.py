"""One self-contained HTML page and the Markdown tables of README and docs, made from `results/` alone.

The tables in a Markdown file stand between `<!-- results:NAME -->` and `<!-- /results -->`; `fill` writes them and a
test fails when a file shows other numbers than the results hold.
"""

from __future__ import annotations

import base64
import html
import importlib
import json
import re
from pathlib import Path

from hbmp import _report_figures, _report_methods, _report_tables
from hbmp._report_tables import PAPER_TABLES, group_name
from hbmp.experiment import load_results
from hbmp.files import write_into_place
from hbmp.recipes._reproduce import headline

_MARKED = re.compile(r"(<!-- results:([\w.-]+) -->\n)(.*?)(<!-- /results -->)", flags=re.S)
_STYLE = """
:root{color-scheme:light dark}
body{font:16px/1.55 system-ui,sans-serif;max-width:62rem;margin:0 auto;padding:1rem;background:#fff;color:#1c1f23}
h1{font-size:1.6rem;margin:.5rem 0}h2{margin:2.2rem 0 .6rem;border-bottom:1px solid #d9dde2;padding-bottom:.2rem}
h3{margin:1.4rem 0 .4rem;font-size:1rem}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:.84rem;font-variant-numeric:tabular-nums}
th,td{padding:.28rem .6rem;border-bottom:1px solid #e6e8eb;text-align:right;white-space:nowrap}
.name{text-align:left}thead th{border-bottom:2px solid #b9c0c8}
.caption{font-size:.84rem;color:#555c66;margin:.4rem 0 1rem}figure{margin:1rem 0}img,svg{max-width:100%;height:auto}
svg{background:#fff}pre{overflow-x:auto;font-size:.78rem;background:#f4f5f7;color:#1c1f23;padding:.7rem;border-radius:6px}
nav a{margin-right:.9rem;white-space:nowrap}.plots{display:grid}
.plots{gap:1rem;grid-template-columns:repeat(auto-fit,minmax(17rem,1fr))}
@media(prefers-color-scheme:dark){body{background:#15181c;color:#e4e7eb}.caption{color:#a3abb5}
h2,th,td{border-color:#333a42}img,svg{border-radius:6px}a{color:#8ab8f0}}
"""


def write(results_dir="results", out_html="report.html") -> Path:
    """Write the page: the paper's tables with ours, each protocol with its plots, figures, timings, exact settings."""
    records = load_results(results_dir)
    sections = [
        *_paper_sections(records),
        *((table.title, table.html()) for table in _report_methods.methods_tables(records).values()),
        *_protocol_sections(records),
        *_picture_sections(Path(results_dir)),
    ]
    if records:
        sections.append(("Time", _report_tables.timing_table(records).html()))
        sections.append(("Exact settings", _settings(records)))
    links = " ".join(f'<a href="#{_anchor(title)}">{html.escape(title)}</a>' for title, _ in sections)
    body = "\n".join(
        f'<section><h2 id="{_anchor(title)}">{html.escape(title)}</h2>{content}</section>'
        for title, content in sections
    )
    page = (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width,initial-scale=1"><title>hbmp results</title><style>{_STYLE}</style></head><body>'
        f"<h1>hbmp: results</h1><p>{len(records)} finished cells.</p><nav>{links}</nav>{body}</body></html>\n"
    )
    out = Path(out_html)
    out.parent.mkdir(parents=True, exist_ok=True)
    return write_into_place(out, page)


def markdown_tables(results_dir="results") -> dict[str, str]:
    """Every table by name: "summary", "table1" … "table7", "timings", one a protocol, "methods." with all methods."""
    records = load_results(results_dir)
    tables = {"summary": _report_tables.summary_table(records).markdown()}
    named = {**_report_tables.paper_tables(records), **_report_tables.protocol_tables(records)}
    for name, parts in named.items():
        tables[_marker(name)] = "\n\n".join(part.markdown() for part in parts)
    for name, table in _report_methods.methods_tables(records).items():
        tables[f"methods.{_marker(name)}"] = table.markdown()
    tables["timings"] = _report_tables.timing_table(records).markdown()
    return tables


def _marker(name: str) -> str:
    return name.replace(" on ", ".").replace(" ", "-")


def fill(text: str, tables: dict[str, str]) -> str:
    """The text with every marked place filled from the tables; a place whose table has no results says so."""

    def filled(match: re.Match) -> str:
        content = tables.get(match[2], f"No results for `{match[2]}` yet.")
        return f"{match[1]}\n{content}\n\n{match[4]}"

    return _MARKED.sub(filled, text)


def fill_files(paths, results_dir="results") -> list[Path]:
    """Fill the marked tables of Markdown files in place; returns the files that changed."""
    tables, changed = markdown_tables(results_dir), []
    for path in map(Path, paths):
        before = path.read_text(encoding="utf-8")
        after = fill(before, tables)
        if after != before:
            path.write_text(after, encoding="utf-8")
            changed.append(path)
    return changed


def _paper_sections(records) -> list[tuple[str, str]]:
    tables = _report_tables.paper_tables(records)
    return [(_title(name), "".join(part.html() for part in tables[name])) for name in PAPER_TABLES]


def _protocol_sections(records) -> list[tuple[str, str]]:
    sections = []
    for name, tables in _report_tables.protocol_tables(records).items():
        mine = [record for record in records if group_name(record) == name]
        sections.append((name, _plots(mine) + "".join(table.html() for table in tables)))
    return sections


def _plots(records) -> str:
    try:
        plots = _report_figures.score_plot(records), _report_figures.precision_recall_plot(records)
    except RuntimeError as error:
        return f"<p class=caption>{html.escape(str(error))}</p>"
    return "<div class=plots>" + "".join(f"<figure>{plot}</figure>" for plot in plots) + "</div>"


def _picture_sections(results: Path) -> list[tuple[str, str]]:
    sections = []
    for path in sorted((results / "figures").glob("fig*.png")):
        recipe = importlib.import_module(f"hbmp.recipes.{path.stem}")
        words = str(recipe.__doc__).partition("\n\n")[2].strip().replace("\n", " ")
        data = base64.b64encode(path.read_bytes()).decode()
        picture = f'<figure><img alt="{html.escape(_title(path.stem))}" src="data:image/png;base64,{data}"></figure>'
        sections.append((_title(path.stem), f"{picture}<p class=caption>{html.escape(words)}</p>"))
    return sections


def _title(name: str) -> str:
    return headline(importlib.import_module(f"hbmp.recipes.{name}"))


def _anchor(title: str) -> str:
    return re.sub(r"\W+", "-", title.lower()).strip("-")


def _settings(records) -> str:
    """All settings of each kind of cell, seeds and code lengths aside, folded away."""
    distinct: dict[str, dict] = {}
    for record in records:
        what = f"{group_name(record)}: {_report_tables.describe(record['cell'])}"
        shown = {key: record[key] for key in ("settings", "data", "machine", "versions")}
        distinct.setdefault(what, {"cell": record["cell"], **shown})
    return "".join(
        f"<details><summary>{html.escape(what)}</summary><pre>{html.escape(text)}</pre></details>"
        for what, text in sorted((what, json.dumps(shown, indent=1)) for what, shown in distinct.items())
    )
