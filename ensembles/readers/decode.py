"""Reads the events of spools, as they lie in files, into columns.

Events are read into one small buffer that stays in the processor's cache, and from there go into the columns.
No more than the buffer and the columns is ever in memory, whatever the size of the files.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from ensembles.errors import EnsioError
from ensembles.events import COLUMNS
from ensembles.readers import coding
from ensembles.readers.columns import Decoding, compact, decode, sound
from ensembles.readers.flaws import Flaws
from ensembles.readers.layout import EVENT
from ensembles.readers.spool import Coded, Window

BLOCK_EVENTS = coding.BLOCK_EVENTS


class _Piece(NamedTuple):
    """Events ``low`` to ``high`` of the buffer are of one thread of one spool."""

    decoding: Decoding
    thread: int
    low: int
    high: int


class BlockReader:
    """Reads events of spools one after the other into a buffer, and decodes them from there.

    Attributes
    ----------
    flaws : Flaws
        Of the events that were read so far.
    """

    def __init__(self, decodings: Sequence[Decoding]) -> None:
        self.flaws = Flaws()
        self._raw = np.empty(BLOCK_EVENTS, EVENT.dtype)
        self._buffer = memoryview(self._raw.view("u1"))
        self._source = self._pieces(decodings)
        self._limit = 0
        self._used = 0

    def read(self, columns: dict[str, np.ndarray], position: int, limit: int) -> int:
        """Decode up to `limit` of the next events into `columns` from `position` on.

        Returns
        -------
        int
            How many there were; 0: no more.
        """
        while True:
            self._limit, self._used = min(limit, BLOCK_EVENTS), 0
            pieces = []
            for piece in self._source:
                if piece is None:
                    break
                pieces.append(piece)
            if not pieces:
                return 0
            count = self._decode(pieces, columns, position)
            if count:
                return count

    def _pieces(self, decodings: Sequence[Decoding]) -> Iterator[_Piece | None]:
        """Fills the buffer piece by piece; gives None whenever it is full."""
        for decoding in decodings:
            if not decoding.windows and not decoding.coded:
                continue
            path = decoding.job_path or decoding.path
            try:
                descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except OSError as error:
                raise EnsioError(f"{path} cannot be read: {error.strerror}") from error
            try:
                for window in decoding.windows:
                    thread = min(decoding.first_thread + window.thread, 0xFFFF)
                    yield from self._pieces_of_window(descriptor, decoding, window, thread)
                for block in decoding.coded:
                    thread = min(decoding.first_thread + block.thread, 0xFFFF)
                    yield from self._pieces_of_block(descriptor, decoding, block, thread)
            finally:
                os.close(descriptor)
        yield None

    def _pieces_of_window(
        self, descriptor: int, decoding: Decoding, window: Window, thread: int
    ) -> Iterator[_Piece | None]:
        slot = 0
        while slot < window.slots:
            if self._used == self._limit:
                yield None
            wanted = min(self._limit - self._used, window.slots - slot)
            low = self._used
            place = self._buffer[low * EVENT.size : (low + wanted) * EVENT.size]
            try:
                read_bytes = os.preadv(descriptor, [place], window.position + slot * EVENT.size)
            except OSError as error:
                raise EnsioError(f"{decoding.path} cannot be read: {error.strerror}") from error
            present = read_bytes // EVENT.size
            if present == 0:
                return
            completed = self._compact(low, low + present)
            slot += present
            if completed:
                self._used += completed
                yield _Piece(decoding, thread, low, self._used)
            else:
                slot = max(slot, _slot_with_data(descriptor, window, slot))

    def _pieces_of_block(
        self, descriptor: int, decoding: Decoding, block: Coded, thread: int
    ) -> Iterator[_Piece | None]:
        """A block is decoded where it is to be, unless the buffer does not take all of it at once."""
        if self._used and block.events > self._limit - self._used:
            yield None
        try:
            coded = os.pread(descriptor, block.length, block.position)
            if block.events <= self._limit - self._used:
                place = self._raw[self._used : self._used + block.events]
            else:
                place = np.empty(block.events, EVENT.dtype)
            if coding.decode_events(coded, place) != block.events:
                raise ValueError("the block has another number of events than it is said to have")
        except OSError as error:
            raise EnsioError(f"{decoding.job_path} cannot be read: {error.strerror}") from error
        except (ValueError, IndexError):
            self.flaws.lost[decoding.job_path] = self.flaws.lost.get(decoding.job_path, 0) + block.events
            return
        done = 0
        while done < block.events:
            if self._used == self._limit:
                yield None
            low, wanted = self._used, min(self._limit - self._used, block.events - done)
            if place.base is not self._raw:
                self._raw[low : low + wanted] = place[done : done + wanted]
            done += wanted
            completed = self._compact(low, low + wanted)
            if completed:
                self._used += completed
                yield _Piece(decoding, thread, low, self._used)

    def _compact(self, low: int, high: int) -> int:
        """Move completed events of the buffer to the front; how many there are."""
        return compact(self._raw[low:high])

    def _decode(self, pieces: list[_Piece], columns: dict[str, np.ndarray], position: int) -> int:
        damaged = False
        for decoding, thread, low, high in pieces:
            place = slice(position + low, position + high)
            out = {name: column[place] for name, column in columns.items()}
            found = decode(decoding, thread, self._raw[low:high], out)
            self.flaws.unknown_calls += found.unknown_calls
            self.flaws.unknown_files += found.unknown_files
            damaged |= found.damaged
        return self._leave_out_damaged(pieces, columns, position) if damaged else self._used

    def _leave_out_damaged(self, pieces: list[_Piece], columns: dict[str, np.ndarray], position: int) -> int:
        kept = np.ones(self._used, bool)
        for decoding, _, low, high in pieces:
            kept[low:high] = sound(decoding, self._raw[low:high])
            lost = high - low - int(np.count_nonzero(kept[low:high]))
            if lost:
                self.flaws.damaged[decoding.path] = self.flaws.damaged.get(decoding.path, 0) + lost
        count = int(np.count_nonzero(kept))
        for column in columns.values():
            column[position : position + count] = column[position : position + self._used][kept]
        return count


def _slot_with_data(descriptor: int, window: Window, slot: int) -> int:
    """The first slot from `slot` on that does not lie in a hole of the file."""
    position = window.position + slot * EVENT.size
    try:
        return (os.lseek(descriptor, position, os.SEEK_DATA) - window.position) // EVENT.size
    except OSError as error:
        return window.slots if error.errno == errno.ENXIO else slot


def empty_columns(length: int, names: Sequence[str] | None = None) -> dict[str, np.ndarray]:
    """Columns of this length whose values are not set yet: all, or those that are named and the few on which
    decoding stands."""
    if names is None:
        return {name: np.empty(length, dtype) for name, dtype in COLUMNS.items()}
    needed = {*names, "call", "start", "duration"} | ({"error"} if "moved" in names else set())
    return {name: np.empty(length, dtype) for name, dtype in COLUMNS.items() if name in needed}


def sort_by_rank_and_start(columns: dict[str, np.ndarray]) -> None:
    """Sort columns in place by rank and then start (stably), where ranks already come in ascending order.

    Only ranks whose calls are out of order cost time: those with several threads or nested calls.
    """
    rank, start = columns["rank"], columns["start"]
    if len(rank) < 2:
        return
    descents = []
    for low in range(0, len(rank) - 1, 1 << 18):
        high = min(low + (1 << 18), len(rank) - 1)
        falls = start[low + 1 : high + 1] < start[low:high]
        falls &= rank[low + 1 : high + 1] == rank[low:high]
        descents.append(low + np.flatnonzero(falls))
    for unsorted_rank in np.unique(rank[np.concatenate(descents)]):
        low, high = np.searchsorted(rank, [unsorted_rank, unsorted_rank + 1])
        order = np.argsort(start[low:high], kind="stable")
        for column in columns.values():
            column[low:high] = column[low:high][order]
