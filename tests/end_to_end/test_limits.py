"""A program that meets a limit runs to the same end as without us, and the trace says what it misses."""

import os
import resource
import shutil
import subprocess

import pytest

import ensembles

CALLS = 40_000


def limited(limit, value):
    """What a child does before it becomes the program."""

    def set_limit():
        hard = resource.getrlimit(limit)[1]
        resource.setrlimit(limit, (value, value if hard == resource.RLIM_INFINITY else min(value, hard)))

    return set_limit


def assert_same(recorder, what, path, **options):
    """Run one of the programs of ``limits.c`` recorded and not; return the recorded one."""
    program = recorder.build("limits")
    untraced = recorder.untraced(program, what, path, timeout=600, **options)
    traced = recorder.execute(program, what, path, timeout=600, **options)
    assert (traced.returncode, traced.stdout) == (untraced.returncode, untraced.stdout)
    assert traced.returncode == 4
    return traced


def assert_all_calls_are_counted(run, calls, others=10):
    """All writes are recorded or counted as dropped; a few opens and closes may be among these."""
    writes = len(run.select(call="pwrite"))
    assert 0 < writes < calls
    assert calls <= writes + run.info.dropped_events <= calls + others
    assert any("dropped from the events" in note or "not recorded" in note for note in run.notes)


def test_limit_on_memory_that_a_program_sets_itself(recorder, tmp_path):
    traced = assert_same(recorder, "no_memory", tmp_path / "out")
    assert traced.stderr == b""
    assert_all_calls_are_counted(ensembles.open(recorder.run), 2 * CALLS)


@pytest.mark.parametrize(("what", "calls"), [("descriptors", 2 * CALLS), ("file_size", CALLS)])
def test_limit_that_a_program_sets_itself_costs_no_event(recorder, tmp_path, what, calls):
    """Neither a descriptor nor a longer file is needed for what lies within the length that the spool has."""
    traced = assert_same(recorder, what, tmp_path / "out")
    assert traced.stderr == b""
    run = ensembles.open(recorder.run)
    assert len(run.select(call="pwrite")) == calls
    assert (run.info.dropped_events, run.notes) == (0, [])


def test_program_gets_the_memory_that_it_gets_without_us(recorder, tmp_path):
    traced = assert_same(recorder, "memory", tmp_path / "out")
    assert b"malloc gave it\nfailed 12\n" in traced.stdout
    run = ensembles.open(recorder.run)
    assert len(run.select(call="pwrite")) + run.info.dropped_events >= CALLS


@pytest.mark.parametrize("memory", [resource.RLIMIT_AS, resource.RLIMIT_DATA])
def test_enough_memory_from_the_start(recorder, tmp_path, memory):
    assert_same(recorder, "work", tmp_path / "out", preexec_fn=limited(memory, 24 << 20))
    run = ensembles.open(recorder.run)
    assert len(run.select(call="pwrite")) + run.info.dropped_events >= CALLS


@pytest.mark.parametrize("memory", [resource.RLIMIT_AS, resource.RLIMIT_DATA])
def test_recorder_stays_off_in_a_process_with_little_memory(recorder, tmp_path, memory):
    traced = assert_same(recorder, "work", tmp_path / "out", preexec_fn=limited(memory, 12 << 20))
    assert traced.stderr.startswith(b"ensio: no I/O is recorded of limits")
    assert traced.stderr.count(b"\n") == 1
    assert not recorder.run.exists()


@pytest.mark.parametrize("start", ["", "exec", "env", "nice"])
@pytest.mark.parametrize("limit", ["-v 4000", "-v 6000", "-v 8000", "-d 300", "-d 1500", "-d 4000"])
def test_program_with_little_memory_starts_without_the_recorder(preload, tmp_path, start, limit):
    words = ["sh", "-c", f"ulimit {limit}; {start} {preload.build('little_memory')}"]
    alone = preload.untraced(*words, cwd=tmp_path)
    traced = preload.execute(*words, cwd=tmp_path)
    assert (traced.returncode, traced.stdout) == (alone.returncode, alone.stdout)
    assert alone.returncode in (6, 9)
    assert b"ensio: no I/O is recorded of " in traced.stderr


@pytest.mark.parametrize(
    ("memory", "kib"),
    [
        *((resource.RLIMIT_AS, kib) for kib in (3500, 4000, 5000, 6000, 7000, 9000, 12000)),
        *((resource.RLIMIT_DATA, kib) for kib in (2000, 4000)),
    ],
)
def test_program_with_little_memory_starts_although_the_library_is_preloaded(preload, tmp_path, memory, kib):
    """The loader maps the recorder after the libraries of the program, and goes on where it does not fit."""
    (tmp_path / "text").write_text("some\n")
    limit = limited(memory, kib << 10)
    alone = preload.untraced("cat", tmp_path / "text", preexec_fn=limit)
    traced = preload.execute("cat", tmp_path / "text", preexec_fn=limit)
    assert (traced.returncode, traced.stdout) == (alone.returncode, alone.stdout) == (0, b"some\n")
    assert traced.stderr.count(b"ensio: no I/O is recorded of ") == traced.stderr.count(b"\n") == 1


