"""Which payload columns are shown as the title, the text and the link of an item."""

from __future__ import annotations

from collections.abc import Mapping

_TITLES = ("title", "name", "headline", "heading", "subject", "product", "question")
_TEXTS = ("text", "body", "content", "abstract", "description", "summary", "caption", "sentence", "review", "document")
_LINKS = ("url", "link", "href", "source_url", "page_url")


def roles(columns: Mapping[str, str]) -> dict[str, str | None]:
    """The columns of title, text and link, by their usual names; the first column of texts is the title without one."""
    texts = {name.lower(): name for name, kind in columns.items() if kind == "text" and not name.startswith("_")}
    title, text, link = (next((texts[name] for name in names if name in texts), None) for names in _ROLES)
    if title is None and text is None:
        title = next((name for name in texts.values() if name != link), None)
    return {"title": title, "text": text, "link": link}


_ROLES = (_TITLES, _TEXTS, _LINKS)
