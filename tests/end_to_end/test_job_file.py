"""One file a job: it holds what the spools held, whatever becomes of the job around its writing."""

import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from compiling import build
from places import ENSIO_CC, PATIENCE_S, PRELOAD, PROGRAMS, ROOT
from test_mpi import FLAVOURS
from test_together import Job

import ensembles
from ensembles.cli.replay_program import ANY_TASKS
from ensembles.model.units import count_text
from ensembles.readers.native.job_file import read_job_file
from ensembles.readers.native.spool import read_spool

TASKS = 4


@pytest.fixture(params=("relinked", "preloaded"))
def way(request) -> str:
    return request.param


@pytest.fixture(params=FLAVOURS)
def job(request, tmp_path, way, relinked) -> Job:
    """The program of known calls, by each way in and with each MPI."""
    made = Job(request.param, way, tmp_path, "job_calls", ["-I", ROOT / "libtrace/include"])
    made.clean = relinked.environment(ENSIO_LAYERS="posix,stdio")
    return made


def run(job, *arguments, tasks=TASKS, **variables) -> subprocess.CompletedProcess:
    """The program, all ranks recorded, to its end."""
    done = job.launch(job.clean, (1,) * tasks, job.folder, *arguments, **variables)
    assert_done(done, tasks)
    return done


def assert_done(done, tasks):
    """The launcher may mix the output of ranks, but all of them came to their end."""
    assert (done.returncode, done.stdout.count("done")) == (0, tasks), done.stderr


def names(job) -> set[str]:
    return {path.name for path in job.run.iterdir()}


def apart(job) -> tuple[ensembles.Run, ensembles.Run]:
    """The same run twice: from its job file alone, and from its spools alone."""
    collected, spools = job.folder / "collected", job.folder / "spools"
    collected.mkdir()
    spools.mkdir()
    for path in job.run.iterdir():
        if path.name == "job.ensio":
            shutil.copy(path, collected)
        elif path.suffix == ".spool":
            shutil.copy(path, spools)
    assert len(list(spools.iterdir())) == TASKS
    return ensembles.open(collected), ensembles.open(spools)


@pytest.mark.parametrize("pattern", ["shared", "matrices", "mixed"])
def test_job_file_holds_every_column_of_the_spools(job, pattern):
    run(job, pattern, "700", ENSIO_JOBFILE="keep")
    collected, spools = apart(job)
    assert collected.files == spools.files
    assert collected.calls == spools.calls
    assert (collected.tasks, collected.info.threads) == (spools.tasks, spools.info.threads)
    assert collected.info.origin_unix_ns == spools.info.origin_unix_ns
    assert [p.command for p in collected.info.processes] == [p.command for p in spools.info.processes]
    assert [p.source for p in collected.info.processes] == [p.source for p in spools.info.processes]
    assert collected.notes == spools.notes == []
    assert len(collected.regions) == len(spools.regions) == 2 * TASKS
    for name in ("rank", "thread", "kind", "name", "ended"):
        np.testing.assert_array_equal(getattr(collected.regions, name), getattr(spools.regions, name))
    ours, theirs = collected.events, spools.events
    assert len(ours) == len(theirs) > 1000 * TASKS
    # Ticks become ns by the last reading of the clock, which spools go on to renew until the process ends:
    # two threads' events of nearly one moment may change places, those of one thread may not.
    ours, theirs = (events[np.lexsort((events.thread, events.rank))] for events in (ours, theirs))
    for name, column in theirs.columns.items():
        if name in ("start", "duration"):
            np.testing.assert_allclose(ours.columns[name], column, rtol=1e-4, atol=2)
        else:
            np.testing.assert_array_equal(ours.columns[name], column, err_msg=name)


def by_call_and_size(summary, name):
    """A column of the cells, all ordinals together: which call was the n-th of several threads depends on
    who counts."""
    cells = summary.cells
    keys, place = np.unique(np.stack([cells["call"], cells["size_class"]]), axis=1, return_inverse=True)
    sums = np.zeros(keys.shape[1], cells[name].dtype)
    np.add.at(sums, place.ravel(), cells[name])
    return keys, sums


