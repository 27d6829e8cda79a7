"""Decode the events of spools into columns, in C."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ensembles import _compiled
from ensembles.model.c_layout import EVENT, WINDOW
from ensembles.model.events import COLUMNS
from ensembles.readers.common.columns import LARGEST_MOVED_BYTES, LARGEST_NS
from ensembles.readers.native.flights import COLUMNS as FLIGHT_COLUMNS
from ensembles.readers.native.flights import NO_FLIGHTS, FlightRows
from ensembles.readers.native.spool import CODED_SLOTS, HEADER_BYTES, PART_BYTES, Coded, Window

_DECODED = tuple(name for name in COLUMNS if name not in FLIGHT_COLUMNS)

LARGEST_TICKS = 1 << 55
"""Largest plausible time since the start of a process, ticks (more than 100 days)."""


@dataclass(slots=True)
class Decoding:
    """Locations of the events of one spool, and their translation to columns of the run."""

    path: str  # Path of the spool
    job_path: str  # Path of the job file with the coded events, or ""
    windows: Sequence[Window]  # Locations of events in the spool
    coded: Sequence[Coded]  # Locations of events in the job file
    rank: int  # Task of the process
    first_thread: int  # Offset added to the thread numbers
    # call_numbers, file_numbers, site_numbers: Index: number in the spool. Value: number in the run. The last
    # entry is for all larger numbers.
    call_numbers: np.ndarray
    file_numbers: np.ndarray
    site_numbers: np.ndarray
    first_ticks: int  # First clock reading, ticks
    ns_per_tick: float  # Length of a tick, ns
    start_ns: int  # Time of `first_ticks`, ns since the origin of the run
    flights: FlightRows = NO_FLIGHTS  # Flights of requests
    # Whether the number of a file has 32 bits, which include those of the site: there are no sites
    wide_files: bool = False
    uncoded: bool = True  # Whether no job file had the process when its spool was read
    life_ticks: int = LARGEST_TICKS  # Largest possible time from `first_ticks` to the end of a call

    @property
    def most_ticks(self) -> int:
        """Largest plausible duration, and time since `first_ticks`, ticks."""
        return min(self.life_ticks, LARGEST_TICKS, int(LARGEST_NS / self.ns_per_tick))

    def since(self, ticks: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return ticks (u8) since `first_ticks`, and which of them are possible times."""
        since = (ticks - np.uint64(self.first_ticks)).view("i8")
        return since, (since >= -self.most_ticks) & (since <= self.most_ticks)

    def times_ns(self, since: np.ndarray) -> np.ndarray:
        """Convert ticks since `first_ticks` to ns since the origin of the run."""
        return np.rint(since * self.ns_per_tick).astype("i8") + self.start_ns


class Found(NamedTuple):
    """Numbers of decoded events whose function or file has no name."""

    unknown_calls: int
    unknown_files: int


class Read(NamedTuple):
    """Result of `read_window`."""

    slots: int  # Number of slots that were read; 0: end of the file
    events: int  # Number of events that were decoded
    left: int  # Number of events in the buffer that were not decoded, because one of them is damaged
    # open, lost: Number of empty slots behind the last event, and of those before an event or in the summary
    open: int
    lost: int
    # unknown_calls, unknown_files: As for `Found`
    unknown_calls: int
    unknown_files: int


def decode(decoding: Decoding, thread: int, raw: np.ndarray, out: dict[str, np.ndarray]) -> Found | None:
    """Decode completed events."""
    found = _compiled.decode_events(raw.view("u1"), *_told(decoding, thread, out_columns(out)))
    return None if found is None else Found(*found)


def read_window(
    descriptor: int,
    decoding: Decoding,
    thread: int,
    window: Window,
    raw: np.ndarray,
    out: OutColumns,
    place: range,
    open_slots: int = 0,
) -> Read:
    """Read and decode events of a window until the columns are full.

    `open_slots`: number of empty slots between the last event before these slots and them.
    """
    slots = window.slots, window.summarised, open_slots
    where = descriptor, window.position, slots, place.start, len(place)
    return Read(*_compiled.read_window(*where, raw, *_told(decoding, thread, out)))


OutColumns = tuple[np.ndarray | None, ...]
_Told = tuple[np.ndarray, np.ndarray, np.ndarray, OutColumns, tuple[int | float, ...]]


def out_columns(out: dict[str, np.ndarray]) -> OutColumns:
    """Return columns in the order in which the compiled functions take them."""
    return tuple([out.get(name) for name in _DECODED])


def _told(decoding: Decoding, thread: int, out: OutColumns) -> _Told:
    """Make the arguments that the compiled functions share."""
    return (
        decoding.call_numbers,
        decoding.file_numbers,
        decoding.site_numbers,
        out,
        (
            decoding.first_ticks,
            decoding.ns_per_tick,
            decoding.start_ns,
            decoding.most_ticks,
            LARGEST_MOVED_BYTES,
            decoding.rank,
            thread,
            decoding.wide_files,
        ),
    )


def sound(decoding: Decoding, raw: np.ndarray) -> np.ndarray:
    """Test which events (EVENT.dtype, shape (n,)) have possible times and numbers of bytes."""
    kept = decoding.since(raw["start"])[1] & ((raw["start"] > 0) | (decoding.first_ticks == 0))
    kept &= (raw["duration"] <= decoding.most_ticks) & (raw["moved"] <= LARGEST_MOVED_BYTES)
    return kept


def read_slots(descriptor: int, window: Window) -> tuple[int, np.ndarray]:
    """Read the number of coded events of a window, and its slots (EVENT.dtype), as of one moment."""
    head = WINDOW.unpack(os.pread(descriptor, WINDOW.size, window.position - HEADER_BYTES))
    while head.summarised != CODED_SLOTS:
        raw = os.pread(descriptor, PART_BYTES, window.position)
        before, head = head, WINDOW.unpack(os.pread(descriptor, WINDOW.size, window.position - HEADER_BYTES))
        if head.coded == before.coded and head.summarised != CODED_SLOTS:
            return head.coded, np.frombuffer(raw, EVENT.dtype, len(raw) // EVENT.size)
    return head.coded, np.empty(0, EVENT.dtype)


def compact(raw: np.ndarray) -> int:
    """Move the completed events of slots (EVENT.dtype, C-contiguous) to the front; return their number."""
    return _compiled.compact_events(raw.view("u1"))
