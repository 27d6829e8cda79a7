"""A history that one user adds runs to and another one reads, by the commands."""

import os
import subprocess
import tempfile
from pathlib import Path

import pytest

OWNER, READER = 3001, 3002


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
        yield Path(name)


def ensio(user, folder, *words):
    command = ["setpriv", f"--reuid={user}", f"--regid={user}", "--clear-groups", "ensio", *words]
    environment = os.environ | {"HOME": str(folder), "ENSIO_HISTORY": "runs.db"}
    environment.pop("XDG_CACHE_HOME", None)
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, umask=0o022)


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
