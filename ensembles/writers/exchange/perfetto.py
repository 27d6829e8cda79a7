"""Write events as a JSON trace for ui.perfetto.dev and chrome://tracing (the Trace Event Format).

Ranks are processes, threads are threads, and calls are slices. The flight of a non-blocking request is an
asynchronous slice beside that of the call that posted it. The aggregate rates of reading and writing are
counters, and so are amounts sampled over time. Times are in µs since time 0 of the run, with a resolution of
1 ns.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from typing import Any, NamedTuple, TextIO

import numpy as np

from ensembles.model.events import Events
from ensembles.model.metadata import Process
from ensembles.model.units import ROWS_AT_ONCE, SCREEN_CELLS
from ensembles.readers.common.columns import LARGEST_NS
from ensembles.summaries.rate import RateCurve
from ensembles.summaries.runtotals import DIRECTIONS

ROUNDING_NS = 2
"""Tolerance of nesting: start and duration are rounded to ns, so that an inner call may seem to end later."""

_SLICE = '{"ph":"X","pid":%d,"tid":%d,"ts":%s,"dur":%s,"name":%s,"cat":%s,"args":{%s}}'
_BEGIN = '{"ph":"b","pid":%d,"tid":%d,"id":"%d","ts":%s,"name":%s,"cat":%s,"args":{%s}}'
_END = '{"ph":"e","pid":%d,"tid":%d,"id":"%d","ts":%s,"name":%s,"cat":%s}'
_COUNTER = '{"ph":"C","pid":%d,"ts":%s,"name":%s,"args":{%s:%.0f}}'
_ARGS = '"file":%s,"offset":%d,"requested":%d,"moved":%d,"errno":%d,"depth":%d,"site":%s,"request":%d'


class Counter(NamedTuple):
    """An amount over time."""

    name: str
    unit: str
    time_ns: np.ndarray  # Moments since the origin of the run, from each of which a value holds; shape (n,)
    value: np.ndarray


class PerfettoWriter:
    """Writer of a JSON trace.

    Slices of a thread must be nested or disjoint. Calls that partially overlap others of their thread, such
    as asynchronous calls, are written as asynchronous slices, which have separate rows.
    """

    def __init__(
        self,
        stream: TextIO,
        tasks: int,
        processes: list[Process],
        about: dict[str, Any],
        counters: Sequence[Counter] = (),
    ) -> None:
        self._counters = counters
        self._stream = stream
        self._tasks = tasks
        self._process_of = {process.rank: process for process in reversed(processes)}
        self._tids: dict[int, int] = {}
        self._pids: set[int] = set()
        self._separator = "\n"
        self._asynchronous = 0
        self._rate = RateCurve(SCREEN_CELLS)
        stream.write(f'{{"displayTimeUnit":"ns","otherData":{json.dumps(about)},"traceEvents":[')

    def write(self, events: Events) -> None:
        """Append events; all events of a rank come before those of the next rank."""
        self._rate.add(events)
        # Of calls with equal starts, the outer one comes first.
        events = events[np.lexsort((events.depth, events.start, events.thread, events.rank))]
        overlaps = _overlapping(events)
        names = [[_json(text) for text in call] for call in events.calls]
        for low in range(0, len(events), ROWS_AT_ONCE):
            self._write_block(events[low : low + ROWS_AT_ONCE], overlaps[low : low + ROWS_AT_ONCE], names)

    def _write_block(self, events: Events, overlaps: np.ndarray, names: list[list[str]]) -> None:
        paths = {number: _json(events.files[number]) for number in np.unique(events.file).tolist()}
        labels = {number: _json(events.sites[number]) for number in np.unique(events.site).tolist()}
        args = zip(
            [paths[number] for number in events.file.tolist()],
            *(
                getattr(events, column).tolist()
                for column in ("offset", "requested", "moved", "error", "depth")
            ),
            [labels[number] for number in events.site.tolist()],
            events.request.tolist(),
            strict=True,
        )
        rows = zip(
            events.rank.tolist(),
            self._tids_of(events),
            events.call.tolist(),
            overlaps.tolist(),
            _microseconds(events.start),
            _microseconds(events.duration),
            _microseconds(events.end),
            events.flight.tolist(),
            _microseconds(events.start + np.maximum(events.flight, 0)),
            args,
            strict=True,
        )
        lines = []
        for rank, tid, call, overlapping, start, duration, end, flight, completion, arguments in rows:
            name, layer, op = names[call]
            category, pid = f'"{layer[1:-1]},{op[1:-1]}"', rank + 1
            text = _ARGS % arguments
            if flight >= 0:
                lines += self._flight(pid, tid, name, text, start, completion)
            if not overlapping:
                lines.append(_SLICE % (pid, tid, start, duration, name, category, text))
                continue
            self._asynchronous += 1
            number = self._asynchronous
            lines.append(_BEGIN % (pid, tid, number, start, name, category, text))
            lines.append(_END % (pid, tid, number, end, name, category))
        self._lines(lines)

    def _flight(self, pid: int, tid: int, name: str, text: str, start: str, completion: str) -> list[str]:
        """Return the asynchronous slice of a request, from its post to its completion."""
        self._asynchronous += 1
        flying = f'{name[:-1]} in flight"'
        begin = _BEGIN % (pid, tid, self._asynchronous, start, flying, '"flight"', text)
        return [begin, _END % (pid, tid, self._asynchronous, completion, flying, '"flight"')]

    def _tids_of(self, events: Events) -> list[int]:
        """Return thread numbers that are unique in the trace, and write the names of new threads."""
        keys = events.rank.astype(np.int64) << 16 | events.thread
        unique, place = np.unique(keys, return_inverse=True)
        numbers = []
        for key in unique.tolist():
            if key not in self._tids:
                self._tids[key] = len(self._tids) + 1
                self._name(key >> 16, key & 0xFFFF, self._tids[key])
            numbers.append(self._tids[key])
        tids: list[int] = np.array(numbers, np.int64)[place].tolist()
        return tids

    def _name(self, rank: int, thread: int, tid: int) -> None:
        pid = rank + 1  # Perfetto keeps 0 for the idle process
        lines = []
        if rank not in self._pids:
            self._pids.add(rank)
            process = self._process_of.get(rank)
            about = "" if process is None else f": {os.path.basename(process.program)} on {process.host}"
            lines.append(self._metadata(pid, tid, "process_name", f'"name":{_json(f"rank {rank}{about}")}'))
            lines.append(self._metadata(pid, tid, "process_sort_index", f'"sort_index":{rank}'))
        lines.append(self._metadata(pid, tid, "thread_name", f'"name":{_json(f"thread {thread}")}'))
        lines.append(self._metadata(pid, tid, "thread_sort_index", f'"sort_index":{thread}'))
        self._lines(lines)

    @staticmethod
    def _metadata(pid: int, tid: int, name: str, argument: str) -> str:
        return f'{{"ph":"M","pid":{pid},"tid":{tid},"name":"{name}","args":{{{argument}}}}}'

    def _lines(self, lines: list[str]) -> None:
        if lines:
            self._stream.write(self._separator + ",\n".join(lines))
            self._separator = ",\n"

    def close(self) -> None:
        """Write the counters, and finish the file."""
        edges_us = _microseconds(self._rate.edges_ns)
        everyone = self._tasks + 1
        lines = [
            self._metadata(everyone, 0, "process_name", '"name":"all ranks"'),
            self._metadata(everyone, 0, "process_sort_index", '"sort_index":-1'),
        ]
        for direction in DIRECTIONS:
            rate = self._rate.rate_bytes_per_s(direction)
            if not rate.any():
                continue
            # Only changes are written; at the end the rate is zero.
            changes = np.flatnonzero(np.diff(rate, prepend=-1.0))
            points = [(edges_us[cell], rate[cell]) for cell in changes.tolist()]
            for time, value in [*points, (edges_us[-1], 0.0)]:
                lines.append(_COUNTER % (everyone, time, f'"{direction}"', '"bytes/s"', value))
        for name, unit, time_ns, values in self._counters:
            points = list(zip(_microseconds(time_ns), values.tolist(), strict=True))
            lines += [_COUNTER % (everyone, time, _json(name), _json(unit), value) for time, value in points]
        self._lines(lines)
        self._stream.write("\n]}\n")


def _json(text: str) -> str:
    """Encode a text as JSON; bytes of a path that are not UTF-8 become replacement characters."""
    return json.dumps(os.fsencode(text).decode("utf-8", "replace"))


def _microseconds(times_ns: np.ndarray) -> list[str]:
    """Format times in µs with three decimals."""
    whole, rest = np.divmod(np.abs(times_ns), 1000)
    signs = np.where(times_ns < 0, "-", "").tolist()
    return [f"{sign}{us}.{ns:03d}" for sign, us, ns in zip(signs, whole.tolist(), rest.tolist(), strict=True)]


def _overlapping(events: Events) -> np.ndarray:
    """Test which events partially overlap earlier events of their thread: bool, shape (n,)."""
    key = events.rank.astype(np.int64) << 16 | events.thread
    found = np.zeros(len(events), bool)
    found |= _crossing(key, events, whole=False)
    # Calls of equal depth are never nested.
    order = np.lexsort((np.arange(len(events)), events.depth, key))
    found[order] |= _crossing((key << 8 | events.depth)[order], events[order], whole=True)
    return found


def _crossing(key: np.ndarray, events: Events, whole: bool) -> np.ndarray:
    """Test which events begin before and end after the latest end of earlier events with their key."""
    start, end = events.start, events.end
    latest = np.full(len(events), -LARGEST_NS * 2)
    edges = np.flatnonzero(np.diff(key, prepend=-1, append=-1)) if len(key) else np.empty(0, np.int64)
    for low, high in zip(edges[:-1].tolist(), edges[1:].tolist(), strict=True):
        latest[low + 1 : high] = np.maximum.accumulate(end[low : high - 1])
    before = start < latest - ROUNDING_NS
    return before if whole else before & (end > latest + ROUNDING_NS)
