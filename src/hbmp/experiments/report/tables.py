"""Records as tables: the paper's tables with ours, our own by protocol, and the costs.

Every table is a pure function of the records; a missing number is a dash.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from hbmp import protocols
from hbmp._core import catalog
from hbmp._core.table import Table
from hbmp.experiments import provenance, scores
from hbmp.experiments.settings import (
    IMAGE_EPOCHS,
    IMAGE_NETWORK,
    LARGE_NETWORK,
    STAGES_ALONE,
    default_params,
    network,
)
from hbmp.experiments.store import Record
from hbmp.protocols import Protocol

PAPER_TABLES = tuple(f"table{number}" for number in range(1, 8))
_LARGE = ", large images"
STALE = scores.STALE
STALE_NOTE = scores.STALE_NOTE
LARGE_IMAGES = "Large images are 224 px wide and encoded with their mirror images; the others are 160 px wide."
_READINGS = {"": "plain", ".weighted": "weighted", ".real-valued": "real-valued query"}
_AFFINITIES = {"label_overlap": "by number of shared labels", "distance_levels": "distance levels"}
_WEIGHTS = {None: "every label set the same", "count": "item weights: count", "sqrt-count": "item weights: √count"}
_CODES = {
    "target": "target codes (oracle), label sets of the training items",
    "target-all": "target codes (oracle), all label sets",
}


def paper_tables(records: list[Record]) -> dict[str, list[Table]]:
    """The seven tables of the paper, each with its parts."""
    by_key = {record["key"]: record for record in records}
    tables = {}
    for name in PAPER_TABLES:
        parts = catalog.load_module("recipes", name).PARTS
        sources = [scores.source_with_results(part, by_key) for part in parts]
        tables[name] = [scores.part_table(part, source, by_key) for part, source in zip(parts, sources, strict=True)]
    return tables


def protocol_tables(records: list[Record]) -> dict[str, list[Table]]:
    """For each protocol and data set with results of HBMP, one table per measure: settings by code lengths."""
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        if record["cell"]["method"] == "hbmp":
            groups[group_name(record)].append(record)
    return {name: _measure_tables(name, group) for name, group in sorted(groups.items())}


def group_name(record: Record) -> str:
    """The protocol, with data and settings that are not its own, and whether whole networks took images."""
    cell = record["cell"]
    own = protocols.get(cell["protocol"]).data
    data = "" if cell["data"] in (own, cell["protocol"]) else f" on {cell['data']}"
    changed = f" {json.dumps(cell['protocol_params'])}" if cell["protocol_params"] else ""
    return f"{cell['protocol']}{data}{changed}{_images(cell)}"


def _images(cell: dict[str, Any]) -> str:
    function = cell["params"].get("function")
    if not (isinstance(function, list) and function[0] == "network"):
        return ""
    return _LARGE if _is_large(function[1]) else ", images"


def _is_large(settings: dict[str, Any]) -> bool:
    """Whether a network takes large images."""
    return LARGE_NETWORK.items() <= settings.items()


def describe(cell: dict[str, Any]) -> str:
    """The method and its settings in a few words."""
    if cell["method"] != "hbmp":
        others = dict(cell["params"])
        words = [_piece(others.pop("function"))] if "function" in others else []
        words += [f"{key} {value}" for key, value in sorted(others.items())]
        return str(cell["method"]) + (f" ({', '.join(words)})" if words else "")
    params = dict(cell["params"])
    words = ["HBMP"]
    if cell["codes"] == "function":
        words.append(_shares(params))
    words.append(params.pop("scheme", "regress"))
    function = params.pop("function", None)
    if function:
        words.append(_piece(function))
    affinity = params.pop("affinity", None)
    if affinity:
        name = _named(affinity)[0]
        words.append(_AFFINITIES.get(name, name))
    if "item_weights" in params:
        words.append(_WEIGHTS[params.pop("item_weights")])
    words += [f"{key} {value}" for key, value in sorted(params.items())]
    if cell["codes"] != "function":
        words.append(_CODES.get(cell["codes"], f"{cell['codes']} bits"))
    return ", ".join(words)


def _shares(params: dict[str, Any]) -> str:
    """Whether the settings are the paper's three stages or go beyond; removes these settings from `params`."""
    shares = {key: STAGES_ALONE[key] for key in ("feature_share", "label_share", "weight_share")}
    if not any(key in params for key in shares):
        return "defaults"
    if any(params.get(key) != value for key, value in shares.items()):
        return "past the paper"
    for key in shares:
        del params[key]
    return "three stages alone"