@pytest.mark.parametrize("descriptors", [4, 5])
def test_few_descriptors_from_the_start(recorder, tmp_path, descriptors):
    """The loader itself needs one; the program has the first of the two for its file."""
    limit = limited(resource.RLIMIT_NOFILE, descriptors)
    traced = assert_same(recorder, "work", tmp_path / "out", preexec_fn=limit)
    assert traced.stderr == b""
    run = ensembles.open(recorder.run)
    assert len(run.select(call="pwrite")) == CALLS
    assert (run.info.dropped_events, run.notes) == (0, [])


def test_handlers_on_small_stacks(recorder, tmp_path):
    limit = limited(resource.RLIMIT_STACK, 64 << 10)
    traced = assert_same(recorder, "stacks", tmp_path / "out", preexec_fn=limit)
    assert traced.stdout == b"500 handled\n"
    run = ensembles.open(recorder.run)
    assert len(run.select(call="pwrite")) == 500
    assert run.notes == []


def as_nobody(recorder, tmp_path):
    """Lets another user reach the programs and write where they write."""
    if os.geteuid() != 0:
        pytest.skip("only root can run a program as another user")
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)
    recorder.copy_library(tmp_path)
    (tmp_path / "data").mkdir()
    (tmp_path / "data").chmod(0o777)
    return {"user": 65534, "group": 65534, "extra_groups": []}


def test_all_memory_locked(recorder, tmp_path):
    """Locked memory is limited for all but root: a new window may not be had."""
    user = as_nobody(recorder, tmp_path)
    recorder.run = tmp_path / "data" / "run"
    limit = limited(resource.RLIMIT_MEMLOCK, 8 << 20)
    traced = assert_same(recorder, "locked", tmp_path / "data" / "out", preexec_fn=limit, **user)
    assert b"mlockall 0" in traced.stdout
    run = ensembles.open(recorder.run)
    assert len(run.select(call="pwrite")) + run.info.dropped_events >= CALLS


@pytest.fixture
def quota(tmp_path):
    """A folder that may hold 4 MiB; on btrfs, whose quotas need nothing but the file system itself."""
    folder, image = tmp_path / "quota", tmp_path / "image"
    folder.mkdir()
    with open(image, "wb") as file:
        file.truncate(160 << 20)
    steps = (
        ("mkfs.btrfs", "-q", image),
        ("mount", "-o", "loop", image, folder),
        ("btrfs", "quota", "enable", folder),
        ("btrfs", "subvolume", "create", folder / "data"),
        ("btrfs", "qgroup", "limit", "4M", folder / "data"),
    )
    try:
        for step in steps:
            done = subprocess.run([str(word) for word in step], capture_output=True, text=True)
            if done.returncode:
                pytest.skip(f"no file system with a quota is available: {step[0]}: {done.stderr.strip()}")
        yield folder / "data"
    finally:
        subprocess.run(["umount", folder], capture_output=True)


def test_quota_drops_events_and_counts_them(recorder, tmp_path, quota):
    recorder.run = quota / "run"
    traced = assert_same(recorder, "work", tmp_path / "out")
    assert traced.stderr == b""
    assert_all_calls_are_counted(ensembles.open(recorder.run), CALLS)
    filled = subprocess.run(
        ["dd", "if=/dev/zero", f"of={quota}/more", "bs=64k", "count=64"], capture_output=True
    )
    assert b"quota exceeded" in filled.stderr


@pytest.fixture
def read_only(tmp_path):
    """A folder in which no user can write, not even root."""
    folder = tmp_path / "read-only"
    folder.mkdir()
    for options in (("--bind", folder, folder), ("-o", "remount,bind,ro", folder)):
        done = subprocess.run(["mount", *options], capture_output=True, text=True)
        if done.returncode:
            pytest.skip(f"no folder can be made read-only here: {done.stderr.strip()}")
    yield folder
    subprocess.run(["umount", folder], check=True)


@pytest.mark.parametrize("named", [True, False], ids=["by ENSIO_DIR", "current folder"])
def test_read_only_folder_is_said_in_one_sentence(recorder, tmp_path, read_only, named):
    program = recorder.build("limits")
    environment = recorder.environment(ENSIO_DIR=str(read_only / "run") if named else "")
    done = subprocess.run(
        [program, "work", tmp_path / "out"], env=environment, cwd=read_only, capture_output=True, text=True
    )
    assert (done.returncode, done.stdout) == (4, f"{CALLS} calls, closed 0\n")
    assert done.stderr.startswith("ensio: no I/O is recorded")
    assert "Read-only file system" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("kept", [True, False], ids=["moved", "removed"])
def test_run_directory_that_goes_away_in_mid_run(recorder, tmp_path, kept):
    program = recorder.build("limits")
    process = subprocess.Popen(
        [program, "homeless", tmp_path / "out"],
        env=recorder.environment(),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout.readline() == "ready\n"
    if kept:
        recorder.run.rename(tmp_path / "elsewhere")
    else:
        shutil.rmtree(recorder.run)
    stdout, stderr = process.communicate("go\n", timeout=600)
    assert (process.returncode, stderr) == (4, "")
    assert stdout == f"{CALLS} calls, closed 0\n" * 2
    assert not recorder.run.exists()
    if kept:
        run = ensembles.open(tmp_path / "elsewhere")
        assert len(run.select(call="pwrite")) == 2 * CALLS
        assert (run.info.dropped_events, run.notes) == (0, [])
