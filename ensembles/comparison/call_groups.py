"""The calls of the runs that are compared, grouped by layer and operation."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.comparison.times import LEAST_SHARE
from ensembles.comparison.units import RunCalls
from ensembles.ensemble.from_run import ensemble_from_run, single_calls
from ensembles.ensemble.from_summary import refuse_sums
from ensembles.model.units import MIB
from ensembles.passes.summary import Summary, ignoring_run
from ensembles.statistics.samples.counted_durations import LARGEST_S, CountedDurations
from ensembles.summaries.calltable import CallTable
from ensembles.summaries.kernels import count_seconds

if TYPE_CHECKING:
    from ensembles.model.events import Call, Events
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection

Key = tuple[str, str]
"""Layer and operation."""

WAITS_FOR_TASKS = {("mpisync", "wait"), ("mpimsg", "wait")}
"""Kinds of calls in which tasks wait for each other or exchange messages; others wait for I/O."""


@dataclass
class ComparedCalls:
    """Calls of a run by layer and operation."""

    time_s: dict[Key, float] = field(default_factory=dict)  # Time in the calls of each kind, in seconds
    # Their durations, if single calls are not needed or not known
    samples: dict[Key, CountedDurations] = field(default_factory=dict)
    calls: dict[Key, RunCalls] = field(default_factory=dict)  # Single calls
    # Number of calls of the kinds whose durations the record does not hold
    counts: dict[Key, int] = field(default_factory=dict)
    notes: dict[Key, list[str]] = field(default_factory=dict)  # Caveats of each kind, one sentence each

    def sample(self, key: Key) -> CountedDurations:
        """Return the durations of a kind of calls."""
        return self.samples[key] if key in self.samples else self.calls[key].sample()

    def number(self, key: Key) -> int:
        """Return the number of calls of a kind."""
        if key not in self.time_s:
            return 0
        return self.counts[key] if key in self.counts else int(self.sample(key).total)


def group_calls(run: Run, selection: Selection, single: bool) -> ComparedCalls:
    """Group the selected calls of a run by layer and operation."""
    events = single_calls(run, selection) if single else None
    if events is not None:
        return _in_memory(events, selection)
    kinds = run.summarize(partial(_Kinds, selection), selection=selection)
    if kinds is None:
        sums = _sums_in_summary(run, selection)
        if run.summary.durations_known:
            return _from_ensembles(run, selection, sums.time_s)
        if _is_part(selection):
            refuse_sums(run)
        return sums
    counted = {
        key: CountedDurations.from_counts(kinds.counts[key], *kinds.ends_s[key]) for key in kinds.counts
    }
    found = ComparedCalls(kinds.time_s, counted)
    if not single:
        return found
    whole_s = sum(found.time_s.values())  # phases are determined for kinds that take enough of it
    return _from_ensembles(
        run,
        selection,
        {key: time_s for key, time_s in found.time_s.items() if time_s >= LEAST_SHARE * whole_s},
    )


def _sums_in_summary(run: Run, selection: Selection) -> ComparedCalls:
    """Return times and numbers of the calls of each function that is wanted, whatever the other filters."""
    found = ComparedCalls()
    for call, sums in run.summarize(ignoring_run(CallTable)).totals.items():
        if selection.wants_call(call):
            key = _key(call)
            found.time_s[key] = found.time_s.get(key, 0.0) + sums.time_ns * 1e-9
            found.counts[key] = found.counts.get(key, 0) + sums.count
    return found


def _is_part(selection: Selection) -> bool:
    """Whether filters other than those of functions choose calls, or times are per MiB."""
    return replace(selection, layers=None, ops=None, calls=None) != type(selection)()


def _from_ensembles(run: Run, selection: Selection, time_s: dict[Key, float]) -> ComparedCalls:
    found = ComparedCalls()
    is_part = _is_part(selection) and not selection.per_byte
    for layer, op in time_s:
        chosen = replace(selection, layers=(layer,), ops=(op,))
        ensemble = ensemble_from_run(run, chosen, per="MiB" if selection.per_byte else "call")
        if ensemble.n:
            # Times in the summary are of all calls of a function: filters may leave some of them out.
            mine_s = ensemble.n * ensemble.moments().mean_s.value if is_part else time_s[layer, op]
            found.samples[layer, op], found.time_s[layer, op] = ensemble.sample, mine_s
            found.notes[layer, op] = ensemble.notes
    return found


def _in_memory(events: Events, selection: Selection) -> ComparedCalls:
    found = ComparedCalls()
    phase = events.phase
    for key, mine in _by_key(events):
        chosen = events[mine]
        found.time_s[key] = float(chosen.duration.sum() * 1e-9)
        found.calls[key] = RunCalls(
            _durations_s(chosen, selection),
            None if phase is None else phase[mine],
            chosen.rank.astype(np.int64),
            chosen.start,
        )
    return found


class _Kinds(Summary):
    """Counts, extremes and total time of the calls of each kind."""

    of_all_calls = True

    def __init__(self, selection: Selection, _: Any = None) -> None:
        self.selection = selection
        self.time_s: dict[Key, float] = {}
        self.counts: dict[Key, np.ndarray] = {}
        self.ends_s: dict[Key, tuple[float, float]] = {}

    def add(self, chunk: Events) -> None:
        """Add events."""
        for key, mine in _by_key(chunk):
            chosen = chunk[mine]
            durations_s = _durations_s(chosen, self.selection)
            counts, _ = count_seconds(durations_s, LARGEST_S)
            ends_s = float(durations_s.min()), float(durations_s.max())
            self._add(key, counts, ends_s, float(chosen.duration.sum() * 1e-9))

    def merge(self, other: _Kinds) -> None:
        """Add those of other ranks."""
        for key in other.counts:
            self._add(key, other.counts[key], other.ends_s[key], other.time_s[key])

    def _add(self, key: Key, counts: np.ndarray, ends_s: tuple[float, float], time_s: float) -> None:
        low_s, high_s = self.ends_s.get(key, (np.inf, 0.0))
        self.counts[key] = self.counts.get(key, 0) + counts
        self.ends_s[key] = min(low_s, ends_s[0]), max(high_s, ends_s[1])
        self.time_s[key] = self.time_s.get(key, 0.0) + time_s


def _by_key(events: Events) -> list[tuple[Key, np.ndarray]]:
    """Return a mask of the calls for each layer and operation."""
    present = np.flatnonzero(np.bincount(events.call, minlength=len(events.calls)))
    keys: dict[Key, list[int]] = {}
    for number in present.tolist():
        keys.setdefault(_key(events.calls[number]), []).append(number)
    return [(key, np.isin(events.call, numbers)) for key, numbers in keys.items()]


def _key(call: Call) -> Key:
    return call.layer, call.op


def _durations_s(events: Events, selection: Selection) -> np.ndarray:
    durations_s = events.duration * 1e-9
    return durations_s / (events.moved / MIB) if selection.per_byte else durations_s
