"""Consecutive calls of each task, from which the times of tasks that make several calls are formed."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from ensembles.model.levels import CERTAIN
from ensembles.statistics import special

MOST_CALLS = 1 << 19
"""Of more calls, runs of consecutive ones are taken, from each task in each phase."""

_LEAST = 64
"""Calls of a run at least; tasks with fewer calls in a phase keep them all, in as many phases at least."""


def _runs_of_calls(rank: np.ndarray, phase: np.ndarray, start_ns: np.ndarray | None) -> np.ndarray | slice:
    """Return which calls are taken: a run of consecutive ones of each task in each phase, or some phases."""
    n = len(rank)
    if n <= MOST_CALLS or min(rank.min(), phase.min()) < -1:
        return slice(None)
    ranks, phases = int(rank.max()) + 2, int(phase.max()) + 2
    share = MOST_CALLS / n
    if share * n < _LEAST * ranks * phases:
        kept = np.zeros(phases, bool)
        kept[np.linspace(0, phases - 1, max(int(share * phases), 1)).astype(np.int64)] = True
        return np.flatnonzero(kept[phase + 1]) if share * phases >= _LEAST else slice(None)
    cell = (phase + 1) * ranks + rank + 1
    time = np.arange(n) if start_ns is None else start_ns
    first = np.full(ranks * phases, np.iinfo(np.int64).max)
    last = np.full(ranks * phases, np.iinfo(np.int64).min)
    np.minimum.at(first, cell, time)
    np.maximum.at(last, cell, time)
    length = share * (last - first.astype(np.float64))
    begin = first + np.random.default_rng(0).random(len(first)) * (1 - share) / share * length
    return np.flatnonzero((time >= begin[cell]) & (time <= (begin + length)[cell]))


@dataclass(frozen=True, eq=False)
class ConsecutiveCalls:
    """Calls of each task in the order in which the task made them."""

    duration_s: np.ndarray  # duration_s, rank, phase: Sorted by rank, phase and start; seconds; shape (n,)
    rank: np.ndarray  # shape (n,)
    phase: np.ndarray  # shape (n,)
    begin: np.ndarray  # Index of the first call of each pair of rank and phase; the last element is n
    phases_known: bool  # False: phases are unknown, and all calls have phase 0

    @classmethod
    def from_calls(
        cls,
        durations_s: np.ndarray,
        rank: np.ndarray,
        phase: np.ndarray | None = None,
        start_ns: np.ndarray | None = None,
    ) -> ConsecutiveCalls:
        """Sort calls by rank, phase and start."""
        known = phase is not None
        phase = np.zeros(len(durations_s), np.int64) if phase is None else phase
        some = _runs_of_calls(rank, phase, start_ns)
        durations_s, rank, phase = durations_s[some], rank[some], phase[some]
        start_ns, n = None if start_ns is None else start_ns[some], len(durations_s)
        order = np.lexsort([phase, rank] if start_ns is None else [start_ns, phase, rank])
        rank, phase = rank[order], phase[order]
        changed = (rank[1:] != rank[:-1]) | (phase[1:] != phase[:-1])
        begin = np.unique(np.concatenate([[0], np.flatnonzero(changed) + 1, [n]]))
        return cls(durations_s[order], rank, phase, begin, known)

    @cached_property
    def place(self) -> np.ndarray:
        """Share of the calls of the same phase that are shorter, and half of the equal ones: shape (n,)."""
        phases, phase = np.unique(self.phase, return_inverse=True)
        values, value = np.unique(self.duration_s, return_inverse=True)
        kinds, kind, count = np.unique(
            phase.reshape(-1) * len(values) + value.reshape(-1), return_inverse=True, return_counts=True
        )
        of_phase = kinds // max(len(values), 1)
        total = np.bincount(of_phase, count, len(phases))
        before = np.cumsum(count) - count - (np.cumsum(total) - total)[of_phase]
        share: np.ndarray = ((before + 0.5 * count) / total[of_phase])[kind.reshape(-1)]
        return share

    @cached_property
    def calls_of_a_task(self) -> int:
        """The most calls that a task made."""
        return int(np.unique(self.rank, return_counts=True)[1].max(initial=0))

    @property
    def are_alone(self) -> bool:
        """Whether no task made several calls in a phase, so that it is unknown how alike these would be."""
        return self.phases_known and len(self.begin) == len(self.place) + 1

    @cached_property
    def _alike_in_phase(self) -> bool:
        """Whether calls of a task are more alike in one phase than in several, by a nested F test."""
        first, calls = self.begin[:-1], np.diff(self.begin)
        free, cells = len(self.place) - len(calls), len(calls) - len(np.unique(self.rank[first]))
        if not self.phases_known or free < 1 or cells < 1:
            return False
        score = special.ndtri(self.place)
        mean = np.add.reduceat(score, first) / calls
        within = float(((score - np.repeat(mean, calls)) ** 2).sum()) / free
        task = np.unique(self.rank[first], return_inverse=True)[1].reshape(-1)
        of_task = np.bincount(task, mean * calls) / np.bincount(task, calls)
        between = float((calls * (mean - of_task[task]) ** 2).sum()) / cells
        ratio = between / within if within > 0 else np.inf
        return bool(special.betainc(free / 2, cells / 2, free / (free + cells * ratio)) < CERTAIN)

    def mean_times_s(self, values_s: np.ndarray, group: np.ndarray, k: int, seed: int) -> np.ndarray:
        """Draw the mean of k calls for as many tasks as a new phase has calls.

        A task of a new phase takes k consecutive calls of a past task, each at its place among the durations
        of the phase, and all begin in one past phase (docs/reference/methods/split.md). Calls go on into the
        next phases, unless calls of a task are more alike in one phase: then they come again.
        """
        rng = np.random.default_rng(seed)
        first = self.begin[:-1]
        tasks, task = np.unique(self.rank[first], return_inverse=True)
        phases, phase = np.unique(self.phase[first], return_inverse=True)
        cell_of = task.reshape(-1) * len(phases) + phase.reshape(-1)
        first_cell = np.searchsorted(cell_of, np.arange(len(tasks) + 1) * len(phases))
        calls = np.bincount(group)
        begin = np.cumsum(calls) - calls
        layer, nth = np.divmod(np.arange(len(values_s)) - begin[group], len(tasks))
        chosen = rng.permutation(len(tasks))[nth]
        layers = int(layer.max(initial=0)) + 1
        row = group * layers + layer
        source = rng.integers(len(phases), size=row[-1] + 1)[row]
        shift = rng.random(row[-1] + 1)[row]
        cell = np.searchsorted(cell_of, chosen * len(phases) + source)
        cell = np.where(cell < first_cell[chosen + 1], cell, first_cell[chosen])
        start, length = self.begin[cell], np.diff(self.begin)[cell]
        if self._alike_in_phase:
            origin, period, at = start, length, (shift * length).astype(np.int64)
        else:
            origin = self.begin[first_cell[chosen]]
            period = self.begin[first_cell[chosen + 1]] - origin
            at = start - origin + (shift * np.maximum(length - k + 1, 1)).astype(np.int64)
        total_s = np.zeros(len(values_s))
        for call in range(k):
            place = self.place[origin + (at + call) % period]
            total_s += values_s[begin[group] + (place * calls[group]).astype(np.int64)]
        return total_s / k
