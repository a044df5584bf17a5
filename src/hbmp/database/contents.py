"""The items of a store and the index of their codes, kept in step.

Each item has a number: its id where ids are integers, else a number of its own in the order of arrival. The index and
all tables refer to items by these numbers. What other processes commit is read before each search.
"""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from hbmp._core.filters import Where, conditions
from hbmp.database import blocks, labels, payload, where
from hbmp.database import facts as known_facts
from hbmp.database.blocks import Block
from hbmp.database.database_file import DatabaseFile
from hbmp.database.files import read_file, write_file
from hbmp.database.owned import OwnedIndex
from hbmp.index import Index

_LISTED = "(SELECT value FROM json_each(?))"
_MOST_SUBSETS = 8  # results of conditions that are kept
_ROWS_AT_ONCE = 50_000

IdKind = Literal["int", "text"]


class Contents:
    """The content of a store when it was last read."""

    def __init__(self, store: DatabaseFile):
        self.store, self.lock = store, store.lock
        self.changes = 0  # grows before and after every change of the index
        self.generation: str | None = None
        self.reads = 0  # grows with every look at the file
        self.facts: dict[str, Any] = {}
        self.index: Index
        self.numbers: NDArray[np.int64]
        self._seq = 0
        self._seen = -1
        self._subsets: dict[str, NDArray[np.int64]] = {}
        with self.lock, store.transaction(writes=False):
            self._read()

    @staticmethod
    def begin(store: DatabaseFile, n_bits: int, bit_weights: ArrayLike) -> None:
        """Write the first facts of an empty store."""
        store.put("bits", [n_bits, np.asarray(bit_weights, dtype=float).tolist()])
        store.put("items", 0)
        store.put("facts", known_facts.empty())
        store.new_generation()

    # ---- reading ----------------------------------------------------------------------------------------------------

    def refresh(self) -> None:
        """Take in what other connections have committed."""
        with self.lock:
            if not self.is_current():
                with self.store.transaction(writes=False):
                    version = self.store.version()
                    self._read()
                self._seen = version

    def is_current(self) -> bool:
        """Whether the file is still as it was at the last look."""
        return self.store.version() == self._seen

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A transaction that begins with the latest state; the index follows once it is committed."""
        with self.lock:
            try:
                with self.store.transaction():
                    self._read()
                    yield
            except BaseException:
                with suppress(Exception):
                    self.facts = self._read_facts()
                raise
            with self.store.transaction(writes=False):
                self._read()

    def _read(self) -> None:
        """Facts and new blocks, inside a transaction."""
        generation = self.store.get("generation")
        if generation != self.generation:
            self._start_again()
        self.generation = generation
        self.facts = self._read_facts()
        new, self._seq = blocks.read(self.store, self._seq)
        if len(new):
            with self.store.decoding("its codes cannot be read"):
                self._apply(new)
        if len(self.numbers) != self.store.get("items"):
            raise self.store.damaged(f"it holds {len(self.numbers)} codes")
        self._subsets = {}
        self.reads += 1

    def _read_facts(self) -> dict[str, Any]:
        found = self.store.get("facts")
        with self.store.decoding("its facts cannot be read"):
            return known_facts.checked(found)

    def _start_again(self) -> None:
        found = self.store.get("bits")
        with self.store.decoding("its bits cannot be read"):
            n_bits, weights = known_facts.bits(found)
            self.index, self._seq = OwnedIndex(n_bits, weights), 0
        self.numbers = np.empty(0, np.int64)
        cached = self.store.get("index_seq", None)
        if cached is not None and self.store.rows("SELECT 1 FROM files WHERE name = 'index' LIMIT 1"):
            whole, self._seq = blocks.read(self.store)
            content = read_file(self.store, "index")
            with self.store.decoding("its index cannot be read"), tempfile.TemporaryDirectory(prefix="hbmp-") as folder:
                path = Path(folder) / "index.hbmp"
                path.write_bytes(content)
                self.index = OwnedIndex.load(path)
                if self.index.n_bits != n_bits:
                    raise ValueError(f"its codes have {self.index.n_bits} bits")
                later, _ = blocks.read(self.store, int(cached))
                if len(later):
                    Index.remove(self.index, np.concatenate([later.removed, later.numbers]))
                    Index.add_packed(self.index, later.codes, later.numbers)
                self.numbers = whole.numbers
                if len(self.index) != len(self.numbers):
                    raise ValueError(f"it holds {len(self.index)} codes")

    def _apply(self, new: Block) -> None:
        self.changes += 1
        try:
            gone = np.concatenate([new.removed, new.numbers])
            gone = gone[self.has(gone)]
            if len(gone):
                Index.remove(self.index, gone)
                self.numbers = _without(self.numbers, gone)
            if len(new.numbers):
                Index.add_packed(self.index, new.codes, new.numbers)
                later = not len(self.numbers) or new.numbers[0] > self.numbers[-1]
                both = np.concatenate([self.numbers, new.numbers])
                self.numbers = both if later else np.sort(both)
        finally:
            self.changes += 1

    def has(self, numbers: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Whether items with these numbers exist."""
        if not len(self.numbers):
            return np.zeros(len(numbers), bool)
        places = np.minimum(np.searchsorted(self.numbers, numbers), len(self.numbers) - 1)
        return np.asarray(self.numbers[places] == numbers)

    @property
    def id_kind(self) -> IdKind:
        """Whether ids are integers or texts."""
        return "text" if self.facts["ids"] == "text" else "int"

    def numbers_of(self, ids: Any) -> NDArray[np.int64]:
        """Numbers of ids; -1 for an unknown one."""
        wanted = np.asarray(ids).reshape(-1) if not isinstance(ids, (list, tuple)) else ids
        listed = wanted.tolist() if isinstance(wanted, np.ndarray) else list(wanted)
        if self.id_kind == "int":
            known = [one if isinstance(one, (int, np.integer)) and 0 <= one < 2**63 else -1 for one in listed]
            numbers = np.array(known, dtype=np.int64)
            return np.where(self.has(numbers), numbers, -1)
        texts = [str(one) for one in listed if isinstance(one, str)]
        rows = self.store.rows(f"SELECT id, number FROM items WHERE id IN {_LISTED}", [json.dumps(texts)])  # nosec B608 - checked names, bound values
        number_of = dict(rows)
        return np.array([number_of.get(one, -1) for one in listed], dtype=np.int64)

    def ids_at(self, numbers: NDArray[np.int64]) -> NDArray[Any]:
        """Ids of numbers of any shape: integers with -1, or texts with None, for missing items."""
        if self.id_kind == "int":
            return numbers
        found = self.rows(numbers.reshape(-1), ["id"])
        out = np.empty(numbers.size, dtype=object)
        out[:] = [found[number][0] if number in found else None for number in numbers.reshape(-1).tolist()]
        return out.reshape(numbers.shape)

    def all_ids(self) -> NDArray[Any]:
        """Every id, in the order of numbers."""
        if self.id_kind == "int":
            return self.numbers
        out = np.empty(len(self.numbers), dtype=object)
        out[:] = [row[0] for row in self.store.rows("SELECT id FROM items ORDER BY number")]
        return out

    def rows(self, numbers: NDArray[np.int64], expressions: Sequence[str]) -> dict[int, tuple[Any, ...]]:
        """Rows of `items` by number."""
        wanted = json.dumps(np.unique(numbers[numbers >= 0]).tolist())
        chosen = ", ".join(["number", *expressions])
        return {
            row[0]: row[1:]
            for row in self.store.rows(f"SELECT {chosen} FROM items WHERE number IN {_LISTED}", [wanted])  # nosec B608 - checked names, bound values
        }

    def column(self, expression: str) -> list[Any]:
        """One column of `items` for all items, in the order of numbers; None without a row."""
        rows = dict(self.store.rows(f"SELECT number, {expression} FROM items"))  # nosec B608 - checked names, bound values
        return [rows.get(number) for number in self.numbers.tolist()]

    def vectors(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """Original vectors of items, which must exist."""
        from hbmp.database.vectors import from_bytes

        about = self.facts["vectors"]
        rows = dict(
            self.store.rows(
                f"SELECT number, value FROM vectors WHERE number IN {_LISTED}",  # nosec B608 - checked names, bound values
                [json.dumps(numbers.tolist())],
            )
        )
        missing = [number for number in numbers.tolist() if number not in rows]
        if missing:
            raise ValueError(f"{self.store.name} is damaged: {len(missing)} items have no vectors. Make it again.")
        with self.store.decoding("its vectors cannot be read"):
            found = from_bytes([rows[number] for number in numbers.tolist()], about["kind"], about["dimension"])
        if found.shape != (len(numbers), about["dimension"]) or not np.isfinite(found).all():
            raise self.store.damaged("its vectors cannot be read")
        return found

    def sql_columns(self) -> dict[str, tuple[str, str | None]]:
        """The SQL name and the kind of each column that conditions may name."""
        found = {name: (f"c{place}", kind) for place, (name, kind) in enumerate(self.facts["columns"].items())}
        form = self.facts["labels"]
        if form is not None and form["kind"] == "classes":
            found["label"] = ("label", "text" if form["type"] == "str" else form["type"])
        return found

    def subset(self, given: Where | None) -> NDArray[np.int64] | None:
        """Numbers of the items that meet conditions; None if there are none."""
        if given is None or given == {}:
            return None
        columns = self.sql_columns()
        holds = conditions(given, columns)
        key = repr(holds)
        if key not in self._subsets:
            text, values = where.as_sql(holds, columns)
            rows = self.store.rows(f"SELECT number FROM items WHERE {text}", values)  # nosec B608 - checked names, bound values
            while len(self._subsets) >= _MOST_SUBSETS:
                self._subsets.pop(next(iter(self._subsets)))
            self._subsets[key] = np.fromiter((row[0] for row in rows), np.int64, len(rows))
        return self._subsets[key]

    def chosen(self, ids: Any, given: Where | None) -> NDArray[np.int64] | None:
        """Numbers of the known items with these ids that meet conditions, ascending; None for all items."""
        found = self.subset(given)
        if ids is None:
            return found
        numbers = self.numbers_of([ids] if isinstance(ids, str) else ids)
        numbers = np.unique(numbers[numbers >= 0])
        return numbers if found is None else np.intersect1d(numbers, found)

    # ---- writing, inside a transaction ------------------------------------------------------------------------------

    def new_numbers(self, ids: Any, n: int, *, replace: bool = False) -> tuple[NDArray[np.int64], list[str] | None]:
        """Numbers for n new items, and their ids where these are texts; known ids are refused, or removed first."""
        facts = self.facts
        kind = facts["ids"] if len(self.numbers) else None
        if ids is None:
            if kind == "text":
                raise ValueError("The ids of this database are texts: pass ids=… with one id per row.")
            return np.arange(facts["next"], facts["next"] + n), None
        found = as_ids(ids, n)
        this = "text" if isinstance(found, list) else "int"
        if kind is not None and kind != this:
            raise ValueError(f"The ids of this database are {_PLURALS[kind]}, found {_PLURALS[this]}.")
        facts["ids"] = this
        numbers = self.numbers_of(found)
        known = numbers >= 0
        if replace and known.any():
            self.remove(numbers[known])
        elif known.any():
            first = found[int(np.argmax(known))]
            raise ValueError(
                f"{known.sum()} of the {n} ids are already in the database, for example {first!r}. Replace these items "
                "(replace=True, --replace) or remove them first."
            )
        if isinstance(found, list):
            return np.arange(facts["next"], facts["next"] + n), found
        return found, None

    def write(
        self,
        numbers: NDArray[np.int64],
        codes: NDArray[np.uint8],
        *,
        ids: list[str] | None = None,
        columns: Mapping[str, list[Any]] | None = None,
        classes: NDArray[Any] | None = None,
        files: Sequence[str] | None = None,
        vectors: NDArray[Any] | None = None,
    ) -> None:
        """Write new items: packed codes under numbers, and what belongs to them."""
        facts, n = self.facts, len(numbers)
        given = self._with_columns(columns or {})
        if ids is not None or classes is not None or files is not None or given:
            names = ["number", "id", "label", "file", *given]
            values = [
                numbers.tolist(),
                [None] * n if ids is None else ids,
                labels.stored(classes, n),
                [None] * n if files is None else files,
                *given.values(),
            ]
            self.store.many(
                f"INSERT INTO items ({', '.join(names)}) VALUES ({', '.join('?' * len(names))})",  # nosec B608 - checked names, bound values
                zip(*values, strict=True),
            )
        if vectors is not None:
            self._write_vectors(numbers, vectors)
        order = np.argsort(numbers, kind="stable")
        facts["ids"] = "text" if ids is not None else facts["ids"] or "int"
        facts["next"] = max(facts["next"], int(numbers.max(initial=-1)) + 1)
        self.store.put("facts", facts)
        self.store.put("items", self.store.get("items") + n)
        blocks.append(self.store, Block(numbers[order], codes[order], np.empty(0, np.int64)))

    def remove(self, numbers: NDArray[np.int64]) -> None:
        """Delete items that exist."""
        listed = [json.dumps(numbers.tolist())]
        self.store.rows(f"DELETE FROM items WHERE number IN {_LISTED}", listed)  # nosec B608 - checked names, bound values
        self.store.rows(f"DELETE FROM vectors WHERE number IN {_LISTED}", listed)  # nosec B608 - checked names, bound values
        self.store.put("items", self.store.get("items") - len(numbers))
        blocks.append(self.store, Block(np.empty(0, np.int64), np.empty((0, 0), np.uint8), np.sort(numbers)))

    def change(
        self,
        numbers: NDArray[np.int64],
        *,
        codes: NDArray[np.uint8] | None = None,
        columns: Mapping[str, list[Any]] | None = None,
        classes: NDArray[Any] | None = None,
        vectors: NDArray[Any] | None = None,
    ) -> None:
        """Change parts of items that exist."""
        given = self._with_columns(columns or {})
        if classes is not None:
            given["label"] = labels.stored(classes, len(numbers))
        if given:
            self.store.many("INSERT OR IGNORE INTO items (number) VALUES (?)", ((one,) for one in numbers.tolist()))
            changed = ", ".join(f"{name} = ?" for name in given)
            self.store.many(
                f"UPDATE items SET {changed} WHERE number = ?",  # nosec B608 - checked names, bound values
                zip(*given.values(), numbers.tolist(), strict=True),
            )
        if codes is not None:
            order = np.argsort(numbers, kind="stable")
            blocks.append(self.store, Block(numbers[order], codes[order], np.empty(0, np.int64)))
        if vectors is not None:
            self._write_vectors(numbers, vectors)
        self.store.put("facts", self.facts)

    def _with_columns(self, columns: Mapping[str, list[Any]]) -> dict[str, list[Any]]:
        """Values by SQL name; new columns are made."""
        known: dict[str, str | None] = self.facts["columns"]
        payload.check_names(list(columns), list(known))
        for name, values in columns.items():
            kind = payload.kind_of(name, values, known.get(name))
            if name not in known:
                self.store.rows(f"ALTER TABLE items ADD COLUMN c{len(known)}")
            known[name] = kind
        place_of = {name: place for place, name in enumerate(known)}
        return {f"c{place_of[name]}": payload.stored(values, known[name]) for name, values in columns.items()}

    def _write_vectors(self, numbers: NDArray[np.int64], vectors: NDArray[Any]) -> None:
        from hbmp.database.vectors import to_bytes

        about = self.facts["vectors"]
        if vectors.shape[1] != about["dimension"]:
            raise ValueError(
                f"The vectors of this database have {about['dimension']} numbers, found {vectors.shape[1]}."
            )
        for start in range(0, len(numbers), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            rows = zip(numbers[part].tolist(), to_bytes(vectors[part], about["kind"]), strict=True)
            self.store.many("REPLACE INTO vectors VALUES (?, ?)", rows)

    def keep_index(self, kind: str) -> None:
        """Keep an index with inverted lists in the file, inside a transaction."""
        codes = self.index.codes(self.numbers)
        built = Index.build(codes, ids=self.numbers, bit_weights=self.index.bit_weights, kind=kind)
        with tempfile.TemporaryDirectory(prefix="hbmp-") as folder:
            built.save(Path(folder) / "index.hbmp")
            write_file(self.store, "index", (Path(folder) / "index.hbmp").read_bytes())
        self.store.put("index_seq", self._seq)
        self.store.new_generation()


_PLURALS = {"int": "integers", "text": "texts"}


def as_ids(ids: Any, n: int) -> NDArray[np.int64] | list[str]:
    """Distinct ids: integers, or texts."""
    from hbmp.stores import check_ids

    listed = list(ids) if isinstance(ids, range) else ids
    found = np.asarray(listed)
    if found.dtype.kind not in "UO" or (found.dtype == object and all(isinstance(one, int) for one in found.flat)):
        numbers: NDArray[np.int64] = check_ids(found.astype(np.int64) if found.dtype == object else found, n)
        return numbers
    texts: list[str] = found.tolist()
    if found.shape != (n,):
        raise ValueError(f"{n} rows need {n} ids, found {len(texts) if found.ndim else 1}.")
    wrong = next((one for one in (listed if isinstance(listed, list) else texts) if not isinstance(one, str)), None)
    if wrong is not None:
        raise ValueError(f"Ids are all texts or all integers, found {wrong!r} among texts.")
    if len(set(texts)) < n:
        seen: set[str] = set()
        twice = next(one for one in texts if one in seen or seen.add(one))  # type: ignore[func-returns-value]
        raise ValueError(f"Ids must be distinct, found {twice!r} more than once.")
    return texts


def _without(numbers: NDArray[np.int64], gone: NDArray[np.int64]) -> NDArray[np.int64]:
    """Ascending numbers without some others."""
    if not len(numbers):
        return numbers
    places = np.minimum(np.searchsorted(numbers, gone), len(numbers) - 1)
    return np.delete(numbers, places[numbers[places] == gone])
