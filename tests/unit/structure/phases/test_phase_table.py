"""What phases add up to."""

import itertools

import numpy as np
import pytest
from simulated import NUMBERS, Program, ior_like

from ensembles.model.events import Events
from ensembles.structure.phases.detect import find_phases
from ensembles.structure.phases.table import PhaseTable


def table_of(events, **how):
    table = PhaseTable(find_phases(events, **how))
    table.add(events)
    return table


@pytest.mark.parametrize("recorded", [True, False])
def test_totals_are_those_of_the_calls_of_each_phase(recorded):
    events, truth = ior_like(24, 3, calls=4, recorded=recorded)
    totals = table_of(events).totals()
    assert [entry.phase for entry in totals] == list(range(1, 7))
    io = events.call != NUMBERS["MPI_Barrier"]
    for entry in totals:
        mine = events[io & (truth == entry.phase)]
        assert (entry.tasks, entry.calls) == (24, 96)
        read = 96 << 20 if entry.phase > 3 else 0
        assert (entry.bytes_read, entry.bytes_written) == (read, (96 << 20) - read)
        assert entry.start_s == pytest.approx(mine.start.min() / 1e9, abs=1e-12)
        assert entry.end_s == pytest.approx(mine.end.max() / 1e9, abs=1e-12)
        assert entry.time_s == pytest.approx(entry.end_s - entry.start_s)
        own_end = np.array([mine.end[mine.rank == rank].max() for rank in range(24)])
        assert entry.slowest_task == np.argmax(own_end)
        assert entry.lost_s == pytest.approx((own_end.max() - own_end).sum() / 1e9)
        assert entry.lost_share == pytest.approx(entry.lost_s / (24 * entry.time_s))
        last = np.argmax(mine.end)
        assert entry.last_call.start_s == pytest.approx(mine.start[last] / 1e9)
        assert entry.last_call.duration_s == pytest.approx(mine.duration[last] / 1e9)
        assert (entry.last_call.call, entry.last_call.layer) == (mine.calls[mine.call[last]].name, "posix")
        assert entry.last_call.file == "/scratch/a"


def test_chunks_in_any_order_give_the_same_totals():
    events, _ = ior_like(12, 4, calls=3, recorded=True)
    phases = find_phases(events)
    whole = PhaseTable(phases)
    whole.add(events)
    random = np.random.default_rng(4)
    shuffled = events[random.permutation(len(events))]
    parts = PhaseTable(phases)
    for low, high in itertools.pairwise([0, *np.sort(random.integers(0, len(events), 7)), len(events)]):
        parts.add(shuffled[low:high])
    assert parts.totals() == whole.totals()


def test_a_byte_counts_once_and_an_inner_call_does_not_end_a_task():
    program = Program(4, 5)
    program.call("pwrite", 1_000_000, after=False)
    program.call("pwrite", 500_000)
    program.now += 500_000
    program.phase += 1
    events, _ = program.recorded()
    depth = np.tile([0, 1], 4)
    nested = Events(events.columns | {"depth": depth, "carried": depth * 3}, events.calls, events.files)
    (entry,) = table_of(nested).totals()
    assert (entry.calls, entry.bytes_written) == (8, 4 << 20)
    assert entry.last_call.duration_s == 0.001


def test_tasks_that_skip_a_phase_lose_no_time_in_it():
    program = Program(3, 6)
    program.call("pwrite", [10_000_000, 20_000_000, 30_000_000])
    program.meet()
    program.call("pwrite", [5_000_000, 15_000_000], who=[0, 2])
    program.meet()
    first, second = table_of(program.recorded()[0]).totals()
    assert (first.tasks, second.tasks) == (3, 2)
    assert second.slowest_task == 2
    assert second.lost_s < 0.0101


def test_no_calls_no_totals():
    events, _ = ior_like(2, 7)
    assert PhaseTable(find_phases(events)).totals() == []
