"""A history that one user adds runs to and another one reads, by the commands."""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from places import PATIENCE_S

OWNER, READER, GROUP = 3001, 3002, 3003


@pytest.fixture
def folder():
    """A folder of another user, which every user can look into."""
    if os.geteuid() != 0:
        pytest.skip(
            "only root can become two other users (unit tests of the store cover the owner's own rights)"
        )
    with tempfile.TemporaryDirectory() as name:
        os.chmod(name, 0o755)
        os.chown(name, OWNER, OWNER)
        if ensio(OWNER, name, "--version").returncode:
            pytest.skip(f"other users may not enter the folder of {sys.executable}")
        yield Path(name)


def ensio(user, folder, *words):
    command = ["setpriv", f"--reuid={user}", f"--regid={user}", f"--groups={GROUP}", "ensio", *words]
    environment = os.environ | {"HOME": str(folder), "ENSIO_HISTORY": "runs.db"}
    environment.pop("XDG_CACHE_HOME", None)
    return subprocess.run(
        command, cwd=folder, env=environment, capture_output=True, text=True, umask=0o022, timeout=PATIENCE_S
    )


def test_a_history_is_private_until_its_owner_shares_it(folder):
    program = ["sh", "-c", "echo x > out; cat out", "sh", "--password=hunter2"]
    for number in (1, 2):
        assert ensio(OWNER, folder, "run", "-o", f"run{number}", "--", *program).returncode == 0
        added = ensio(OWNER, folder, "history", "add", f"run{number}", "--experiment", "nightly")
        assert added.returncode == 0, added.stderr
    place = folder / "runs.db"
    assert place.stat().st_mode & 0o777 == 0o600
    assert b"hunter2" not in place.read_bytes()
    refused = ensio(READER, folder, "history", "list")
    assert refused.returncode == 2
    assert refused.stderr.count("\n") == 1
    assert f"{place} cannot be read: Permission denied" in refused.stderr

    place.chmod(0o644)
    before = sorted(folder.iterdir())
    for words in (["list"], ["list", "--last", "1"], ["show", "2"], ["check"], ["context", "1"], ["metrics"]):
        done = ensio(READER, folder, "history", *words)
        assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
        assert "hunter2" not in done.stdout
    assert sorted(folder.iterdir()) == before
    refused = ensio(READER, folder, "history", "remove", "1")
    assert refused.returncode == 2
    assert "cannot be changed by this user" in refused.stderr


_KILLED = """
import os, sqlite3, sys
writer = sqlite3.connect(sys.argv[1], isolation_level=None)
writer.execute("UPDATE experiment SET name = 'renamed'")
os.kill(os.getpid(), 9)
"""


@pytest.mark.parametrize("has_index", [True, False])
def test_what_a_killed_writer_left_is_read_or_its_reader_learns_who_can(folder, has_index):
    program = ["sh", "-c", "echo x > out; cat out"]
    assert ensio(OWNER, folder, "run", "-o", "run", "--", *program).returncode == 0
    assert ensio(OWNER, folder, "history", "add", "run", "--experiment", "nightly").returncode == 0
    place, journal, index = (folder / f"runs.db{suffix}" for suffix in ("", "-wal", "-shm"))
    subprocess.run([sys.executable, "-c", _KILLED, place], umask=0o022, timeout=PATIENCE_S)
    for path in (place, journal, index):
        path.chmod(0o644)
    if not has_index:
        index.unlink()
    listed = ensio(READER, folder, "history", "list")
    assert ("renamed" in listed.stdout) == has_index, listed.stderr
    if not has_index:
        assert (listed.returncode, listed.stderr.count("\n")) == (2, 1)
        assert "ask its owner for ensio history list" in listed.stderr
    assert "renamed" in ensio(OWNER, folder, "history", "list").stdout
    assert "renamed" in ensio(READER, folder, "history", "list").stdout


@pytest.mark.parametrize("name", ["runs.db", "runs.db-wal", "runs.db-shm"])
@pytest.mark.parametrize("mode", [0o1777, 0o2770])
def test_a_private_run_is_not_written_into_a_file_that_another_user_has_planted(folder, name, mode):
    """The users share a group: in its folder, which is not sticky, they also share a history."""
    program = ["sh", "-c", "echo x > out; cat out"]
    assert ensio(OWNER, folder, "run", "-o", "run", "--", *program).returncode == 0
    shared = folder / "shared"
    shared.mkdir()
    os.chown(shared, OWNER, GROUP)
    shared.chmod(mode)
    if name != "runs.db":
        first = ensio(OWNER, folder, "history", "add", "run", "--experiment", "a", "--db", "shared/runs.db")
        assert first.returncode == 0, first.stderr
    (shared / name).touch()
    os.chown(shared / name, READER, GROUP)
    (shared / name).chmod(0o666)
    done = ensio(OWNER, folder, "history", "add", "run", "--experiment", "b", "--db", "shared/runs.db")
    if mode == 0o1777:
        assert done.returncode == 2
        assert "did not make the file, in a folder that all users can write to" in done.stderr
        assert (shared / name).stat().st_size == 0
    else:
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("words", [["list"], ["check"], ["add", "run", "--experiment", "x"], ["upgrade"]])
@pytest.mark.parametrize("name", ["runs.db", "runs.db-wal"])
def test_a_pipe_is_no_history_and_nobody_waits_for_it(folder, words, name):
    """A user who may read it and not write it would wait and not return."""
    assert ensio(OWNER, folder, "run", "-o", "run", "--", "sh", "-c", "echo x > out; cat out").returncode == 0
    for path, mode in ((folder / "run", 0o755), *((path, 0o644) for path in (folder / "run").iterdir())):
        path.chmod(mode)
    if name != "runs.db":
        (folder / "runs.db").touch(0o666)
    os.mkfifo(folder / name, 0o644)
    done = ensio(READER, folder, "history", *words)
    assert done.returncode == 2
    assert f"{folder / name} cannot be read: it is not a regular file" in done.stderr
