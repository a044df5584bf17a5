"""Codes in blocks: a log whose later entries count.

    seq        order of the blocks
    removed    numbers of items that leave
    numbers    numbers of items that come, or get a new code, ascending       codes    their packed codes

Adding, removing and updating each append one block, whatever the size of the database. A reader that knows all blocks
up to some `seq` reads only the later ones. Blocks of like size are merged as they come, the way a binary counter
carries, and a log that is mostly history is written anew.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from hbmp.database.database_file import DatabaseFile

SIZE = 1 << 16  # codes per block
_HISTORY = 1 << 17  # rows of history that are always kept


@dataclass(frozen=True)
class Block:
    """Items that leave, then items that come with their packed codes (n, n_bytes)."""

    numbers: NDArray[np.int64]
    codes: NDArray[np.uint8]
    removed: NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.numbers) + len(self.removed)


def append(store: DatabaseFile, block: Block) -> None:
    """Write a block in parts of at most `SIZE` codes and tidy the log, inside a transaction."""
    nothing = np.empty(0, np.int64)
    for start in range(0, max(len(block.numbers), 1), SIZE):
        part = slice(start, start + SIZE)
        _write(store, Block(block.numbers[part], block.codes[part], block.removed if start == 0 else nothing))
    _merge_tail(store)
    _forget_history(store)


def read(store: DatabaseFile, after: int = 0) -> tuple[Block, int]:
    """Everything after a `seq` as one block with ascending numbers, and the last `seq`."""
    rows = store.rows(
        "SELECT seq, first, size, numbers, codes, removed, crc FROM blocks WHERE seq > ? ORDER BY seq", [after]
    )
    if not rows:
        return _nothing(), after
    return combine([_from_row(row, store) for row in rows]), rows[-1][0]


def combine(blocks: Sequence[Block]) -> Block:
    """Several blocks as one: of each number only the last word counts."""
    removed = np.unique(np.concatenate([block.removed for block in blocks]))
    numbers = np.concatenate([block.numbers for block in blocks])
    if not len(removed) and (numbers[1:] > numbers[:-1]).all():
        return Block(numbers, _codes(blocks), removed)
    # Words in order of time: each block first removes, then writes; -1 is a removal, other values are rows of codes.
    words, rows, start = [], [], 0
    for block in blocks:
        words += [block.removed, block.numbers]
        rows += [np.full(len(block.removed), -1), np.arange(start, start + len(block.numbers))]
        start += len(block.numbers)
    word, row = np.concatenate(words), np.concatenate(rows)
    order = np.argsort(word, kind="stable")
    word, row = word[order], row[order]
    last = np.append(word[1:] != word[:-1], True)
    kept = last & (row >= 0)
    return Block(word[kept], _codes(blocks)[row[kept]], removed)


def _codes(blocks: Sequence[Block]) -> NDArray[np.uint8]:
    """The codes of all blocks; those without any have no width."""
    some = [block.codes for block in blocks if len(block.numbers)]
    return np.concatenate(some) if some else np.empty((0, 0), np.uint8)


def _write(store: DatabaseFile, block: Block) -> None:
    numbers, codes, removed = block.numbers, np.ascontiguousarray(block.codes), block.removed
    first = int(numbers[0]) if len(numbers) else 0
    in_a_row = not len(numbers) or int(numbers[-1]) - first == len(numbers) - 1
    parts = (b"" if in_a_row else numbers.astype("<i8").tobytes(), codes.tobytes(), removed.astype("<i8").tobytes())
    store.rows(
        "INSERT INTO blocks (first, size, n_removed, numbers, codes, removed, crc) VALUES (?, ?, ?, ?, ?, ?, ?)",
        [
            first,
            len(numbers),
            len(removed),
            None if in_a_row else parts[0],
            *parts[1:],
            _crc(first, len(numbers), *parts),
        ],
    )


def _from_row(row: tuple[Any, ...], store: DatabaseFile) -> Block:
    _, first, size, numbers, codes, removed, crc = row
    if not all(isinstance(part, bytes) for part in (numbers or b"", codes, removed)) or not all(
        isinstance(number, int) for number in (first, size)
    ):
        raise store.damaged("a block of codes cannot be read")
    if _crc(first, size, numbers or b"", codes, removed) != crc:
        raise store.damaged("a block of codes does not match its checksum")
    with store.decoding("a block of codes cannot be read"):
        if first < 0 or not 0 <= size <= max(len(codes), 0) or first + size >= 2**63:
            raise ValueError(f"it has {size} codes from {first} on")
        found = np.arange(first, first + size) if numbers is None else np.frombuffer(numbers, "<i8").astype(np.int64)
        packed = np.frombuffer(codes, np.uint8).reshape(size, -1) if size else np.empty((0, 0), np.uint8)
        gone = np.frombuffer(removed, "<i8").astype(np.int64)
        if len(found) != size or (found[1:] <= found[:-1]).any() or min(found[:1].sum(), gone.min(initial=0)) < 0:
            raise ValueError("its numbers are out of order")
    return Block(found, packed, gone)


def _crc(first: int, size: int, *parts: bytes) -> int:
    found = zlib.crc32(f"{first} {size} {' '.join(str(len(part)) for part in parts)} ".encode())
    for part in parts:
        found = zlib.crc32(part, found)
    return found


def _nothing() -> Block:
    return Block(np.empty(0, np.int64), np.empty((0, 0), np.uint8), np.empty(0, np.int64))


def _merge_tail(store: DatabaseFile) -> None:
    """Make the last blocks one as long as each is at most twice as large as all after it."""
    taken, size = 0, 0
    for found in store.rows("SELECT size + n_removed FROM blocks ORDER BY seq DESC LIMIT 40"):
        if size + found[0] > SIZE or (taken and found[0] > 2 * size):
            break
        taken, size = taken + 1, size + found[0]
    if taken < 2:
        return
    (first,) = store.rows("SELECT seq FROM blocks ORDER BY seq DESC LIMIT 1 OFFSET ?", [taken - 1])[0]
    merged, _ = read(store, first - 1)
    store.rows("DELETE FROM blocks WHERE seq >= ?", [first])
    _write(store, merged)


def _forget_history(store: DatabaseFile) -> None:
    """Rewrite all blocks if most of their content is history."""
    rows, live = store.rows("SELECT total(size + n_removed) FROM blocks")[0][0], store.get("items", 0)
    if rows <= 2 * live + _HISTORY:
        return
    whole, _ = read(store)
    store.rows("DELETE FROM blocks")
    store.rows("DELETE FROM files WHERE name = 'index'")
    for start in range(0, len(whole.numbers), SIZE):
        part = slice(start, start + SIZE)
        _write(store, Block(whole.numbers[part], whole.codes[part], np.empty(0, np.int64)))
    store.new_generation()
