"""A table of text cells that renders as Markdown and as HTML."""

from __future__ import annotations

import html
from dataclasses import dataclass

_WIDEST = 30  # characters to which the last column is padded if it holds remarks


@dataclass(frozen=True)
class Table:
    """Header and rows of texts, the first `n_names` columns being words, with a title above and a caption below.

    n_notes : how many columns at the end are words too, where a table is shown as text
    """

    header: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    title: str = ""
    caption: str = ""
    n_names: int = 1
    n_notes: int = 0

    def markdown(self) -> str:
        """The table with its title in bold and its caption as a paragraph."""
        ruler = [":---" if place < self.n_names else "---:" for place in range(len(self.header))]
        lines = ["| " + " | ".join(row) + " |" for row in (self.header, ruler, *self.rows)]
        title = f"**{self.title}**" if self.title else ""
        return "\n\n".join(part for part in (title, "\n".join(lines), self.caption) if part)

    def text(self) -> str:
        """The same Markdown with its columns padded, so that a terminal shows them in line."""
        last = len(self.header) - 1
        columns = []
        for place, column in enumerate(zip(self.header, *self.rows, strict=True)):
            words = place < self.n_names or place > last - self.n_notes
            ragged = self.n_notes and place == last  # a long remark in one row leaves the others short
            longest = max(len(cell) for cell in column if not ragged or cell is column[0] or len(cell) <= _WIDEST)
            width = max(3, longest)
            ruler = ":".ljust(width, "-") if words else ":".rjust(width, "-")
            cells = [column[0], ruler, *column[1:]]
            columns.append([cell.ljust(width) if words else cell.rjust(width) for cell in cells])
        lines = ["| " + " | ".join(row) + " |" for row in zip(*columns, strict=True)]
        title = f"**{self.title}**" if self.title else ""
        return "\n\n".join(part for part in (title, "\n".join(lines), self.caption) if part)

    def html(self) -> str:
        """The same as a figure that scrolls sideways on a narrow screen."""
        head = self._cells("th", self.header)
        body = "".join(f"<tr>{self._cells('td', row)}</tr>" for row in self.rows)
        title = f"<h3>{html.escape(self.title)}</h3>" if self.title else ""
        caption = f"<p class=caption>{html.escape(self.caption)}</p>" if self.caption else ""
        table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
        return f"{title}<div class=wide>{table}</div>{caption}"

    def _cells(self, tag: str, texts: tuple[str, ...]) -> str:
        kinds = [" class=name" if place < self.n_names else "" for place in range(len(texts))]
        return "".join(f"<{tag}{kind}>{_inline(text)}</{tag}>" for kind, text in zip(kinds, texts, strict=True))


def _inline(text: str) -> str:
    """The text for HTML; what Markdown would set in bold is bold there too."""
    bold = len(text) > 4 and text.startswith("**") and text.endswith("**")
    return f"<b>{html.escape(text[2:-2])}</b>" if bold else html.escape(text)
