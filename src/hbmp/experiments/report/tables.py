"""Records as tables: the paper's tables with ours, our own by protocol, and what it all cost.

Every table is a pure function of the records; a number that is not there shows as a dash.
"""

from __future__ import annotations

import json
from collections import defaultdict

import numpy as np

from hbmp import protocols
from hbmp._core import catalog
from hbmp._core.table import Table
from hbmp.experiments import scores as result_tables
from hbmp.experiments.settings import (
    IMAGE_EPOCHS,
    IMAGE_NETWORK,
    LARGE_NETWORK,
    STAGES_ALONE,
    default_params,
    network,
)

PAPER_TABLES = tuple(f"table{number}" for number in range(1, 8))
_LARGE = ", large images"
LARGE_IMAGES = "Large images are of 224 px and encoded with their mirror images; the others are of 160 px."
_READINGS = {"": "plain", ".weighted": "weighted", ".real-valued": "real-valued query"}
_AFFINITIES = {"label_overlap": "by number of shared labels", "distance_levels": "distance levels"}
_WEIGHTS = {None: "every label set the same", "count": "item weights: count", "sqrt-count": "item weights: √count"}
_CODES = {
    "target": "target codes (oracle), label sets of the training items",
    "target-all": "target codes (oracle), all label sets",
}


def paper_tables(records: list[dict]) -> dict[str, list[Table]]:
    """The seven tables of the paper, each with its parts."""
    by_key = {record["key"]: record for record in records}
    tables = {}
    for name in PAPER_TABLES:
        parts = catalog.load_module("recipes", name).PARTS
        sources = [result_tables.source_with_results(part, by_key) for part in parts]
        tables[name] = [
            result_tables.part_table(part, source, by_key) for part, source in zip(parts, sources, strict=True)
        ]
    return tables


def protocol_tables(records: list[dict]) -> dict[str, list[Table]]:
    """For each protocol and data set that has results of HBMP, one table a measure: settings by code lengths."""
    groups: dict[str, list[dict]] = defaultdict(list)
    for record in records:
        if record["cell"]["method"] == "hbmp":
            groups[group_name(record)].append(record)
    return {name: _measure_tables(name, group) for name, group in sorted(groups.items())}


def group_name(record: dict) -> str:
    """The protocol, with the data and settings that are not its own, and whether whole networks saw images."""
    cell = record["cell"]
    own = protocols.get(cell["protocol"]).data
    data = "" if cell["data"] in (own, cell["protocol"]) else f" on {cell['data']}"
    changed = f" {json.dumps(cell['protocol_params'])}" if cell["protocol_params"] else ""
    return f"{cell['protocol']}{data}{changed}{_images(cell)}"


def _images(cell: dict) -> str:
    function = cell["params"].get("function")
    if not (isinstance(function, list) and function[0] == "network"):
        return ""
    return _LARGE if _is_large(function[1]) else ", images"


def _is_large(settings: dict) -> bool:
    """Whether a network was given large images."""
    return LARGE_NETWORK.items() <= settings.items()


def describe(cell: dict) -> str:
    """The method and its settings in a few words."""
    if cell["method"] != "hbmp":
        others = dict(cell["params"])
        words = [_piece(others.pop("function"))] if "function" in others else []
        words += [f"{key} {value}" for key, value in sorted(others.items())]
        return cell["method"] + (f" ({', '.join(words)})" if words else "")
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


def _shares(params: dict) -> str:
    """Whether it is what the paper has or what goes past it; takes the shares out of the settings where they say so."""
    shares = {key: STAGES_ALONE[key] for key in ("feature_share", "label_share", "weight_share")}
    if not any(key in params for key in shares):
        return "defaults"
    if any(params.get(key) != value for key, value in shares.items()):
        return "past the paper"
    for key in shares:
        del params[key]
    return "three stages alone"


def by_setting(records: list[dict]) -> dict[str, dict[int, list[dict]]]:
    """description → code length → records of all seeds."""
    found: dict[str, dict[int, list[dict]]] = defaultdict(lambda: defaultdict(list))
    for record in records:
        found[describe(record["cell"])][record["cell"]["bits"]].append(record)
    return found


def at_defaults(cell: dict) -> bool:
    """Whether a cell's codes were learned by its method as it stands beside the others, on features or by a network."""
    settings = [default_params(cell["method"], cell["protocol"])]
    if cell["protocol"] in IMAGE_EPOCHS:
        settings += [network(cell["protocol"]), network(cell["protocol"], **LARGE_NETWORK)]
    learned = cell["codes"] == "function" or cell["codes"].startswith("prefix")
    return learned and cell["params"] in settings


