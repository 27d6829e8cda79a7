"""Read the events of spools and job files into columns.

Events are read into a small buffer that fits into the processor's cache, and decoded from there into the
columns. Memory holds only the buffer and the columns, whatever the size of the files.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from ensembles.files.names import process_file_of
from ensembles.files.untrusted import Reading, open_regular
from ensembles.model.c_layout import BLOCK, CONSTANTS, EVENT
from ensembles.model.errors import EnsioError
from ensembles.model.events import MISSING
from ensembles.passes.damage import DamageReport
from ensembles.readers.native import job_file_codec
from ensembles.readers.native.flights import COLUMNS as FLIGHT_COLUMNS
from ensembles.readers.native.flights import FlightReader
from ensembles.readers.native.spool import PART_BYTES, Coded, Window
from ensembles.readers.native.window_decoder import (
    Decoding,
    OutColumns,
    compact,
    decode,
    out_columns,
    read_slots,
    read_window,
    sound,
)

BLOCK_EVENTS = job_file_codec.BLOCK_EVENTS

_MAGIC, _SUMMED_ONLY = CONSTANTS["ENSIO_BLOCK_MAGIC"], CONSTANTS["ENSIO_SUMMED_ONLY"]
_MOST_BYTES = CONSTANTS["ENSIO_WINDOW_LARGE_BYTES"]


class BlockReader:
    """A reader that decodes the events of several spools, one spool after another.

    `flaws`: damage found in the events read so far.
    """

    def __init__(self, decodings: Sequence[Decoding]) -> None:
        self.flaws = DamageReport()
        self._raw = np.empty(BLOCK_EVENTS, EVENT.dtype)
        self._raw_bytes = self._raw.view("u1")
        self._columns: dict[str, np.ndarray] = {}
        self._out: OutColumns = ()
        self._has_flight_columns = False
        self._flights: FlightReader | None = None
        self._place = range(0)
        self._source = self._filled(decodings)

    def read(self, columns: dict[str, np.ndarray], position: int, limit: int) -> int:
        """Decode the next events, and return their number: less than `limit` only at the end."""
        self._columns, self._place = columns, range(position, position + limit)
        self._out = out_columns(columns)
        self._has_flight_columns = any(name in columns for name in FLIGHT_COLUMNS)
        next(self._source, None)
        self._columns, self._out = {}, ()
        return self._place.start - position

    def _filled(self, decodings: Sequence[Decoding]) -> Iterator[None]:
        """Fill the columns, and yield whenever they are full."""
        uncoded: list[str] = []
        for decoding in decodings:
            if not decoding.windows and not decoding.coded:
                continue
            self._flights = self._flights_of(decoding)
            if decoding.coded:
                with _opened(decoding.job_path) as descriptor:
                    for block in decoding.coded:
                        thread = min(decoding.first_thread + block.thread, 0xFFFF)
                        yield from self._filled_by_block(descriptor, decoding, block, thread)
            if decoding.windows:
                with _opened(decoding.path) as descriptor:
                    for window in decoding.windows:
                        thread = min(decoding.first_thread + window.thread, 0xFFFF)
                        filled = self._filled_by_coded if window.is_coded else self._filled_by_window
                        yield from filled(descriptor, decoding, window, thread)
                if decoding.uncoded:
                    uncoded.append(decoding.path)
        for path in _coded_since(uncoded):
            raise EnsioError(f"{path} was coded by its process, which has ended: open the run again")

    def _filled_by_window(
        self, descriptor: int, decoding: Decoding, window: Window, thread: int
    ) -> Iterator[None]:
        slot = empty = 0
        while slot < window.slots:
            if not self._place:
                yield
            rest = window.from_slot(slot) if slot else window
            with Reading(decoding.path):
                done = read_window(
                    descriptor, decoding, thread, rest, self._raw_bytes, self._out, self._place, empty
                )
            if done.slots == 0:
                return
            if self._flights is not None or self._has_flight_columns:
                process_thread = thread - decoding.first_thread
                self._fill_flights(self._columns, process_thread, self._place.start, done.events)
            self._place = self._place[done.events :]
            self.flaws.unknown_calls += done.unknown_calls
            self.flaws.unknown_files += done.unknown_files
            slot, empty, lost = slot + done.slots, done.open, done.lost
            if done.left:
                self._decode(decoding, thread, self._raw[: done.left])
            elif done.events == 0:
                skipped = max(_slot_with_data(descriptor, window, slot) - slot, 0)
                summed = min(skipped, max(window.summarised - slot, 0))
                slot, empty, lost = slot + skipped, empty + skipped - summed, lost + summed
            self.flaws.leave_out(decoding.path, lost)

    def _filled_by_block(
        self, descriptor: int, decoding: Decoding, block: Coded, thread: int
    ) -> Iterator[None]:
        try:
            coded = os.pread(descriptor, block.length, block.position)
            if job_file_codec.decode_events(coded, self._raw) != block.events:
                raise ValueError("the number of events in the block differs from its record")
        except OSError as error:
            raise EnsioError(f"{decoding.job_path} cannot be read: {error.strerror}") from error
        except (ValueError, IndexError):
            self.flaws.leave_out(decoding.job_path, block.events)
            return
        yield from self._given(decoding, thread, self._raw[: compact(self._raw[: block.events])])

    def _filled_by_coded(
        self, descriptor: int, decoding: Decoding, window: Window, thread: int
    ) -> Iterator[None]:
        with Reading(decoding.path):
            for events, lost in coded_events(descriptor, window, self._raw):
                self.flaws.leave_out(decoding.path, lost)
                yield from self._given(decoding, thread, events)

    def _given(self, decoding: Decoding, thread: int, events: np.ndarray) -> Iterator[None]:
        """Decode completed events, and yield whenever the columns are full."""
        while len(events):
            if not self._place:
                yield
            wanted = min(len(self._place), len(events))
            self._decode(decoding, thread, events[:wanted])
            events = events[wanted:]

    def _decode(self, decoding: Decoding, thread: int, raw: np.ndarray) -> None:
        """Decode completed events without the damaged ones; the columns have room for all of them."""
        low = self._place.start
        out = {name: column[low : low + len(raw)] for name, column in self._columns.items()}
        found = decode(decoding, thread, raw, out)
        if found is None:
            kept = raw[sound(decoding, raw)]
            self.flaws.leave_out(decoding.path, len(raw) - len(kept))
            raw, found = kept, decode(decoding, thread, kept, out)
            assert found is not None
        self._fill_flights(out, thread - decoding.first_thread, 0, len(raw))
        self.flaws.unknown_calls += found.unknown_calls
        self.flaws.unknown_files += found.unknown_files
        self._place = self._place[len(raw) :]

    def _flights_of(self, decoding: Decoding) -> FlightReader | None:
        if not decoding.flights or not any(name in self._columns for name in FLIGHT_COLUMNS):
            return None
        found, lost = decoding.flights.reader(
            decoding.call_numbers, decoding.first_ticks, decoding.ns_per_tick, decoding.start_ns
        )
        self.flaws.leave_out(decoding.path, lost, "request flight")
        return found

    def _fill_flights(self, columns: dict[str, np.ndarray], thread: int, low: int, count: int) -> None:
        for name in FLIGHT_COLUMNS:
            if name in columns:
                columns[name][low : low + count] = MISSING[name]
        if self._flights is not None:
            self._flights.fill(thread, columns, low, low + count)


def coded_events(descriptor: int, window: Window, out: np.ndarray) -> Iterator[tuple[np.ndarray, int]]:
    """Yield the events of each block of a window, then of its slots, and how many are damaged.

    A running process may have added blocks since the window was found. `out`: room for a block.
    """
    coded, part = read_slots(descriptor, window)
    position, until = window.position + PART_BYTES, min(coded, window.slots)
    done = until if window.first >= until else 0
    while done < until:
        head = BLOCK.unpack(os.pread(descriptor, BLOCK.size, position).ljust(BLOCK.size, b"\0"))
        length = job_file_codec.block_length(head)
        sound = head.magic == _MAGIC and 0 < head.events <= until - done and length <= _MOST_BYTES
        last, first = head.events if sound else until - done, max(window.first - done, 0)
        position, done = position + length, done + last
        try:
            job_file_codec.decode_events(
                os.pread(descriptor, length, position - length) if sound else b"", out
            )
        except ValueError:
            yield out[:0], max(last - first, 0)
        else:
            yield out[first:last], 0
    part = part[max(window.first - coded, 0) : max(window.slots - coded, 0)]
    filled = np.flatnonzero(part["call"])
    used = max(window.summarised - max(window.first, coded), int(filled[-1]) + 1 if len(filled) else 0)
    empty = (part["call"] == 0) & ((part["flags"] & _SUMMED_ONLY) == 0)
    yield part[filled], int(np.count_nonzero(empty[:used]))


@contextmanager
def _opened(path: str) -> Iterator[int]:
    with Reading(path):
        file = open_regular(path)
    with file:
        yield file.fileno()


def _coded_since(paths: Sequence[str]) -> Iterator[str]:
    """Yield the spools that their process has coded into a file beside them."""
    names: dict[str, set[str]] = {}
    for path in paths:
        folder, name = os.path.split(process_file_of(path))
        if folder not in names:
            with Reading(folder):
                names[folder] = set(os.listdir(folder or "."))
        if name in names[folder]:
            yield path


def _slot_with_data(descriptor: int, window: Window, slot: int) -> int:
    """Return the first slot from `slot` on that does not lie in a hole of the file."""
    position = window.position + slot * EVENT.size
    try:
        return (os.lseek(descriptor, position, os.SEEK_DATA) - window.position) // EVENT.size
    except OSError as error:
        return window.slots if error.errno == errno.ENXIO else slot
