"""Settings of a method as words on a command line: `scheme=constant`, `ridge=0.01`.

A value is parsed as JSON, and kept as text where that fails. A part with its own settings is a pair:
`function=["mlp", {"hidden": [512]}]`.
"""

from __future__ import annotations

import difflib
import json
from collections.abc import Sequence
from typing import Any

from hbmp.hasher import Hasher, get_method
from hbmp.methods import make_method

_SET_ELSEWHERE = {"n_bits": "--bits", "random_state": "--seed", "device": "--device"}


def make_from_words(name: str, n_bits: int, words: Sequence[str], *, seed: int, device: str) -> Hasher:
    """Create a method with settings, each a word NAME=VALUE; the error for an unknown name suggests the nearest."""
    known = get_method(name)().get_params()
    settings = {}
    for word in words:
        setting, equals, value = word.partition("=")
        if not equals:
            raise ValueError(f"Settings have the form NAME=VALUE, found {word!r}.")
        if setting in _SET_ELSEWHERE:
            raise ValueError(f"{setting} is set with {_SET_ELSEWHERE[setting]}.")
        if setting not in known:
            raise LookupError(_unknown(name, setting, [other for other in known if other not in _SET_ELSEWHERE]))
        settings[setting] = read_value(value)
    return make_method(name, n_bits, settings, seed=seed, device=device)


def read_value(text: str) -> Any:
    """Parse a value as JSON, or keep the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _unknown(method: str, setting: str, known: list[str]) -> str:
    close = difflib.get_close_matches(setting, known, n=1)
    hint = f" Did you mean {close[0]!r}?" if close else ""
    return f"{method} has no setting {setting!r}.{hint} It has {', '.join(sorted(known)) or 'none'}."
