"""Simulated programs: their calls are those of the plan, and wait for each other where real ones would."""

from pathlib import Path

import numpy as np
import pytest
from places import BUILD
from simulated_plans import BOX, MIB, HandmadePlan, called, covered, every_task, healthy, simulated

from ensembles.model.errors import EnsioError
from ensembles.model.holds import Holds
from ensembles.summaries.cells import CENTRAL
from ensembles.summaries.ranktable import COLUMNS as RANK_COLUMNS
from ensembles.workloads.simulation.models import Model

MS = 10**6


@pytest.fixture(autouse=True)
def _built(monkeypatch):
    if not (BUILD / "bin" / "ensio-simulate").exists():
        pytest.fail(f"ensio-simulate is not built in {BUILD}; run ./dev setup")
    monkeypatch.setenv("PATH", f"{BUILD / 'bin'}:/usr/bin:/bin")


def checkpoint(tasks, calls=3, size=MIB):
    """Every task opens the one file, writes its own blocks, reads them back and closes it."""

    def rows(rank):
        places = [(rank * calls + number) * size for number in range(calls)]
        return [
            (0, "posix.open", 0, 0, 0),
            *((1, "posix.pwrite", 0, place, size) for place in places),
            (2, "posix.fsync", 0, 0, 0),
            *((3, "posix.pread", 0, place, size) for place in places),
            (4, "posix.close", 0, 0, 0),
        ]

    return HandmadePlan(every_task(tasks, rows), steps=5)


def everything(tasks):
    """A program that makes calls of every layer, nested ones among them."""

    def rows(rank):
        right, left = (rank + 1) % tasks, (rank - 1) % tasks
        ring = [(2, "mpi.exchange", -1, right, 5000), (2, "mpi.exchange", -1, left, -5000)]
        return [
            (0, "mpiio.open", 0, 0, 0),
            (0, "mpiio.write_at_all", 0, rank * MIB, MIB),
            (0, "mpiio.write_at", 0, rank * MIB, 4096, 4, 8192),
            (0, "mpiio.read_at_all", 0, rank * 4096, 65536, 16, 4096 * tasks),
            (0, "mpiio.sync", 0, 0, 0),
            (0, "mpiio.close", 0, 0, 0),
            (1, "hdf5.create", 1, 0, 0),
            (1, "hdf5.dataset_create", 1, 0, tasks * MIB),
            (1, "hdf5.write_all", 1, rank * MIB, MIB),
            (1, "hdf5.metadata", 1, 0, 16),
            (1, "hdf5.read", 1, rank * MIB, MIB),
            (1, "hdf5.flush", 1, 0, 0),
            (1, "hdf5.dataset_close", 1, 0, 0),
            (1, "hdf5.close", 1, 0, 0),
            *ring,
            (2, "mpi.allgather", -1, 0, 16),
            (2, "mpi.allreduce", -1, 0, 16),
            (2, "task.compute", -1, 0, 2 * MS),
            (3, "stdio.fopen", 2 + rank, 0, 0),
            *((3, "stdio.fwrite", 2 + rank, 100 * number, 100) for number in range(60)),
            (3, "stdio.fseek", 2 + rank, 0, 0),
            *((3, "stdio.fread", 2 + rank, 100 * number, 100) for number in range(60)),
            (3, "stdio.fclose", 2 + rank, 0, 0),
            (4, "posix.stat", 0, 0, 0),
            (4, "posix.unlink", 0, 0, 0),
        ]

    files = ["shared", "set.h5", *(f"own.{rank}" for rank in range(tasks))]
    return HandmadePlan(every_task(tasks, rows), files, steps=5)


def test_run_has_exactly_the_calls_of_the_plan(tmp_path):
    plan = checkpoint(tasks=6)
    run, result = simulated(tmp_path, plan)
    assert run.tasks == 6
    assert run.mode == "trace"
    assert run.info.has(Holds.ALL_CALLS)
    assert [process.host for process in run.info.processes] == [f"node{rank // 2:05}" for rank in range(6)]
    assert run.files == ["", "/simulated/data"]
    for name in ("pwrite", "pread"):
        events = called(run, name)
        wanted = [row for rows in plan.rows for row in rows if row[1] == f"posix.{name}"]
        assert events.rank.tolist() == [rank for rank in range(6) for _ in range(3)]
        assert events.offset.tolist() == [row[3] for row in wanted]
        assert events.moved.tolist() == events.requested.tolist() == [row[4] for row in wanted]
    assert result.events == len(run.events) == 6 * (3 + 3 + 3) + 6 * 5  # and a barrier a step
    assert (run.events.duration > 0).all()


