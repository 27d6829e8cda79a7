"""The calls in which the task that comes last in a phase spends the time by which it is late.

What the task that came last did before: calls, or something that no call shows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from ensembles.model.events import Call, Events, is_io_of_calls
from ensembles.model.fields import Fields
from ensembles.model.levels import MOST
from ensembles.model.units import NS_PER_S, seconds_text
from ensembles.passes.summary import Summary
from ensembles.structure.phases.barriers import SYNCHRONISING
from ensembles.summaries.keyed_sums import groups_of_rows
from ensembles.summaries.nesting import calls_around, in_threads

if TYPE_CHECKING:
    from ensembles.structure.phases.result import Phases


@dataclass(frozen=True)
class LateCalls(Fields):
    """The function in which the last task of a phase spent most time beyond that of another task."""

    # call, layer: The function
    call: str
    layer: str
    file: str  # Path on which it took the last task most time
    calls: int  # Number of its calls by the last task in the phase
    # time_s, other_s: Their time, and that of the task in the middle (`PhaseTotals.middle_task`)
    time_s: float
    other_s: float


def without_waits_ns(chunk: Events) -> np.ndarray:
    """Return the durations of outermost calls without what tasks wait for others inside them."""
    duration = chunk.duration.astype(np.int64)
    waits = ~is_io_of_calls(chunk.calls)[chunk.call] & (chunk.depth > 0)
    if not waits.any():
        return duration
    key, order = in_threads(chunk)
    outer = np.flatnonzero(chunk.depth[order] == 0)
    inner, outer, _ = calls_around(key, np.flatnonzero(waits[order]), outer)
    inner, outer = order[inner], order[outer]
    holds = (chunk.start[outer] <= chunk.start[inner]) & (chunk.end[inner] <= chunk.end[outer])
    np.subtract.at(duration, outer[holds], duration[inner[holds]])
    found: np.ndarray = np.maximum(duration, 0)
    return found


class TimeInCalls(Summary):
    """A mergeable summary: number and time of I/O calls of two tasks of each phase, by function and file.

    Time in which a task waits for others inside a call, as in a barrier that HDF5 makes, does not count.
    Beside these, of each task and phase: start of the first call and return of the last, and when the task
    left the collective call in which all tasks met before the phase, if it is among the calls.
    """

    columns = ("rank", "thread", "call", "depth", "file", "start", "duration")
    results = ("_rows", "_ends", "_left")
    meaning = 2

    def __init__(self, phases: Phases, tasks: Sequence[tuple[int, int, int]], outermost: bool = True) -> None:
        self._phases, self._outermost = phases, outermost
        self._tasks = np.full((2, phases.count + 2), -1, np.int64)  # the last one: calls in no phase
        for phase, last, middle in tasks:
            self._tasks[:, phase] = last, middle
        self._sums: dict[tuple[int, int, Call, str], list[int]] = {}
        # Of phase and rank: start of the first call and return of the last; return from a meeting, its name.
        self._ends: dict[tuple[int, int], tuple[int, int]] = {}
        self._left: dict[tuple[int, int], tuple[int, str]] = {}

    def add(self, chunk: Events) -> None:
        """Add events."""
        self._add_meetings(chunk)
        phase = self._phases.phase_index(chunk)
        of_task = (self._tasks[:, phase] == chunk.rank.astype(np.int64)).any(axis=0)
        mine = np.flatnonzero(of_task & (phase > 0) & is_io_of_calls(chunk.calls)[chunk.call])
        if self._outermost:
            mine = mine[chunk.depth[mine] == 0]
        if not len(mine):
            return
        rank, call, file = (
            np.asarray(each)[mine].astype(np.int64) for each in (chunk.rank, chunk.call, chunk.file)
        )
        group, first = groups_of_rows([phase[mine].astype(np.int64), rank, call, file])
        count = np.bincount(group)
        time_ns = np.zeros(len(first), np.int64)
        np.add.at(time_ns, group, without_waits_ns(chunk)[mine])
        keys = (phase[mine][first], rank[first], call[first], file[first], count, time_ns)
        for at, by, function, on, calls, spent_ns in zip(*(each.tolist() for each in keys), strict=True):
            self._put((at, by, chunk.calls[function], chunk.files[on]), calls, spent_ns)
        group, first = groups_of_rows([phase[mine].astype(np.int64), rank])
        start_ns = np.full(len(first), np.iinfo(np.int64).max)
        end_ns = np.full(len(first), np.iinfo(np.int64).min)
        np.minimum.at(start_ns, group, chunk.start[mine].astype(np.int64))
        np.maximum.at(end_ns, group, chunk.end[mine].astype(np.int64))
        ends = (phase[mine][first], rank[first], start_ns, end_ns)
        for at, by, begin_ns, last_ns in zip(*(each.tolist() for each in ends), strict=True):
            self._put_ends((at, by), begin_ns, last_ns)

    def _add_meetings(self, chunk: Events) -> None:
        """Add the collective calls between phases, each to the phase in which it returns."""
        meets = np.array([call.name in SYNCHRONISING for call in chunk.calls], bool)
        if not len(self._phases.cuts_ns) or not meets.any():
            return
        mine = np.flatnonzero(meets[chunk.call] & (chunk.depth == 0))
        start, end, rank = (column[mine].astype(np.int64) for column in (chunk.start, chunk.end, chunk.rank))
        before, after = (np.searchsorted(self._phases.cuts_ns, each, side="right") for each in (start, end))
        phase = self._phases.number[after]
        kept = (after > before) & (phase > 0) & (self._tasks[:, phase] == rank).any(axis=0)
        for at, by, end_ns, call in zip(
            *(column[kept].tolist() for column in (phase, rank, end, chunk.call[mine])), strict=True
        ):
            self._put_left((at, by), (end_ns, chunk.calls[call].name))

    def _put_ends(self, key: tuple[int, int], start_ns: int, end_ns: int) -> None:
        known = self._ends.get(key, (start_ns, end_ns))
        self._ends[key] = min(known[0], start_ns), max(known[1], end_ns)

    def _put_left(self, key: tuple[int, int], left: tuple[int, str]) -> None:
        self._left[key] = max(self._left.get(key, left), left)

    def _put(self, key: tuple[int, int, Call, str], calls: int, time_ns: int) -> None:
        sums = self._sums.setdefault(key, [0, 0])
        sums[0] += calls
        sums[1] += time_ns

    def merge(self, other: TimeInCalls) -> None:
        """Add the calls of other chunks."""
        for key, sums in other._sums.items():
            self._put(key, *sums)
        for of_task, ends in other._ends.items():
            self._put_ends(of_task, *ends)
        for of_task, left in other._left.items():
            self._put_left(of_task, left)

    @property
    def _rows(self) -> list[tuple[int, int, Call, str, int, int]]:
        return [(*key, calls, time_ns) for key, (calls, time_ns) in self._sums.items()]

    @_rows.setter
    def _rows(self, rows: list[tuple[int, int, Call, str, int, int]]) -> None:
        self._sums = {(phase, rank, call, file): [calls, ns] for phase, rank, call, file, calls, ns in rows}

    def late(self, phase: int, later_s: float) -> LateCalls | None:
        """Return the calls that explain why the last task of a phase is late.

        The function with the largest difference from the task in the middle. None: that is less than half of
        that time, and so are all functions together (`outside` says what is).
        """
        last, middle = self._tasks[:, phase].tolist()
        functions: dict[Call, list[int]] = {}
        files: dict[Call, dict[str, int]] = {}
        for (at, rank, call, file), (calls, time_ns) in self._sums.items():
            if at != phase:
                continue
            sums = functions.setdefault(call, [0, 0, 0])
            if rank == last:
                sums[0] += calls
                sums[1] += time_ns
                of_file = files.setdefault(call, {})
                of_file[file] = of_file.get(file, 0) + time_ns
            elif rank == middle:
                sums[2] += time_ns
        if not files:
            return None
        call = max(files, key=lambda each: functions[each][1] - functions[each][2])
        calls, time_ns, other_ns = functions[call]
        all_ns = sum(mine_ns - others_ns for _, mine_ns, others_ns in functions.values())
        if max(time_ns - other_ns, all_ns) < MOST * later_s * NS_PER_S or time_ns <= other_ns:
            return None
        file = max(files[call], key=files[call].__getitem__)
        return LateCalls(call.name, call.layer, file, calls, time_ns / NS_PER_S, other_ns / NS_PER_S)

    def outside(self, phase: int, later_s: float) -> LateInPhase | None:
        """Return where the last task of a phase was late outside of I/O calls; None: at most half of it."""
        last, middle = ((phase, rank) for rank in self._tasks[:, phase].tolist())
        if last not in self._ends or middle not in self._ends:
            return None
        begins_s = (self._ends[last][0] - self._ends[middle][0]) / NS_PER_S
        between_s, other_s = self._between_s(last), self._between_s(middle)
        if begins_s + between_s - other_s < MOST * later_s:
            return None
        if last not in self._left or middle not in self._left:
            return LateInPhase(begins_s, between_s, other_s)
        (left_ns, call), (other_ns, _) = self._left[last], self._left[middle]
        return LateInPhase(begins_s, between_s, other_s, (left_ns - other_ns) / NS_PER_S, call)

    def _between_s(self, task: tuple[int, int]) -> float:
        """Return the time of a task (phase and rank) between its calls; of several threads, at least that."""
        in_io_ns = sum(ns for (at, rank, *_), (_, ns) in self._sums.items() if (at, rank) == task)
        start_ns, end_ns = self._ends[task]
        return max(end_ns - start_ns - in_io_ns, 0) / NS_PER_S


LEAST_RATIO = 2.0
"""Least ratio of its time outside to that of the others, and of its lateness to that of the next task."""


@dataclass(frozen=True)
class LateOutside(Fields):
    """A task that is late because of what it did outside of I/O calls: computation, or messages.

    `outside_s`: time until its last calls of the phases in which it was in no I/O call, summed over phases.
    `others_s`: the same of the other tasks, in the median. `left_s`: part of `outside_s` beyond that of the
    others in which it was still inside the collective `call`, which the others had left: it waited for a
    processor, or for messages of the call; 0: less than half, or not known.
    """

    rank: int
    outside_s: float
    others_s: float
    left_s: float = 0.0
    call: str = ""

    def after(self, left_s: float, call: str) -> LateOutside:
        """Return the same with the collective call that it leaves late, if that explains half or more."""
        if left_s < MOST * (self.outside_s - self.others_s):
            return self
        return replace(self, left_s=left_s, call=call)

    def __str__(self) -> str:
        if self.call:
            return (
                f"rank {self.rank} is late because it leaves {self.call} {seconds_text(self.left_s)} later "
                "than the others in all, although all had entered it: it waits there for a processor, or for "
                "messages"
            )
        return (
            f"rank {self.rank} is late because it was {seconds_text(self.outside_s)} outside of I/O calls, "
            f"the others {seconds_text(self.others_s)} in the median: look at its computation and messages"
        )


def late_outside(
    arrival: np.ndarray, busy: np.ndarray, present: np.ndarray
) -> tuple[int, float, float] | None:
    """Find the task that is late outside of its calls, and its time there beside the median of the others."""
    several = present.sum(axis=1) > 1
    if not several.any():
        return None
    here = np.where(present, arrival, np.nan)[several].astype(np.float64)
    outside = np.maximum(here - busy[several], 0.0)
    worst = int(np.argmax(np.nansum(here - np.nanmedian(here, axis=1)[:, None], axis=0)))
    mine = np.flatnonzero(present[several][:, worst])
    others = np.delete(here[mine], worst, axis=1)
    late = float((here[mine, worst] - np.nanmedian(others, axis=1)).sum())
    theirs = float(np.nanmedian(np.delete(outside[mine], worst, axis=1), axis=1).sum())
    own = float(outside[mine, worst].sum())
    is_why = late > 0 and own - theirs >= MOST * late and own >= LEAST_RATIO * theirs
    return (worst, own, theirs) if is_why else None


@dataclass(frozen=True)
class LateInPhase(Fields):
    """Where the last task of a phase lost the time by which it is late, if not in its I/O calls."""

    # By how much later its first I/O call of the phase began than that of the task in the middle
    # (`PhaseTotals.middle_task`)
    begins_s: float
    # between_s, other_between_s: Time from its first call to the return of its last one in which it was in no
    # I/O call, and the same of the task in the middle
    between_s: float
    other_between_s: float
    left_s: float | None = None  # By how much later it left `call`. None: not known.
    call: str = ""  # The collective call before the phase, in which all tasks met; ``""``: not known

    @property
    def is_before(self) -> bool:
        """Whether most of it was before its first call, not between its calls."""
        return self.begins_s >= self.between_s - self.other_between_s

    @property
    def cell(self) -> str:
        """What tables say in place of a call."""
        return "late start" if self.is_before else "between calls"

    def text(self, middle_task: int | None) -> str:
        """Say where the time was, in comparison with the task in the middle."""
        if not self.is_before:
            return (
                f"it was {seconds_text(self.between_s)} outside of these calls between the first and the "
                f"last, rank {middle_task}, in the middle, {seconds_text(self.other_between_s)}: look at "
                "what it does there (computation, messages, other I/O)"
            )
        begins = f"it began its first call {seconds_text(self.begins_s)} later"
        later = f"{begins} than rank {middle_task}, in the middle"
        if self.left_s is not None and self.left_s >= MOST * self.begins_s:
            return (
                f"{later}, as it left {self.call} {seconds_text(self.left_s)} later, although all tasks had "
                "entered it: it waited there for a processor, or for messages"
            )
        if self.left_s is not None:
            left = f"{seconds_text(self.left_s)} later" if self.left_s > 0 else "no later"
            later += f", although it left {self.call} {left}"
        return f"{later}: look at what it does before (computation, messages, other I/O)"
