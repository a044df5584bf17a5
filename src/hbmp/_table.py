"""A table of texts that renders as Markdown and as HTML."""

from __future__ import annotations

import html
from dataclasses import dataclass


@dataclass(frozen=True)
class Table:
    """Header and rows of texts, the first `n_names` columns being words, with a title above and a caption below."""

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    caption: str = ""
    n_names: int = 1

    def markdown(self) -> str:
        """The table with its title in bold and its caption as a paragraph."""
        ruler = [":---" if place < self.n_names else "---:" for place in range(len(self.header))]
        lines = ["| " + " | ".join(row) + " |" for row in (self.header, ruler, *self.rows)]
        title = f"**{self.title}**" if self.title else ""
        return "\n\n".join(part for part in (title, "\n".join(lines), self.caption) if part)

    def html(self) -> str:
        """The same as a figure that scrolls sideways on a narrow screen."""
        head = "".join(f"<th>{html.escape(text)}</th>" for text in self.header)
        body = "".join("<tr>" + "".join(f"<td>{html.escape(text)}</td>" for text in row) + "</tr>" for row in self.rows)
        title = f"<h3>{html.escape(self.title)}</h3>" if self.title else ""
        caption = f"<p class=caption>{html.escape(self.caption)}</p>" if self.caption else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"{title}<div class=wide>{table}</div>{caption}"

    def _cells(self, tag: str, texts: tuple[str, ...]) -> str:
        kinds = [" class=name" if place < self.n_names else "" for place in range(len(texts))]
        return "".join(f"<{tag}{kind}>{html.escape(text)}</{tag}>" for kind, text in zip(kinds, texts, strict=True))
