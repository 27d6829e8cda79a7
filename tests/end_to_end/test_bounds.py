"""Without a setting of the user's, a recording leaves the program its disk and its memory."""

import os
import subprocess

import pytest
from places import BUILD, PATIENCE_S

import ensembles

MODES = ("trace", "profile", "tail")
LIMIT_BYTES = 83 << 20
CALLS = 2_500_000
"""Their events take more, coded, than the tenth of a disk that is recorded without a setting."""
USER = 65534
WRITTEN = b"20 MiB written: Success\n"


def build(recorder):
    return recorder.build("without_bounds", f"-I{BUILD}/include")


def used_bytes(folder):
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


@pytest.fixture
def small_disk(tmp_path):
    """A file system of 83 MiB."""
    folder = tmp_path / "small"
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={LIMIT_BYTES}", "none", folder], check=True)
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.fixture
def quota(tmp_path):
    """A folder that may hold 83 MiB on a file system of 400: a quota group of btrfs, which needs nothing but
    the file system itself."""
    folder, image = tmp_path / "quota", tmp_path / "image"
    folder.mkdir()
    with image.open("wb") as file:
        file.truncate(400 << 20)
    subprocess.run(["mkfs.btrfs", "-q", image], check=True)
    subprocess.run(["mount", "-o", "loop", image, folder], check=True)
    try:
        for command in (
            ("quota", "enable", folder),
            ("subvolume", "create", folder / "home"),
            ("qgroup", "limit", str(LIMIT_BYTES), folder / "home"),
        ):
            subprocess.run(["btrfs", *command], check=True, capture_output=True)
        os.chown(folder / "home", USER, USER)
        yield folder / "home"
    finally:
        subprocess.run(["umount", folder], check=True)


def open_to_all(recorder, folder):
    """Lets another user start the programs."""
    for parent in (folder, *folder.parents[:3]):
        parent.chmod(parent.stat().st_mode | 0o055)
    recorder.copy_library(folder)
    return {"user": USER, "group": USER, "extra_groups": []}


def fill(recorder, folder, mode, **options):
    program = build(recorder)
    recorder.run = folder / "run"
    done = recorder.execute(
        program, "calls", CALLS, cwd=folder, environment={"ENSIO_MODE": mode}, timeout=PATIENCE_S, **options
    )
    assert (done.returncode, done.stdout, done.stderr) == (4, WRITTEN, b"")
    assert used_bytes(recorder.run) < LIMIT_BYTES // 10 + (1 << 20)
    run = ensembles.open(recorder.run)
    assert run.summary.count == CALLS + 22
    assert run.info.lost_calls == 0
    return run


@pytest.mark.parametrize("mode", MODES)
def test_the_result_fits_on_a_small_disk(recorder, small_disk, mode):
    run = fill(recorder, small_disk, mode)
    if mode == "trace":
        assert run.info.dropped_by_reason == {"budget": run.info.dropped_events}
        assert run.info.dropped_events + len(run.events) == run.summary.count


def test_the_result_fits_into_a_quota(recorder, tmp_path, quota):
    run = fill(recorder, quota, "trace", **open_to_all(recorder, tmp_path))
    assert set(run.info.dropped_by_reason) <= {"budget", "file_system_full"}
    assert run.info.dropped_events + len(run.events) == run.summary.count


def test_the_last_twentieth_of_a_disk_is_left_whatever_the_budget(recorder, tmp_path, small_disk):
    program = build(recorder)
    (small_disk / "filler").write_bytes(bytes(72 << 20))
    recorder.run = small_disk / "run"
    environment = {"ENSIO_MAX_BYTES": "1GiB"}
    done = recorder.execute(
        program, "calls", CALLS, cwd=tmp_path, environment=environment, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stdout) == (4, WRITTEN)
    left = os.statvfs(small_disk)
    assert left.f_bavail * left.f_frsize > LIMIT_BYTES // 20 - (4 << 20)
    run = ensembles.open(recorder.run)
    assert run.info.dropped_by_reason == {"free_space": run.info.dropped_events}
    assert run.info.dropped_events + len(run.events) == run.summary.count
    assert len(run.events) > CALLS / 4


