"""A run directory that others can write to: they cannot end the program, nor get what it records."""

import os
import socket
import subprocess
import time

import pytest
from places import BUILD

VICTIM, OTHER = 2002, 2001
CALLS = 3_000_000


@pytest.fixture
def shared(preload, tmp_path):
    """A world-writable folder; programs and recorder for all."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(folder.stat().st_mode | 0o055)
    preload.copy_library(tmp_path)
    folder = tmp_path / "shared"
    folder.mkdir()
    folder.chmod(0o777)
    preload.run = folder
    work = tmp_path / "work"
    work.mkdir()
    os.chown(work, VICTIM, VICTIM)
    return folder


def start(recorder, folder, **environment):
    """A program of the victim's that records for a second or more."""
    program = recorder.build("without_bounds", f"-I{BUILD}/include")
    return subprocess.Popen(
        [program, "calls", str(CALLS)],
        env=recorder.environment(**environment),
        cwd=folder.parent / "work",
        user=VICTIM,
        group=VICTIM,
        extra_groups=[],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def by_other(*command):
    subprocess.run([str(word) for word in command], user=OTHER, group=OTHER, extra_groups=[], check=True)


def spool_of(folder):
    for _ in range(1000):
        found = list(folder.glob("*.spool"))
        if found:
            return found[0]
        time.sleep(0.01)
    raise AssertionError("no spool")


def assert_ends_by_itself(process):
    stdout, stderr = process.communicate(timeout=600)
    assert (process.returncode, stdout) == (4, b"20 MiB written: Success\n")
    return stderr


def test_counter_of_another_user_is_not_used(preload, shared):
    taken = shared / f".{socket.gethostname()}.taken"
    by_other("truncate", "-s", "4096", taken)
    by_other("chmod", "666", taken)
    process = start(preload, shared, ENSIO_MAX_BYTES="512MiB,1GiB")
    spool_of(shared)
    by_other("truncate", "-s", "0", taken)
    assert assert_ends_by_itself(process) == b""
    assert taken.stat().st_size == 0


def test_file_in_the_place_of_the_spool_gets_no_events(preload, shared):
    process = start(preload, shared)
    spool = spool_of(shared)
    by_other("mv", spool, shared / "moved")
    by_other("sh", "-c", ': >"$1"; chmod 666 "$1"', "-", spool)
    assert assert_ends_by_itself(process) == b""
    assert (spool.stat().st_uid, spool.stat().st_size) == (OTHER, 0)
    moved = (shared / "moved").stat()
    assert (moved.st_uid, moved.st_mode & 0o777) == (VICTIM, 0o600)
    assert moved.st_blocks * 512 > 4 << 20


@pytest.mark.parametrize("inside", ["", "deep/er"])
def test_link_of_another_user_is_not_followed(preload, shared, tmp_path, inside):
    home = tmp_path / "work" / "home"
    subprocess.run(["install", "-d", "-o", str(VICTIM), home], check=True)
    by_other("ln", "-s", home, shared / "run")
    shared.chmod(0o1777)
    preload.run = shared / "run" / inside
    process = start(preload, shared)
    message = assert_ends_by_itself(process).decode()
    assert message.startswith("ensio: no I/O is recorded")
    assert message.count("\n") == 1
    assert list(home.iterdir()) == []


def test_own_link_is_followed(preload, shared, tmp_path):
    home = tmp_path / "work" / "home"
    subprocess.run(["install", "-d", "-o", str(VICTIM), home], check=True)
    (shared / "run").symlink_to(home)
    os.chown(shared / "run", VICTIM, VICTIM, follow_symlinks=False)
    preload.run = shared / "run"
    process = start(preload, shared)
    assert assert_ends_by_itself(process) == b""
    assert len(list(home.glob("*.ensio"))) == 1