def test_no_task_goes_on_before_the_last_one_came(tmp_path):
    run, _ = simulated(tmp_path, checkpoint(tasks=6))
    barriers = called(run, "MPI_Barrier")
    entries = barriers.start.reshape(6, 5)
    exits = barriers.end.reshape(6, 5)
    assert (entries.max(axis=0) < exits.min(axis=0)).all()
    phase = run.events.phase
    for number in range(1, 5):
        assert run.events.end[phase == number].max() <= run.events.start[phase == number + 1].min()
    assert run.phases.rule == "named"
    assert [run.phases.names[number] for number in range(5)] == [f"step{number}" for number in range(5)]


def test_a_call_inside_another_lies_within_it_and_counts_once(tmp_path):
    tasks = 6
    run, _ = simulated(tmp_path, everything(tasks))
    events = run.events
    for rank in range(tasks):
        own = events[events.rank == rank]
        for inner in np.flatnonzero(own.depth).tolist():
            within = (own.start < own.start[inner]) & (own.end >= own.end[inner])
            around = within & (own.depth == own.depth[inner] - 1)
            assert np.count_nonzero(around) == 1
    written = run.summary.cells["outer_moved"][
        np.isin(run.summary.cells["call"], [n for n, call in enumerate(run.calls) if call.op == "write"])
    ].sum()
    metadata = called(run, "MPI_File_write_at")
    library = metadata.moved[(metadata.depth == 1) & (metadata.carried == 0)].sum()
    planned = tasks * (MIB + 4096 + MIB + 16 + 6000)
    assert written == planned + library


def test_aggregators_write_every_byte_of_a_collective_call_once(tmp_path):
    tasks, size = 8, 300_000

    def rows(rank):
        return [
            (0, "mpiio.open", 0, 0, 0),
            (0, "mpiio.write_at_all", 0, (tasks - 1 - rank) * size + 77, size),
            (0, "mpiio.close", 0, 0, 0),
        ]

    plan = HandmadePlan(every_task(tasks, rows), hints={"cb_nodes": 3, "cb_buffer_size": 65536})
    run, _ = simulated(tmp_path, plan)
    inner, outer = called(run, "pwrite"), called(run, "MPI_File_write_at_all")
    assert covered(inner.offset, inner.moved) == [(77, 77 + tasks * size)]
    assert sorted(set(inner.rank.tolist())) == [0, 2, 4]  # on three of the four nodes
    assert inner.moved.max() == 65536
    assert len(set(outer.end.tolist())) == 1
    assert outer.moved.tolist() == [size] * tasks


def test_pieces_that_fill_a_range_together_are_written_without_holes(tmp_path):
    tasks, piece = 4, 1000

    def rows(rank):
        return [
            (0, "mpiio.open", 0, 0, 0),
            (0, "mpiio.write_at_all", 0, rank * piece, 5 * piece, 5, tasks * piece),
            (0, "mpiio.write_at", 0, 10**6 + rank * piece, 3 * piece, 3, tasks * piece),
        ]

    run, _ = simulated(tmp_path, HandmadePlan(every_task(tasks, rows)))
    inner = called(run, "pwrite")
    together = inner.offset < 10**6
    assert covered(inner.offset[together], inner.moved[together]) == [(0, 5 * tasks * piece)]
    assert set(inner.moved[~together].tolist()) == {piece}
    assert covered(inner.offset[~together], inner.moved[~together]) == [(10**6, 10**6 + 3 * tasks * piece)]
    assert not len(called(run, "pread"))


def test_holes_in_a_collective_write_are_read_before(tmp_path):
    def rows(rank):
        return [(0, "mpiio.open", 0, 0, 0), (0, "mpiio.write_at_all", 0, rank * 1000, 2000, 4, 4000)]

    run, _ = simulated(tmp_path, HandmadePlan(every_task(2, rows)))
    (read,), (write,) = called(run, "pread").moved.tolist(), called(run, "pwrite").moved.tolist()
    assert read == write == 3 * 4000 + 1000 + 500


