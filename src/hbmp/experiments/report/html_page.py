"""The frame of every HTML page of this package: one file without external resources, light and dark."""

from __future__ import annotations

import base64
import html
import re
from collections.abc import Sequence

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


def page(title: str, heading: str, lead: str, sections: Sequence[tuple[str, str]], *, style: str = "") -> str:
    """A whole page: `lead` is HTML below the heading, `sections` are (title, HTML) with links, `style` is CSS."""
    links = " ".join(f'<a href="#{anchor(name)}">{html.escape(name)}</a>' for name, _ in sections)
    body = "\n".join(
        f'<section><h2 id="{anchor(name)}">{html.escape(name)}</h2>{content}</section>' for name, content in sections
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" '
        f'content="width=device-width,initial-scale=1"><title>{html.escape(title)}</title>'
        f"<style>{_STYLE}{style}</style></head><body>"
        f"<h1>{html.escape(heading)}</h1>{lead}<nav>{links}</nav>{body}</body></html>\n"
    )


def anchor(title: str) -> str:
    """The fragment of a link to a section of that title."""
    return re.sub(r"\W+", "-", title.lower()).strip("-")


def picture(png: bytes, alt: str) -> str:
    """A picture embedded in the page."""
    return f'<img alt="{html.escape(alt)}" src="data:image/png;base64,{base64.b64encode(png).decode()}">'