def test_the_processes_of_a_node_share_a_tenth(preload, small_disk):
    """Four at a time: together they store no more than one alone."""
    program = build(preload)
    preload.run = small_disk / "run"
    command = f"for i in 1 2 3 4; do (mkdir $i; cd $i; exec {program} calls {CALLS // 2} 9>&-) & done; wait"
    script = ["bash", "-c", command.replace("result", "/dev/null")]
    environment = preload.environment(ENSIO_LAUNCH="script")
    subprocess.run(script, cwd=small_disk, env=environment, check=True, capture_output=True)
    assert used_bytes(preload.run) < LIMIT_BYTES // 10 + 4 * (1 << 20)
    run = ensembles.open(preload.run)
    assert len(run.info.processes) >= 4
    # One that begins long before the others may find room for all that it calls.
    assert sum(process.dropped_events > 0 for process in run.info.processes) >= 3
    assert run.info.dropped_events + len(run.events) == run.summary.count
    assert not list(preload.run.glob(".*.taken"))  # the last process removes what they shared


@pytest.mark.parametrize(("what", "mode"), [("paths", "trace"), ("folders", "profile")])
def test_many_paths_take_bounded_memory_and_disk(recorder, tmp_path, what, mode):
    paths = 300_000
    program = build(recorder)
    plain = recorder.untraced(program, what, paths, cwd=tmp_path)
    done = recorder.execute(
        program, what, paths, cwd=tmp_path, environment={"ENSIO_MODE": mode}, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (4, b"")
    assert int(done.stdout) - int(plain.stdout) < 16 << 10  # KiB
    run = ensembles.open(recorder.run)
    assert run.summary.count >= paths
    assert run.info.calls_on_other_paths >= paths - 65_536
    assert 60_000 < len(run.files) <= 65_536
    others = [path for path in run.files if path.endswith("(other paths)")]
    assert f"{tmp_path}/no-such-folder/one-below/(other paths)" in others or len(others) > 4000
    assert any("paths" in note and f"{run.info.calls_on_other_paths:,}" in note for note in run.notes)
    without_events = used_bytes(recorder.run) - (48 * len(run.events) if mode == "trace" else 0)
    assert without_events < 16 << 20


def test_many_paths_stay_within_a_small_budget(recorder, tmp_path):
    program = build(recorder)
    environment = {"ENSIO_MODE": "profile", "ENSIO_MAX_BYTES": "1MiB"}
    done = recorder.execute(
        program, "paths", 300_000, cwd=tmp_path, environment=environment, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (4, b"")
    assert used_bytes(recorder.run) < (1 + 3) << 20
    run = ensembles.open(recorder.run)
    assert run.summary.count >= 300_000
    # The deepest folder whose text still fits.
    folders = [name.removesuffix("(other paths)") for name in run.files if name.endswith("(other paths)")]
    assert folders
    assert all(f"{tmp_path}/no-such-folder/one-below/".startswith(folder) for folder in folders)


@pytest.mark.parametrize("mode", MODES)
def test_thousands_of_threads_at_once_take_bounded_disk(recorder, tmp_path, mode):
    threads = 3000
    program = build(recorder)
    environment = {"ENSIO_MODE": mode, "ENSIO_MAX_BYTES": "4MiB"}
    done = recorder.execute(
        program, "threads", threads, cwd=tmp_path, environment=environment, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (4, b"")
    run = ensembles.open(recorder.run)
    assert run.summary.count == 3 * threads * 10 + 1
    assert used_bytes(recorder.run) < (4 + 8) << 20


def test_half_a_million_region_names_take_bounded_memory_and_disk(recorder, tmp_path):
    program = build(recorder)
    plain = recorder.untraced(program, "regions", 500_000, cwd=tmp_path)
    environment = {"ENSIO_MAX_BYTES": "4MiB"}
    done = recorder.execute(
        program, "regions", 500_000, cwd=tmp_path, environment=environment, timeout=PATIENCE_S
    )
    assert (done.returncode, done.stderr) == (4, b"")
    assert int(done.stdout) - int(plain.stdout) < 8 << 10  # KiB
    assert used_bytes(recorder.run) < (4 + 3) << 20
    run = ensembles.open(recorder.run)
    marks = len(run.regions)
    assert 10_000 < marks < 200_000
    assert run.info.dropped_events > 500_000
    assert any("budget" in note for note in run.notes)