def test_boxes_of_a_call_are_written_as_they_lie_in_the_file(tmp_path):
    """Two tasks with opposite corners of a square of 2 x 2 boxes, each of 3 rows of 10 bytes."""

    def rows(rank):
        first, second = 10 * rank, 60 + 10 * (1 - rank)
        return [
            (0, "mpiio.open", 0, 0, 0),
            (0, "mpiio.write_at_all", 0, first, 30, 3, 20),
            (0, BOX, 0, second, 30, 3, 20),
            (0, "mpiio.write_at", 0, 1000 + first, 30, 3, 20),
            (0, BOX, 0, 1000 + second, 30, 3, 20),
        ]

    run, _ = simulated(tmp_path, HandmadePlan(every_task(2, rows)))
    together, alone = called(run, "MPI_File_write_at_all"), called(run, "MPI_File_write_at")
    assert sorted(together.offset.tolist()) == [0, 10]
    assert together.moved.tolist() == alone.moved.tolist() == [60, 60]
    inner = called(run, "pwrite")
    first = inner.offset < 1000
    assert covered(inner.offset[first], inner.moved[first]) == [(0, 120)]
    assert first.sum() == 1  # without holes: one write, and nothing is read before
    assert not len(called(run, "pread"))
    for rank in range(2):
        own = inner.offset[~first & (inner.rank == rank)]
        expected = [1000 + 20 * row + 10 * (rank if row < 3 else 1 - rank) for row in range(6)]
        assert own.tolist() == expected
    assert set(inner.moved[~first].tolist()) == {10}


def test_holes_between_boxes_are_read_before(tmp_path):
    def rows(rank):
        return [
            (0, "mpiio.open", 0, 0, 0),
            (0, "mpiio.write_at_all", 0, 100 * rank, 50, 5, 20),
            (0, BOX, 0, 500 + 100 * rank, 50, 5, 20),
        ]

    run, _ = simulated(tmp_path, HandmadePlan(every_task(2, rows)))
    assert called(run, "pread").moved.tolist() == called(run, "pwrite").moved.tolist()
    assert covered(called(run, "pwrite").offset, called(run, "pwrite").moved) == [
        (0, 90),
        (100, 190),
        (500, 590),
        (600, 690),
    ]


@pytest.mark.parametrize(
    ("apart", "receivers"),
    [(False, 2), (True, 8)],  # each aggregator has the ranges of two tasks, or pieces of all
)
def test_messages_of_a_collective_call_are_those_of_romio(tmp_path, apart, receivers):
    """8 tasks on 4 nodes, an aggregator on each, one round: counted in the source of ROMIO."""
    tasks, piece, pieces = 8, 1000, 16

    def rows(rank):
        range_of_task = (rank * piece, pieces * piece, pieces, tasks * piece)
        return [
            (0, "mpiio.open", 0, 0, 0),
            (
                0,
                "mpiio.write_at_all",
                0,
                *(range_of_task if apart else (rank * pieces * piece, pieces * piece)),
            ),
        ]

    def duration_us(**parameters):
        folder = tmp_path / "-".join(map(str, parameters.values()))
        folder.mkdir()
        parameters = {"mpi_latency_us": 0, "mpi_message_us": 0, **parameters}
        run, _ = simulated(folder, HandmadePlan(every_task(tasks, rows)), healthy(**parameters))
        return called(run, "MPI_File_write_at_all").duration[0] / 1000

    without = duration_us(mpi_latency_us=0)
    # Two messages with its pieces from each task to each of its aggregators, and one with data.
    assert duration_us(mpi_message_us=50) - without == pytest.approx(50 * 3 * receivers, abs=0.1)
    # Two allgathers, two alltoalls, an allreduce and a barrier of 3 levels, and two exchanges.
    assert duration_us(mpi_latency_us=100) - without == pytest.approx(100 * (6 * 3 + 2), abs=0.1)


