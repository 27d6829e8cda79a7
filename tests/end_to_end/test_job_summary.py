"""Modes without all events: the ranks put their summaries into one, which is what Python makes of theirs."""

import shutil
import subprocess

import numpy as np
import pytest
from joint_summaries import apart, assert_same_summary
from places import PATIENCE_S, ROOT
from test_mpi import FLAVOURS
from test_together import Job, on_nodes

import ensembles
from ensembles.cli.replay_program import ANY_TASKS
from ensembles.model.c_layout import JOB
from ensembles.readers.native.job_file import read_job_file


@pytest.fixture(params=("relinked", "preloaded"))
def way(request) -> str:
    return request.param


def made_job(flavour, way, folder, relinked, source="joint_calls", options=()) -> Job:
    job = Job(flavour, way, folder, source, options)
    job.clean = relinked.environment(ENSIO_LAYERS="posix,stdio", ENSIO_BANNER="none")
    return job


@pytest.fixture(params=FLAVOURS)
def job(request, tmp_path, way, relinked) -> Job:
    """The program whose ranks do different things, by each way in and with each MPI."""
    return made_job(request.param, way, tmp_path, relinked)


def run(job, folder, tasks, *arguments, **variables):
    """The program in its own folder, where its run goes too."""
    folder.mkdir(exist_ok=True)
    job.run = folder / "run"
    done = job.launch(job.clean, (1,) * tasks, folder, *arguments, **variables)
    assert (done.returncode, done.stdout.count("done")) == (0, tasks), done.stderr
    return job.run


def joint_calls(tasks: int, calls: int) -> int:
    """What the ranks of ``joint_calls`` call: open, close and so on."""
    of_kind = (calls + 2, 2 * calls + 2, 0)
    return sum(of_kind[rank % 4] for rank in range(tasks) if rank % 4 != 3)


@pytest.mark.parametrize(("mode", "ending"), [("profile", "MPI_Finalize"), ("tail", "PMPI_Finalize")])
def test_summary_of_ranks_that_do_different_things_is_the_merged_one(job, tmp_path, mode, ending):
    # Ranks of MPICH wait by polling: more of them than processors take their turns slowly.
    for tasks in (1, 2, 5, 8) if job.flavour == "openmpi" else (1, 5):
        folder = tmp_path / str(tasks)
        made = run(job, folder, tasks, 300, ending, ENSIO_MODE=mode, ENSIO_JOBFILE="keep")
        collected, spools = apart(made, folder)
        assert collected.notes == spools.notes == []
        assert_same_summary(collected.summary, spools.summary)
        summary = collected.summary
        posix = np.array([call.layer == "posix" for call in summary.calls])
        outer = summary.cells["outer_count"][posix[summary.cells["call"]]].sum()
        failing = len([rank for rank in range(tasks) if rank % 4 == 3])
        assert outer == joint_calls(tasks, 300) + failing
        assert collected.files == spools.files
        assert not any(spool.cells for spool in read_job_file(str(made / "job.ensio")))


@pytest.mark.parametrize("mode", ["profile", "tail"])
def test_summary_of_threads_and_many_files_is_the_merged_one(tmp_path, relinked, mode):
    job = made_job("openmpi", "preloaded", tmp_path, relinked, "job_calls", ["-I", ROOT / "libtrace/include"])
    made = run(job, tmp_path / "mixed", 4, "mixed", 200, ENSIO_JOBFILE="keep", ENSIO_MODE=mode)
    collected, spools = apart(made, tmp_path / "mixed")
    assert collected.summary.count >= 32_000
    assert_same_summary(collected.summary, spools.summary)


def test_nodes_with_clocks_of_their_own_have_one_summary(tmp_path, relinked):
    """MPICH takes odd and even ranks for those of two nodes; each has its own name."""
    unshared = subprocess.run(["unshare", "--uts", "true"], capture_output=True, text=True)
    if unshared.returncode != 0:
        pytest.skip(f"tasks cannot be given their own host names here: {unshared.stderr.strip()}")
    job = made_job("mpich", "relinked", tmp_path, relinked)
    job.recorded = [*job.recorded, tmp_path, "300", "MPI_Finalize"]
    settings = {"ENSIO_MODE": "profile", "ENSIO_JOBFILE": "keep", "MPIR_CVAR_ODD_EVEN_CLIQUES": "1"}
    environment = job.clean | ANY_TASKS | settings | {"ENSIO_DIR": str(job.run)}
    command = on_nodes(job, ["east", "west"] * 3)
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=PATIENCE_S)
    assert (done.returncode, done.stdout.count("done")) == (0, 6), done.stderr
    collected, spools = apart(job.run, tmp_path)
    assert collected.info.hosts == ["east", "west"]
    assert collected.info.clock_error_s > 0
    assert_same_summary(collected.summary, spools.summary)


