"""Overlapped I/O: posts, waits and flights of real programs, beside what the programs measured themselves."""

from __future__ import annotations

import signal
import subprocess

import numpy as np
import pytest
from commands_here import told
from compiling import build
from places import PATIENCE_S, PROGRAMS

import ensembles
from ensembles.cli.replay_program import ANY_TASKS
from ensembles.readers.native.spool import read_spool

TASKS, STEPS, BLOCK, WORK_S = 2, 8, 1 << 18, 0.02
FLAVOURS = {"ompio": ("openmpi", "ompio"), "romio": ("openmpi", "romio321"), "mpich": ("mpich", "")}
SLACK_S = 0.001
"""Between two clocks, over a run."""


def check_invariants(run, info):
    """No share of the time of threads above 1, no exclusive time below 0, hidden shares between 0 and 1."""
    assert 0 <= info["io_time_s"] <= info["span_s"] * info["threads"] * (1 + 1e-9)
    for part in (*info["layers"].values(), *info["calls"].values()):
        assert 0 <= part["exclusive_time_s"] <= part["time_s"]
    for part in info["non_blocking"].values():
        assert 0 <= part["hidden_s"] <= part["flight_s"]
        assert 0 <= part["hidden_share"] <= 1
    events = run.events
    assert np.all(events.flight >= -1)
    flies = events.flight >= 0
    assert np.all(events.duration[flies] <= events.flight[flies])
    assert np.all(events.request[flies] > 0)


def with_mpi(recorder, flavour, way, **environment):
    """Run the MPI program: its own times by task, the run, and what ``ensio info --json`` says."""
    mpi, io = FLAVOURS[flavour]
    program = recorder.folder / f"program-{mpi}"
    if not program.exists():
        build(program, f"mpicc.{mpi}", "-O1", "-w", PROGRAMS / "mpiio_overlap.c")
    choice = ["--mca", "io", io] if io else []
    command = [f"mpiexec.{mpi}", "-n", str(TASKS), *choice, program, recorder.folder / "data", way]
    done = subprocess.run(
        command,
        env=recorder.environment(**ANY_TASKS, **environment),
        check=True,
        timeout=PATIENCE_S,
        capture_output=True,
    )
    own = np.array([line.split() for line in done.stdout.decode().splitlines()], float)
    run, info = ensembles.open(recorder.run), told("info", recorder.run)
    check_invariants(run, info)
    return own, run, info


def seconds(events, rank):
    return float(events.duration[events.rank == rank].sum()) * 1e-9


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_post_and_wait_are_what_the_program_measured(preload, flavour):
    own, run, info = with_mpi(preload, flavour, "wait")
    posts, waits = run.select(call="MPI_File_iwrite_at"), run.select(call="MPI_Wait", layer="mpiio")
    assert len(posts) == len(waits) == TASKS * STEPS
    for rank, (posting, waiting, working) in enumerate(own):
        # The program's clock readings lie around those of the recorder.
        assert 0 < seconds(posts, rank) <= posting + SLACK_S
        assert seconds(waits, rank) <= waiting + SLACK_S
        flight_s = float(posts.flight[posts.rank == rank].sum()) * 1e-9
        assert working <= flight_s + SLACK_S
        assert flight_s <= posting + waiting + working + SLACK_S
    assert sorted(posts.request.tolist()) == sorted(waits.request.tolist())
    working_s = own[:, 2].sum()
    told = info["non_blocking"]["write"]
    assert told["requests"] == TASKS * STEPS
    assert working_s - SLACK_S <= told["hidden_s"] <= working_s + own[:, :2].sum()
    assert info["flight_s"] == told["flight_s"]
    assert info["hidden_share"] == told["hidden_share"]
    assert info["calls"]["MPI_Wait"]["layer"] == "mpiio"


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_work_that_hides_io_is_no_time_in_io(preload, flavour):
    own, _, info = with_mpi(preload, flavour, "several")
    outside_s = sum(info["calls"][name]["time_s"] for name in ("MPI_File_open", "MPI_File_close"))
    # Calls of the system outside of MPI-IO, by threads of MPI, are at most what the whole job had left.
    blocked_s = own[:, :2].sum()
    mpiio = info["layers"]["mpiio"]["time_s"]
    assert mpiio <= blocked_s + outside_s + SLACK_S
    assert info["calls"]["MPI_Waitall"]["count"] == TASKS * STEPS
    assert info["non_blocking"]["write"]["requests"] == 4 * TASKS * STEPS


@pytest.mark.parametrize("flavour", ["ompio", "mpich"])
def test_waits_for_messages_are_not_io(preload, flavour):
    _, run, info = with_mpi(preload, flavour, "messages")
    assert info["calls"]["MPI_Waitall"]["layer"] == "mpisync"
    assert not run.events.request.any()
    assert info["flight_s"] == 0
    assert info["hidden_share"] is None
    assert info["non_blocking"] == {}


