"""The evidence of the front page, from `results/front-page.json`: three sentences, and the table behind them."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np

from hbmp._core.table import Table
from hbmp.experiments.running import Folder

FILE = "front-page.json"
_NOT_HASHING = ("classifier", "sign", "RaBitQ", "floats, cosine")
_NAMES = {
    "hbmp": "**hbmp**",
    "floats, cosine": "the floats, by cosine",
    "classifier": "a classifier's probabilities",
    "sign": "sign of each dimension",
    "RaBitQ": "FAISS RaBitQ",
}
_NEIGHBOURS = {"HBMP": "hbmp", "sign": "sign", "PQ": "PQ, 32 bits", "RaBitQ 1": "RaBitQ"}
Scores = dict[str, dict[str, float]]


def tables(results_dir: Folder = "results") -> dict[str, str]:
    """Markdown by name: "front-page", the sentences, and "front-page-table"; nothing without the file."""
    path = Path(results_dir) / FILE
    if not path.exists():
        return {}
    found = json.loads(path.read_text(encoding="utf-8"))
    return {"front-page": "\n".join(_sentences(found)), "front-page-table": _table(found)}


def _sentences(found: dict[str, Any]) -> list[str]:
    labels, near = _means(found["labels"]["rows"]), _means(found["neighbours"]["rows"])
    ms = {row["method"]: row for row in found["milliseconds"]["rows"]}
    other, classes = _best_hashing(labels), found["labels"]["classes"]
    rabitq = near["RaBitQ 1, larger"]
    return [
        f"- **With labels, 4 bytes per text.** In a search among {found['labels']['texts']:,} texts of {classes} "
        f"classes, hbmp has a mean average precision (mAP) of **{labels['hbmp']['map']:.2f}**. The best of "
        f"{len(_hashing(labels))} other hashing methods ({other}) has {labels[other]['map']:.2f}. A classifier's "
        f"{classes} probabilities ({labels['classifier']['bytes']:,.0f} bytes) have "
        f"{labels['classifier']['map']:.2f}, and the cosine of float vectors "
        f"({labels['floats, cosine']['bytes']:,.0f} bytes) has {labels['floats, cosine']['map']:.2f}.",
        f"- **Without labels, 32 bytes per text.** hbmp finds **{_percent(near['HBMP']['at_10'])}** of the ten nearest "
        f"posts by 1,024-byte floats (20 Newsgroups). FAISS PQ finds {_percent(near['PQ']['at_10'])} (OPQ "
        f"{_percent(near['OPQ']['at_10'])}), sign quantisation as in sentence-transformers "
        f"{_percent(near['sign']['at_10'])}, and FAISS RaBitQ {_percent(rabitq['at_10'])} with {rabitq['bytes']:.0f} "
        f"bytes. If floats re-rank the first 40 results, hbmp finds {_percent(near['HBMP']['at_40'])}.",
        f"- **Milliseconds.** A query over a million texts takes **{ms['hbmp, 4 bytes']['ms']:.1f} ms** on one thread "
        f"with 4 bytes per text, and {ms['hbmp, 32 bytes']['ms']:.1f} ms with 32 bytes. FAISS takes "
        f"{ms['floats']['ms']:.0f} ms with floats, {ms['sign']['ms']:.1f} ms with signs, {ms['PQ, 4 bytes']['ms']:.1f} "
        f"ms with PQ of 4 bytes and {ms['RaBitQ']['ms']:.0f} ms with RaBitQ.",
    ]


def _table(found: dict[str, Any]) -> str:
    labels, near = _means(found["labels"]["rows"]), _means(found["neighbours"]["rows"])
    codes = sorted((m for m in labels if labels[m]["bytes"] == 4), key=lambda m: -labels[m]["map"])
    ordered = [*codes, *(name for name in _NOT_HASHING if name in labels)]
    rows = [
        (
            _NAMES.get(m, m),
            f"{labels[m]['bytes']:,.0f}",
            f"{labels[m]['map']:.3f}",
            f"{labels[m]['new']:.3f}" if "new" in labels[m] else "—",
        )
        for m in ordered
    ]
    first = Table(
        ("texts with labels", "bytes per text", "mAP", "mAP, new texts only"),
        tuple(rows),
        caption=f"{found['labels']['texts']:,} descriptions of functions, {found['labels']['classes']} classes, "
        f"{found['labels']['queries']:,} queries; half of the other texts train, all are searched, or only those that "
        f"did not train. {_seeds(found['labels'])}",
    )
    second = Table(
        ("20 Newsgroups, no labels", "bytes per text", "recall@10", "with 40 rescored"),
        tuple(
            (
                _NAMES.get(name, name.split(",")[0]) if name != "HBMP" else "**hbmp**",
                f"{one['bytes']:,.0f}",
                f"{one['at_10']:.3f}",
                f"{one['at_40']:.3f}",
            )
            for name, one in sorted(near.items(), key=lambda each: -each[1]["at_10"])
        ),
        caption=f"300 queries as floats, 8,000 posts, 5,000 of which train. {_seeds(found['neighbours'])}",
    )
    third = Table(
        ("a million texts, one thread", "bytes per text", "ms per query"),
        tuple((row["method"], f"{row['bytes']:,}", f"{row['ms']:.2f}") for row in found["milliseconds"]["rows"]),
        caption=f"One query at a time, ten results, processor time on {found['machine']['cpu']}.",
    )
    return "\n\n".join(each.markdown() for each in (first, second, third))


def _best_hashing(labels: Scores) -> str:
    return max(_hashing(labels), key=lambda name: labels[name]["map"])


def _hashing(labels: Scores) -> list[str]:
    """The other hashing methods."""
    return [name for name in labels if name not in (*_NOT_HASHING, "hbmp") and not name.startswith("PQ")]


def _means(rows: list[dict[str, Any]]) -> Scores:
    """Means over seeds; of two rows of one method and seed the second is called "larger"."""
    kept: dict[str, list[dict[str, Any]]] = defaultdict(list)
    for row in rows:
        name = row["method"]
        if name.startswith("RaBitQ 1") and row["bytes"] > 32:
            name += ", larger"
        kept[name].append(row)
    return {
        name: {
            key: float(np.mean([row[key] for row in group]))
            for key in group[0]
            if isinstance(group[0][key], float | int)
        }
        for name, group in kept.items()
    }


def _seeds(part: dict[str, Any]) -> str:
    seeds = len({row["seed"] for row in part["rows"]})
    return "One seed." if seeds == 1 else f"Mean over {seeds} seeds."


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
