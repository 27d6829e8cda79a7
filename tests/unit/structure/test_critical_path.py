"""The critical path goes through the task for which the others wait in each phase."""

import numpy as np
import pytest
from builders import make_events

from ensembles.model.events import Call
from ensembles.structure.phases.critical_path import CriticalIo
from ensembles.structure.phases.result import AnnotatedPhases, Phases

CALLS = (Call("write", "posix", "write"), Call("MPI_Barrier", "mpisync", "wait"))
MS = 1_000_000


def path_of(rows, cuts_ms, parts=1, named=None, tasks=0):
    """Rows of rank, start and duration in ms, call, depth, and perhaps thread."""
    rank, start, duration, call, depth, thread = np.array([(*row, 0)[:6] for row in rows]).T
    columns = {"rank": rank, "start": start * MS, "duration": duration * MS, "call": call, "depth": depth}
    columns["thread"] = thread
    events = make_events(columns, CALLS, order_by="end")
    cuts = np.array(cuts_ms, np.int64) * MS
    phases = named or Phases.between("barriers", 1.0, cuts, [events.start[events.call == 0]])
    whole = CriticalIo(phases, tasks=tasks)
    for ranks in np.array_split(np.unique(events.rank), parts):
        one = CriticalIo(phases)
        one.add(events[np.isin(events.rank, ranks)])
        whole.merge(one)
    return whole.path_s[0] if whole.path_s[0] == whole.path_s[1] else whole.path_s


@pytest.mark.parametrize("parts", [1, 2])
def test_io_of_the_slowest_task_of_each_phase(parts):
    rows = [(0, 0, 10, 0, 0), (0, 10, 30, 1, 0), (1, 0, 40, 0, 0)]  # rank 1 is slower: 40 ms
    rows += [(0, 60, 20, 0, 0), (0, 85, 5, 0, 0), (1, 60, 2, 0, 0), (1, 62, 28, 1, 0)]  # rank 0: 25 ms
    assert path_of(rows, [50], parts) == pytest.approx(0.065)


def test_a_phase_begins_after_the_end_of_the_one_before():
    """Rank 1 was in the second phase's close already, while rank 0 was still in the first phase."""
    rows = [(0, 0, 100, 0, 0), (1, 0, 50, 0, 0), (1, 55, 60, 0, 0), (0, 101, 5, 0, 0)]
    assert path_of(rows, [52]) == pytest.approx(0.115)


def test_inner_calls_after_a_barrier_inside_a_collective_call_do_not_count_twice():
    rows = [(0, 0, 100, 0, 0), (0, 60, 30, 0, 1), (1, 0, 99, 0, 0), (1, 60, 30, 0, 1)]
    assert path_of(rows, [50]) == pytest.approx(0.100)


def test_waiting_is_no_io():
    assert path_of([(0, 0, 10, 0, 0), (1, 0, 9, 1, 0)], []) == pytest.approx(0.010)


def test_threads_of_a_task_count_once_where_they_overlap():
    """As fio: threads write at the same time, and a second one then writes a few lines of a log."""
    rows = [(0, 0, 30, 0, 0), (0, 0, 30, 0, 0, 1), (0, 95, 2, 0, 0, 1), (1, 0, 20, 0, 0)]
    assert path_of(rows, []) == pytest.approx(0.062)
    assert path_of(rows[:2], []) == pytest.approx(0.030)


def test_a_task_that_returns_last_may_have_waited_inside_the_phase():
    """Rank 0 reads long, and the others wait for it in a barrier; rank 1 then closes a file a bit later."""
    rows = [(0, 0, 80, 0, 0), (0, 80, 1, 1, 0), (0, 81, 2, 0, 0)]
    rows += [(1, 0, 10, 0, 0), (1, 10, 71, 1, 0), (1, 81, 3, 0, 0)]
    assert path_of(rows, []) == pytest.approx(0.082)
    # The same in a barrier inside an I/O call, as HDF5 makes.
    rows = [(0, 0, 80, 0, 0), (0, 81, 2, 0, 0), (1, 0, 81, 0, 0), (1, 10, 70, 1, 1), (1, 81, 3, 0, 0)]
    assert path_of(rows, []) == pytest.approx(0.082)


def test_more_waits_than_are_held_leave_open_which_task_each_phase_waited_for(monkeypatch):
    monkeypatch.setattr("ensembles.summaries.held_calls.MOST_EXACT", 1)
    rows = [(0, 0, 80, 0, 0), (0, 80, 1, 1, 0), (1, 0, 10, 0, 0), (1, 10, 71, 1, 0), (1, 81, 3, 0, 0)]
    rows += [(0, 100, 7, 0, 0), (1, 100, 5, 0, 0)]
    assert path_of(rows, [95], tasks=2) == pytest.approx((0.087, 0.018))
    # A phase may have waited for a task without I/O in it, or in all of the run.
    assert path_of(rows[:-1], [95], tasks=2) == pytest.approx((0.087, 0.013))
    assert path_of(rows, [95], tasks=3) == pytest.approx((0.087, 0.0))


def test_io_outside_of_named_phases_is_on_the_path():
    """It lies before two phases, between them, and behind them."""
    begin, end = np.array([[40, 80], [60, 90]]) * MS
    named = Phases.from_annotated(AnnotatedPhases(("a", "b"), np.zeros(2, int), begin, end, np.arange(1, 3)))
    rows = [(0, 0, 30, 0, 0), (0, 40, 15, 0, 0), (0, 65, 10, 0, 0), (0, 80, 10, 0, 0), (0, 95, 5, 0, 0)]
    assert path_of(rows, [], named=named) == pytest.approx(0.070)
    assert path_of(rows[:4], [], named=named) == pytest.approx(0.065)
    assert path_of(rows[:1], [], named=named) == pytest.approx(0.030)
    assert path_of(rows[1:2], [], named=named) == pytest.approx(0.015)
