"""Critical path: the I/O that a run had to wait for, phase by phase."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.model.events import Events, is_io_of_calls
from ensembles.passes.summary import Summary
from ensembles.structure.phases.detect import Phases
from ensembles.structure.phases.table import Spans, sum_spans
from ensembles.summaries.keyed_sums import KeyedSums


@dataclass(frozen=True)
class CriticalPath:
    """Time in I/O on the critical path."""

    io_s: float  # Time in I/O of the slowest task of each phase, summed over the phases
    of_phases_s: np.ndarray  # The same by phase, from phase 1; shape (phases,)


_NEVER = np.int64(1) << 62
"""Start of a row that only has time to take off, and, negative, its end."""


class CriticalIo(Summary):
    """A mergeable summary: the time in I/O of each thread in each phase, and when its last call returned.

    The next phase begins when the slowest task of a phase is ready, so that the critical path of a run goes
    through the task whose last call returns last. The time of its outermost I/O calls, in the thread of that
    task with most of it, is on the path, as far as it is not before the end of the phase before: the thread
    that returns last may only have waited for the others. Inner calls do not count: a barrier inside a
    collective call may separate phases. But time that a task waits for others inside an I/O call, as in a
    barrier that HDF5 makes, is not I/O.
    """

    columns = ("rank", "thread", "call", "depth", "start", "duration")
    results = ("_threads",)
    added_up = ("_threads",)
    result_types: tuple[type, ...] = (KeyedSums,)
    meaning = 2

    def __init__(self, phases: Phases) -> None:
        self._phases = phases
        self._threads = KeyedSums(("phase", "rank", "thread"), ("io_ns",), ("start_ns",), ("end_ns",))

    def add(self, chunk: Events) -> None:
        """Add events, those of a thread in the order of completion."""
        if not len(chunk):
            return
        phase = self._phases.phase_index(chunk)
        is_io, inner = is_io_of_calls(chunk.calls)[chunk.call], chunk.depth != 0
        waits = ~is_io & inner
        if waits.any():
            self._add(sum_spans(np.where(waits, phase, 0), chunk, by_thread=True), is_io=False)
        phase[~is_io | inner] = 0
        self._add(sum_spans(phase, chunk, by_thread=True), is_io=True)

    def _add(self, spans: Spans, is_io: bool) -> None:
        never = np.full(len(spans.phase), _NEVER)
        columns = {"phase": spans.phase, "rank": spans.rank, "thread": spans.thread}
        if is_io:
            columns |= {"io_ns": spans.time_ns, "start_ns": spans.start_ns, "end_ns": spans.end_ns}
        else:
            columns |= {"io_ns": -spans.time_ns, "start_ns": never, "end_ns": -never}
        self._threads.add_summed(columns)

    def condense(self) -> None:
        """Join the rows of each phase and thread."""
        self._threads.condense()

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the columns ``phase`` to ``end_ns`` and ``io_ns``, a row a thread with I/O calls."""
        rows = self._threads.columns()
        has_io = rows["start_ns"] < _NEVER
        rows = {name: column[has_io] for name, column in rows.items()}
        return rows | {"io_ns": np.maximum(rows["io_ns"], 0)}

    def path(self) -> CriticalPath:
        """Compute the time in I/O on the critical path."""
        rows = self.to_arrays()
        phase, rank, io_ns = rows["phase"], rows["rank"], rows["io_ns"]
        start_ns, end_ns = rows["start_ns"], rows["end_ns"]
        of_phases = np.zeros(self._phases.count)
        # By phase, the thread that returns last; of equal ones that of the lowest rank.
        order = np.lexsort((-rank, end_ns, phase))
        last = order[np.append(np.diff(phase[order]) != 0, True)] if len(order) else order
        # Rows are in the order of phase, rank and thread.
        new_task = np.append(True, (np.diff(phase) != 0) | (np.diff(rank) != 0))[: len(phase)]
        busiest_ns = np.maximum.reduceat(io_ns, np.flatnonzero(new_task)) if len(phase) else io_ns
        task = np.cumsum(new_task) - 1
        first_ns = np.full(self._phases.count + 1, np.iinfo(np.int64).max)
        np.minimum.at(first_ns, phase, start_ns)
        before_ns = np.iinfo(np.int64).min
        for at in last[np.argsort(end_ns[last], kind="stable")].tolist():
            begun_ns = max(before_ns, int(first_ns[phase[at]]))
            io_of_task_ns = int(busiest_ns[task[at]])
            of_phases[phase[at] - 1] = 1e-9 * max(min(io_of_task_ns, int(end_ns[at]) - begun_ns), 0)
            before_ns = max(before_ns, int(end_ns[at]))
        return CriticalPath(float(of_phases.sum()), of_phases)
