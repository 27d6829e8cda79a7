"""Job files are read as the spools that they were made from, beside spools or alone, whole or damaged."""

import os
import shutil
import tarfile
from itertools import islice
from pathlib import Path

import numpy as np
import pytest
from made_job_files import as_before_sums, collect_spools
from made_spools import RUNNING, made_events, spool

import ensembles
from ensembles.api.run import Run
from ensembles.comparison.times import sums_of_run
from ensembles.model.c_layout import BLOCK, JOB, JOB_PROCESS
from ensembles.model.errors import EnsioError
from ensembles.readers.native.records import open_run_directory
from ensembles.run.collect import collect

CORPUS = Path(__file__).parents[3] / "corpus/runs"
EVENTS = 40_000


@pytest.fixture(scope="module")
def made(tmp_path_factory, coder) -> Path:
    """A folder with the spools of three ranks and one with their job file alone."""
    folder = tmp_path_factory.mktemp("made")
    for rank in range(3):
        threads = [made_events(EVENTS + 1000 * rank, seed=rank), made_events(100, seed=9)]
        files = {1: "/data/shared", 2: f"/data/of/rank.{rank}"}
        spool(
            folder / "spools" / f"alpha-{rank}.spool",
            threads,
            files=files,
            rank=rank,
            tasks=3,
            pid=100 + rank,
        )
    (folder / "job").mkdir()
    paths = sorted((folder / "spools").iterdir())
    collect_spools(coder, paths, folder / "job/job.ensio")
    return folder


@pytest.fixture
def job(made, tmp_path) -> Path:
    """The folder with the job file alone, to do with as one likes."""
    shutil.copy(made / "job/job.ensio", tmp_path / "job.ensio")
    return tmp_path


def spools(made: Path) -> ensembles.Run:
    return ensembles.open(made / "spools")


def assert_equal(run: ensembles.Run, other: ensembles.Run) -> None:
    assert run.files == other.files
    assert run.calls == other.calls
    assert (run.tasks, run.info.threads, run.notes) == (other.tasks, other.info.threads, other.notes)
    assert run.info.processes == other.info.processes
    ours, theirs = run.events, other.events
    for name, column in theirs.columns.items():
        np.testing.assert_array_equal(ours.columns[name], column, err_msg=name)


def test_job_file_is_read_as_its_spools(made):
    assert_equal(ensembles.open(made / "job"), spools(made))
    assert_equal(ensembles.open(made / "job/job.ensio"), spools(made))


@pytest.mark.parametrize("max_events", [7, 1000, 20_001])
def test_chunks_of_any_size_hold_the_same_events(made, max_events):
    chunks = list(islice(ensembles.open(made / "job/job.ensio").chunks(max_events), 3000))
    # The spools themselves, in their order: a trace.h5 beside them is sorted.
    spools = Run("spools", open_run_directory(str(made / "spools")))
    expected = np.concatenate([chunk.start for chunk in spools.chunks(1 << 20)])
    found = np.concatenate([chunk.start for chunk in chunks])
    assert all(len(chunk) == max_events for chunk in chunks[:-1])
    assert len(found) == min(len(expected), 3000 * max_events)
    np.testing.assert_array_equal(found, expected[: len(found)])


def test_spool_beside_the_job_file_goes_before_it(made, job):
    """A rank went on after MPI_Finalize: its spool has more than the job file, which counts no call twice."""
    more = made_events(EVENTS + 10, seed=0)
    spool(job / "alpha-0.spool", [more, made_events(100, seed=9)], rank=0, tasks=3, pid=100, state=RUNNING)
    run = ensembles.open(job)
    assert np.bincount(run.events.rank).tolist() == [EVENTS + 110, EVENTS + 1100, EVENTS + 2100]
    assert [process.ended for process in run.info.processes] == [False, True, True]
    assert sums_of_run(run).totals["unended"] == 1


