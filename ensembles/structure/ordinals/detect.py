"""Summaries for the ordinals of a run: its operations, and their ensembles."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.model.events import Events
from ensembles.passes.summary import Summary
from ensembles.structure.ordinals.ensembles import OrdinalEnsembles, ordinal_class_index
from ensembles.structure.ordinals.numbering import with_ordinals
from ensembles.summaries.classes import size_class

if TYPE_CHECKING:
    from ensembles.passes.memory import Budget
    from ensembles.run.selection import Selection
    from ensembles.structure.phases.detect import Phases

_MIB = float(1 << 20)


class Operations(Summary):
    """A mergeable summary: time, layers and nesting of the calls of each operation.

    Attributes
    ----------
    time_ns : Counter of str
        By operation: sum of durations.
    layers : dict of str to set of str
        By operation: layers with calls.
    nested : Counter of str
        By operation: number of calls inside other calls.
    """

    columns = ("call", "depth", "carried", "duration")
    results = ("time_ns", "layers", "nested")

    def __init__(self, _: Any = None) -> None:
        self.time_ns: Counter[str] = Counter()
        self.layers: dict[str, set[str]] = {}
        self.nested: Counter[str] = Counter()

    def add(self, chunk: Events) -> None:
        """Add events."""
        calls = chunk.calls
        time_ns = np.bincount(chunk.call, chunk.duration.astype(float), minlength=len(calls))
        inside = np.bincount(chunk.call, ~chunk.outermost, minlength=len(calls))
        for number in np.flatnonzero(np.bincount(chunk.call, minlength=len(calls))).tolist():
            call = calls[number]
            self.time_ns[call.op] += int(time_ns[number])
            self.layers.setdefault(call.op, set()).add(call.layer)
            self.nested[call.op] += int(inside[number])

    def merge(self, other: Operations) -> None:
        """Add the operations of other ranks."""
        self.time_ns.update(other.time_ns)
        self.nested.update(other.nested)
        for op, layers in other.layers.items():
            self.layers.setdefault(op, set()).update(layers)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``op``, ``time_ns`` and ``nested``."""
        ops = list(self.time_ns)
        return {
            "op": np.array(ops, str),
            "time_ns": np.array([self.time_ns[op] for op in ops], np.int64),
            "nested": np.array([self.nested[op] for op in ops], np.int64),
        }


class OrdinalSummary(Summary):
    """A mergeable summary: the calls of one operation by ordinal.

    All calls of the operation are counted; those that are selected are added to ensembles.

    Parameters
    ----------
    op : str
        The operation.
    chosen : Selection
        Selection of the run without phases and ordinals.
    selection : Selection
        The same with phases and ordinals.
    nested : bool
        Count outermost calls only.
    phases : Phases or None
        Phases of the run; needed if phases are selected or calls are counted within phases.
    within_phases : bool
        Count the calls of a rank within each phase, whatever their file.

    Attributes
    ----------
    ensembles : OrdinalEnsembles
    """

    results: tuple[str, ...] = ("ensembles",)

    def __init__(
        self,
        op: str,
        chosen: Selection,
        selection: Selection,
        nested: bool,
        phases: Phases | None,
        within_phases: bool,
        _: Any = None,
    ) -> None:
        self.ensembles = OrdinalEnsembles()
        self._op, self._chosen, self._selection, self._nested = op, chosen, selection, nested
        self._phases, self._within_phases = phases, within_phases

    def prepare_chunks(self, chunks: Iterator[Events], budget: Budget, path: str) -> Iterator[Events]:
        """Reduce chunks to the calls that count, with ordinals."""
        counted = (chunk[self._counts(chunk)] for chunk in chunks)
        phase = self._phases.phase_index if self._within_phases and self._phases is not None else None
        return with_ordinals(counted, budget.held_events, path, phase)

    def _counts(self, chunk: Events) -> np.ndarray:
        layers = self._selection.layers
        wanted = [call.op == self._op and (layers is None or call.layer in layers) for call in chunk.calls]
        counts = np.array(wanted, bool)[chunk.call]
        return counts & chunk.outermost if self._nested else counts

    def _selected(self, events: Events) -> tuple[Events, np.ndarray]:
        """Return the selected calls, and their ordinals."""
        ordinal = events.ordinal
        phase = None if self._phases is None else self._phases.phase_index(events)
        mine = self._chosen.mask(events)
        if self._within_phases and phase is not None:
            mine &= phase > 0
        for numbers, ranges in ((phase, self._selection.phases), (ordinal, self._selection.ordinals)):
            if ranges is not None and numbers is not None:
                mine &= np.logical_or.reduce([(low <= numbers) & (numbers <= high) for low, high in ranges])
        assert ordinal is not None  # `prepare_chunks` counted them
        return events[mine], ordinal[mine]

    def add(self, events: Events) -> None:
        """Add calls with ordinals."""
        events, ordinal = self._selected(events)
        duration = events.duration
        if self._selection.per_byte:
            duration = np.rint(duration / (events.moved / _MIB)).astype(np.int64)
        self.ensembles.add(ordinal, duration, events.rank)

    def merge(self, other: OrdinalSummary) -> None:
        """Add the calls of other ranks."""
        self.ensembles.merge(other.ensembles)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the arrays of `OrdinalEnsembles.to_arrays`."""
        return self.ensembles.to_arrays()


class SizesOfOrdinals(OrdinalSummary):
    """A mergeable summary: the least and the largest size class of the calls of each ordinal.

    Parameters are those of `OrdinalSummary`.
    """

    results = ("_calls", "_low", "_high")

    def __init__(self, *arguments: Any) -> None:
        super().__init__(*arguments)
        self._calls, self._low, self._high = (np.zeros(0, np.int64) for _ in range(3))

    def add(self, events: Events) -> None:
        """Add calls with ordinals."""
        events, ordinal = self._selected(events)
        if not len(ordinal):
            return
        number = ordinal_class_index(ordinal)
        self._grow(int(number.max()) + 1)
        of_call = size_class(events.requested)
        self._calls += np.bincount(number, minlength=len(self._calls))
        np.minimum.at(self._low, number, of_call)
        np.maximum.at(self._high, number, of_call)

    def merge(self, other: OrdinalSummary) -> None:
        """Add the calls of other ranks."""
        assert isinstance(other, SizesOfOrdinals)
        self._grow(len(other._calls))
        size = len(other._calls)
        self._calls[:size] += other._calls
        self._low[:size] = np.minimum(self._low[:size], other._low)
        self._high[:size] = np.maximum(self._high[:size], other._high)

    def _grow(self, size: int) -> None:
        more = max(size - len(self._calls), 0)
        self._calls, self._high = (
            np.append(old, np.zeros(more, np.int64)) for old in (self._calls, self._high)
        )
        self._low = np.append(self._low, np.full(more, np.iinfo(np.int64).max))

    @property
    def mixed_share(self) -> float:
        """Share of the calls whose ordinal has calls of another size class too."""
        return float(self._calls[self._low < self._high].sum() / max(int(self._calls.sum()), 1))

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``calls``, ``low`` and ``high`` by ordinal class."""
        return {"calls": self._calls, "low": self._low, "high": self._high}
