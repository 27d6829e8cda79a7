"""Run directories that others can write to, and folders that hold run directories."""

from __future__ import annotations

import json
import logging
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
from commands_here import executed as ensio
from made_spools import made_events, spool

import ensembles as en
from ensembles.readers.native.directory import user_name
from ensembles.run.collect import collect

pytestmark = pytest.mark.slow

OURS, THEIRS, OTHERS = os.geteuid(), 65534, 12345


def made_run(folder: Path, count: int = 10, name: str = "a.spool") -> Path:
    spool(folder / name, [made_events(count)], rank=0)
    folder.chmod(0o700)
    return folder


def given(path: Path, user: int) -> Path:
    """Give a file to a user."""
    if os.geteuid() != 0:
        pytest.skip("only root can give files to other users")
    os.chown(path, user, -1, follow_symlinks=False)
    return path


# A folder without a record that holds run directories.


@pytest.mark.parametrize("command", ["info", "events", "modes", "phases", "diagnose"])
def test_the_one_run_below_a_folder_is_opened_and_named(
    tmp_path: Path, command: str, caplog: pytest.LogCaptureFixture
) -> None:
    run = made_run(tmp_path / "ensio-solver-7-20260101T000000Z")
    done = ensio(command, tmp_path)
    assert done.returncode == 0
    named = f"ensio: {tmp_path} contains no record; reading its only run, {run}"
    assert caplog.messages == [named]
    assert done.stdout == ensio(command, run).stdout
    if command == "info":  # a program without handlers of the log has it on standard error
        words = [sys.executable, "-m", "ensembles.cli.main", command, tmp_path]
        assert named in subprocess.run(words, capture_output=True, text=True, check=True).stderr