def test_a_file_that_all_open_and_one_writes_has_no_lock_conflict(tmp_path):
    """Locks come with reads and writes: the end inside a stripe stays in the cache of the only writer."""

    def rows(rank, writers):
        return [(0, "posix.open", 0, 0, 0), (0, "mpi.barrier", -1, 0, 0)] + [
            (0, "posix.pwrite", 0, rank * 100_000 + k * 4 * MIB, 100_000) for k in range(4) if rank < writers
        ]

    model = Model("healthy", Path("healthy.toml"), {}, {"misaligned-requests": 1})
    for writers, slow in ((1, 0), (8, 8 * 4 - 2)):  # the first writes of the first node are before the others
        folder = tmp_path / str(writers)
        folder.mkdir()
        plan = HandmadePlan(every_task(8, lambda rank, writers=writers: rows(rank, writers)))
        run, _ = simulated(folder, plan, model)
        assert (called(run, "pwrite").duration > 1_000_000).sum() == slow


def test_a_message_arrives_after_it_was_sent(tmp_path):
    sender = [(0, "task.compute", -1, 0, 7 * MS), (0, "mpi.exchange", -1, 1, 1000)]
    receiver = [(0, "mpi.exchange", -1, 0, -1000)]
    run, _ = simulated(tmp_path, HandmadePlan([sender, receiver]))
    waits = called(run, "MPI_Waitall")
    assert waits.rank.tolist() == [0, 1]
    assert waits.start.tolist() == [7 * MS, 0]
    assert (waits.end > 7 * MS).all()


