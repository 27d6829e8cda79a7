"""Gains where tasks wait for each other at the ends of windows: the change of the critical path."""

from __future__ import annotations

from functools import cached_property
from typing import NamedTuple

import numpy as np

from ensembles.diagnosis.limits import NORMAL_90
from ensembles.model.levels import A_TENTH
from ensembles.structure.late_entry import is_habit
from ensembles.structure.phases.critical_path import Busy, in_turn
from ensembles.structure.phases.late_calls import LateOutside, late_outside

_MOST_PERMUTED = 2_000_000


class Path(NamedTuple):
    """The tasks that a run waits for, once remedies have taken their time."""

    # bool, shape (n,): Rows of the shared evidence of the task that arrives last in each window
    rows: np.ndarray
    io_s: float  # Time of these tasks in I/O
    # slow_s, late_s: float64, shape (tasks,): By how much each task arrives after the others in the median,
    # in the windows that it ends: as far as it is longer in I/O calls, and longer outside of them
    slow_s: np.ndarray
    late_s: np.ndarray


class Cells:
    """Sums by window and task.

    Parameters
    ----------
    rows : dict of str to ndarray, shape (n,)
        With ``start_ns`` and ``end_ns`` of each row of the shared evidence.
    window, task : ndarray of int64, shape (n,)
        Number of the window and of the task of each row, from 0.

    Attributes
    ----------
    present : ndarray of bool, shape (windows, tasks)
        Whether the task has calls in the window.
    arrival_ns : ndarray of float64, shape (windows, tasks)
        From the first call of the window to the last end of the task; -1: it has no call.
    """

    def __init__(self, rows: dict[str, np.ndarray], window: np.ndarray, task: np.ndarray) -> None:
        self.window, self.task = window, task
        shape = int(window.max(initial=-1)) + 1, int(task.max(initial=-1)) + 1
        never = np.iinfo(np.int64).min  # a call may begin before its recorder, at a negative time
        ends = np.full(shape, never)
        np.maximum.at(ends, (window, task), rows["end_ns"])
        begin = np.full(shape[0], np.iinfo(np.int64).max)
        np.minimum.at(begin, window, rows["start_ns"])
        self.present = ends > never
        self.arrival_ns = np.where(self.present, ends - begin[:, None], -1).astype(np.float64)

    @property
    def length_s(self) -> np.ndarray:
        """From the first call of each window to its last arrival: shape (windows,)."""
        length: np.ndarray = self.arrival_ns.max(axis=1) * 1e-9
        return length

    def sums(self, values: np.ndarray) -> np.ndarray:
        """Add up values of the rows: shape (windows, tasks)."""
        windows, tasks = self.present.shape
        total: np.ndarray = np.bincount(self.window * tasks + self.task, values, windows * tasks)
        return total.reshape(windows, tasks)


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
        self._starts = np.full(len(threads), np.iinfo(np.int64).max)
        np.minimum.at(self._starts, task, rows["start_ns"])

    def bound(self, in_io_s: float) -> None:
        """Take the time in which at least one thread was in I/O as a bound."""
        self._of_tasks.in_io_ns = self._of_all.in_io_ns = 1e9 * in_io_s

    def least_s(self, saved_ns: np.ndarray) -> float:
        """Compute the gain if no task waits: the run ends with its last task.

        Of a task with several threads, the one that ends last may save nothing.
        """
        if not len(self._task):
            return 0.0
        saved = np.where(self._threads > 1, 0.0, self._of_tasks.most_ns(saved_ns))
        return 1e-9 * max(float(self._ends.max() - (self._ends - saved).max()), 0.0)

    def _in_turn(self, time_ns: np.ndarray) -> tuple[float, list[int]]:
        """Find the tasks that live one after the other and have most of some time: its sum, and who."""
        whole_ns, tasks = in_turn(self._starts, self._ends, self._of_tasks.most_ns(time_ns))
        return 1e-9 * whole_ns, tasks

    def likely_s(self, saved_ns: np.ndarray) -> float:
        """Compute the most that one task saves, or several that live one after the other."""
        return self._in_turn(saved_ns)[0]

    def is_last_by_habit(self, rank: int) -> bool:
        """Tell nothing: no phases show it."""
        return False

    def path(self, saved_ns: np.ndarray) -> Path:
        """Take the tasks with most I/O that live one after the other; nothing shows that others wait."""
        last = self._in_turn(np.maximum(self._time_ns - saved_ns, 0.0))[1]
        io_s = max(self.likely_s(self._time_ns) - self.likely_s(saved_ns), 0.0)
        return Path(np.isin(self._task, last), io_s, *np.zeros((2, len(self._threads))))

    def most_s(self, time_ns: np.ndarray) -> float:
        """Bound the time in which at least one of some calls was under way."""
        return 1e-9 * float(self._of_all.most_ns(time_ns)[0])

    def interval_s(
        self, low_ns: np.ndarray, saved_ns: np.ndarray, high_ns: np.ndarray
    ) -> tuple[float, float]:
        """Compute the bounds of the gain, from bounds of the time saved."""
        least_s = (1 - A_TENTH) * self.least_s(np.minimum(low_ns, saved_ns))
        return least_s, max(self.most_s(np.maximum(high_ns, saved_ns)), least_s)


