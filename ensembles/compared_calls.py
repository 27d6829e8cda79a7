"""The calls of runs that are compared, by layer and op, as the comparison needs them."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from ensembles.ensemble import MIB
from ensembles.ensemble_of_run import IN_MEMORY, ensemble_of
from ensembles.statistics.comparison.slices import Calls
from ensembles.statistics.sample import Sample
from ensembles.summaries.bins import BIN_COUNT
from ensembles.summaries.kernels import count_seconds

if TYPE_CHECKING:
    from ensembles.events import Call, Events
    from ensembles.run import Run
    from ensembles.selection import Selection

Key = tuple[str, str]
"""Layer and op."""

LEAST_SHARE = 0.01
"""Kinds of calls with less of the time of a long run are not read a second time for their phases."""

_LONGEST_S = 2.0**62 * 1e-9


@dataclass
class ComparedCalls:
    """What a run's calls are, by kind.

    Attributes
    ----------
    time_s : dict of Key to float
        Time in the calls of each kind.
    samples : dict of Key to Sample
        Their durations, where single calls are not needed or not known.
    calls : dict of Key to Calls
        Single calls.
    notes : dict of Key to list of str
        What is partial or doubtful about each kind.
    """

    time_s: dict[Key, float] = field(default_factory=dict)
    samples: dict[Key, Sample] = field(default_factory=dict)
    calls: dict[Key, Calls] = field(default_factory=dict)
    notes: dict[Key, list[str]] = field(default_factory=dict)

    def sample(self, key: Key) -> Sample:
        """The durations of a kind of calls."""
        return self.samples[key] if key in self.samples else self.calls[key].sample()


def calls_of(run: Run, selection: Selection, single: bool) -> ComparedCalls:
    """The calls of a run that a selection for it chooses, by layer and op.

    Parameters
    ----------
    run : Run
    selection : Selection
    single : bool
        The run is alone in its group: phases, ranks and times of calls are needed.

    Raises
    ------
    EnsioError
        The run does not tell what the selection asks for, or cannot be read.
    """
    if not run.keeps_all_calls:
        return _from_ensembles(run, selection, _times_in_summary(run, selection))
    if single and run.most_events <= IN_MEMORY:
        return _in_memory(run, selection)
    found = _in_one_pass(run, selection)
    if not single:
        return found
    whole_s = sum(found.time_s.values())
    return _from_ensembles(
        run,
        selection,
        {key: time_s for key, time_s in found.time_s.items() if time_s >= LEAST_SHARE * whole_s},
    )


def _times_in_summary(run: Run, selection: Selection) -> dict[Key, float]:
    cells, time_s = run.summary.cells, {}
    for number in np.unique(cells["call"]).tolist():
        call = run.summary.calls[number]
        if selection.wants_call(call):
            mine_s = float(cells["time_ns"][cells["call"] == number].sum() * 1e-9)
            time_s[_key(call)] = time_s.get(_key(call), 0.0) + mine_s
    return time_s


def _from_ensembles(run: Run, selection: Selection, time_s: dict[Key, float]) -> ComparedCalls:
    found = ComparedCalls()
    for layer, op in time_s:
        chosen = replace(selection, layers=(layer,), ops=(op,))
        ensemble = ensemble_of(run, chosen, per="MiB" if selection.per_byte else "call")
        if ensemble.n:
            found.samples[layer, op], found.time_s[layer, op] = ensemble.sample, time_s[layer, op]
            found.notes[layer, op] = ensemble.notes
    return found


def _in_memory(run: Run, selection: Selection) -> ComparedCalls:
    found = ComparedCalls()
    events = run.chosen_by(selection)
    phase = events.phase
    for key, mine in _by_key(events):
        chosen = events[mine]
        found.time_s[key] = float(chosen.duration.sum() * 1e-9)
        found.calls[key] = Calls(
            _durations_s(chosen, selection),
            None if phase is None else phase[mine],
            chosen.rank.astype(np.int64),
            chosen.start,
        )
    return found


def _in_one_pass(run: Run, selection: Selection) -> ComparedCalls:
    found = ComparedCalls()
    counts: dict[Key, np.ndarray] = {}
    ends_s: dict[Key, tuple[float, float]] = {}
    for chunk in run.chunks_for(selection):
        for key, mine in _by_key(chunk):
            chosen = chunk[mine]
            durations_s = _durations_s(chosen, selection)
            counted, _ = count_seconds(durations_s, _LONGEST_S)
            low_s, high_s = ends_s.get(key, (np.inf, 0.0))
            counts[key] = counts.get(key, np.zeros(BIN_COUNT, np.int64)) + counted
            ends_s[key] = min(low_s, float(durations_s.min())), max(high_s, float(durations_s.max()))
            found.time_s[key] = found.time_s.get(key, 0.0) + float(chosen.duration.sum() * 1e-9)
    found.samples = {key: Sample.from_counts(counts[key], *ends_s[key]) for key in counts}
    return found


def _by_key(events: Events) -> list[tuple[Key, np.ndarray]]:
    """Masks of the calls of each layer and op."""
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