def test_python_opens_it_too_and_says_so(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    run = made_run(tmp_path / "ensio-solver-7-20260101T000000Z")
    with caplog.at_level(logging.WARNING, "ensembles"):
        opened = en.open(tmp_path)
    assert opened.path == str(run)
    assert len(opened.events) == 10
    assert [record.message for record in caplog.records] == [
        f"ensio: {tmp_path} contains no record; reading its only run, {run}"
    ]


def test_collect_and_export_write_what_is_in_it(tmp_path: Path) -> None:
    run = made_run(tmp_path / "shared" / "ensio-solver-7-20260101T000000Z")
    assert ensio("collect", run.parent).returncode == 0
    assert (run / "trace.h5").exists()
    assert ensio("export", run.parent, "--to", "csv", tmp_path / "out.csv").returncode == 0
    assert (tmp_path / "out.csv").stat().st_mode & 0o777 == 0o600  # as private as the run, not as the folder


def test_of_several_runs_the_newest_are_listed(tmp_path: Path) -> None:
    runs = [made_run(tmp_path / f"ensio-solver-{number}-20260101T000000Z") for number in range(7)]
    for age, run in enumerate(reversed(runs)):
        os.utime(run, (1_700_000_000 - age, 1_700_000_000 - age))
    done = ensio("modes", tmp_path)
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    newest = ", ".join(str(run) for run in reversed(runs[4:]))
    assert f"{tmp_path} holds 7 runs, name one of them: {newest}, and 4 more\n" in done.stderr


def test_others_runs_are_named_with_their_owners(tmp_path: Path) -> None:
    made_run(tmp_path / "ensio-mine-1-20260101T000000Z")
    theirs = given(made_run(tmp_path / "ensio-theirs-2-20260101T000000Z"), OTHERS)
    assert f"{theirs} (of {OTHERS})" in ensio("modes", tmp_path).stderr


def test_a_folder_with_a_record_is_the_run_itself(tmp_path: Path) -> None:
    made_run(tmp_path, 3)
    made_run(tmp_path / "ensio-solver-7-20260101T000000Z")
    assert len(en.open(tmp_path).events) == 3


def test_links_and_empty_folders_are_no_runs_below(tmp_path: Path) -> None:
    made_run(tmp_path / "elsewhere")
    (tmp_path / "below").mkdir()
    (tmp_path / "below" / "ensio-solver-7-20260101T000000Z").symlink_to(tmp_path / "elsewhere")
    made_run(tmp_path / "below" / ".hidden")
    (tmp_path / "below" / "ensio-empty-8-20260101T000000Z").mkdir()
    with pytest.raises(en.EnsioError, match="is not a run directory"):
        en.open(tmp_path / "below")


def test_runs_of_any_name_are_listed(tmp_path: Path) -> None:
    made_run(tmp_path / "before", 3)
    assert len(en.open(tmp_path).events) == 3
    made_run(tmp_path / "after", 5)
    done = ensio("info", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"{tmp_path} holds 2 runs" in " ".join(done.stdout.split())
    assert f"{tmp_path}/before" in done.stdout
    listed = json.loads(ensio("info", tmp_path, "--json").stdout)["runs"]
    assert {run["run"] for run in listed} == {f"{tmp_path}/before", f"{tmp_path}/after"}
    assert all(run["tasks"] == 1 for run in listed)


# Files of several users in one run directory.


@pytest.fixture
def shared(tmp_path: Path) -> Path:
    """A world-writable directory of ours, with a spool of ours and one that others put there."""
    folder = tmp_path / "shared"
    made_run(folder, 10)
    given(spool(folder / "b.spool", [made_events(90)], rank=1), THEIRS)
    folder.chmod(0o777)
    return folder


def test_a_foreign_spool_is_left_out_and_named(shared: Path) -> None:
    run = en.open(shared)
    assert len(run.events) == 10
    (note,) = [note for note in run.notes if "left out" in note]
    assert f"1 file of user {user_name(THEIRS)} in {shared} is left out" in note
    assert not json.loads(ensio("info", shared, "--json").stdout)["complete"]


def test_a_planted_link_to_a_spool_of_ours_is_left_out_too(tmp_path: Path) -> None:
    made_run(tmp_path / "another")
    folder = made_run(tmp_path / "shared", 10)
    (folder / "b.spool").symlink_to(tmp_path / "another" / "a.spool")
    given(folder / "b.spool", THEIRS)
    folder.chmod(0o777)
    assert len(en.open(folder).events) == 10


def test_a_foreign_job_file_is_left_out(shared: Path) -> None:
    (shared / "b.spool").unlink()
    given(spool(shared / "job.ensio", [made_events(90)], rank=1), THEIRS)  # its content does not matter
    run = en.open(shared)
    assert len(run.events) == 10
    assert sum("left out" in note for note in run.notes) == 1


def test_a_foreign_trace_file_is_not_read_in_place_of_the_spools(shared: Path, tmp_path: Path) -> None:
    """Not even one that tells the sizes and times of the spools that lie there."""
    (shared / "b.spool").unlink()
    forged = tmp_path / "forged"
    spool(forged / "a.spool", [made_events(10, seed=5)], rank=0)
    status = (shared / "a.spool").stat()
    assert (forged / "a.spool").stat().st_size == status.st_size
    os.utime(forged / "a.spool", ns=(status.st_atime_ns, status.st_mtime_ns))
    collect(str(forged), str(shared / "trace.h5"))
    truth = made_events(10)["requested"].tolist()
    assert sorted(en.open(shared).events.requested.tolist()) != sorted(truth)  # ours would be believed
    given(shared / "trace.h5", THEIRS)
    assert sorted(en.open(shared).events.requested.tolist()) == sorted(truth)


def test_where_only_the_owner_can_write_all_files_are_read(shared: Path) -> None:
    shared.chmod(0o755)
    run = en.open(shared)
    assert len(run.events) == 100
    assert not any("left out" in note for note in run.notes)


def test_the_directorys_owner_goes_before_others(shared: Path) -> None:
    """As when root reads the run of a user in a directory of his that others can write to."""
    given(shared, THEIRS)
    given(shared / "a.spool", OTHERS)
    run = en.open(shared)
    assert len(run.events) == 90
    assert any(f"of user {OTHERS}" in note for note in run.notes)


def test_of_one_unknown_user_everything_is_read_with_a_note(shared: Path) -> None:
    given(shared / "a.spool", THEIRS)
    run = en.open(shared)
    assert len(run.events) == 100
    assert any("make sure that this is the run you mean" in note for note in run.notes)


def test_of_several_unknown_users_nothing_is_read(shared: Path) -> None:
    given(shared / "a.spool", OTHERS)
    done = ensio("info", shared)
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert "none of the 2 spools" in done.stderr


def test_a_copy_by_another_user_is_read(shared: Path, tmp_path: Path) -> None:
    shutil.copytree(shared, tmp_path / "copy")  # root's own, as copies are their makers'
    run = en.open(tmp_path / "copy")
    assert len(run.events) == 100
    assert not any("left out" in note for note in run.notes)


def test_a_run_of_another_user_is_read_by_root(tmp_path: Path) -> None:
    run = made_run(tmp_path / "run")
    for path in (run / "a.spool", run):
        given(path, THEIRS)
    assert en.open(run).notes == en.open(run / "a.spool").notes
    assert len(en.open(run).events) == 10
