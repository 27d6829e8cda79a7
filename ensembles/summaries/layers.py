"""Time of each layer: in its calls, and exclusive of recorded calls inside these."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.model.events import Call, Events
from ensembles.passes.summary import Summary
from ensembles.summaries.calltable import SUM_COLUMNS, compute_call_sums
from ensembles.summaries.nesting import Nesting


@dataclass(slots=True)
class LayerTime:
    """Time of the calls of one layer, summed over all threads."""

    calls: int = 0  # Number of calls
    time_ns: int = 0  # Sum of durations
    exclusive_ns: int = 0  # Exclusive time: the same without recorded calls inside these calls


class LayerTimes(Summary):
    """A mergeable summary: inclusive and exclusive time of functions and layers.

    All chunks of a thread must be added to the same summary, in their order (`ensembles.summaries.nesting`).

    `calls`, `time_ns`, `inner_ns`: by function: number of calls, sum of durations, and the part of it in
    recorded inner calls.
    """

    columns = (*SUM_COLUMNS, "rank", "thread")
    results = ("calls", "time_ns", "inner_ns")

    def __init__(self) -> None:
        self.calls: dict[Call, int] = {}
        self.time_ns: dict[Call, int] = {}
        self.inner_ns: dict[Call, int] = {}
        self._nesting = Nesting()

    def add(self, chunk: Events) -> None:
        """Add events, those of a thread in order of completion."""
        if not len(chunk):
            return
        sums = compute_call_sums(chunk)
        for number in sums.present.tolist():
            call = chunk.calls[number]
            self.calls[call] = self.calls.get(call, 0) + int(sums.count[number])
            self.time_ns[call] = self.time_ns.get(call, 0) + int(sums.time_ns[number])
        inner_ns = self._nesting.inner_ns(chunk)
        if inner_ns is not None:
            for number in np.unique(chunk.call[inner_ns > 0]):
                self._add_inner(chunk.calls[number], int(inner_ns[chunk.call == number].sum()))

    def _add_inner(self, call: Call, time_ns: int) -> None:
        self.inner_ns[call] = self.inner_ns.get(call, 0) + time_ns

    def merge(self, other: LayerTimes) -> None:
        """Add a summary of other threads."""
        for mine, others in (
            (self.calls, other.calls),
            (self.time_ns, other.time_ns),
            (self.inner_ns, other.inner_ns),
        ):
            for call, amount in others.items():
                mine[call] = mine.get(call, 0) + amount
        self._nesting.merge(other._nesting)

    def exclusive_ns(self, call: Call) -> int:
        """Return the exclusive time of a function in ns."""
        return self.time_ns[call] - self.inner_ns.get(call, 0)

    @property
    def layers(self) -> dict[str, LayerTime]:
        """Time of each layer that occurred."""
        layers: dict[str, LayerTime] = {}
        for call, count in self.calls.items():
            layer = layers.setdefault(call.layer, LayerTime())
            layer.calls += count
            layer.exclusive_ns += self.exclusive_ns(call)
            # What is inside a call of posix is the other half of a copy.
            layer.time_ns += self.exclusive_ns(call) if call.layer == "posix" else self.time_ns[call]
        return layers

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``layer``, ``calls``, ``time_ns`` and ``exclusive_ns``, a row a layer."""
        layers = self.layers
        arrays = {"layer": np.array(list(layers), dtype=str)}
        for name in ("calls", "time_ns", "exclusive_ns"):
            arrays[name] = np.array([getattr(layer, name) for layer in layers.values()], dtype=np.int64)
        return arrays