def by_setting(records: list[Record]) -> dict[str, dict[int, list[Record]]]:
    """description → code length → records of all seeds."""
    found: dict[str, dict[int, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        found[describe(record["cell"])][record["cell"]["bits"]].append(record)
    return found


def at_defaults(cell: dict[str, Any]) -> bool:
    """Whether a cell has the default settings of its method in the comparisons, on features or as a network."""
    settings = [default_params(cell["method"], cell["protocol"])]
    if cell["protocol"] in IMAGE_EPOCHS:
        settings += [network(cell["protocol"]), network(cell["protocol"], **LARGE_NETWORK)]
    learned = cell["codes"] == "function" or cell["codes"].startswith("prefix")
    return learned and cell["params"] in settings


def timing_table(records: list[Record]) -> Table:
    """Seconds to fit and to encode, by protocol and machine: mean over the cells of a setting at its longest codes."""
    rows = []
    for name, group in _grouped(records):
        for setting, lengths in by_setting(group).items():
            n_bits = max(lengths)
            cells = lengths[n_bits]
            encoded = np.mean([cell["split"]["query"] + cell["split"]["database"] for cell in cells])
            rate = encoded / max(np.mean([cell["seconds"]["encode"] for cell in cells]), 1e-9)
            fit = np.mean([cell["seconds"]["fit"] for cell in cells])
            evaluate = np.mean([cell["seconds"]["evaluate"] for cell in cells])
            where = sorted({machine_text(cell) for cell in cells})
            rows.append((name, setting, str(n_bits), f"{fit:.1f}", f"{rate:,.0f}", f"{evaluate:.1f}", "; ".join(where)))
    header = ("protocol", "setting", "bits", "fit (s)", "encoded per second", "evaluation (s)", "machine")
    caption = "Wall-clock time of one cell at its longest codes; several cells may have shared the machine."
    return Table(header, tuple(rows), caption=caption, n_names=2)


def source_table(records: list[Record]) -> Table:
    """How many results today's source of their method made, how many an older one, and how many an unknown one."""
    rows = []
    for name, group in _grouped(records):
        stale = sum(map(provenance.is_stale, group))
        unknown = [record for record in group if not provenance.has_source(record)]
        versions = ", ".join(sorted({record.get("versions", {}).get("hbmp", "?") for record in unknown}))
        text = f"{len(unknown)} of version {versions}" if unknown else "0"
        rows.append((name, str(len(group) - stale - len(unknown)), str(stale), text))
    caption = (
        "Number of results by the source of their method. Current: the hash of the method's source is still the same. "
        f"Stale: it has changed since; tables mark such numbers with {STALE}. Unknown: lines without a hash."
    )
    return Table(("protocol", "current", "stale", "source unknown"), tuple(rows), caption=caption)


def machine_text(record: Record) -> str:
    """Processor and cores, and the GPU if one was used."""
    machine = record["machine"]
    return ", ".join(str(part) for part in (machine.get("gpu"), machine["cpu"], f"{machine['cores']} cores") if part)


def _grouped(records: list[Record]) -> list[tuple[str, list[Record]]]:
    groups: dict[str, list[Record]] = defaultdict(list)
    for record in records:
        groups[group_name(record)].append(record)
    return sorted(groups.items())


def _measure_tables(name: str, records: list[Record]) -> list[Table]:
    protocol = protocols.get(records[0]["cell"]["protocol"], **records[0]["cell"]["protocol_params"])
    lengths = sorted({record["cell"]["bits"] for record in records})
    tables = []
    for measure in protocol.measures:
        rows = []
        for setting, cells in sorted(by_setting(records).items()):
            for reading, words in _READINGS.items():
                value = _score_named(measure.name + reading)
                texts = [record_text(cells.get(n, ()), value) for n in lengths]
                if any(text != scores.MISSING for text in texts):
                    rows.append((setting, words, *texts))
        header = ("setting", "distance", *(f"{n} bits" for n in lengths))
        caption = _group_caption(protocol, records) if measure is protocol.measures[-1] else ""
        tables.append(Table(header, tuple(rows), f"{name}: {measure.name}", caption, n_names=2))
    return tables


def _score_named(name: str) -> Callable[[Record], float | None]:
    """The score of that name as a function of a record."""
    return lambda record: record["scores"].get(name)


def _group_caption(protocol: Protocol, records: list[Record]) -> str:
    stand_in = records[0]["data"]["stand_in_for"]
    seeds = sorted({record["cell"]["seed"] for record in records})
    sentences = [protocol.caption]
    if stand_in:
        sentences.append(f"{records[0]['cell']['data']} stands in for {stand_in}.")
    unseen = {
        (record["unseen_queries"], record["split"]["query"]) for record in records if record.get("unseen_queries")
    }
    for count, total in sorted(unseen):
        sentences.append(f"{count} of {total} queries have a label set that is not in training ({count / total:.1%}).")
    sentences.append(f"Mean over seeds {', '.join(map(str, seeds))} if a cell has them, ± one standard deviation.")
    sentences.append(source_note(records))
    return " ".join(filter(None, sentences))


def record_text(records: Iterable[Record], value: Callable[[Record], float | None]) -> str:
    """Mean of a value over records, marked where one of the records is stale."""
    records = list(records)
    text = mean_text(map(value, records))
    return text + (STALE if text != scores.MISSING and any(map(provenance.is_stale, records)) else "")


def source_note(records: Iterable[Record]) -> str:
    """The sentence below a table that holds stale numbers, or nothing."""
    return STALE_NOTE if any(map(provenance.is_stale, records)) else ""


def mean_text(values: Iterable[float | None]) -> str:
    """Mean over seeds, with one standard deviation if there are several."""
    found = scores.mean_and_spread(values)
    if found is None:
        return scores.MISSING
    return f"{found[0]:.3f}" + (f" ± {found[1]:.3f}" if found[1] else "")


def _named(given: Any) -> tuple[str, dict[str, Any]]:
    """(name, settings) of a piece, which cells store as a bare name if it has no settings."""
    return (given, {}) if isinstance(given, str) else given


def _piece(given: Any) -> str:
    name, settings = _named(given)
    if name == "network":
        return ", ".join(["network", f"{settings['epochs']} epochs", *_unlike_the_others(settings)])
    return str(name) + (f" ({', '.join(f'{key} {value}' for key, value in settings.items())})" if settings else "")


def _unlike_the_others(settings: dict[str, Any]) -> list[str]:
    """The settings of a network that differ from those all image cells share."""
    shared = {**IMAGE_NETWORK, **(LARGE_NETWORK if _is_large(settings) else {})}
    own = [key for key in settings if key != "epochs" and settings[key] != shared.get(key)]
    texts = [f"{key} {settings[key]}" for key in own if key != "backbone"]
    if "backbone" in own:
        kind, options = _named(settings["backbone"])
        texts.insert(0, kind + (" from random weights" if options.get("pretrained") is False else ""))
    return texts