def test_damaged_spool_beside_the_job_file_is_told_and_the_job_file_read(made, job):
    (job / "alpha-1.spool").write_bytes(b"nothing that makes sense")
    run = ensembles.open(job)
    assert len(run.events) == len(spools(made).events)
    assert any("alpha-1.spool does not begin as its name says" in note for note in run.notes)


@pytest.mark.parametrize("damage", ["cut", "foreign", "head", "records"])
def test_damaged_job_file_is_one_sentence_and_the_spools_are_read(made, job, damage):
    path = job / "job.ensio"
    content = bytearray(path.read_bytes())
    if damage == "cut":
        content = content[: JOB.unpack(content).bytes - 1]
    elif damage == "foreign":
        content[:8] = b"%PDF-1.4"
    elif damage == "head":
        content[8] = 99
    else:
        content[JOB.unpack(content).records :] = bytes(len(content) - JOB.unpack(content).records)
    path.write_bytes(content)
    with pytest.raises(EnsioError, match=r"job\.ensio"):
        ensembles.open(job)
    with pytest.raises(EnsioError, match=r"job\.ensio|not a spool"):
        ensembles.open(path)
    for other in (made / "spools").glob("*.spool"):
        shutil.copy(other, job)
    run = ensembles.open(job)
    assert len(run.events) == len(spools(made).events)
    assert len([note for note in run.notes if "job.ensio" in note]) == 1


def test_damaged_block_costs_its_own_events_and_is_told(made, job):
    path = job / "job.ensio"
    content = bytearray(path.read_bytes())
    block = BLOCK.unpack(content, JOB.size)
    content[JOB.size + BLOCK.size + 5] ^= 0xFF
    path.write_bytes(content)
    run = ensembles.open(job)
    assert len(run.events) == len(spools(made).events) - block.events
    assert any(f"{block.events:,} events left out as damaged or incomplete" in note for note in run.notes)


def test_head_that_knows_fewer_processes_is_damage(job):
    path = job / "job.ensio"
    content = bytearray(path.read_bytes())
    content[JOB.dtype.fields["processes"][1]] = 2
    path.write_bytes(content)
    with pytest.raises(EnsioError, match="is damaged"):
        ensembles.open(job)


def changed(path: Path, at: int) -> None:
    content = bytearray(path.read_bytes())
    content[at] ^= 0xFF
    path.write_bytes(content)


def records(path: Path) -> list[tuple[int, tuple]]:
    """Where the record of each process begins, and its head."""
    content, found = path.read_bytes(), []
    at = JOB.unpack(content).records
    while at < JOB.unpack(content).bytes:
        found.append((at, JOB_PROCESS.unpack(content, at)))
        at += found[-1][1].bytes
    return found


def last_record(path: Path) -> tuple[int, tuple]:
    return records(path)[-1]


@pytest.mark.parametrize("number", range(3))
def test_damaged_record_costs_one_process_and_is_told(made, job, number):
    at, process = records(job / "job.ensio")[number]
    changed(job / "job.ensio", at + process.bytes - process.coded_bytes - 1)
    run = ensembles.open(job)
    expected = [EVENTS + 100 + 1000 * rank for rank in range(3)]
    expected[number] = 0
    assert np.bincount(run.events.rank, minlength=3).tolist() == expected
    assert any("the record of one process cannot be read" in note for note in run.notes)


@pytest.mark.parametrize("member", ["magic", "bytes"])
def test_length_of_a_record_follows_from_its_members(made, job, member):
    for at, _ in records(job / "job.ensio"):
        changed(job / "job.ensio", at + JOB_PROCESS.field_offset(member))
    assert_equal(ensembles.open(job), spools(made))


def test_texts_that_others_lean_on_are_there_twice(made, job):
    at, process = records(job / "job.ensio")[0]
    changed(job / "job.ensio", at + process.bytes - 1)
    assert_equal(ensembles.open(job), spools(made))
    changed(job / "job.ensio", at + process.bytes - 1)
    changed(job / "job.ensio", os.path.getsize(job / "job.ensio") - 1)
    assert_equal(ensembles.open(job), spools(made))


