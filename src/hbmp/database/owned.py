"""The index inside a database: searched by anyone, changed by the database alone."""

from __future__ import annotations

from typing import NoReturn

from hbmp.index import Index


class OwnedIndex(Index):
    """An index that refuses changes, which would leave ids, payload and file behind.

    The database itself calls the methods of `Index`.
    """

    def add(self, *_: object, **__: object) -> NoReturn:
        """Refuse."""
        raise ValueError("This index belongs to a database; use database.add(X), which keeps items and codes together.")

    def add_packed(self, *_: object, **__: object) -> NoReturn:
        """Refuse."""
        raise ValueError("This index belongs to a database; use database.add(X), which keeps items and codes together.")

    def remove(self, *_: object, **__: object) -> NoReturn:
        """Refuse."""
        raise ValueError("This index belongs to a database; use database.remove(ids).")
