"""A page that shows the groups of near-duplicates side by side, in one file."""

from __future__ import annotations

import base64
import html
import io
from typing import Any

import numpy as np

from hbmp._core.table import Table
from hbmp.app.duplicates.collections import Collections
from hbmp.app.duplicates.grouped import groups_of_report
from hbmp.dedup import Duplicates
from hbmp.experiments.report.html_page import page

_SIDE = 176  # pixels of a picture on the page
_CHARACTERS = 600  # of a text on the page
_STYLE = """
.group{display:flex;flex-wrap:wrap;gap:.7rem;margin:.4rem 0 1.4rem}
.item{flex:0 1 11rem;border:1px solid #d9dde2;border-radius:8px;padding:.5rem;font-size:.8rem;overflow-wrap:anywhere}
.item.text{flex:1 1 18rem;max-width:30rem}.item.kept{border:2px solid #2f7d4f}.item p{margin:.3rem 0}
.item img{display:block;margin:0 auto .3rem;border-radius:4px}.note{color:#555c66}
@media(prefers-color-scheme:dark){.item{border-color:#333a42}.item.kept{border-color:#58b57f}.note{color:#a3abb5}}
"""


def as_html(found: Duplicates, items: Collections, *, shown: int) -> str:
    """A page with the largest groups."""
    ordered = sorted(groups_of_report(found, items), key=lambda group: -len(group[1]))
    groups = "".join(_group(number, members, items) for number, members in ordered[:shown])
    if len(ordered) > shown:
        groups += (
            f"<p>The {shown:,} largest of {len(ordered):,} groups are shown; the .json and .csv reports "
            "contain all.</p>"
        )
    lead = f"<p>{html.escape(found.about())}</p>"
    sections = [("Groups", groups or "<p>None.</p>"), ("Threshold", _threshold(found))]
    return page("Near-duplicates", "Near-duplicates", lead, sections, style=_STYLE)


def _group(number: int, members: list[dict[str, Any]], items: Collections) -> str:
    cards = "".join(_card(each, items) for each in members[:24])
    more = f"<p class=note>{len(members) - 24:,} more.</p>" if len(members) > 24 else ""
    return f"<h3>Group {number}: {len(members)} items</h3><div class=group>{cards}</div>{more}"


def _card(each: dict[str, Any], items: Collections) -> str:
    notes = "kept" if each["kept"] else f"{each['similarity']:.3f} to {each['like']}"
    if each["old"]:
        notes += ", old"
    kind = " text" if items.kind == "texts" else ""
    shown = ""
    if items.kind == "pictures":
        shown = _thumbnail(items, each)
    elif items.kind == "texts":
        text = items.text(each["row"])
        shown = f"<p>{html.escape(text[:_CHARACTERS])}{'…' if len(text) > _CHARACTERS else ''}</p>"
    name = html.escape(each["item"] if items.kind == "pictures" else f"row {each['item']}")
    kept = " kept" if each["kept"] else ""
    return f'<div class="item{kind}{kept}">{shown}{name}<p class=note>{html.escape(notes)}</p></div>'


def _thumbnail(items: Collections, each: dict[str, Any]) -> str:
    from PIL import Image

    pixels = items.picture(each["row"]).decode([0], _SIDE)[0]
    file = io.BytesIO()
    Image.fromarray(np.asarray(pixels)).save(file, "JPEG", quality=80)
    data = base64.b64encode(file.getvalue()).decode()
    return f'<img alt="{html.escape(each["item"])}" loading="lazy" src="data:image/jpeg;base64,{data}">'


def _threshold(found: Duplicates) -> str:
    if found.calibration is None:
        return f"<p>Near-duplicates have a similarity of at least {found.threshold:.3f}, as requested.</p>"
    tail = found.calibration
    words = (
        f"Near-duplicates have a similarity of at least {found.threshold:.3f}. One in {1 / tail.rate:,.0f} unrelated "
        f"pairs is expected to be that similar: about {found.expected_false_pairs:.2g} pairs in all. The "
        f"tail of the distribution was fitted to {tail.n_pairs:,} sampled pairs, without near-duplicates."
    )
    rows = tuple((f"{share:.0e}", f"{seen:.3f}", f"{fitted:.3f}") for share, seen, fitted in tail.levels)
    table = Table(
        ("fraction of pairs", "similarity above, sample", "similarity above, fit"),
        rows,
        caption="The smallest fractions are only a few pairs of the sample, some of which may be near-duplicates.",
    )
    return f"<p>{html.escape(words)}</p>{table.html()}"
