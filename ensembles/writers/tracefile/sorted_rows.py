"""Sort the events of a run by rank and start in bounded memory.

Readers yield ranks in ascending order, and the calls of a rank in the order of completion, thread by thread.
Events in memory are sorted when their ranks are complete. If a rank does not fit into memory, sorted runs of
its events are written to an unnamed temporary file and merged from there (external merge sort).
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from typing import IO

import numpy as np

from ensembles.model.events import COLUMNS, Events
from ensembles.passes.start_order import sort_by_rank_and_start

Columns = Mapping[str, np.ndarray]

HELD_ROWS = 1 << 20
"""Number of events that are sorted in memory (56 bytes each, twice)."""

_BLOCK_ROWS = 1 << 15
"""Number of events of a sorted run that are read back at a time."""


def sorted_blocks(
    chunks: Iterator[Events], rows: int, folder: str, held_rows: int = HELD_ROWS
) -> Iterator[dict[str, np.ndarray]]:
    """Sort the events of a run by rank and start, stably.

    Parameters
    ----------
    chunks : iterator of Events
        The events, ordered by rank.
    rows : int
        Length of the blocks; the last block may be shorter.
    folder : str
        Folder for a temporary file.
    held_rows : int
        Number of events that are sorted in memory.

    Yields
    ------
    dict of str to ndarray, shape (rows,)
        All columns.

    Raises
    ------
    ValueError
        The chunks are not ordered by rank.
    OSError
        The temporary file cannot be written.
    """
    with ExitStack() as files:
        pieces = _sorted_pieces(chunks, lambda: _temporary(files, folder), held_rows)
        yield from _in_blocks(pieces, rows)


def _temporary(files: ExitStack, folder: str) -> IO[bytes]:
    return files.enter_context(tempfile.TemporaryFile(prefix=".ensio-", dir=folder))


def _in_blocks(pieces: Iterator[Columns], rows: int) -> Iterator[dict[str, np.ndarray]]:
    waiting: list[Columns] = []
    length = 0
    for piece in pieces:
        begin, end = 0, len(piece["rank"])
        while length + end - begin >= rows:
            cut = begin + rows - length
            waiting.append({name: column[begin:cut] for name, column in piece.items()})
            yield dict(waiting[0]) if len(waiting) == 1 else _joined(waiting)
            waiting, length, begin = [], 0, cut
        if begin < end:
            waiting.append({name: column[begin:] for name, column in piece.items()})
            length += end - begin
    if length:
        yield _joined(waiting)


def _sorted_pieces(
    chunks: Iterator[Events], new_file: Callable[[], IO[bytes]], held_rows: int
) -> Iterator[Columns]:
    """Yield the sorted events in pieces of any length."""
    held: list[Columns] = []
    runs: _Runs | None = None  # sorted runs of the first rank in memory
    for chunk in _with_end(chunks):
        if chunk is not None:
            held.append(chunk.columns)
            if sum(len(columns["rank"]) for columns in held) < held_rows:
                continue
        if not held:
            break
        joined = _joined(held)
        held = []
        rank = joined["rank"]
        if (rank[1:] < rank[:-1]).any():
            raise ValueError("the events are not ordered by rank")
        sort_by_rank_and_start(joined)
        if runs is not None:
            same = int(np.searchsorted(rank, runs.rank, "right"))
            runs.add({name: column[:same] for name, column in joined.items()})
            joined = {name: column[same:] for name, column in joined.items()}
            if chunk is None or same < len(rank):
                yield from runs.merged()
                runs = None
        # The last rank may continue in the next chunk.
        rank = joined["rank"]
        last = len(rank) if chunk is None or not len(rank) else int(np.searchsorted(rank, rank[-1]))
        if last:
            yield {name: column[:last] for name, column in joined.items()}
        rest = {name: column[last:] for name, column in joined.items()}
        if not len(rest["rank"]):
            continue
        if len(rest["rank"]) < held_rows // 2:
            held = [rest]
        else:
            runs = _Runs(int(rest["rank"][0]), new_file())
            runs.add(rest)
    if runs is not None:
        yield from runs.merged()


def _with_end(chunks: Iterator[Events]) -> Iterator[Events | None]:
    yield from chunks
    yield None


def _joined(parts: Sequence[Columns]) -> dict[str, np.ndarray]:
    # Copies, so that sorting in place changes no caller's arrays.
    return {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}


class _Run:
    """A sorted run in the file: blocks, of which the current one is in memory."""

    def __init__(self) -> None:
        self.places: list[tuple[int, int, int]] = []  # position in the file, rows, first start
        self.next = 0
        self.block: dict[str, np.ndarray] | None = None

    @property
    def has_more(self) -> bool:
        """Whether further blocks are in the file."""
        return self.next < len(self.places)

    @property
    def next_start(self) -> int:
        return self.places[self.next][2]


class _Runs:
    """The sorted runs of one rank, in a temporary file."""

    def __init__(self, rank: int, file: IO[bytes]) -> None:
        self.rank = rank
        self._file = file
        self._runs: list[_Run] = []
        self._last_start = 0

    def add(self, columns: Columns) -> None:
        """Append sorted events, to the last run if they continue it."""
        start = columns["start"]
        if not len(start):
            return
        if not self._runs or start[0] < self._last_start:
            self._runs.append(_Run())
        self._last_start = int(start[-1])
        for low in range(0, len(start), _BLOCK_ROWS):
            block = {name: column[low : low + _BLOCK_ROWS] for name, column in columns.items()}
            place = (self._file.tell(), len(block["start"]), int(block["start"][0]))
            self._runs[-1].places.append(place)
            for name in COLUMNS:
                self._file.write(np.ascontiguousarray(block[name]).data)

    def merged(self) -> Iterator[Columns]:
        """Yield all events sorted by start, stably."""
        with self._file:
            while True:
                bound = self._loaded_bound()
                if bound is None:
                    break
                yield from self._up_to(*bound)
            yield from self._up_to(np.iinfo(np.int64).max, len(self._runs))

    def _loaded_bound(self) -> tuple[int, int] | None:
        """Load blocks, and return start and run up to which all events are in memory; None: all events."""
        while True:
            ends = [
                (int(run.block["start"][-1]), number)
                for number, run in enumerate(self._runs)
                if run.block is not None and run.has_more
            ]
            away = [
                (run.next_start, number)
                for number, run in enumerate(self._runs)
                if run.block is None and run.has_more
            ]
            if away and (not ends or min(away)[0] <= min(ends)[0]):
                self._load(self._runs[min(away)[1]])
                continue
            return min(ends) if ends else None

    def _load(self, run: _Run) -> None:
        position, rows, _ = run.places[run.next]
        run.next += 1
        self._file.seek(position)
        run.block = {
            name: np.frombuffer(self._file.read(rows * dtype.itemsize), dtype)
            for name, dtype in COLUMNS.items()
        }

    def _up_to(self, bound: int, of_run: int) -> Iterator[Columns]:
        """Yield the events that start before `bound`, and those at `bound` in the runs up to `of_run`.

        These runs have all their events at `bound` in memory, and those of later runs come after them.
        """
        parts = []
        for number, run in enumerate(self._runs):
            if run.block is None:
                continue
            start = run.block["start"]
            cut = int(np.searchsorted(start, bound, "right" if number <= of_run else "left"))
            if cut:
                parts.append({name: column[:cut] for name, column in run.block.items()})
            left = {name: column[cut:] for name, column in run.block.items()}
            run.block = left if cut < len(start) else None
        if len(parts) == 1:
            yield parts[0]
        elif parts:
            joined = _joined(parts)
            order = np.argsort(joined["start"], kind="stable")
            yield {name: column[order] for name, column in joined.items()}