def test_without_the_spools_it_is_the_record(job, tmp_path):
    made = run(job, tmp_path, 5, 300, "MPI_Finalize", ENSIO_MODE="profile")
    assert {path.name for path in made.iterdir()} == {"job.ensio"}
    opened = ensembles.open(made)
    assert (opened.notes, opened.tasks, opened.mode, opened.info.lost_calls) == ([], 5, "profile", 0)
    assert opened.summary.count >= joint_calls(5, 300)
    assert len(ensembles.open(made).events) == 0


@pytest.mark.parametrize("mode", ["profile", "tail"])
@pytest.mark.parametrize("word", ["after", "late"])
def test_calls_after_the_end_of_mpi_are_counted_once(tmp_path, relinked, way, mode, word):
    """Those that go on keep their spools: what is in the job file's summary is not taken from there again."""
    job = made_job("mpich", way, tmp_path, relinked, "job_calls", ["-I", ROOT / "libtrace/include"])
    made = run(job, tmp_path, 4, "shared", 100, word, ENSIO_MODE=mode)
    assert "job.ensio" in {path.name for path in made.iterdir()}
    opened = ensembles.open(made)
    assert word == "late" or opened.notes == []  # a spool that is begun in the last destructor has no end
    summary = opened.summary
    more = 2 * 2 if word == "after" else 4 * 2  # an open and a write, in two ranks or in all
    assert summary.count == summary.histogram[2].sum() == 4 * 202 + more
    named = [summary.files[number] for number in summary.longest[1].file]
    assert sum(f"/{word}." in name or name.endswith(f"{word}") for name in named) > 0
    # Job file and spools one by one, in whatever order the directory has them.
    (tmp_path / "copy").mkdir()
    for path in sorted(made.iterdir(), reverse=True):
        shutil.copy(path, tmp_path / "copy")
    assert ensembles.open(tmp_path / "copy").summary.count == summary.count


def test_the_job_file_grows_by_a_few_hundred_bytes_a_rank(tmp_path, relinked):
    job = made_job("mpich", "relinked", tmp_path, relinked)
    heads, cells = {}, {}
    for tasks in (2, 8):
        made = run(job, tmp_path / str(tasks), tasks, 1600, "MPI_Finalize", "same", ENSIO_MODE="profile")
        heads[tasks] = JOB.unpack((made / "job.ensio").read_bytes())
        cells[tasks] = len(ensembles.open(made).summary)
        # Nothing else lies in the file but samples of the kernel's counters: no other window, no other data.
        for spool in read_job_file(str(made / "job.ensio")):
            assert len(spool.pieces) == len(spool.surroundings) <= 1
            assert not any(window.slots for window in (*spool.windows, *spool.scratch, *spool.marks))
            assert not any((spool.coded, spool.cells, spool.blocks, spool.flights))
        assert heads[tasks].records == heads[tasks].summary + heads[tasks].summary_coded
    records = {tasks: head.bytes - head.records for tasks, head in heads.items()}
    samples = {tasks: head.summary - JOB.size for tasks, head in heads.items()}
    assert (samples[8] - samples[2]) / 6 < 400
    # A record is the head of a spool, a name, rows of 56 bytes for three functions and two windows, one of
    # 16 for the samples, and what is not in all records: a few properties (how long the process waited for a
    # processor is one), the call sites, and the sum of the kernel's counters.
    assert (records[8] - records[2]) / 6 < 980
    # The summary has the same cells for 2 ranks and for 8: what grows is the number of bins that are in use.
    assert cells[2] == cells[8] > 50
    assert heads[8].summary_coded < 2 * heads[2].summary_coded
