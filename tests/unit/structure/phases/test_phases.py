"""Phases are those of programs that are known, with their barriers recorded and without."""

import numpy as np
import pytest
from simulated import NUMBERS, Program, ior_like

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.regions import RegionTable
from ensembles.structure.phases.detect import find_phases, phase_index

IO = [NUMBERS["pread"], NUMBERS["pwrite"]]


def io_of(events, *phases):
    """What is said of reads and writes."""
    mine = np.isin(events.call, IO)
    return [phase[mine] for phase in phases]


def assert_phases(events, truth, rule, **how):
    found = find_phases(events, **how)
    assert found.rule == rule
    np.testing.assert_array_equal(*io_of(events, found.phase_index(events), truth))
    assert found.count == len(np.unique(io_of(events, truth)[0]))
    return found


@pytest.mark.parametrize("ranks", [1, 2, 3, 16, 200])
@pytest.mark.parametrize("calls", [1, 5])
def test_barriers_part_phases(ranks, calls):
    events, truth = ior_like(ranks, 100 + ranks, calls=calls, recorded=True)
    found = assert_phases(events, truth, "barriers")
    assert found.confidence == 1
    # A barrier belongs to the phase that it ends.
    np.testing.assert_array_equal(found.phase_index(events), truth)


@pytest.mark.parametrize("ranks", [2, 4, 16, 200])
@pytest.mark.parametrize("calls", [1, 5])
@pytest.mark.parametrize("seed", range(5))
def test_phases_are_found_where_no_barrier_was_recorded(ranks, calls, seed):
    events, truth = ior_like(ranks, 1000 * seed + ranks, calls=calls)
    found = assert_phases(events, truth, "steps")
    assert found.confidence == 1


def test_phase_of_is_the_phase_of_each_event_in_whatever_order():
    events, truth = ior_like(8, 5)
    shuffled = np.random.default_rng(5).permutation(len(events))
    np.testing.assert_array_equal(phase_index(events[shuffled]), truth[shuffled])


def test_barriers_of_parts_of_the_ranks_end_no_phase():
    program = Program(24, 7)
    halves = np.arange(12), np.arange(12, 24)
    for _ in range(5):
        for calls, half in zip((2, 3), halves, strict=True):
            for _ in range(calls):  # the halves wait for themselves, and not equally often
                program.io("pwrite", 2, half)
                program.meet(who=half, ends_phase=False)
        program.io("pread", 1)
        program.meet()
    events, truth = program.recorded()
    assert_phases(events, truth, "barriers")


def test_tasks_that_meet_inside_a_call_end_no_phase():
    """As in HDF5, which sums up in the middle of a write; the same calls outside are barriers."""
    program = Program(4, 3)
    for _ in range(5):
        program.io("pwrite", 2)
        program.meet("MPI_Allreduce", size=8, ends_phase=False)
        program.io("pwrite", 2)
        program.meet()
    events, truth = program.recorded()
    assert find_phases(events).count == 10
    events.depth[events.call == NUMBERS["MPI_Allreduce"]] = 1
    assert_phases(events, truth, "barriers")


def test_what_tasks_do_in_a_meeting_is_no_part_of_the_step_after_it():
    program = Program(4, 3)
    program.io("pwrite", 2)
    program.call("MPI_Barrier", np.full(4, 10**9), size=0)
    program.meet()
    program.io("pwrite", 2)
    program.meet()
    step = find_phases(program.recorded()[0]).steps_without_io()
    assert step["steps"] == 1
    assert step["time_s"] < 0.4


def test_rows_of_ranks_that_sum_up_equally_often_end_no_phase():
    program = Program(16, 8)
    for _ in range(4):
        for _ in range(3):
            for row in range(4):
                program.io("pwrite", 1, np.arange(4) + 4 * row, spread=1.0)
                program.meet("MPI_Allreduce", np.arange(4) + 4 * row, size=8, ends_phase=False)
        program.meet()
    events, truth = program.recorded()
    assert_phases(events, truth, "barriers")


