"""The calls in which the task that comes last in a phase spends the time by which it is late."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.model.events import Call, Events, is_io_of_calls
from ensembles.passes.summary import Summary
from ensembles.summaries.keyed_sums import groups_of_rows

if TYPE_CHECKING:
    from ensembles.structure.phases.result import Phases

LEAST_PART = 0.5
"""Least part of the lateness that the calls of a function explain, to be named."""

_NS_PER_S = 1e9


@dataclass(frozen=True)
class LateCalls:
    """The function in which the last task of a phase spent most time beyond that of another task.

    Attributes
    ----------
    call, layer : str
        The function.
    file : str
        Path on which it took the last task most time.
    calls : int
        Number of its calls by the last task in the phase.
    time_s, other_s : float
        Their time, and that of the task in the middle (`PhaseTotals.middle_task`).
    """

    call: str
    layer: str
    file: str
    calls: int
    time_s: float
    other_s: float

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes."""
        return asdict(self)


class TimeInCalls(Summary):
    """A mergeable summary: number and time of I/O calls of two tasks of each phase, by function and file.

    Parameters
    ----------
    phases : Phases
    tasks : sequence of (int, int, int)
        Phase, its last task and its task in the middle.
    outermost : bool
        Leave out calls inside others.
    """

    columns = ("rank", "call", "depth", "file", "start", "duration")
    results = ("_rows",)

    def __init__(self, phases: Phases, tasks: Sequence[tuple[int, int, int]], outermost: bool = True) -> None:
        self._phases, self._outermost = phases, outermost
        self._tasks = np.full((2, phases.count + 2), -1, np.int64)  # the last one: calls in no phase
        for phase, last, middle in tasks:
            self._tasks[:, phase] = last, middle
        self._sums: dict[tuple[int, int, Call, str], list[int]] = {}

    def add(self, chunk: Events) -> None:
        """Add events."""
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
        np.add.at(time_ns, group, chunk.duration[mine].astype(np.int64))
        keys = (phase[mine][first], rank[first], call[first], file[first], count, time_ns)
        for at, by, function, on, calls, spent_ns in zip(*(each.tolist() for each in keys), strict=True):
            self._put((at, by, chunk.calls[function], chunk.files[on]), calls, spent_ns)

    def _put(self, key: tuple[int, int, Call, str], calls: int, time_ns: int) -> None:
        sums = self._sums.setdefault(key, [0, 0])
        sums[0] += calls
        sums[1] += time_ns

    def merge(self, other: TimeInCalls) -> None:
        """Add the calls of other chunks."""
        for key, sums in other._sums.items():
            self._put(key, *sums)

    @property
    def _rows(self) -> list[tuple[int, int, Call, str, int, int]]:
        return [(*key, calls, time_ns) for key, (calls, time_ns) in self._sums.items()]

    @_rows.setter
    def _rows(self, rows: list[tuple[int, int, Call, str, int, int]]) -> None:
        self._sums = {(phase, rank, call, file): [calls, ns] for phase, rank, call, file, calls, ns in rows}

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``phase``, ``rank``, ``calls`` and ``time_ns``, each of shape (groups,)."""
        rows = [(row[0], row[1], *row[4:]) for row in self._rows]
        columns = np.array(rows, np.int64).reshape(-1, 4).T
        return dict(zip(("phase", "rank", "calls", "time_ns"), columns, strict=True))

    def late(self, phase: int, later_s: float) -> LateCalls | None:
        """Return the calls that explain why the last task of a phase is late.

        Parameters
        ----------
        phase : int
        later_s : float
            By how much the last task returned later than the one in the middle.

        Returns
        -------
        LateCalls or None
            None: no function took at least half of that time more than it took the task in the middle.
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
        if time_ns - other_ns < LEAST_PART * later_s * _NS_PER_S or time_ns <= other_ns:
            return None
        file = max(files[call], key=files[call].__getitem__)
        return LateCalls(call.name, call.layer, file, calls, time_ns / _NS_PER_S, other_ns / _NS_PER_S)