def summary_table(records: list[dict]) -> Table:
    """HBMP at its defaults on every protocol that has such results, and the best other method beside it."""
    groups: dict[tuple[str, str], dict[str, BySeed]] = {}
    for record in records:
        cell = record["cell"]
        if not at_defaults(cell):
            continue
        measure = protocols.get(cell["protocol"]).measures[0].name
        methods = groups.setdefault((group_name(record), measure), defaultdict(lambda: defaultdict(dict)))
        methods[cell["method"]][cell["bits"]][cell["seed"]] = result_tables.own_score(record, measure) or 0.0
    mine = {place: methods.pop("hbmp") for place, methods in sorted(groups.items()) if "hbmp" in methods}
    lengths = sorted({n_bits for cells in mine.values() for n_bits in cells})
    rows = []
    for (name, measure), cells in mine.items():
        rows.append((name, measure, "HBMP", *(mean_text(cells[n].values()) for n in lengths)))
        others = groups[name, measure]
        if others:
            rows.append(("", "", "best other", *(_best_other(others, cells, n) for n in lengths)))
    return Table(
        ("protocol", "score", "method", *(f"{n} bits" for n in lengths)),
        tuple(rows),
        caption="All methods at their defaults, each by its own distance (weighted where it has bit weights), ties in "
        "database order; mean over seeds, ± one standard deviation. Where the other method has fewer seeds, HBMP's "
        "mean over those stands in brackets. On images, by whole networks, HBMP is trained once, with 48 bits; shorter "
        f"codes are their first bits. {LARGE_IMAGES} A dash where nothing was run.",
        n_names=3,
    )


BySeed = dict[int, dict[int, float]]  # code length → seed → score


def _best_other(methods: dict[str, BySeed], mine: BySeed, n_bits: int) -> str:
    """The highest mean of a code length with the name of its method, and ours on its seeds where they are fewer."""
    found = {name: float(np.mean(list(cells[n_bits].values()))) for name, cells in methods.items() if n_bits in cells}
    if not found:
        return mean_text([])
    name = max(found, key=found.__getitem__)
    seeds, own = methods[name][n_bits], mine.get(n_bits, {})
    fewer = [own[seed] for seed in seeds if seed in own]
    there = f" ({np.mean(fewer):.3f})" if 0 < len(fewer) < len(own) else ""
    return f"{found[name]:.3f} {name}{there}"


def timing_table(records: list[dict]) -> Table:
    """Seconds to fit and to encode, by protocol and machine, mean over all cells of a setting at its longest codes."""
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
    header = ("protocol", "setting", "bits", "fit (s)", "encoded a second", "evaluation (s)", "machine")
    caption = "Wall-clock time of one cell at its longest codes; several cells may have shared the machine."
    return Table(header, tuple(rows), caption=caption, n_names=2)


def machine_text(record: dict) -> str:
    """Processor and cores, and the GPU where one was used."""
    machine = record["machine"]
    return ", ".join(str(part) for part in (machine.get("gpu"), machine["cpu"], f"{machine['cores']} cores") if part)


def _grouped(records):
    groups: dict[str, list[dict]] = defaultdict(list)
    for record in records:
        groups[group_name(record)].append(record)
    return sorted(groups.items())


def _measure_tables(name: str, records: list[dict]) -> list[Table]:
    protocol = protocols.get(records[0]["cell"]["protocol"], **records[0]["cell"]["protocol_params"])
    lengths = sorted({record["cell"]["bits"] for record in records})
    tables = []
    for measure in protocol.measures:
        rows = []
        for setting, cells in sorted(by_setting(records).items()):
            for reading, words in _READINGS.items():
                texts = [
                    mean_text(record["scores"].get(measure.name + reading) for record in cells.get(n, ()))
                    for n in lengths
                ]
                if any(text != result_tables.MISSING for text in texts):
                    rows.append((setting, words, *texts))
        header = ("setting", "distance", *(f"{n} bits" for n in lengths))
        caption = _group_caption(protocol, records) if measure is protocol.measures[-1] else ""
        tables.append(Table(header, tuple(rows), f"{name}: {measure.name}", caption, n_names=2))
    return tables


def _group_caption(protocol, records: list[dict]) -> str:
    stand_in = records[0]["data"]["stand_in_for"]
    seeds = sorted({record["cell"]["seed"] for record in records})
    sentences = [protocol.caption]
    if stand_in:
        sentences.append(f"{records[0]['cell']['data']} stands in for {stand_in}.")
    unseen = {
        (record["unseen_queries"], record["split"]["query"]) for record in records if record.get("unseen_queries")
    }
    for count, total in sorted(unseen):
        sentences.append(f"{count} of {total} queries have a label set never seen in training ({count / total:.1%}).")
    sentences.append(f"Mean over seeds {', '.join(map(str, seeds))} where a cell has them, ± one standard deviation.")
    return " ".join(sentences)


def mean_text(values) -> str:
    """Mean over seeds, with one standard deviation where there are several."""
    found = result_tables.mean_and_spread(values)
    if found is None:
        return result_tables.MISSING
    return f"{found[0]:.3f}" + (f" ± {found[1]:.3f}" if found[1] else "")


def _named(given) -> tuple[str, dict]:
    """(name, settings) of a piece, which cells write as a name alone where it has no settings."""
    return (given, {}) if isinstance(given, str) else given


def _piece(given) -> str:
    name, settings = _named(given)
    if name == "network":
        return ", ".join(["network", f"{settings['epochs']} epochs", *_unlike_the_others(settings)])
    return str(name) + (f" ({', '.join(f'{key} {value}' for key, value in settings.items())})" if settings else "")


def _unlike_the_others(settings: dict) -> list[str]:
    """What a network does not have from the recipe that all image cells share."""
    shared = {**IMAGE_NETWORK, **(LARGE_NETWORK if _is_large(settings) else {})}
    own = [key for key in settings if key != "epochs" and settings[key] != shared.get(key)]
    texts = [f"{key} {settings[key]}" for key in own if key != "backbone"]
    if "backbone" in own:
        kind, options = _named(settings["backbone"])
        texts.insert(0, kind + (" from random weights" if options.get("pretrained") is False else ""))
    return texts
