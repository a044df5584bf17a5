"""Conditions as words on a command line: `brand=sony`, `'price<20'`, `'brand=["sony", "canon"]'`.

Values take the kind of their column: `year=1999` is a number in a column of numbers and a text in a column of texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_WORD = re.compile(r"(?P<column>.+?)\s*(?P<sign>!=|<=|>=|=|<|>)\s*(?P<value>.*)", re.DOTALL)
_BOOLEANS = {"true": True, "yes": True, "1": True, "false": False, "no": False, "0": False}


def where_from_words(words: Sequence[str], kinds: Mapping[str, str]) -> dict[str, Any] | None:
    """Conditions as `Database.search` takes them; `kinds` has the kind of each column. None without words."""
    found: dict[str, dict[str, Any]] = {}
    for word in words:
        parts = _WORD.fullmatch(word)
        if parts is None:
            raise ValueError(f"Conditions have the form COLUMN=VALUE, or with !=, <, <=, > or >=; found {word!r}.")
        column, sign, value = parts["column"], parts["sign"], parts["value"]
        conditions = found.setdefault(column, {})
        if sign in conditions:
            raise ValueError(
                f'{column}{sign} is given twice; to match one of several values, write \'{column}=["a", "b"]\'.'
            )
        conditions[sign] = _value(value, kinds.get(column, "text"), word)
    for column, conditions in found.items():
        if isinstance(conditions.get("="), list) and len(conditions) > 1:
            raise ValueError(f"A list of values of {column!r} cannot be combined with further conditions on it.")
    return {column: signs["="] if list(signs) == ["="] else signs for column, signs in found.items()} or None


def ids_of_kind(ids: Sequence[Any], kind: type) -> list[Any]:
    """Ids in the type of a database; a word that is no whole number names no item of a database of numbers."""
    if kind is str:
        return [str(one) for one in ids]
    return [int(one) if isinstance(one, str) and one.isdecimal() else one for one in ids]


def _value(text: str, kind: str, word: str) -> Any:
    if text.startswith("["):
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError(f"The list in {word!r} is not JSON ({error}).") from error
        return [_value(value, kind, word) if isinstance(value, str) else value for value in values]
    if kind == "bool":
        if text.lower() not in _BOOLEANS:
            raise ValueError(f"{word!r} compares a column of booleans; write true or false.")
        return _BOOLEANS[text.lower()]
    if kind in ("int", "float"):
        for number in (int, float):
            try:
                return number(text)
            except ValueError:
                continue
        raise ValueError(f"{word!r} compares a column of numbers, found {text!r}.")
    return text