def test_where_all_events_are_in_the_job_file_its_summary_follows_from_them(job):
    run(job, "mixed", "200", ENSIO_JOBFILE="keep")
    collected, spools = apart(job)
    assert not any(spool.cells for spool in read_job_file(str(job.run / "job.ensio")))
    assert all(read_spool(str(path)).cells for path in job.run.glob("*.spool"))
    ours, theirs = collected.summary, spools.summary
    assert theirs.cells["count"].sum() >= 32_000
    for name in ("count", "errors", "moved", "outer_count", "outer_moved"):
        for mine, other in zip(by_call_and_size(ours, name), by_call_and_size(theirs, name), strict=True):
            np.testing.assert_array_equal(mine, other, err_msg=name)
    for name in ("time_ns", "inner_ns", "outer_ns"):
        np.testing.assert_allclose(
            by_call_and_size(ours, name)[1], by_call_and_size(theirs, name)[1], rtol=1e-3
        )


def test_times_of_the_job_file_are_those_of_the_spools_to_the_tick(job):
    """Below the columns: the very events, of which `start` and `duration` are made."""
    from test_recording_modes import raw_events

    from ensembles.model.c_layout import EVENT
    from ensembles.readers.native.job_file_codec import decode_events

    run(job, "mixed", "300", ENSIO_JOBFILE="keep")
    job_path = job.run / "job.ensio"
    content = job_path.read_bytes()
    collected = {spool.name: spool for spool in read_job_file(str(job_path))}
    assert set(collected) | {"job.ensio"} == names(job)
    for name, process in collected.items():
        by_thread = {}
        for window, events in raw_events(read_spool(str(job.run / name))):
            by_thread.setdefault(window.thread, []).append(events.copy())
        for block in process.coded:
            out = np.empty(block.events, EVENT.dtype)
            decode_events(content[block.position : block.position + block.length], out)
            begin = by_thread[block.thread]
            while len(begin[0]) == 0:
                begin.pop(0)
            np.testing.assert_array_equal(out, begin[0][: len(out)])
            begin[0] = begin[0][len(out) :]
        assert not any(len(events) for parts in by_thread.values() for events in parts)


@pytest.mark.parametrize(("pattern", "calls"), [("shared", 2 * 10_000 + 2), ("matrices", 6 * 10_000 + 2)])
def test_regular_patterns_take_few_bytes_and_one_file(job, pattern, calls):
    run(job, pattern, "10000", ENSIO_LAYERS="posix,stdio,mpisync")
    assert names(job) == {"job.ensio"}
    calls += 3  # MPI_Init, MPI_Barrier, and MPI_Finalize, in which the file is written
    events = ensembles.open(job.run).events
    assert np.bincount(events.rank).tolist() == [calls] * TASKS
    # At most 12 bytes an event in the long run; the texts of four ranks are apart.
    assert (job.run / "job.ensio").stat().st_size - 16384 <= 12 * len(events)


