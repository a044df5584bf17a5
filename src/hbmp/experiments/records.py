"""The content of a result line: how codes were made, and how they score."""

from __future__ import annotations

import time
from dataclasses import asdict
from datetime import UTC, datetime
from typing import Any

import numpy as np

import hbmp
from hbmp._core import machine
from hbmp.experiments import provenance
from hbmp.experiments.cells import Cell, Place
from hbmp.experiments.codes import Codes
from hbmp.experiments.store import Record
from hbmp.hasher import Hasher


def settings_of(method: Hasher) -> dict[str, Any]:
    """List all settings of a method as JSON holds them.

    Parameters
    ----------
    method : Hasher
        The method.

    Returns
    -------
    dict
        Settings by name; a piece is its class name, and its own settings follow as "piece__name".

    Examples
    --------
    >>> from hbmp import get_method
    >>> from hbmp.experiments import settings_of
    >>> settings_of(get_method("lsh")(8))["n_bits"]
    8
    """
    settings: dict[str, Any] = _as_json(method.get_params(deep=True))
    return settings


def made_by(method: Hasher, cell: Cell, device: str) -> Record:
    """Describe how codes were made: settings, resolved settings, source and machine.

    Parameters
    ----------
    method : Hasher
        The fitted method.
    cell : Cell
        The cell.
    device : str
        "cpu" or "cuda".

    Returns
    -------
    dict
        "settings", "plan" (the settings that the method resolved itself, if it has any), "source", "device",
        "machine".

    Examples
    --------
    >>> from hbmp import get_method
    >>> from hbmp.experiments import Cell, made_by
    >>> sorted(made_by(get_method("lsh")(8), Cell("lsh", "cifar-1", "digits", 8), "cpu"))
    ['device', 'machine', 'plan', 'settings', 'source']
    """
    plan: Any = getattr(method, "plan_", None)
    if hasattr(plan, "as_dict"):
        plan = plan.as_dict()
    return {
        "settings": settings_of(method),
        "plan": _as_json(plan),
        "source": provenance.origin(cell.method),
        "device": device,
        "machine": machine.describe(device),
    }


def record(cell: Cell, place: Place, codes: Codes, origin: Record) -> Record:
    """Score the codes of a cell.

    Parameters
    ----------
    cell : Cell
        The cell.
    place : Place
        Protocol, data and split.
    codes : Codes
        Codes of queries and database.
    origin : dict
        How the codes were made, from `made_by`.

    Returns
    -------
    dict
        The result line of the cell.

    Examples
    --------
    >>> from hbmp.experiments import Cell, Place, made_by, record, train
    >>> sizes = {"train_per_class": 10, "query_per_class": 4}
    >>> cell = Cell("lsh", "cifar-1", "digits", 16, protocol_params=sizes)
    >>> place = Place(cell)
    >>> codes, method = train(cell, place, "cpu")
    >>> record(cell, place, codes, made_by(method, cell, "cpu"))["key"] == cell.key
    True
    """
    protocol, data, split = place.protocol, place.data, place.split
    start = time.perf_counter()
    scores, curve = protocol.evaluate_with_curve(
        codes.query, codes.database, data, split, bit_weights=codes.bit_weights, query_scores=codes.query_scores
    )
    seconds = {**codes.seconds, "evaluate": time.perf_counter() - start}
    return {
        "key": cell.key,
        "cell": asdict(cell),
        "scores": _as_json({name: round(float(value), 6) for name, value in scores.items()}),
        "curve": curve,
        **_as_json(codes.facts),
        "split": {
            "checksum": split.checksum,
            "train": len(split.train),
            "query": len(split.query),
            "database": len(split.database),
        },
        "data": {"checksum": data.checksum(), "rows": len(data), "stand_in_for": data.stand_in_for},
        "caption": protocol.caption,
        "seconds": {name: round(value, 4) for name, value in seconds.items()},
        "versions": {"hbmp": hbmp.__version__, **machine.versions()},
        "finished": datetime.now(UTC).isoformat(timespec="seconds"),
        **origin,
    }


def _as_json(value: Any) -> Any:
    """A value as JSON holds it; an object becomes its class name."""
    if isinstance(value, dict):
        return {key: _as_json(item) for key, item in value.items()}
    if isinstance(value, (list, tuple, np.ndarray)):
        return [_as_json(item) for item in value]
    if isinstance(value, np.generic):
        return _as_json(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    return value if value is None or isinstance(value, (str, int, float, bool)) else type(value).__name__