@pytest.mark.parametrize("lost", [False, True])
def test_a_rank_that_leaves_a_barrier_late_makes_no_phase_of_its_own(lost):
    program = Program(12, 9)
    slow = np.zeros(12, np.int64)
    slow[5] = 40_000_000  # its core is taken: it leaves when the others have long come to the next barrier
    for _ in range(6):
        program.io("pwrite", 2, spread=0.2)
        program.now += 500
        leave = program.now.max() + 1000 + slow
        program.call("MPI_Barrier", leave - program.now, size=0)
        program.phase += 1
    events, truth = program.recorded()
    if lost:  # so that the n-th calls of all do not belong together
        kept = (events.call != NUMBERS["MPI_Barrier"]) | (events.rank % 2 == 0) | (truth != 1)
        events, truth = events[kept], np.maximum(truth[kept] - 1, 1)
    assert_phases(events, truth, "barriers")


def test_a_few_ranks_without_barriers_do_not_hide_those_of_the_others():
    events, truth = ior_like(40, 10, recorded=True)
    lost = (events.rank == 17) & (events.call == NUMBERS["MPI_Barrier"]) & (truth > 3)
    assert_phases(events[~lost], truth[~lost], "barriers")


def test_barriers_of_few_ranks_alone_are_not_believed():
    events, truth = ior_like(16, 11, recorded=True)
    kept = (events.call != NUMBERS["MPI_Barrier"]) | (events.rank < 8)
    assert_phases(events[kept], truth[kept], "steps")


def test_clocks_that_disagree_a_little_are_allowed_for():
    program = Program(8, 12)
    for _ in range(5):
        program.io("pwrite", 1)
        program.meet(late_ns=1000)
        program.compute(50_000)
    events, truth = program.recorded()
    ahead = np.where(events.rank < 4, 0, 20_000)
    shifted = Events(events.columns | {"start": events.start + ahead}, events.calls, events.files)
    assert_phases(shifted, truth, "barriers", clock_error_ns=20_000)


def test_the_beginning_and_the_end_of_mpi_are_no_barriers_between_phases():
    program = Program(8, 13)
    program.meet("MPI_Init", ends_phase=False)
    for _ in range(4):
        program.io("pwrite", 1)
        program.meet(recorded=False)
    program.meet("MPI_Finalize", ends_phase=False)
    events, truth = program.recorded()
    assert_phases(events, truth, "steps")


def test_collective_calls_that_need_not_wait_are_no_barriers():
    program = Program(8, 14)
    for _ in range(4):
        program.io("pwrite", 2)
        program.meet("MPI_Bcast")
    events, truth = program.recorded()
    assert_phases(events, truth, "steps")


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("recorded", [True, False])
def test_ranks_that_skip_a_phase(recorded, seed):
    program = Program(32, 20 + seed)
    for number in range(8):
        who = np.setdiff1d(np.arange(32), program.rng.integers(0, 32, 2))
        if number == 4:
            who = np.arange(0, 32, 2)
        program.io("pwrite", 3, who)
        program.meet(recorded=recorded)
    events, truth = program.recorded()
    assert_phases(events, truth, "barriers" if recorded else "steps")


@pytest.mark.parametrize("ranks", [4, 8, 64])
def test_a_rank_that_writes_headers_between_phases(ranks):
    program = Program(ranks, 30)
    for _ in range(6):
        program.io("pwrite", 2, [0], size=512, typical_ns=10_000)
        program.io("pwrite", 1)
        program.meet(recorded=False)
    events, truth = program.recorded()
    found = find_phases(events)
    assert found.rule == "steps"
    # Nothing tells whether the header is a separate phase or the beginning of the next.
    of_data = (events.call == NUMBERS["pwrite"]) & (events.requested > 512)
    phase = found.phase_index(events)
    assert (np.diff(phase[of_data & (events.rank == 1)]) > 0).all()
    for number in np.unique(truth):
        assert len(np.unique(phase[of_data & (truth == number)])) == 1


def test_files_do_not_matter():
    program = Program(16, 31)
    for number in range(6):
        program.io("pwrite", 2, file=1 + number % 2)
        program.meet(recorded=False)
    assert_phases(*program.recorded(), "steps")


