"""Programs with more rights than their user has are left alone; those that give rights up go on."""

import os
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest
from places import PATIENCE_S

import ensembles

NOBODY = 65534
CALLS = 10_000


@pytest.fixture
def public():
    """A folder that every user can look into, on a file system where setuid programs work."""
    if os.geteuid() != 0:
        pytest.skip("only root can make programs that run with root's rights")
    folder = Path(tempfile.mkdtemp(prefix="ensio-rights-"))
    folder.chmod(0o755)
    if os.statvfs(folder).f_flag & os.ST_NOSUID:
        shutil.rmtree(folder)
        pytest.skip(f"setuid programs have no effect in {folder.parent} (mounted with nosuid)")
    yield folder
    shutil.rmtree(folder)


def run_as_nobody(recorder, program, folder):
    return recorder.execute(
        program, "keep", folder / "out", 10, environment={"ENSIO_DIR": str(folder / "run")},
        user=NOBODY, group=NOBODY, extra_groups=[], cwd="/",
    )  # fmt: skip


def check_left_alone(recorder, folder, *options):
    program = folder / "program"
    shutil.copy(recorder.build("rights", *options), program)
    program.chmod(0o4755)
    finished = run_as_nobody(recorder, program, folder)
    assert (finished.returncode, finished.stdout, finished.stderr) == (3, b"65534 0\n", b"")
    assert (folder / "out").read_bytes() == 10 * b"0123456789"
    assert (folder / "out").stat().st_uid == 0  # with root's rights, in a folder where only root may write
    assert sorted(path.name for path in folder.iterdir()) == ["out", "program"]


def test_setuid_program_works_and_leaves_no_trace(recorder, public):
    check_left_alone(recorder, public)


def test_static_setuid_program_works_and_leaves_no_trace(relinked, public):
    check_left_alone(relinked, public, "-static")


def test_the_same_program_without_the_rights_is_recorded(relinked, public):
    program = public / "program"
    shutil.copy(relinked.build("rights"), program)
    os.chown(public, NOBODY, NOBODY)
    finished = run_as_nobody(relinked, program, public)
    assert finished.returncode == 3
    assert len(ensembles.open(public / "run").select(call="write", file=str(public / "out"))) == 10


def test_program_that_gives_up_its_rights_is_recorded_to_its_end(recorder, public):
    """The run directory is root's: nothing in it can be opened any more."""
    program = public / "program"
    shutil.copy(recorder.build("rights"), program)
    recorder.copy_library(public)
    finished = recorder.execute(program, "drop", public / "out", CALLS, cwd="/")
    assert (finished.returncode, finished.stdout, finished.stderr) == (3, b"65534 65534\n", b"")
    assert (public / "out").stat().st_size == 10 * CALLS
    run = ensembles.open(recorder.run)
    writes = run.select(call="write", file=str(public / "out"))
    assert writes.offset.tolist() == list(range(0, 10 * len(writes), 10))
    assert len(run.select(file=str(public / "out"))) == CALLS + 2  # and the open and the close
    assert (run.info.dropped_events, run.notes) == (0, [])


@pytest.mark.parametrize("mode", ["trace", "profile", "tail"])
@pytest.mark.parametrize("what", ["setuid", "chroot", "file_size", "descriptors", "closed", "moved"])
def test_what_a_program_gives_up_costs_no_call(recorder, tmp_path, what, mode):
    """Nothing is opened again by its name for the summary, nor for the first events."""
    calls = 200_000
    program = recorder.build("fewer_rights")
    done = recorder.execute(
        program, what, calls, cwd=tmp_path, environment={"ENSIO_MODE": mode}, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stdout, done.stderr) == (4, f"{calls} calls\n".encode(), b"")
    run = ensembles.open(recorder.run if what != "moved" else f"{recorder.run}-moved")
    cells = run.summary.cells
    names = [run.summary.calls[number].name for number in cells["call"]]
    assert sum(cells["count"][[name == "pwrite" for name in names]]) == calls
    assert run.info.lost_calls == 0
    (record,) = (path for path in Path(run.path).iterdir() if path.suffix in (".spool", ".ensio"))
    assert record.stat().st_size < (16 + 256 + 16) << 20  # also where no process could cut it
    if mode == "trace":
        writes = len(run.select(call="pwrite"))
        assert writes == calls - run.info.dropped_events
        # A file that is gone from its place, or limited, cannot become longer: its first length is used.
        assert writes == calls or (what in ("moved", "file_size") and writes > 150_000)


@pytest.mark.usefixtures("uncoded")
def test_changing_rights_again_and_again_makes_no_longer_file(recorder, tmp_path):
    program = recorder.build("fewer_rights")
    done = recorder.execute(program, "seteuid", 3000, cwd=tmp_path)
    assert (done.returncode, done.stdout, done.stderr) == (4, b"3000 calls\n", b"")
    spool = next(recorder.run.glob("*.spool"))
    assert spool.stat().st_size < 2 << 20  # root can cut it at the end


def test_ensio_run_cuts_what_a_process_without_rights_could_not(preload, tmp_path):
    program = preload.build("fewer_rights")
    environment = preload.environment()
    del environment["ENSIO_DIR"], environment["LD_PRELOAD"]
    done = subprocess.run(
        ["ensio", "run", "-o", "run", "--", program, "setuid", "1000"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
    )
    assert (done.returncode, done.stdout) == (4, b"1000 calls\n")
    spool = next((tmp_path / "run").glob("*.spool"))
    assert spool.stat().st_size < 2 << 20
    assert not list((tmp_path / "run").glob(".*.taken"))
    assert len(ensembles.open(tmp_path / "run").select(call="pwrite")) == 1000