def test_calls_after_the_end_of_mpi_are_recorded_once(job):
    run(job, "shared", "100", "after")
    assert len(names(job) - {"job.ensio"}) == TASKS // 2
    opened = ensembles.open(job.run)
    assert np.bincount(opened.events.rank).tolist() == [202, 204] * (TASKS // 2)
    assert len(opened.select(call="write", file="*/after.*")) == TASKS // 2
    assert opened.notes == []


def test_calls_in_the_last_destructor_are_recorded_once(job):
    run(job, "shared", "100", "late")
    opened = ensembles.open(job.run)
    assert np.bincount(opened.events.rank).tolist() == [204] * TASKS
    late = opened.select(call="write", file="*/late.*")
    assert sorted(late.rank.tolist()) == list(range(TASKS))
    assert late.moved.tolist() == [5] * TASKS


def test_without_wish_there_is_none(job):
    run(job, "shared", "10", ENSIO_JOBFILE="0")
    assert all(name.endswith(".spool") for name in names(job))
    assert len(names(job)) == TASKS


def test_one_rank_that_does_not_want_it_keeps_all_from_it(job):
    wanting, program = job.recorded, job.recorded
    job.recorded = ["env", "ENSIO_JOBFILE=0", *program]
    parts = [":", "-n", "3", *map(str, wanting), str(job.folder), "shared", "10"]
    done = job.launch(job.clean, (1,), job.folder, "shared", "10", *parts)
    assert_done(done, TASKS)
    assert sorted(Path(name).suffix for name in names(job)) == [".ensio"] * 3 + [".spool"]
    assert "job.ensio" not in names(job)


@pytest.mark.parametrize("which", [(1, 1, 0), (0, 1, 1)])
def test_job_in_which_some_are_not_recorded_keeps_its_spools(job, which):
    done = job.launch(job.clean, which, job.folder, "shared", "10")
    assert_done(done, len(which))
    assert len(list(job.run.glob("*.ensio"))) == sum(which)
    assert not list(job.run.glob("job*"))
    assert len(ensembles.open(job.run).events) == 22 * sum(which)


def test_second_job_in_the_same_directory_leaves_the_first_one_alone(job):
    run(job, "shared", "10", tasks=2)
    run(job, "shared", "20", tasks=2)
    assert names(job) == {"job.ensio", "job-2.ensio"}
    for number, calls in ((1, 22), (2, 42)):
        opened = ensembles.open(f"{job.run}#{number}")
        assert (len(opened.events), opened.tasks, opened.notes) == (2 * calls, 2, [])


@pytest.fixture
def small_disk(job):
    """A file system of 32 MiB for the run directory."""
    folder = job.folder / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=32m", "none", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def test_full_disk_leaves_the_spools_and_one_sentence(job, small_disk):
    job.run = small_disk / "run"
    job.run.mkdir()
    run(job, "shared", "20000", "fill", ENSIO_MAX_BYTES="1GiB")
    assert not list(job.run.glob("job*"))
    opened = ensembles.open(job.run)
    assert len(opened.events) == TASKS * 40_002
    # The first call of a new length needs a block of its histogram, for which there may be no space.
    without_bin = int(opened.summary.cells["without_bin"].sum())
    lacking = [f"the histograms lack {count_text(without_bin, 'call')}: no room, or damaged bins"]
    assert "No space left on device" in opened.notes[0]
    assert opened.notes[1:] == (lacking if without_bin else [])
    assert int(opened.summary.histogram[2].sum()) == opened.summary.count - without_bin


@pytest.mark.parametrize("mode", ["trace", "profile"])
def test_killed_at_any_moment_of_the_end_nothing_is_lost_or_twice(job, mode):
    """Ranks have made all of their calls, and are killed between the end of MPI and their own."""
    random.seed(f"{job.flavour} {job.recorded} {mode}")
    found = set()
    for attempt in range(5):
        job.run = job.folder / f"run{attempt}"
        for path in (*job.folder.glob("pid.*"), job.folder / "go"):
            path.unlink(missing_ok=True)
        program = [*map(str, job.recorded), str(job.folder), "shared", "20000", "wait"]
        process = subprocess.Popen(
            [f"mpiexec.{job.flavour}", "-n", str(TASKS), *program],
            env=job.clean | ANY_TASKS | {"ENSIO_DIR": str(job.run), "ENSIO_MODE": mode},
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        paths = [job.folder / f"pid.{rank}" for rank in range(TASKS)]
        until = time.monotonic() + PATIENCE_S
        while not all(path.exists() for path in paths) and time.monotonic() < until:
            time.sleep(0.005)
        pids = [int(path.read_text()) for path in paths]
        (job.folder / "go").touch()
        time.sleep(random.uniform(0, 0.06))
        for pid in random.sample(pids, TASKS):
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        process.wait(PATIENCE_S)
        found.add("job.ensio" in names(job))
        opened = ensembles.open(job.run)
        if mode == "trace":
            assert np.bincount(opened.events.rank, minlength=TASKS).tolist() == [40_002] * TASKS
        assert opened.summary.count == TASKS * 40_002
    assert found  # moments before and after the job file was there are both welcome, but chance decides


@pytest.mark.parametrize("flavour", FLAVOURS)
def test_fortran_programs_write_one_too(flavour, way, tmp_path, relinked):
    folder = tmp_path / "run"
    driver = [ENSIO_CC] if way == "relinked" else []
    program = build(tmp_path / "program", *driver, f"mpifort.{flavour}", PROGRAMS / "mpi_file.f90")
    environment = relinked.environment(**ANY_TASKS) | {"ENSIO_DIR": str(folder)}
    preload = ["env", f"LD_PRELOAD={PRELOAD}"] if way == "preloaded" else []
    command = [f"mpiexec.{flavour}", "-n", "2", *preload, program]
    done = subprocess.run(command, env=environment, cwd=tmp_path, capture_output=True, timeout=PATIENCE_S)
    assert done.returncode == 0, done.stderr
    assert "job.ensio" in {path.name for path in folder.iterdir()}
    opened = ensembles.open(folder)
    assert opened.tasks == 2
    if way == "preloaded":
        assert len(opened.select(op="write", file="*/fortran.*")) == 2