class WithMeetings:
    """The model of time of a run whose tasks meet; it has the interface of `WithoutMeetings`.

    Parameters
    ----------
    rows : dict of str to ndarray, shape (n,)
        With ``start_ns``, ``end_ns`` and ``time_ns`` of each row of the shared evidence.
    ranks : ndarray of int64, shape (tasks,)
    ends_together : ndarray of bool, shape (windows,)
        Windows at whose ends all tasks meet.
    others : int or None
        Tasks of the run without I/O, which wait in windows without calls as other tasks do; None: tasks
        without calls in a window may do something else.

    Attributes
    ----------
    shows_waiting : bool
        True: the run shows who waits for whom.
    """

    shows_waiting = True

    def __init__(
        self,
        cells: Cells,
        rows: dict[str, np.ndarray],
        ranks: np.ndarray,
        ends_together: np.ndarray,
        others: int | None,
    ) -> None:
        self._cells, self._ranks = cells, ranks
        self._ends_together, self._others = ends_together, others
        self._arrival, self._is_empty = cells.arrival_ns, not len(rows["time_ns"])
        self._time_ns = rows["time_ns"]
        windows, tasks = cells.present.shape
        self._busy = Busy(rows, cells.window * tasks + cells.task, windows * tasks)

    def _most_ns(self, time_ns: np.ndarray) -> np.ndarray:
        return self._busy.most_ns(time_ns).reshape(self._cells.present.shape)

    def bound(self, in_io_s: float) -> None:
        """Take the time in which at least one thread was in I/O as a bound."""
        self._busy.in_io_ns = 1e9 * in_io_s

    @cached_property
    def _busy_ns(self) -> np.ndarray:
        return self._most_ns(self._time_ns)

    def leave_out(self, waited_ns: np.ndarray) -> None:
        """Let tasks arrive without what they wait for others before their last call in a window."""
        self._arrival = np.maximum(self._arrival - waited_ns, np.minimum(self._busy_ns, self._arrival))

    @cached_property
    def waiting_s(self) -> float | None:
        """Time for which tasks wait for one that is late again and again, beyond what chance explains.

        It is the largest sum over the windows of a task's lateness (arrival less median arrival), less the
        mean of the same after permutations of the tasks within windows: which task is last varies at random.
        """
        if self._is_empty or len(self._ranks) < 2:
            return 0.0
        arrival = np.where(self._cells.present, self._arrival, np.nan)
        late = np.nan_to_num(arrival - np.nanmedian(arrival, axis=1)[:, None])
        rng = np.random.default_rng(0)
        draws = int(np.clip(_MOST_PERMUTED // late.size, 3, 50))
        chance = np.mean([rng.permuted(late, axis=1).sum(axis=0).max() for _ in range(draws)])
        return max(float(late.sum(axis=0).max() - chance) * 1e-9, 0.0)

    @cached_property
    def late_outside(self) -> LateOutside | None:
        """The task for which others wait by habit, if what it did outside of I/O calls makes it late."""
        if self._is_empty:
            return None
        found = late_outside(self._arrival, self._busy_ns, self._cells.present)
        if found is None or not self.is_last_by_habit(int(self._ranks[found[0]])):
            return None
        return LateOutside(int(self._ranks[found[0]]), 1e-9 * found[1], 1e-9 * found[2])

    def is_last_by_habit(self, rank: int) -> bool:
        """Return whether a task is the last of phases more often than at random."""
        arrival = np.where(self._cells.present, self._arrival, np.nan)
        return is_habit(arrival, int(np.searchsorted(self._ranks, rank)))

    def path(self, saved_ns: np.ndarray) -> Path:
        """Find what is left to wait for if calls take less time."""
        tasks = len(self._ranks)
        if self._is_empty:
            return Path(np.zeros(0, bool), 0.0, *np.zeros((2, tasks)))
        cells, absent = self._cells, np.nan if self._others is None else 0.0
        saved = np.minimum(self._most_ns(saved_ns), np.maximum(self._arrival, 0))
        after = np.where(cells.present, self._arrival - saved, -1.0)
        busy = np.clip(self._busy_ns - saved, 0.0, np.maximum(after, 0.0))
        last = after.argmax(axis=1)
        at = np.arange(len(last)), last
        ends_ns, io_ns = after[at], busy[at]
        usual = []
        for values in (after, busy):
            theirs = np.where(cells.present, values, absent)
            theirs[at] = np.nan
            idle = np.zeros((len(last), min(self._others or 0, tasks)))
            theirs = np.concatenate([theirs, idle], axis=1)
            theirs[np.isnan(theirs).all(axis=1)] = ends_ns[np.isnan(theirs).all(axis=1), None]
            usual.append(np.nanmedian(theirs, axis=1))
        late_ns = np.where(self._ends_together, np.maximum(ends_ns - usual[0], 0.0), 0.0)
        slow_ns = np.minimum(np.maximum(io_ns - usual[1], 0.0), np.minimum(late_ns, io_ns))
        late_ns = np.minimum(late_ns - slow_ns, ends_ns - io_ns)
        by_task = [1e-9 * np.bincount(last, values, tasks) for values in (slow_ns, late_ns)]
        return Path(last[cells.window] == cells.task, 1e-9 * float(io_ns.sum()), *by_task)

    def gains_s(self, saved_ns: np.ndarray) -> np.ndarray:
        """Compute by how much each window would be shorter if calls took less time: shape (windows,)."""
        if self._is_empty:
            return np.zeros(0)
        saved_ns, gains = self._most_ns(saved_ns), np.zeros(len(self._arrival))
        # Tasks leave a meeting inside a window earlier if all enter it so, or the one they wait for.
        for arrival in (self._cells.arrival_ns, self._arrival):
            saved = np.minimum(saved_ns, np.maximum(arrival, 0))
            after = np.where(self._cells.present, arrival - saved, -1).max(axis=1)
            gains = np.maximum(gains, (arrival.max(axis=1) - after) * 1e-9)
        return gains

    def likely_s(self, saved_ns: np.ndarray) -> float:
        """Compute by how much the run would be shorter."""
        return float(self.gains_s(saved_ns).sum())

    def most_s(self, time_ns: np.ndarray) -> float:
        """Add up over the windows the largest sum of a task.

        It is what calls can cost at most: the calls of one task slow down those of others, so that the change
        of the last arrival alone is not a bound.
        """
        if self._is_empty:
            return 0.0
        most = np.minimum(1e-9 * self._most_ns(time_ns).max(axis=1), self._cells.length_s)
        return float(most.sum())

    def interval_s(
        self, low_ns: np.ndarray, saved_ns: np.ndarray, high_ns: np.ndarray
    ) -> tuple[float, float]:
        """Compute the interval of the gain, from bounds of the time saved and the spread over windows.

        Windows have different lengths by design, and longer ones gain more. So the error is that of the ratio
        of gain to length, of which each window is one observation (the ratio estimator of sampling theory).
        """
        gains = self.gains_s(saved_ns)
        middle, active = float(gains.sum()), gains > 0
        length, number = self._cells.length_s[active], int(active.sum())
        left = gains[active] - middle / max(float(length.sum()), 1e-12) * length
        error = NORMAL_90 * float((left**2).sum() * number / max(number - 1, 1)) ** 0.5
        least = max(error, A_TENTH * middle)
        low = middle - float(np.hypot(middle - min(self.likely_s(low_ns), middle), least))
        highest = np.maximum(self.gains_s(high_ns), gains)
        high = middle + float(np.hypot(highest.sum() - middle, least))
        return max(low, 0.0), high


class OfSums(WithMeetings):
    """The model of time of a run of sums: the tasks wait for the one with most I/O, as far as is known."""

    waiting_s = late_outside = None

    def __init__(self, cells: Cells, rows: dict[str, np.ndarray], ranks: np.ndarray, meet: bool) -> None:
        super().__init__(cells, rows, ranks, np.ones(1, bool), None)
        self.shows_waiting = meet

    def is_last_by_habit(self, rank: int) -> bool:
        """Tell nothing: no phases show it."""
        return False

    def interval_s(
        self, low_ns: np.ndarray, saved_ns: np.ndarray, high_ns: np.ndarray
    ) -> tuple[float, float]:
        """Every task saves the least, whichever comes last; and none saves more than the most."""
        low_s, high_s = (1e-9 * self._most_ns(each) for each in (low_ns, high_ns))
        likely_s = self.likely_s(saved_ns)
        most_s = max(float(high_s.max(initial=0.0)), (1 + A_TENTH) * likely_s)
        return min(float(low_s.min(initial=np.inf)), (1 - A_TENTH) * likely_s), most_s
