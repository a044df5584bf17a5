"""Items that come and go over HTTP, on a server with a token."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from fastapi import FastAPI, Request
from fastapi.responses import Response
from numpy.typing import NDArray

from hbmp.app.web.answers import Answer
from hbmp.app.web.queries import Refused
from hbmp.app.web.schema import Addition, Changed, NewItem, Refusal, Removal, body
from hbmp.app.web.search import Collection


class Changes:
    """Adds and removes items; `allowed` is whether clients have shown a token."""

    def __init__(self, collection: Collection, *, allowed: bool):
        self.collection, self.allowed = collection, allowed
        self.database, self.reader = collection.database, collection.reader

    def check(self) -> None:
        """Refuse changes on a server without a token."""
        if not self.allowed:
            raise Refused("Items can be added and removed only on a server with a token: start it with --token.", 403)

    def add(self, addition: Addition, _: Any = None) -> dict[str, int]:
        """Add items, all or none."""
        items = addition.items
        ids = [item.id for item in items]
        if any(one is None for one in ids) and any(one is not None for one in ids):
            raise Refused("Pass an id for every new item, or for none.")
        columns = list(dict.fromkeys(name for item in items for name in item.payload or {}))
        self._change(
            self.database.add,
            self._vectors(items),
            ids=None if ids[0] is None else ids,
            labels=self._labels(items),
            payload=[item.payload or {} for item in items] if columns else None,
            replace=addition.replace,
        )
        return {"changed": len(items), "items": len(self.database)}

    def remove(self, removal: Removal, _: Any = None) -> dict[str, int]:
        """Remove items by ids, conditions, or both."""
        found = self._change(self.database.remove, removal.ids, where=removal.where)
        return {"changed": found, "items": len(self.database)}

    def remove_one(self, item_id: str) -> dict[str, int]:
        """Remove one item, which must be there."""
        found = self._change(self.database.remove, [self.reader.known(item_id)])
        return {"changed": found, "items": len(self.database)}

    def _change(self, work: Any, *arguments: Any, **settings: Any) -> Any:
        try:
            return work(*arguments, **settings)
        except PermissionError as error:
            raise Refused(str(error), 403) from error
        except TimeoutError as error:
            raise Refused(str(error), 503) from error
        except OSError as error:
            raise Refused(str(error), 507) from error
        except (ValueError, LookupError) as error:
            raise Refused(str(error)) from error

    def _vectors(self, items: list[NewItem]) -> NDArray[Any]:
        """The vectors of new items."""
        if any((item.vector is None) == (item.text is None) for item in items):
            raise Refused("Pass either a vector or a text for each new item.")
        texts = [item.text for item in items if item.text is not None]
        encoded = iter(self.reader.texts(texts)) if texts else iter(())
        return np.array(
            [next(encoded) if item.vector is None else self.reader.checked(item.vector) for item in items], np.float32
        )

    def _labels(self, items: list[NewItem]) -> Any:
        """Labels as the database has them: classes in their type, or rows over its label names."""
        labels = [item.label for item in items]
        if all(label is None for label in labels):
            return None
        if any(label is None for label in labels):
            raise Refused("Pass a label for every new item, or for none.")
        if self.database.label_kind != "rows":
            wrong = next((label for label in labels if isinstance(label, list)), None)
            if wrong is not None:
                raise Refused(f"The items of this database have one class each, found the list {wrong!r}.")
            return self._classes([str(label) for label in labels])
        column_of = {name: column for column, name in enumerate(self.database.label_names)}
        rows = np.zeros((len(items), len(column_of)), np.uint8)
        for row, label in enumerate(labels):
            for name in label if isinstance(label, list) else [str(label)]:
                if name not in column_of:
                    raise Refused(f"There is no label {name!r}; there are {', '.join(column_of) or 'none with names'}.")
                rows[row, column_of[name]] = 1
        return rows

    def _classes(self, labels: list[str]) -> list[Any]:
        if self.database.filterable.get("label", "text") == "text":
            return labels
        wrong = next((label for label in labels if not label.lstrip("-").isdecimal()), None)
        if wrong is not None:
            raise Refused(f"The classes of this database are whole numbers, found {wrong!r}.")
        return [int(label) for label in labels]


def add_changes(
    app: FastAPI,
    changes: Changes,
    respond: Callable[..., Any],
    in_thread: Callable[..., Any],
    refusals: dict[int | str, dict[str, Any]],
) -> None:
    """The routes that add and remove items."""
    forbidden = {"model": Refusal, "description": "The server has no token, or the database is read-only"}
    responses: dict[int | str, dict[str, Any]] = {200: {"model": Changed}, **refusals, 403: forbidden}

    @app.post("/items", responses=responses, openapi_extra=body(Addition))
    async def add(request: Request) -> Response:
        """Add items, all or none. The server must have a token."""
        changes.check()
        found: Response = await respond(request, Addition, changes.add, images=False)
        return found

    @app.post("/items/remove", responses=responses, openapi_extra=body(Removal))
    async def remove(request: Request) -> Response:
        """Remove items by ids or by conditions. The server must have a token."""
        changes.check()
        found: Response = await respond(request, Removal, changes.remove, images=False)
        return found

    @app.delete("/items/{item_id:path}", responses=responses)
    async def remove_one(item_id: str) -> Response:
        """Remove one item. The server must have a token."""
        changes.check()
        return Answer(await in_thread(changes.remove_one, item_id))