def test_a_stream_makes_few_calls_of_many(tmp_path):
    writes = [(0, "stdio.fwrite", 0, 100 * number, 100) for number in range(1000)]
    plan = HandmadePlan([[(0, "stdio.fopen", 0, 0, 0), *writes, (0, "stdio.fclose", 0, 0, 0)]])
    run, result = simulated(tmp_path, plan)
    assert called(run, "fwrite").moved.sum() == 100_000
    assert result.model_calls == 2 + -(-100_000 // 4096)  # a buffer of 4 KiB, and what is left at the end


def test_kept_back_metadata_are_one_write(tmp_path):
    def rows(rank):
        metadata = [(0, "hdf5.metadata", 0, 0, 64)] * 20
        return [(0, "hdf5.create", 0, 0, 0), *metadata, (0, "hdf5.close", 0, 0, 0)]

    hints = {"hdf5.defer_metadata": 1, "hdf5.metadata_block_size": MIB}
    at_once, _ = simulated(tmp_path, HandmadePlan(every_task(4, rows)))
    kept, _ = simulated(tmp_path, HandmadePlan(every_task(4, rows), hints=hints))
    assert len(called(at_once, "pwrite")) == 21
    assert called(kept, "pwrite").moved.tolist() == [MIB]
    assert set(called(at_once, "pwrite").rank.tolist()) == {0}


@pytest.mark.parametrize("mode", ["trace", "profile"])
def test_the_same_seed_gives_the_same_run(tmp_path, mode):
    def columns(seed):
        run, _ = simulated(tmp_path, everything(5), mode=mode, seed=seed)
        arrays = run.summary.to_arrays() | run.reading.ranks.to_arrays()
        return {name: column.tobytes() for name, column in arrays.items()}

    first = columns(seed=3)
    assert columns(seed=3) == first
    assert columns(seed=4) != first


def test_profile_is_the_summary_of_the_trace(tmp_path):
    plan = everything(tasks=7)
    trace, _ = simulated(tmp_path, plan)
    profile, _ = simulated(tmp_path, plan, mode="profile")
    assert profile.mode == "profile"
    assert not profile.info.has(Holds.ALL_CALLS)
    assert not len(profile.events)
    expected, found = trace.summary, profile.summary
    assert found.calls == expected.calls
    assert found.count == len(trace.events)
    for name, column in expected.cells.items():
        if name in CENTRAL:
            power = 1 if name == "mean_ns" else int(name[1:])
            scale = expected.cells["count"] * expected.cells["max_ns"].astype(float) ** power
            assert (np.abs(found.cells[name] - column) <= 1e-9 * scale).all()
        else:
            np.testing.assert_array_equal(found.cells[name], column, name)
    for one, other in zip(found.histogram, expected.histogram, strict=True):
        np.testing.assert_array_equal(one, other)
    np.testing.assert_array_equal(found.longest[0], expected.longest[0])
    for name, column in expected.longest[1].columns.items():
        np.testing.assert_array_equal(found.longest[1].columns[name], column, name)
    for name in RANK_COLUMNS:
        np.testing.assert_array_equal(
            getattr(profile.reading.ranks, name), getattr(trace.reading.ranks, name), name
        )
    assert profile.regions.names == trace.regions.names
    np.testing.assert_array_equal(profile.regions.start, trace.regions.start)


def test_what_a_full_cache_does_not_take_waits_for_the_targets(tmp_path):
    """Bytes cannot go faster than all targets, nor than the nodes' links, together."""
    tasks, per_node, size = 8, 2, 64 * MIB

    def writes(rank):
        return [(0, "posix.open", 0, 0, 0), (0, "posix.pwrite", 0, rank * size, size)]

    rows = every_task(tasks, writes)
    model = healthy(cache_MiB=0, targets=4, target_MB_per_s=50, link_MB_per_s=1000)
    _, of_targets = simulated(tmp_path, HandmadePlan(rows, tasks_per_node=per_node), model)
    assert of_targets.span_s >= tasks * size / 200e6
    model = healthy(cache_MiB=0, targets=64, target_MB_per_s=1000, link_MB_per_s=20)
    _, of_links = simulated(tmp_path, HandmadePlan(rows, tasks_per_node=per_node), model)
    assert of_links.span_s >= per_node * size / 20e6


def test_a_task_exchanges_with_itself_without_the_network(tmp_path):
    def messages(size):
        return [[(0, "mpi.exchange", -1, 0, size), (0, "mpi.exchange", -1, 0, -size)], []]

    _, of_one_byte = simulated(tmp_path, HandmadePlan(messages(1)))
    _, of_many = simulated(tmp_path, HandmadePlan(messages(1 << 30)))
    assert of_many.span_s == of_one_byte.span_s < 0.01


def test_one_task_handles_the_messages_of_all_others_one_after_the_other(tmp_path):
    """The overhead of LogP: o for a sender, (tasks - 1) o for the one that receives from all."""
    senders = [[(0, "mpi.exchange", -1, 0, 8)] for _ in range(7)]
    receiver = [(0, "mpi.exchange", -1, task, -8) for task in range(1, 8)]
    plan = HandmadePlan([receiver, *senders])
    for overhead_us in (0, 100):
        folder = tmp_path / str(overhead_us)
        folder.mkdir()
        run, _ = simulated(folder, plan, healthy(mpi_message_us=overhead_us, mpi_latency_us=1))
        took_us = called(run, "MPI_Waitall").duration / 1000
        assert took_us[0] == pytest.approx(1 + 7 * overhead_us, abs=0.1)
        assert took_us[1:] == pytest.approx(np.full(7, 1 + overhead_us), abs=0.1)


@pytest.mark.parametrize(
    ("rows", "sentence"),
    [
        ([[(0, "mpi.allgather", -1, 0, 8)], []], "make different collective calls in step"),
        ([[(0, "mpi.barrier", -1, 0, 0)], []], "wait without end, in step 0"),
        ([[(0, "mpi.exchange", -1, 1, 8)], []], "wait without end, in step 0"),
        ([[(0, "mpi.exchange", -1, 0, 8)], []], "wait without end, in step 0"),
        ([[(0, "mpi.exchange", -1, 2, 8)], []], "exchanges with task 2, which does not exist"),
        ([[(0, "posix.write", 0, 0, 8), (0, BOX, 0, 8, 8)], []], "has a posix.write of several boxes"),
        ([[(0, "posix.aio_read", 0, 0, 8)], []], "names the call posix.aio_read, which this ensio-simulate"),
    ],
)
def test_a_plan_that_cannot_be_followed_is_told_in_one_sentence(tmp_path, rows, sentence):
    with pytest.raises(EnsioError, match=sentence) as raised:
        simulated(tmp_path, HandmadePlan(rows))
    assert "\n" not in str(raised.value)


def test_a_damaged_plan_is_refused(tmp_path):
    class Cut(HandmadePlan):
        def write(self, path, directory, seed):
            super().write(path, directory, seed)
            path.write_bytes(path.read_bytes()[:-8])

    with pytest.raises(EnsioError, match=r"is not a plan of this version of ensio \(its length\)"):
        simulated(tmp_path, Cut([[(0, "posix.open", 0, 0, 0)]]))
