"""One self-contained HTML page and the Markdown tables of README and docs, made from `results/` alone.

The tables of a Markdown file stand between `<!-- results:NAME -->` and `<!-- /results -->`. `fill` writes them, and a
test fails if a committed file differs from the results.
"""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterable
from pathlib import Path

from hbmp._core import catalog
from hbmp._core.files import write_into_place
from hbmp.experiments import load_results
from hbmp.experiments.recipes import headline
from hbmp.experiments.report import beyond as beyond_page
from hbmp.experiments.report import figures as figure_pages
from hbmp.experiments.report import front as front_page
from hbmp.experiments.report import methods as method_pages
from hbmp.experiments.report import summary as summary_page
from hbmp.experiments.report import tables as table_pages
from hbmp.experiments.report.html_page import page, picture
from hbmp.experiments.report.tables import PAPER_TABLES, group_name
from hbmp.experiments.running import Folder
from hbmp.experiments.store import Record

_SHOWN = ("settings", "plan", "source", "data", "machine", "versions")
_MARKED = re.compile(r"(<!-- results:([\w.-]+) -->\n)(.*?)(<!-- /results -->)", flags=re.S)


def write(results_dir: Folder = "results", out_html: Folder = "report.html") -> Path:
    """Write the page: the paper's tables with ours, protocols with plots, figures, times, sources, exact settings.

    Parameters
    ----------
    results_dir : str or Path, default="results"
        Folder of results.
    out_html : str or Path, default="report.html"
        The file.

    Returns
    -------
    Path
        The file.

    Examples
    --------
    >>> import tempfile
    >>> from hbmp.experiments import report
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     report.write(folder, f"{folder}/report.html").name
    'report.html'
    """
    records = load_results(results_dir)
    sections = [
        *_paper_sections(records),
        *((table.title, table.html()) for table in method_pages.methods_tables(records).values()),
        *_protocol_sections(records),
        *_picture_sections(Path(results_dir)),
    ]
    if records:
        sections.append(("Time", table_pages.timing_table(records).html()))
        sections.append(("Sources", table_pages.source_table(records).html()))
        sections.append(("Exact settings", _settings(records)))
    content = page("hbmp results", "hbmp: results", f"<p>{len(records)} finished cells.</p>", sections)
    out = Path(out_html)
    out.parent.mkdir(parents=True, exist_ok=True)
    return write_into_place(out, content)


def markdown_tables(results_dir: Folder = "results") -> dict[str, str]:
    """Render every table: "summary", "lengths", "front-page", "table1" … "table7", "timings", "beyond", protocols.

    The tables of all methods are called "methods.PROTOCOL".

    Parameters
    ----------
    results_dir : str or Path, default="results"
        Folder of results.

    Returns
    -------
    dict of str to str
        Markdown by name.

    Examples
    --------
    >>> from hbmp.experiments import report
    >>> "table1" in report.markdown_tables("no/such/folder")
    True
    """
    records = load_results(results_dir)
    tables = {"summary": summary_page.summary_table(records).markdown()}
    tables["lengths"] = summary_page.lengths_table(records).markdown()
    tables |= front_page.tables(results_dir)
    named = {**table_pages.paper_tables(records), **table_pages.protocol_tables(records)}
    for name, parts in named.items():
        tables[_marker(name)] = "\n\n".join(part.markdown() for part in parts)
    for name, table in method_pages.methods_tables(records).items():
        tables[f"methods.{_marker(name)}"] = table.markdown()
    beyond = beyond_page.beyond_table(results_dir)
    if beyond is not None:
        tables["beyond"] = beyond.markdown()
    tables["timings"] = table_pages.timing_table(records).markdown()
    return tables


def _marker(name: str) -> str:
    return name.replace(" on ", ".").replace(",", "").replace(" ", "-")


def fill(text: str, tables: dict[str, str]) -> str:
    """Fill the marked tables of a text.

    Parameters
    ----------
    text : str
        Markdown with marks.
    tables : dict of str to str
        Tables by name.

    Returns
    -------
    str
        The text; a mark without results gets a note.

    Examples
    --------
    >>> from hbmp.experiments import report
    >>> report.fill("<!-- results:a -->\\n<!-- /results -->", {"a": "| 1 |"}).split()
    ['<!--', 'results:a', '-->', '|', '1', '|', '<!--', '/results', '-->']
    """

    def filled(match: re.Match[str]) -> str:
        content = tables.get(match[2], f"No results for `{match[2]}` yet.")
        return f"{match[1]}\n{content}\n\n{match[4]}"

    return _MARKED.sub(filled, text)


def fill_files(paths: Iterable[Folder], results_dir: Folder = "results") -> list[Path]:
    """Fill the marked tables of Markdown files in place.

    Parameters
    ----------
    paths : iterable of str or Path
        The files.
    results_dir : str or Path, default="results"
        Folder of results.

    Returns
    -------
    list of Path
        The files that changed.

    Examples
    --------
    >>> from hbmp.experiments import report
    >>> report.fill_files([], "no/such/folder")
    []
    """
    tables, changed = markdown_tables(results_dir), []
    for path in map(Path, paths):
        before = path.read_text(encoding="utf-8")
        after = fill(before, tables)
        if after != before:
            write_into_place(path, after)
            changed.append(path)
    return changed


def _paper_sections(records: list[Record]) -> list[tuple[str, str]]:
    tables = table_pages.paper_tables(records)
    return [(_title(name), "".join(part.html() for part in tables[name])) for name in PAPER_TABLES]


def _protocol_sections(records: list[Record]) -> list[tuple[str, str]]:
    sections = []
    for name, tables in table_pages.protocol_tables(records).items():
        mine = [record for record in records if group_name(record) == name]
        sections.append((name, _plots(mine) + "".join(table.html() for table in tables)))
    return sections


def _plots(records: list[Record]) -> str:
    try:
        plots = figure_pages.score_plot(records), figure_pages.precision_recall_plot(records)
    except RuntimeError as error:
        return f"<p class=caption>{html.escape(str(error))}</p>"
    return "<div class=plots>" + "".join(f"<figure>{plot}</figure>" for plot in plots) + "</div>"


def _picture_sections(results: Path) -> list[tuple[str, str]]:
    sections = []
    for path in sorted((results / "figures").glob("fig*.png")):
        recipe = catalog.load_module("recipes", path.stem)
        words = str(recipe.__doc__).partition("\n\n")[2].strip().replace("\n", " ")
        figure = f"<figure>{picture(path.read_bytes(), _title(path.stem))}</figure>"
        sections.append((_title(path.stem), f"{figure}<p class=caption>{html.escape(words)}</p>"))
    return sections


def _title(name: str) -> str:
    return headline(catalog.load_module("recipes", name))


def _settings(records: list[Record]) -> str:
    """All settings of each kind of cell, without seeds and code lengths, folded away."""
    distinct: dict[str, Record] = {}
    for record in records:
        what = f"{group_name(record)}: {table_pages.describe(record['cell'])}"
        shown = {key: record[key] for key in _SHOWN if key in record}
        distinct.setdefault(what, {"cell": record["cell"], **shown})
    return "".join(
        f"<details><summary>{html.escape(what)}</summary><pre>{html.escape(text)}</pre></details>"
        for what, text in sorted((what, json.dumps(shown, indent=1)) for what, shown in distinct.items())
    )
