"""Time per layer: how long its calls took, and how much of it was not spent in calls inside them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.events import Call, Events


@dataclass(slots=True)
class LayerTime:
    """Time of the calls of one layer, of all threads together.

    Attributes
    ----------
    calls : int
    time_ns : int
        Sum of durations.
    exclusive_ns : int
        The same without recorded calls inside these calls.
    """

    calls: int = 0
    time_ns: int = 0
    exclusive_ns: int = 0


class LayerTimes:
    """Time of each function and layer, with and without the calls inside.

    A thread's calls come in the order of their completion, each with its depth: a call is inside the next one
    that is less deep, unless that began later (the one around it was not recorded). Calls whose encloser is
    still to come are carried over to the next chunk, so all chunks of a thread must be added to the same
    summary, in their order.

    Attributes
    ----------
    calls, time_ns, inner_ns : dict of Call to int
        Number of calls, sum of durations, and the part of it that was spent in recorded calls inside.
    """

    def __init__(self) -> None:
        self.calls: dict[Call, int] = {}
        self.time_ns: dict[Call, int] = {}
        self.inner_ns: dict[Call, int] = {}
        self._open: dict[tuple[int, int], tuple[int, int]] = {}
        """Thread key and depth → time of calls whose encloser has not come yet, and their last start, ns."""

    def add(self, chunk: Events) -> None:
        """Add events, those of a thread in order of completion."""
        if not len(chunk):
            return
        counts = np.bincount(chunk.call, minlength=len(chunk.calls))
        for number in np.flatnonzero(counts):
            chosen = chunk.duration if counts[number] == len(chunk) else chunk.duration[chunk.call == number]
            call = chunk.calls[number]
            self.calls[call] = self.calls.get(call, 0) + int(counts[number])
            self.time_ns[call] = self.time_ns.get(call, 0) + int(chosen.sum())
        if self._open or chunk.depth.any():
            self._add_nested(chunk)

    def _add_nested(self, chunk: Events) -> None:
        key = (chunk.rank.astype(np.int64) << 16) | chunk.thread
        order = np.argsort(key, kind="stable")
        key, ordered = key[order], chunk[order]
        self._close_carried(key, ordered)
        depth = ordered.depth
        for level in range(1, int(depth.max()) + 1):
            inner = np.flatnonzero(depth == level)
            outer = np.flatnonzero(depth < level)
            place = np.searchsorted(outer, inner)
            follows = place < len(outer)
            follows[follows] = key[outer[place[follows]]] == key[inner[follows]]
            self._carry(key, ordered, inner[~follows], level)
            inner, encloser = inner[follows], outer[place[follows]]
            inside = ordered.start[inner] >= ordered.start[encloser]
            encloser_call, time_ns = ordered.call[encloser[inside]], ordered.duration[inner[inside]]
            for number in np.unique(encloser_call):
                self._add_inner(chunk.calls[number], int(time_ns[encloser_call == number].sum()))

    def _carry(self, key: np.ndarray, ordered: Events, waiting: np.ndarray, level: int) -> None:
        """Keep the times of calls, at these positions, whose encloser has not come yet."""
        if not len(waiting):
            return
        keys, first = np.unique(key[waiting], return_index=True)
        time_ns = np.add.reduceat(ordered.duration[waiting], first)
        last_start = np.maximum.reduceat(ordered.start[waiting], first)
        for thread, more_ns, start in zip(keys.tolist(), time_ns.tolist(), last_start.tolist(), strict=True):
            carried_ns, _ = self._open.get((thread, level), (0, 0))
            self._open[thread, level] = (carried_ns + more_ns, start)

    def _close_carried(self, key: np.ndarray, ordered: Events) -> None:
        """Give times that were carried over to the first call of their thread that encloses them."""
        for thread, level in list(self._open):
            low, high = np.searchsorted(key, [thread, thread + 1])
            outer = low + np.flatnonzero(ordered.depth[low:high] < level)
            if len(outer):
                time_ns, last_start = self._open.pop((thread, level))
                if last_start >= ordered.start[outer[0]]:
                    self._add_inner(ordered.calls[ordered.call[outer[0]]], time_ns)

    def _add_inner(self, call: Call, time_ns: int) -> None:
        self.inner_ns[call] = self.inner_ns.get(call, 0) + time_ns

    def merge(self, other: LayerTimes) -> None:
        """Add what a summary of other threads holds."""
        for mine, others in (
            (self.calls, other.calls),
            (self.time_ns, other.time_ns),
            (self.inner_ns, other.inner_ns),
        ):
            for call, amount in others.items():
                mine[call] = mine.get(call, 0) + amount
        self._open.update(other._open)

    def exclusive_ns(self, call: Call) -> int:
        """Time in calls of a function, without recorded calls inside them."""
        return self.time_ns[call] - self.inner_ns.get(call, 0)

    @property
    def layers(self) -> dict[str, LayerTime]:
        """Time of each layer that occurred."""
        layers: dict[str, LayerTime] = {}
        for call, count in self.calls.items():
            layer = layers.setdefault(call.layer, LayerTime())
            layer.calls += count
            layer.time_ns += self.time_ns[call]
            layer.exclusive_ns += self.exclusive_ns(call)
        return layers

    def to_arrays(self) -> dict[str, np.ndarray]:
        """A row for each layer: ``layer``, ``calls``, ``time_ns``, ``exclusive_ns``."""
        layers = self.layers
        arrays = {"layer": np.array(list(layers), dtype=str)}
        for name in ("calls", "time_ns", "exclusive_ns"):
            arrays[name] = np.array([getattr(layer, name) for layer in layers.values()], dtype=np.int64)
        return arrays
