"""What the documentation site shows beyond the Markdown of docs/: source files, the changelog, the notebook, formulae.

A page of docs/ is written to be read on its own as well, so it links to `../src/…#L17` and holds formulae between
dollars. Here such links lead to pages made from the files they name, and formulae become MathML, which browsers draw
without any script.
"""

from __future__ import annotations

import ast
import functools
import html
import json
import re
import textwrap
from pathlib import Path
from urllib.parse import urlsplit

from latex2mathml.converter import convert
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer

from hbmp.experiments import report

ROOT = Path(__file__).parents[1]
_LINK = re.compile(r"(\]\()(\.\./[^)\s]+)(\))")
_FORMULA = re.compile(r'<(span|div) class="arithmatex">\s*\\[(\[](.*?)\\[)\]]\s*</\1>', flags=re.S)
_API = re.compile(r"^<!-- api: (\w+) -->$", flags=re.M)
_PAGE = re.compile(r"\[(?:docs/)?([\w-]+)\.(?:md|ipynb)\]\(\1\.(?:md|ipynb)")
_PICTURES = {".png", ".svg"}
_PAGES = {"README.md": "index.md", "CHANGELOG.md": "changelog.md"}


def on_files(files, config):
    """Add the pages that are made here."""
    pages = [file for file in files if file.src_uri.endswith(".md")]
    outer = [file for file in pages if "/" not in file.src_uri]  # pages in folders link to pages alone
    linked = {target for file in outer for target in _links_out(Path(file.abs_src_path).read_text(encoding="utf-8"))}
    for folder in ("methods", "affinities", "functions", "backbones"):
        linked |= {f"src/hbmp/{folder}/{name}.py" for name in _names(folder)}
    for target in sorted(linked - set(_PAGES)):
        files.append(_made(target, config))
    files.append(File.generated(config, "changelog.md", content=_changelog()))
    for notebook in sorted(ROOT.glob("docs/*.ipynb")):
        files.append(File.generated(config, f"{notebook.stem}.md", content=as_markdown(notebook)))
    return files


def on_page_markdown(markdown, page, config, files):
    """Lists of classes are filled in, links show titles of pages, and links out of docs/ lead to pages made here."""
    titles = dict(_titles(config["nav"]))
    markdown = _API.sub(lambda match: "\n".join(_reference(match[1], name) for name in _names(match[1])), markdown)
    if page.file.src_uri.startswith("results/"):
        return report.fill(markdown, _tables())
    markdown = _PAGE.sub(lambda match: f"[{titles.get(f'{match[1]}.md', match[1])}]({match[1]}.md", markdown)
    return _LINK.sub(lambda match: match[1] + _here(match[2]) + match[3], markdown)


@functools.cache
def _tables() -> dict[str, str]:
    """Every table of the results, computed once per build."""
    return report.markdown_tables(ROOT / "results")


def on_page_content(content, page, config, files):
    """Formulae as MathML."""
    return _FORMULA.sub(_mathml, content)


def _titles(nav):
    """(page, title) of everything in the navigation."""
    for entry in nav:
        for title, value in entry.items():
            yield from _titles(value) if isinstance(value, list) else [(value, title)]


def _mathml(match: re.Match) -> str:
    kind = "block" if match[1] == "div" else "inline"
    return f'<{match[1]} class="arithmatex">{convert(html.unescape(match[2]), display=kind)}</{match[1]}>'


def _links_out(markdown: str) -> set[str]:
    return {urlsplit(target).path.removeprefix("../") for _, target, _ in _LINK.findall(markdown)}


def _here(target: str) -> str:
    """Where in the site a link out of docs/ leads."""
    parts = urlsplit(target)
    path = parts.path.removeprefix("../")
    if path in _PAGES:
        return _PAGES[path]
    if Path(path).suffix in _PICTURES:
        return path
    line = re.fullmatch(r"L(\d+)", parts.fragment)
    return f"source/{path}.md" + (f"#L-{line[1]}" if line else "")


def _made(target: str, config) -> File:
    """A picture as it is, a text file as a page with numbered lines."""
    path = ROOT / target
    if not path.is_file():
        raise PluginError(f"A page links to {target}, which is no file.")
    if path.suffix in _PICTURES:
        return File.generated(config, target, abs_src_path=str(path))
    code = path.read_text(encoding="utf-8")
    head = f"---\ntitle: {path.name}\nsearch:\n  exclude: true\n---\n# `{target}`\n\n"
    drawn = highlight(code, PythonLexer(), HtmlFormatter(linenos="inline", lineanchors="L", wrapcode=True))
    return File.generated(config, f"source/{target}.md", content=head + drawn)


def _changelog() -> str:
    return (ROOT / "CHANGELOG.md").read_text(encoding="utf-8").replace("](docs/", "](")


def as_markdown(notebook: Path) -> str:
    """A notebook as a page: text, code, and what it printed where that was kept."""
    parts = []
    for cell in json.loads(notebook.read_text(encoding="utf-8"))["cells"]:
        source = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(source)
            continue
        parts.append(f"```python\n{source}\n```")
        printed = "".join("".join(output.get("text", [])) for output in cell["outputs"])
        if printed:
            parts.append(f"```text\n{printed.rstrip()}\n```")
    return "\n\n".join(parts) + "\n"


def _names(folder: str) -> list[str]:
    return sorted(path.stem for path in (ROOT / "src" / "hbmp" / folder).glob("[!_]*.py"))


def _reference(folder: str, name: str) -> str:
    """The entry of one class: its name, its publication, its file, its docstring."""
    path = ROOT / "src" / "hbmp" / folder / f"{name}.py"
    tree = ast.parse(path.read_text(encoding="utf-8"))
    (found,) = [node for node in tree.body if isinstance(node, ast.ClassDef) and not node.name.startswith("_")]
    facts = {
        item.targets[0].id: item.value
        for item in found.body
        if isinstance(item, ast.Assign) and isinstance(item.targets[0], ast.Name)
    }
    about = [
        text.value
        for text in ast.walk(facts.get("citation", facts.get("paper", ast.Pass())))
        if isinstance(text, ast.Constant)
    ]
    file = f"[{folder}/{name}.py](../src/hbmp/{folder}/{name}.py)"
    level = 2 if folder == "methods" else 3  # the other folders share a page
    options = "    options: {members: false, show_root_heading: false, show_root_toc_entry: false}\n"
    lead = (ast.get_docstring(tree) or "").split("\n\n")[0].replace("\n", " ")
    facts_line = " · ".join([*(str(text) for text in about if text), file])
    call = f"```python\nhbmp.{folder}.{found.name}({_arguments(found)})\n```"
    return (
        f"{'#' * level} {name}\n\n{lead}\n\n{facts_line}\n\n{call}\n\n::: hbmp.{folder}.{name}.{found.name}\n{options}"
    )


def _arguments(found: ast.ClassDef) -> str:
    """What a class is made from, with the defaults."""
    made = [node.args for node in found.body if isinstance(node, ast.FunctionDef) and node.name == "__init__"]
    if not made:
        return ""
    made[0].args = made[0].args[1:]  # without self
    written = ast.unparse(made[0])
    lines = textwrap.wrap(written, 84, break_long_words=False, break_on_hyphens=False)
    return written if len(written) < 60 else "\n" + textwrap.indent("\n".join(lines), "    ") + "\n"
