"""Bounds of gains where a run does not show who waits for whom: processes without MPI, and threads.

If no task waits, the run ends with its last task, and only what that one saves makes the run shorter. If all
wait for each other all the time, the run is shorter by the time in which at least one of the calls concerned
was under way. The truth lies between.
"""

from __future__ import annotations

import numpy as np


class WithoutMeetings:
    """The rows of the shared evidence (`ensembles.diagnosis.evidence.Evidence`), seen without barriers.

    Parameters
    ----------
    rows : dict of str to ndarray, shape (n,)
        With ``start_ns`` and ``end_ns`` of each row.
    task : ndarray of int64, shape (n,)
        Number of the task of each row.
    threads : ndarray of int64, shape (tasks,)
        Threads of each task.
    """

    def __init__(self, rows: dict[str, np.ndarray], task: np.ndarray, threads: np.ndarray) -> None:
        self._start, self._end, self._task, self._threads = rows["start_ns"], rows["end_ns"], task, threads
        size = len(threads)
        self._ends, self._begins = np.zeros(size, np.int64), np.full(size, np.iinfo(np.int64).max)
        np.maximum.at(self._ends, task, self._end)
        np.minimum.at(self._begins, task, self._start)

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
