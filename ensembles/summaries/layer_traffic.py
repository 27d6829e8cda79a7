"""Traffic between layers: the bytes that libraries move by the calls below them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensembles.model.calls import STORAGE
from ensembles.model.distinct import distinct
from ensembles.model.events import Call, Events
from ensembles.passes.summary import Summary
from ensembles.summaries.keyed_sums import sum_by_keys
from ensembles.summaries.nesting import calls_around, in_threads
from ensembles.summaries.runtotals import DIRECTIONS, direction_of_calls

_OTHER = "other"


class Traffic(NamedTuple):
    """Calls and bytes."""

    # calls, bytes: Number of calls that moved bytes, and these bytes
    calls: int = 0
    bytes: int = 0

    def __add__(self, other: Traffic) -> Traffic:  # type: ignore[override]
        """Add two sums."""
        return Traffic(self.calls + other.calls, self.bytes + other.bytes)


Inner = tuple[str, str]
"""Layer and operation of calls inside others."""


class LayerTraffic(Summary):
    """A mergeable summary: bytes of outermost calls, and of the calls inside them, by layer and operation.

    All chunks of a thread must be added to the same summary, in their order.

    `outer`: by layer and operation, ``"read"`` or ``"write"``: the outermost calls.
    `inner`: by layer and operation (``"read"``, ``"write"`` or ``"other"``) of the outermost call, and by
    layer and operation of the reads and writes inside it, of other layers only.
    `read_inside`: by function: what storage calls read inside outermost calls that move no bytes of the
    program, such as opens.
    """

    of_all_calls = True
    columns = ("rank", "thread", "call", "depth", "carried", "moved", "start")
    results = ("outer", "inner", "read_inside")
    added_up = ("outer", "inner", "read_inside", "_open")
    result_types = (Traffic,)
    meaning = 1

    def __init__(self) -> None:
        self.outer: dict[tuple[str, str], Traffic] = {}
        self.inner: dict[tuple[str, str, str, str], Traffic] = {}
        self.read_inside: dict[str, Traffic] = {}
        # Of each thread: inner calls whose outermost call is still to come, and the start of the last.
        self._open: dict[int, tuple[int, dict[Inner, Traffic]]] = {}

    def add(self, chunk: Events) -> None:
        """Add events, those of a thread in order of completion."""
        if not len(chunk):
            return
        moves_of_call = direction_of_calls(chunk.calls) >= 0
        outermost = chunk.outermost
        moves = (chunk.moved > 0) & moves_of_call[chunk.call]
        for number, calls, bytes_ in _sums(chunk.call, chunk.moved, moves & outermost):
            self._count(chunk.calls[number], calls, bytes_)
        if self._open or not outermost.all():
            self._add_inner(chunk, moves & ~outermost, outermost)

    def _count(self, call: Call, calls: int, bytes_: int) -> None:
        key = call.layer, call.op
        self.outer[key] = self.outer.get(key, Traffic()) + Traffic(calls, bytes_)

    def _add_inner(self, chunk: Events, moves: np.ndarray, outermost: np.ndarray) -> None:
        key, order = in_threads(chunk)
        call, start = chunk.call[order], chunk.start[order]
        outer = np.flatnonzero(outermost[order])
        for thread in list(self._open):
            first = outer[slice(*np.searchsorted(key[outer], [thread, thread + 1]))][:1]
            if len(first):
                last_start, sums = self._open.pop(thread)
                if last_start >= start[first[0]]:
                    for kind, traffic in sums.items():
                        self._add(chunk, int(call[first[0]]), kind, traffic)
        inner = np.flatnonzero(moves[order])
        if not len(inner):
            return
        inner, encloser, waiting = calls_around(key, inner, outer)
        self._carry(chunk, key, order, waiting)
        inside = start[inner] >= start[encloser]
        inner, encloser = inner[inside], encloser[inside]
        pair = call[encloser].astype(np.int64) * len(chunk.calls) + call[inner]
        for number, calls, bytes_ in _sums(pair, chunk.moved[order[inner]], np.arange(len(inner))):
            around, within = divmod(number, len(chunk.calls))
            made = chunk.calls[within]
            self._add(chunk, around, (made.layer, made.op), Traffic(calls, bytes_))

    def _carry(self, chunk: Events, key: np.ndarray, order: np.ndarray, waiting: np.ndarray) -> None:
        """Keep the calls at these positions, whose outermost call has not come yet."""
        for thread in distinct(key[waiting]).tolist():
            mine = order[waiting[key[waiting] == thread]]
            last_start, sums = self._open.get(thread, (0, {}))
            for number, calls, bytes_ in _sums(chunk.call, chunk.moved, mine):
                inner = chunk.calls[number].layer, chunk.calls[number].op
                sums[inner] = sums.get(inner, Traffic()) + Traffic(calls, bytes_)
            self._open[thread] = max(last_start, int(chunk.start[mine].max())), sums

    def _add(self, chunk: Events, around: int, inner: Inner, traffic: Traffic) -> None:
        outer = chunk.calls[around]
        if outer.layer == inner[0]:
            return
        if outer.op not in DIRECTIONS and inner[1] == "read" and inner[0] in STORAGE:
            self.read_inside[outer.name] = self.read_inside.get(outer.name, Traffic()) + traffic
        key = outer.layer, outer.op if outer.op in DIRECTIONS else _OTHER, *inner
        self.inner[key] = self.inner.get(key, Traffic()) + traffic


def _sums(key: np.ndarray, moved: np.ndarray, chosen: np.ndarray) -> list[tuple[int, int, int]]:
    """Return number and bytes of the chosen calls by key: (key, calls, bytes)."""
    found = sum_by_keys({"key": key[chosen]}, {"bytes": moved[chosen]})
    return sorted(zip(*(found[name].tolist() for name in ("key", "n", "bytes")), strict=True))