@pytest.mark.parametrize("flavour", ["ompio", "mpich"])
def test_a_call_that_waits_for_io_and_messages_is_io(preload, flavour):
    own, run, _ = with_mpi(preload, flavour, "mixed")
    posts, waits = run.select(call="MPI_File_iwrite_at"), run.select(call="MPI_Waitsome", layer="mpiio")
    assert len(posts) == len(waits) == TASKS * STEPS
    for rank in range(TASKS):
        all_waits = run.select(call="MPI_Waitsome")
        assert seconds(all_waits, rank) <= own[rank, 1] + SLACK_S
        assert set(waits.request[waits.rank == rank]) == set(posts.request[posts.rank == rank])


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_split_collectives_have_separate_waits(preload, flavour):
    own, run, info = with_mpi(preload, flavour, "split")
    begins = run.select(call="MPI_File_write_at_all_begin")
    ends = run.select(call="MPI_File_write_at_all_end")
    assert len(begins) == len(ends) == TASKS * STEPS
    assert sorted(begins.request.tolist()) == sorted(ends.request.tolist())
    for rank in range(TASKS):
        assert seconds(begins, rank) <= own[rank, 0] + SLACK_S
        assert seconds(ends, rank) <= own[rank, 1] + SLACK_S
        assert np.all(begins.flight[begins.rank == rank] >= WORK_S * 1e9 * 0.9)
    assert info["bytes_written"] == TASKS * STEPS * BLOCK


@pytest.mark.parametrize("flavour", ["ompio", "mpich"])
def test_a_request_that_nobody_waits_for_has_no_known_flight(preload, flavour):
    _, run, info = with_mpi(preload, flavour, "free")
    posts = run.select(call="MPI_File_iwrite_at")
    assert len(posts) == TASKS * STEPS
    assert set(posts.flight.tolist()) == {-1}
    assert np.all(posts.request > 0)
    assert info["non_blocking"] == {}
    assert info["bytes_written"] == TASKS * STEPS * BLOCK


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_requests_inside_a_blocking_collective_take_no_time_from_it(preload, flavour):
    own, _, info = with_mpi(preload, flavour, "blocking")
    assert info["calls"]["MPI_File_write_at_all"]["time_s"] <= own[:, 0].sum() + SLACK_S
    assert info["non_blocking"] == {}  # the program posted nothing
    assert info["bytes_written"] == TASKS * STEPS * BLOCK // 2


@pytest.mark.parametrize("mode", ["profile", "tail"])
def test_modes_without_events_keep_the_sums(preload, mode):
    own, run, info = with_mpi(preload, "ompio", "wait", ENSIO_MODE=mode, ENSIO_JOBFILE="keep")
    told = info["non_blocking"]["write"]
    assert told["requests"] == TASKS * STEPS
    assert own[:, 2].sum() - SLACK_S <= told["hidden_s"] <= told["flight_s"]
    spools = [read_spool(str(path)) for path in preload.run.glob("*.spool")]
    assert spools
    assert all(spool.flights == [] for spool in spools)
    assert run.mode == mode


def lived(recorder, life, expected=4):
    finished = recorder.execute(recorder.build("aio_overlap"), recorder.folder, life)
    assert (finished.returncode, finished.stderr) == (expected, b"")
    run, info = ensembles.open(recorder.run), told("info", recorder.run)
    check_invariants(run, info)
    return finished.stdout.decode().split(), run, info


def test_suspend_is_a_wait(recorder):
    told, run, info = lived(recorder, "overlap")
    posting, waiting, working = map(float, told)
    posts, waits = run.select(call="aio_write"), run.select(call="aio_suspend")
    assert len(posts) == len(waits) == 8
    assert seconds(posts, 0) <= posting + SLACK_S
    assert seconds(waits, 0) <= waiting + SLACK_S
    assert info["non_blocking"]["write"]["hidden_s"] >= working - SLACK_S
    assert info["io_time_s"] <= posting + waiting + 0.05
    assert posts.request.tolist() == list(range(1, 9))
    assert waits.request.tolist() == list(range(1, 9))


def test_a_forked_child_has_no_requests_of_its_parent(recorder):
    _, run, info = lived(recorder, "fork")
    posts = run.select(call="aio_write")
    assert posts.request.tolist() == [1, 2, 3, 4]
    written = run.select(call="pwrite")
    assert (len(written), set(written.request.tolist()), set(written.flight.tolist())) == (1, {0}, {-1})
    assert info["non_blocking"]["write"]["requests"] == 4


def test_cancelled_requests_fail(recorder):
    told, run, _ = lived(recorder, "cancel")
    cancelled, completed = map(int, told)
    posts = run.select(call="aio_write")
    assert (np.count_nonzero(posts.moved < 0), np.count_nonzero(posts.moved > 0)) == (cancelled, completed)
    assert cancelled + completed == len(posts) == 40
    assert np.all(posts.flight >= 0)


def test_a_killed_process_keeps_its_completed_requests(recorder):
    _, run, info = lived(recorder, "kill", -signal.SIGKILL)
    posts = run.select(call="aio_write")
    assert posts.request.tolist() == [1, 2, 3, 4]
    assert np.all(posts.flight > 0)
    assert info["non_blocking"]["write"]["requests"] == 4


def test_results_may_be_collected_in_a_signal_handler(recorder):
    told, run, _ = lived(recorder, "handler")
    assert told == ["8"]
    assert run.select(call="aio_write").request.tolist() == list(range(1, 9))


def test_another_thread_may_complete_a_request(recorder):
    _, run, info = lived(recorder, "thread")
    posts, waits = run.select(call="aio_write"), run.select(call="aio_suspend")
    assert sorted(posts.request.tolist()) == list(range(1, 9))
    # The first of them is the first recorded call of its thread, which has no number before.
    assert waits.request.tolist() == list(range(1, 9))
    assert set(waits.thread.tolist()) == {1}
    assert len(run.select(call="pread")) == 8
    assert info["non_blocking"]["write"]["requests"] == 8
