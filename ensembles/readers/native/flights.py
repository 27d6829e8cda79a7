"""Read the flights of non-blocking requests: their rows, and the sums that every mode keeps.

A row has no number of its event. It is found by the thread, the function and the start, which its event has
too. Rows of one thread are in the order of their events, which decides between equal starts.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ensembles.model.c_layout import CONSTANTS, FLIGHT, FLIGHTS
from ensembles.model.flights import OPERATIONS, Flights
from ensembles.model.units import HALF_INT64
from ensembles.readers.common.columns import LARGEST_NS
from ensembles.readers.native.account import numbers_in
from ensembles.readers.native.spool_bytes import Contents

COLUMNS = ("flight", "request")
"""Columns of events that come from these rows."""

POSITION = CONSTANTS["ENSIO_SPOOL_FLIGHTS_BYTES"]
PROPERTY = b"flights"
"""Property in a job file: the numbers of ``struct ensio_flights``, separated by blanks."""

_NOT_ASKED = CONSTANTS["ENSIO_FLIGHT_NOT_ASKED"]
_SUMS = len(Flights._fields)
_NUMBERS = _SUMS * len(OPERATIONS) + 1
_NO_SUMS, _NO_BYTES = (0,) * _NUMBERS, bytes(FLIGHTS.size)

_KEY = np.dtype([("thread", "i8"), ("call", "i8"), ("start", "i8")])


def sums_of_spool(beginning: bytes) -> tuple[int, ...]:
    """Read the sums from the first bytes of a spool.

    They are the numbers of ``struct ensio_flights``, times in ticks. Empty: they are missing or implausible.
    """
    if len(beginning) < POSITION + FLIGHTS.size:
        return ()
    if beginning.startswith(
        _NO_BYTES, POSITION
    ):  # most processes have no request, and a run has many processes
        return _NO_SUMS
    return _sound(tuple(FLIGHTS.unpack(beginning, POSITION)))


def sums_in_job_file(properties: Mapping[bytes, bytes]) -> tuple[int, ...]:
    """Read the sums of a process from its properties in a job file, as `sums_of_spool`."""
    return _sound(numbers_in(properties, PROPERTY))


def flights_of_sums(sums: Sequence[int], ns_per_tick: float) -> dict[str, Flights]:
    """Convert sums of `sums_of_spool` in ticks: flights by operation; empty: there is no request."""
    if len(sums) != _NUMBERS or sums is _NO_SUMS:
        return {}
    groups = [sums[low : low + _SUMS] for low in range(0, _NUMBERS - 1, _SUMS)]
    return {
        name: Flights(count, *(round(ticks * ns_per_tick) for ticks in times))
        for name, (count, *times) in zip(OPERATIONS, groups, strict=True)
    }


def _sound(numbers: tuple[int, ...]) -> tuple[int, ...]:
    if len(numbers) != _NUMBERS or max(numbers) >= HALF_INT64:
        return ()
    groups = [numbers[low : low + _SUMS] for low in range(0, _NUMBERS - 1, _SUMS)]
    return numbers if all(hidden <= flight for _, flight, hidden, _ in groups) else ()


class FlightRows:
    """The flights of one process, and the events that they belong to."""

    def __init__(self, contents: Contents, windows: Sequence[tuple[int, int]]) -> None:
        self._contents = contents
        self._windows = windows

    def __bool__(self) -> bool:
        return bool(self._windows)

    def reader(
        self, call_numbers: np.ndarray, first_ticks: int, ns_per_tick: float, start_ns: int
    ) -> tuple[FlightReader, int]:
        """Read the rows, and count those that are left out as damaged or incomplete.

        The parameters are those of `ensembles.readers.native.window_decoder.Decoding`.
        """
        with self._contents.opened() as contents:
            rows, lost = contents.rows(FLIGHT, "call", self._windows)
        ticks, waited = ((rows[name] - np.uint64(first_ticks)).view("i8") for name in ("start", "wait_start"))
        with np.errstate(over="ignore"):
            flight_ns = rows["flight"] * ns_per_tick
        kept = flight_ns <= LARGEST_NS
        lost += int(np.count_nonzero(~kept))
        rows, ticks, waited, flight_ns = rows[kept], ticks[kept], waited[kept], flight_ns[kept]

        def translated(calls: np.ndarray) -> np.ndarray:
            numbers: np.ndarray = call_numbers[np.minimum(calls, len(call_numbers) - 1)]
            return numbers

        def nanoseconds(ticks: np.ndarray) -> np.ndarray:
            return np.rint(ticks * ns_per_tick).astype("i8") + start_ns

        flight = np.where(rows["flags"] & _NOT_ASKED, -1, np.rint(flight_ns).astype("i8"))
        events = _keys(rows["thread"], translated(rows["call"]), nanoseconds(ticks))
        ended = np.flatnonzero(rows["wait_call"])
        waits = _keys(
            rows["wait_thread"][ended], translated(rows["wait_call"][ended]), nanoseconds(waited[ended])
        )
        return FlightReader(events, flight, rows["request"], waits, rows["request"][ended]), lost


NO_FLIGHTS = FlightRows(Contents(""), ())
"""Of a process without non-blocking requests."""


class FlightReader:
    """A reader that fills the columns of the events of one process, in the order of the events."""

    def __init__(
        self,
        events: np.ndarray,
        flight: np.ndarray,
        request: np.ndarray,
        waits: np.ndarray,
        completed: np.ndarray,
    ) -> None:
        order = np.argsort(events, kind="stable")
        self._events, self._flight, self._request = events[order], flight[order], request[order]
        self._free = np.ones(len(order), bool)
        order = np.lexsort((completed, waits["start"], waits["call"], waits["thread"]))
        self._waits, first = np.unique(waits[order], return_index=True)
        self._completed = completed[order][first]
        both = [self._events["call"], self._waits["call"]]
        self._calls = np.unique(np.concatenate(both))

    def fill(self, thread: int, columns: Mapping[str, np.ndarray], low: int, high: int) -> None:
        """Fill the columns ``flight`` and ``request`` of the rows `low` to `high`, events of one thread."""
        places = low + np.flatnonzero(np.isin(columns["call"][low:high], self._calls))
        if not len(places):
            return
        keys = _keys(np.full(len(places), thread), columns["call"][places], columns["start"][places])
        out = [columns.get(name) for name in COLUMNS]
        found = _search(self._waits, keys)
        if out[1] is not None:
            out[1][places[found >= 0]] = self._completed[found[found >= 0]]
        found = self._taken(_search(self._events, keys), keys)
        mine = found >= 0
        for column, values in zip(out, (self._flight, self._request), strict=True):
            if column is not None:
                column[places[mine]] = values[found[mine]]

    def _taken(self, found: np.ndarray, keys: np.ndarray) -> np.ndarray:
        """Give each event a separate row where several have the same key."""
        known = self._events
        equal = np.append(known[1:] == known[:-1], False)
        shared = np.flatnonzero((found >= 0) & equal[found])
        for place in shared.tolist():
            row = int(found[place])
            while row + 1 < len(known) and not self._free[row] and known[row + 1] == keys[place]:
                row += 1
            found[place] = row
            self._free[row] = False
        return found


def _keys(thread: np.ndarray, call: np.ndarray, start: np.ndarray) -> np.ndarray:
    keys = np.empty(len(start), _KEY)
    keys["thread"], keys["call"], keys["start"] = thread, call, start
    return keys


def _search(known: np.ndarray, keys: np.ndarray) -> np.ndarray:
    """Return the first place of each key in the sorted known ones; -1: it is not there."""
    if not len(known):
        return np.full(len(keys), -1)
    place = np.minimum(np.searchsorted(known, keys), len(known) - 1)
    return np.where(known[place] == keys, place, -1)
