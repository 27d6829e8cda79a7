"""Without space, or without a folder to write to, the program runs on as if it were not recorded."""

import os
import resource
import subprocess

import pytest

import ensembles

CALLS = 90_000


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 4 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "none", folder], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no file system can be mounted here: {mounted.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


def assert_runs_as_untraced(recorder, program, tmp_path, **options):
    traced = recorder.execute(program, tmp_path / "out", CALLS, **options)
    untraced = recorder.untraced(program, tmp_path / "out", CALLS)
    assert traced.stdout == untraced.stdout
    assert traced.returncode == untraced.returncode == 0
    return traced


def assert_drops_are_counted(run):
    events = len(run.select(call="pwrite"))
    assert 0 < events < CALLS
    assert run.info.dropped_events + len(run.events) == CALLS + 1  # and one open
    assert run.summary.count == CALLS + 1
    assert run.info.lost_calls == 0
    assert any("dropped" in note or "not recorded" in note for note in run.notes)


def test_full_disk_drops_events_and_counts_them(recorder, tmp_path, small_disk):
    recorder.run = small_disk / "run"
    assert_runs_as_untraced(recorder, recorder.build("acknowledge"), tmp_path)
    assert_drops_are_counted(ensembles.open(recorder.run))


def test_limit_on_file_size_drops_events_and_raises_no_signal(recorder, tmp_path):
    limit = 1 << 20
    assert_runs_as_untraced(
        recorder,
        recorder.build("acknowledge"),
        tmp_path,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit)),
    )
    assert_drops_are_counted(ensembles.open(recorder.run))


def test_disk_that_is_full_from_the_start_is_said_in_one_sentence(recorder, tmp_path, small_disk):
    subprocess.run(["dd", "if=/dev/zero", f"of={small_disk}/filler", "bs=4096"], capture_output=True)
    recorder.run = small_disk / "run"
    traced = assert_runs_as_untraced(recorder, recorder.build("acknowledge"), tmp_path)
    assert_one_sentence(traced.stderr)


def test_folder_that_cannot_be_made_is_said_in_one_sentence(recorder, tmp_path):
    (tmp_path / "file").write_text("")
    recorder.run = tmp_path / "file" / "run"
    traced = assert_runs_as_untraced(recorder, recorder.build("acknowledge"), tmp_path)
    assert_one_sentence(traced.stderr)


def test_other_users_without_the_right_to_write_run_unrecorded(recorder, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root can run a program as another user")
    program = recorder.build("acknowledge")
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)
    (tmp_path / "out").touch()
    (tmp_path / "out").chmod(0o666)
    recorder.copy_library(tmp_path)
    traced = assert_runs_as_untraced(recorder, program, tmp_path, user=65534, group=65534)
    assert_one_sentence(traced.stderr)


def assert_one_sentence(stderr: bytes):
    message = stderr.decode()
    assert message.startswith("ensio: ")
    assert message.count("\n") == 1
    assert "ENSIO_DIR" in message
