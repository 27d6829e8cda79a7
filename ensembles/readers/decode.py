"""Turns the events of spools, as they lie in files, into columns.

Events are read into one small buffer that stays in the processor's cache, and from there go into the columns.
No more than the buffer and the columns is ever in memory, whatever the size of the files.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ensembles.errors import EnsioError
from ensembles.events import COLUMNS
from ensembles.readers import coding
from ensembles.readers.flaws import Flaws
from ensembles.readers.layout import EVENT
from ensembles.readers.spool import Coded, Window

BLOCK_EVENTS = coding.BLOCK_EVENTS
LARGEST_TICKS = 1 << 55
"""Times beyond this many ticks from a process's start (more than 100 days) are damage."""

LARGEST_NS = 1 << 58
"""So are times beyond this many ns (nine years): sums of a few of them stay within 64 bits."""

LARGEST_MOVED_BYTES = 1 << 50
"""A call that is said to have moved more is damage: Linux moves less than 2**31 bytes in one."""

_MOST_ERRNO = 0xFFFF

_AS_STORED = ("depth", "offset", "requested", "moved")


@dataclass(frozen=True, slots=True)
class Decoding:
    """How the events of one spool become columns.

    Attributes
    ----------
    path : str
        Of the spool.
    job_path : str
        Of the job file that is read in its place, or "".
    windows : list of Window
        In a spool.
    coded : list of Coded
        In a job file.
    rank : int
    first_thread : int
        Added to the thread numbers of the windows.
    call_numbers, file_numbers : ndarray
        Number in the spool → number in the run's dictionaries. The last entry stands for all larger numbers.
    first_ticks : int
    ns_per_tick : float
    start_ns : int
        Since the origin of the run, when the clock stood at `first_ticks`.
    """

    path: str
    job_path: str
    windows: Sequence[Window]
    coded: Sequence[Coded]
    rank: int
    first_thread: int
    call_numbers: np.ndarray
    file_numbers: np.ndarray
    first_ticks: int
    ns_per_tick: float
    start_ns: int

    @property
    def most_ticks(self) -> int:
        """Times from `first_ticks` and durations beyond this are damage."""
        return min(LARGEST_TICKS, int(LARGEST_NS / self.ns_per_tick))


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
        self._real = np.empty(BLOCK_EVENTS, "f8")
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
        events = self._raw[low:high]
        call = events["call"]
        completed = int(np.count_nonzero(call))
        if completed < high - low and np.count_nonzero(call[:completed]) < completed:
            events[:completed] = events[call != 0]
        return completed

    def _decode(self, pieces: list[_Piece], columns: dict[str, np.ndarray], position: int) -> int:
        raw = self._raw[: self._used]
        end = position + self._used
        out = {name: column[position:end] for name, column in columns.items()}
        for name, stored in (*zip(_AS_STORED, _AS_STORED, strict=True), ("carried", "flags")):
            if name in out:
                out[name][:] = raw[stored]
        damaged = raw["moved"].max() > LARGEST_MOVED_BYTES
        for decoding, thread, low, high in pieces:
            for name, value in (("rank", decoding.rank), ("thread", thread)):
                if name in out:
                    out[name][low:high] = value
            for name, numbers in (("call", decoding.call_numbers), ("file", decoding.file_numbers)):
                if name in out:
                    np.take(numbers, raw[name][low:high], out=out[name][low:high], mode="clip")
            damaged |= self._decode_times(decoding, raw, out, low, high)
        self.flaws.unknown_calls += self._used - int(np.count_nonzero(out["call"]))
        if "file" in out:
            named = int(np.count_nonzero(out["file"]))
            self.flaws.unknown_files += int(np.count_nonzero(raw["file"])) - named
        if "moved" in out:
            _decode_failures(out["moved"], out["error"])
        if damaged:
            return self._leave_out_damaged(pieces, raw, out)
        return self._used

    def _decode_times(
        self, decoding: Decoding, raw: np.ndarray, out: dict[str, np.ndarray], low: int, high: int
    ) -> bool:
        """Ticks to nanoseconds; whether any of them is impossible.

        The base is subtracted in integers: what is left is below 2**55 ticks, so that a float64 holds it
        exactly within the first weeks of a run, and to a few ticks ever after.
        """
        start, duration, real = out["start"][low:high], out["duration"][low:high], self._real[low:high]
        np.subtract(raw["start"][low:high], np.uint64(decoding.first_ticks), out=start.view("u8"))
        duration[:] = raw["duration"][low:high].view("i8")
        most = decoding.most_ticks
        damaged = start.max() > most or start.min() < -most or duration.max() > most or duration.min() < 0
        if damaged:
            # They are left out later, but must not leave the range of integers here.
            for times in (start, duration):
                np.clip(times, -most, most, out=times)
        if decoding.ns_per_tick != 1.0:
            for times in (start, duration):
                np.multiply(times, decoding.ns_per_tick, out=real)
                np.rint(real, out=real)
                times[:] = real
        start += decoding.start_ns
        return bool(damaged)

    def _leave_out_damaged(self, pieces: list[_Piece], raw: np.ndarray, out: dict[str, np.ndarray]) -> int:
        sound = np.ones(len(raw), bool)
        for decoding, _, low, high in pieces:
            since_first = (raw["start"][low:high] - np.uint64(decoding.first_ticks)).view("i8")
            most = decoding.most_ticks
            sound[low:high] = (since_first >= -most) & (since_first <= most)
            sound[low:high] &= raw["duration"][low:high] <= most
            sound[low:high] &= raw["moved"][low:high] <= LARGEST_MOVED_BYTES
            lost = high - low - int(np.count_nonzero(sound[low:high]))
            if lost:
                self.flaws.damaged[decoding.path] = self.flaws.damaged.get(decoding.path, 0) + lost
        count = int(np.count_nonzero(sound))
        for column in out.values():
            column[:count] = column[sound]
        return count


def _decode_failures(moved: np.ndarray, error: np.ndarray) -> None:
    """Split the record's `moved`, which is minus the errno of a failed call, into the two columns."""
    error[:] = 0
    if len(moved) and moved.min() < 0:
        failed = moved < 0
        error[failed] = -np.maximum(moved[failed], -_MOST_ERRNO)
        moved[failed] = -1


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
