"""Bounds of gains where a run does not show who waits for whom: processes without MPI, and threads.

If no task waits, the run ends with its last task, and only what that one saves makes the run shorter. If all
wait for each other all the time, the run is shorter by the time in which at least one of the calls concerned
was under way. The truth lies between.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ensembles.diagnosis.with_meetings import MARGIN, Path


class WithoutMeetings:
    """The model of time of a run without barriers; it has the interface of `WithMeetings`.

    Parameters
    ----------
    rows : dict of str to ndarray, shape (n,)
        With ``start_ns``, ``end_ns`` and ``time_ns`` of each row of the shared evidence.
    task : ndarray of int64, shape (n,)
        Number of the task of each row.
    threads : ndarray of int64, shape (tasks,)
        Threads of each task.

    Attributes
    ----------
    shows_waiting : bool
        False: the run does not show who waits for whom.
    waiting_s, late_outside : None
        Not known, as nothing shows that tasks wait.
    """

    shows_waiting = False
    waiting_s = late_outside = None

    def __init__(self, rows: dict[str, np.ndarray], task: np.ndarray, threads: np.ndarray) -> None:
        self._start, self._end, self._task, self._threads = rows["start_ns"], rows["end_ns"], task, threads
        self._time_ns = rows["time_ns"]
        size = len(threads)
        self._ends, self._begins = np.zeros(size, np.int64), np.full(size, np.iinfo(np.int64).max)
        np.maximum.at(self._ends, task, self._end)
        np.minimum.at(self._begins, task, self._start)

    @cached_property
    def io_s(self) -> float:
        """Bound the time in which at least one thread is in I/O."""
        return self.most_s(self._time_ns)

    def _by_task(self, saved_ns: np.ndarray) -> np.ndarray:
        """Add up by task; threads together save at most the time in which one of them does."""
        saved = np.bincount(self._task, saved_ns, len(self._threads))
        for task in np.flatnonzero(self._threads > 1).tolist():
            saved[task] = 1e9 * self.most_s(np.where(self._task == task, saved_ns, 0.0))
        possible: np.ndarray = np.minimum(saved, np.maximum(self._ends - self._begins, 0))
        return possible

    def least_s(self, saved_ns: np.ndarray) -> float:
        """Compute the gain if no task waits: the run ends with its last task.

        Of a task with several threads, the one that ends last may save nothing.
        """
        if not len(self._task):
            return 0.0
        saved = np.where(self._threads > 1, 0.0, self._by_task(saved_ns))
        return 1e-9 * max(float(self._ends.max() - (self._ends - saved).max()), 0.0)

    def likely_s(self, saved_ns: np.ndarray) -> float:
        """Compute the most that one task saves."""
        return 1e-9 * float(self._by_task(saved_ns).max()) if len(self._task) else 0.0

    def path(self, saved_ns: np.ndarray) -> Path:
        """Take the task with most I/O; nothing shows that others wait for it."""
        left = self._by_task(np.maximum(self._time_ns - saved_ns, 0.0))
        io_s = self.likely_s(self._time_ns) - self.likely_s(saved_ns) if len(self._task) else 0.0
        last = int(np.argmax(left)) if len(left) else -1
        return Path(self._task == last, max(io_s, 0.0), *np.zeros((2, len(left))))

    def most_s(self, time_ns: np.ndarray) -> float:
        """Bound the time in which at least one of some calls was under way.

        The calls of a row lie between its first start and its last end. Where such spans overlap, the time is
        at most the length of their union, and at most the sum.

        Parameters
        ----------
        time_ns : ndarray, shape (n,)
            Time of each row that counts.
        """
        mine = np.flatnonzero(time_ns > 0)
        if not len(mine):
            return 0.0
        mine = mine[np.argsort(self._start[mine], kind="stable")]
        start, end = self._start[mine], np.maximum.accumulate(self._end[mine])
        first = np.flatnonzero(np.append(True, start[1:] > end[:-1]))
        last = np.append(first[1:], len(mine)) - 1
        sums = np.add.reduceat(np.asarray(time_ns, np.float64)[mine], first)
        return 1e-9 * float(np.minimum(sums, end[last] - start[first]).sum())

    def interval_s(
        self, low_ns: np.ndarray, saved_ns: np.ndarray, high_ns: np.ndarray
    ) -> tuple[float, float]:
        """Compute the bounds of the gain, from bounds of the time saved."""
        least_s = (1 - MARGIN) * self.least_s(np.minimum(low_ns, saved_ns))
        return least_s, max(self.most_s(np.maximum(high_ns, saved_ns)), least_s)
