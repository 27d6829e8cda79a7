"""Bounds of gains where a run does not show who waits for whom: processes without MPI, and threads.

If no task waits, the run ends with its last task, and only what that one saves makes the run shorter. If all
wait for each other all the time, the run is shorter by the time in which at least one of the calls concerned
was under way. The truth lies between.
"""

from __future__ import annotations

from functools import cached_property

import numpy as np

from ensembles.diagnosis.with_meetings import MARGIN, Busy


class WithoutMeetings:
    """The model of time of a run without barriers; it has the interface of `WithMeetings`.

    Parameters
    ----------
    rows : dict of str to ndarray, shape (n,)
        With ``start_ns``, ``end_ns`` and ``time_ns`` of each row of the shared evidence.
    task : ndarray of int64, shape (n,)
        Number of the task of each row.

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
        self._task, self._threads, self._time_ns = task, threads, rows["time_ns"]
        self._of_tasks = Busy(rows, task, len(threads))
        self._of_all = Busy(rows, np.zeros_like(task), 1)
        self._ends = np.zeros(len(threads), np.int64)
        np.maximum.at(self._ends, task, rows["end_ns"])

    @cached_property
    def io_s(self) -> float:
        """Bound the time in which at least one thread is in I/O."""
        return self.most_s(self._time_ns)

    def least_s(self, saved_ns: np.ndarray) -> float:
        """Compute the gain if no task waits: the run ends with its last task.

        Of a task with several threads, the one that ends last may save nothing.
        """
        if not len(self._task):
            return 0.0
        saved = np.where(self._threads > 1, 0.0, self._of_tasks.most_ns(saved_ns))
        return 1e-9 * max(float(self._ends.max() - (self._ends - saved).max()), 0.0)

    def likely_s(self, saved_ns: np.ndarray) -> float:
        """Compute the most that one task saves."""
        return 1e-9 * float(self._of_tasks.most_ns(saved_ns).max()) if len(self._task) else 0.0

    def most_s(self, time_ns: np.ndarray) -> float:
        """Bound the time in which at least one of some calls was under way."""
        return 1e-9 * float(self._of_all.most_ns(time_ns)[0])

    def interval_s(
        self, low_ns: np.ndarray, saved_ns: np.ndarray, high_ns: np.ndarray
    ) -> tuple[float, float]:
        """Compute the bounds of the gain, from bounds of the time saved."""
        least_s = (1 - MARGIN) * self.least_s(np.minimum(low_ns, saved_ns))
        return least_s, max(self.most_s(np.maximum(high_ns, saved_ns)), least_s)