def test_damaged_texts_cost_the_names_of_their_process_and_are_told(made, job):
    at, process = last_record(job / "job.ensio")
    changed(job / "job.ensio", at + process.bytes - 1)
    run, whole = ensembles.open(job), spools(made)
    last = run.events.rank == 2
    for name in ("start", "duration", "requested", "moved"):
        np.testing.assert_array_equal(run.events.columns[name], whole.events.columns[name])
    np.testing.assert_array_equal(run.events.call, whole.events.call)
    assert not run.events.file[last].any()
    assert any("texts of alpha-2.spool cannot be read" in note for note in run.notes)


def test_without_the_names_of_functions_no_total_is_given(job):
    at, process = records(job / "job.ensio")[0]
    changed(job / "job.ensio", at + process.bytes - 1)
    changed(job / "job.ensio", os.path.getsize(job / "job.ensio") - 1)
    with pytest.raises(EnsioError, match=r"job\.ensio is damaged"):
        ensembles.open(job)


def test_a_changed_byte_of_the_head_is_refused(job):
    for at in range(8, JOB.size - 4):
        content = (job / "job.ensio").read_bytes()
        changed(job / "job.ensio", at)
        with pytest.raises(EnsioError, match=r"job\.ensio"):
            ensembles.open(job / "job.ensio")
        (job / "job.ensio").write_bytes(content)


def test_damaged_regions_are_left_out_and_told(tmp_path, coder):
    with tarfile.open(CORPUS / "regions.tar.xz") as packed:
        packed.extractall(tmp_path)
    (spool_path,) = tmp_path.glob("**/*.spool")
    whole = ensembles.open(spool_path)
    assert len(whole.regions)
    path = collect_spools(coder, [spool_path], tmp_path / "job.ensio")
    for name, column in whole.regions.columns.items():
        np.testing.assert_array_equal(ensembles.open(path).regions.columns[name], column)
    head = JOB.unpack(path.read_bytes())
    changed(path, head.records - 1)
    run = ensembles.open(path)
    assert not len(run.regions)
    assert len(run.events) == len(whole.events)
    assert any("phases and regions of" in note for note in run.notes)


def test_trace_file_is_made_again_when_the_job_file_is_another(made, job):
    collect(str(job))
    stored = os.stat(job / "trace.h5").st_mtime_ns
    assert len(ensembles.open(job).events) == len(spools(made).events)
    os.utime(job / "job.ensio", ns=(1, 1))
    spool(job / "alpha-0.spool", [made_events(10)], rank=0, tasks=3)
    assert np.bincount(ensembles.open(job).events.rank).tolist() == [10, EVENTS + 1100, EVENTS + 2100]
    assert os.stat(job / "trace.h5").st_mtime_ns == stored


def test_temporary_job_file_is_no_record(job):
    (job / "job.ensio").rename(job / "job.ensio.tmp-123")
    with pytest.raises(EnsioError, match="not a run directory"):
        ensembles.open(job)


def test_a_job_file_of_version_2_is_read_as_the_spools_of_version_3_in_it(tmp_path, coder) -> None:
    """A number of a site is the upper half of one of a file."""
    path = spool(tmp_path / "spools/0.spool", [made_events(500, 3)], files={1: "/a"}, rank=0, version=3)
    (tmp_path / "job").mkdir()
    job = collect_spools(coder, [path], tmp_path / "job/job.ensio")
    content = as_before_sums(job.read_bytes())
    old = JOB.unpack(content)._replace(version=2, spool_version=3, bytes=len(content))
    job.write_bytes(JOB.pack(**old._asdict()) + content[JOB.size :])
    run = ensembles.open(job.parent)
    assert_equal(run, ensembles.open(tmp_path / "spools"))
    assert not run.events.site.any()
    job.write_bytes(JOB.pack(**old._replace(version=1)._asdict()) + job.read_bytes()[JOB.size :])
    with pytest.raises(EnsioError, match=r"layout version 1\.3"):
        ensembles.open(job)