@pytest.mark.parametrize("seed", range(5))
def test_a_straggler_without_barrier_may_reach_into_the_next_phase(seed):
    program = Program(64, 40 + seed)
    for _ in range(6):
        begin = program.now.max()
        program.now = np.maximum(program.now, begin + program.rng.integers(0, 100_000, 64))
        late = program.rng.integers(0, 64, 2)
        duration = 5_000_000 * program.rng.lognormal(0, 0.2, 64)
        duration[late] *= 5
        own = program.now.copy()
        program.call("pwrite", duration)
        program.phase += 1
        # The others go on when all but the stragglers are there.
        on_time = np.setdiff1d(np.arange(64), late)
        program.now[on_time] = program.now[on_time].max() + 1000
        assert (program.now[late] > program.now[on_time].max()).all()
        program.now[late] = np.maximum(own[late] + duration[late].astype(int), program.now[late])
        begin = program.now[on_time].max()
        program.now[on_time] = begin
        program.call("pwrite", 30_000_000 * program.rng.lognormal(0, 0.02, 64))
        program.phase += 1
    assert_phases(*program.recorded(), "steps")


def test_one_irregular_phase_does_not_hide_the_others():
    program = Program(16, 50)
    for number in range(8):
        if number == 3:
            for rank in range(16):
                program.io("pwrite", 1 + rank % 5, [rank])
        else:
            program.io("pwrite", 2)
        program.meet(recorded=False)
    assert_phases(*program.recorded(), "steps")


def test_one_rank_has_phases_where_wide_gaps_stand_out():
    program = Program(1, 60)
    for _ in range(5):
        program.io("pwrite", 40)
        program.compute(200_000_000, 0.3)
        program.phase += 1
    found = assert_phases(*program.recorded(), "gaps")
    assert found.confidence == 0
    assert "low confidence" in found.sentence


def test_ranks_that_never_wait_for_each_other_have_no_phases():
    program = Program(12, 61)
    for _ in range(60):
        program.compute(1_000_000, 1.0)
        program.io("pwrite", 1)
    events, _ = program.recorded()
    found = find_phases(events)
    assert (found.rule, found.count) == ("none", 1)
    assert set(found.phase_index(events)) == {1}


def test_that_ranks_work_at_different_times_makes_no_phases():
    program = Program(8, 62)
    for rank in range(8):
        program.now[rank] = (rank + 1) * 50_000_000
        program.io("pwrite", 10 + rank, [rank], typical_ns=1_000)
    found = find_phases(program.recorded()[0])
    assert (found.rule, found.count) == ("none", 1)


def test_wide_gaps_part_phases_of_ranks_that_are_not_in_step():
    program = Program(8, 63)
    for _ in range(6):
        for rank in range(8):
            program.io("pwrite", int(program.rng.integers(5, 30)), [rank])
        program.compute(500_000_000)
        program.now = np.full(8, program.now.max())
        program.phase += 1
    assert_phases(*program.recorded(), "gaps")


def test_names_of_the_program_come_first():
    program = Program(6, 70)
    rows = []
    for name in ("read in", "solve", "solve", "write out"):
        begins = program.now.copy()
        program.io("pwrite", 3)
        rows += [(rank, name, begins[rank], program.now[rank]) for rank in range(6)]
        program.meet()
        program.io("pread", 1, phase=-1, who=[2])
    names = ("read in", "solve", "write out")
    rank, name, start, end = zip(*rows, strict=True)
    start, end = np.array(start), np.array(end)
    regions = RegionTable(
        {
            "rank": rank,
            "thread": np.zeros(len(rank)),
            "kind": np.zeros(len(rank)),
            "name": [names.index(text) for text in name],
            "start": start,
            "duration": end - start,
            "ended": np.ones(len(rank)),
        },
        names,
    )
    events, truth = program.recorded()
    found = find_phases(events, regions)
    assert (found.rule, found.count) == ("named", 4)
    assert found.names == ("read in", "solve", "solve", "write out")
    np.testing.assert_array_equal(*io_of(events, found.phase_index(events), truth))
    assert find_phases(events, regions, rule="barriers").rule == "barriers"
    assert find_phases(events, RegionTable.empty()).rule == "barriers"


def test_a_rule_that_has_nothing_to_stand_on_is_refused():
    events, _ = ior_like(4, 71)
    with pytest.raises(EnsioError, match="record the layer mpisync"):
        find_phases(events, rule="barriers")
    with pytest.raises(EnsioError, match="named no phases"):
        find_phases(events, rule="named")


def test_runs_without_io_have_no_phases():
    program = Program(4, 72)
    program.meet()
    events, _ = program.recorded()
    for some in (events, Events.empty(events.calls)):
        found = find_phases(some)
        assert (found.rule, found.count) == ("none", 0)
        assert (found.phase_index(some) == -1).all()
