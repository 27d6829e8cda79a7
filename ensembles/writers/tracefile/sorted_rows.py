"""Sort the events of a run by rank and start in bounded memory.

Readers yield ranks in ascending order, and the calls of a rank in the order of completion, thread by thread.
Events in memory are sorted when their ranks are complete. If a rank does not fit into memory, sorted runs of
its events are written to an unnamed temporary file and merged from there (external merge sort).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from ensembles.model.events import COLUMNS, Events
from ensembles.passes.start_order import sort_by_rank_and_start
from ensembles.readers.common.row_files import MERGED_EVENTS, ColumnFile, StoredRows, merged_blocks

Columns = Mapping[str, np.ndarray]


def sorted_blocks(
    chunks: Iterator[Events], rows: int, folder: str, held_rows: int = MERGED_EVENTS
) -> Iterator[dict[str, np.ndarray]]:
    """Sort the events of a run by rank and start, stably."""
    return _in_blocks(_sorted_pieces(chunks, folder, held_rows), rows)


class _Piece(NamedTuple):
    """Rows of columns. Pieces that continue each other in the same columns are joined without a copy."""

    columns: Columns
    low: int
    high: int

    @property
    def rank(self) -> np.ndarray:
        return self.columns["rank"][self.low : self.high]

    def rows(self) -> dict[str, np.ndarray]:
        return {name: self.columns[name][self.low : self.high] for name in COLUMNS}

    def parted(self, at: int) -> tuple[_Piece, _Piece]:
        """Return the first rows, and the others."""
        return self._replace(high=self.low + at), self._replace(low=self.low + at)


def _in_blocks(pieces: Iterator[_Piece], rows: int) -> Iterator[dict[str, np.ndarray]]:
    waiting: list[_Piece] = []
    length = 0
    for piece in pieces:
        while length + piece.high - piece.low >= rows:
            own, piece = piece.parted(rows - length)
            _append(waiting, own)
            yield waiting[0].rows() if len(waiting) == 1 else _joined(waiting)
            waiting, length = [], 0
        if piece.low < piece.high:
            _append(waiting, piece)
            length += piece.high - piece.low
    if length:
        yield _joined(waiting)


def _append(waiting: list[_Piece], piece: _Piece) -> None:
    last = waiting[-1] if waiting else None
    if last is not None and last.columns is piece.columns and last.high == piece.low:
        waiting[-1] = last._replace(high=piece.high)
    else:
        waiting.append(piece)


def _sorted_pieces(chunks: Iterator[Events], folder: str, held_rows: int) -> Iterator[_Piece]:
    """Yield the sorted events in pieces of any length."""
    held: list[_Piece] = []  # of ranks that may continue
    is_sorted = True  # what is held
    runs: _Runs | None = None  # sorted runs of the first rank in memory
    for chunk in _with_end(chunks):
        if chunk is not None:
            if not len(chunk):
                continue
            piece = _Piece(chunk.columns, 0, len(chunk))
            is_sorted = is_sorted and _continues(held[-1] if held else None, piece)
            held.append(piece)
            count = sum(each.high - each.low for each in held)
            if (runs is not None or not is_sorted) and count < held_rows:
                continue
        if not held:
            break
        if runs is None and is_sorted:
            # As tasks with one thread and no calls inside others record them: nothing is copied.
            last = held[-1].columns["rank"][held[-1].high - 1]
            whole = [0 if chunk is not None else len(each.rank) for each in held]
            if chunk is not None:
                whole = [int(np.searchsorted(each.rank, last)) for each in held]
            parts = [each.parted(at) for each, at in zip(held, whole, strict=True)]
            yield from (some for some, _ in parts if some.low < some.high)
            held = [rest for _, rest in parts if rest.low < rest.high]
            if sum(each.high - each.low for each in held) < held_rows // 2 or not held:
                continue
        joined = _joined(held)
        held, is_sorted = [], True
        rank = joined["rank"]
        if (rank[1:] < rank[:-1]).any():
            raise ValueError("the events are not ordered by rank")
        sort_by_rank_and_start(joined)
        if runs is not None:
            same = int(np.searchsorted(rank, runs.rank, "right"))
            runs.add({name: column[:same] for name, column in joined.items()})
            joined = {name: column[same:] for name, column in joined.items()}
            if chunk is None or same < len(rank):
                yield from runs.merged(held_rows)
                runs = None
        # The last rank may continue in the next chunk.
        rank = joined["rank"]
        cut = len(rank) if chunk is None or not len(rank) else int(np.searchsorted(rank, rank[-1]))
        if cut:
            yield _Piece(joined, 0, cut)
        if cut == len(rank):
            continue
        rest = _Piece(joined, cut, len(rank))
        if rest.high - rest.low < held_rows // 2:
            held = [rest]
        else:
            runs = _Runs(int(rank[cut]), folder)
            runs.add(rest.rows())
    if runs is not None:
        yield from runs.merged(held_rows)


def _continues(before: _Piece | None, piece: _Piece) -> bool:
    """Whether events are sorted, and follow on the last of those before."""
    rank, start = piece.rank, piece.columns["start"][piece.low : piece.high]
    if before is not None:
        last = before.columns["rank"][before.high - 1], before.columns["start"][before.high - 1]
        if (rank[0], start[0]) < last:
            return False
    if rank[0] == rank[-1]:
        return bool((rank == rank[0]).all() and (start[1:] >= start[:-1]).all())
    rises = rank[1:] > rank[:-1]
    return bool((rises | ((rank[1:] == rank[:-1]) & (start[1:] >= start[:-1]))).all())


def _with_end(chunks: Iterator[Events]) -> Iterator[Events | None]:
    yield from chunks
    yield None


def _joined(parts: Sequence[_Piece]) -> dict[str, np.ndarray]:
    # Copies, so that sorting in place changes no caller's arrays.
    rows = [part.rows() for part in parts]
    return {name: np.concatenate([part[name] for part in rows]) for name in COLUMNS}


class _Runs:
    """Sorted rows of one rank, in pieces in a temporary file."""

    def __init__(self, rank: int, folder: str) -> None:
        self.rank = rank
        self._file = ColumnFile(folder)
        self._pieces: list[StoredRows] = []

    def add(self, columns: Columns) -> None:
        """Append sorted events."""
        if length := len(columns["start"]):
            self._pieces.append(self._file.stored(length, columns.items()))

    def merged(self, at_a_time: int) -> Iterator[_Piece]:
        """Yield all events sorted by start, stably."""
        for columns in merged_blocks(self._pieces, at_a_time):
            yield _Piece(columns, 0, len(columns["rank"]))
        self._file.close()
