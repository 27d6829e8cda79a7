"""``.ci/run``: what it runs, in which order, and the status that it ends with. ``./dev`` is a script here."""

import os
import shutil
import subprocess

import pytest
from places import ROOT

DEV = """#!/bin/sh
echo "$*" >>said
case "$*" in
lint*) until [ -e tested ]; do sleep 0.01; done ;;  # it is at work while the tests are
test) touch tested ;;
esac
exit "$(grep -s "^$*=" statuses | cut -d = -f 2 | grep . || echo 0)"
"""
WORDS = ["demo", "setup lint", "lint --quick", "test"]


@pytest.mark.parametrize(
    ("failing", "status"),
    [
        ({}, 0),
        ({"demo": 3}, 3),
        ({"setup lint": 4}, 4),
        ({"lint --quick": 5}, 5),
        ({"test": 6}, 6),
        ({"lint --quick": 5, "test": 6}, 6),
    ],
)
def test_all_is_run_and_a_failure_is_its_status(tmp_path, failing, status):
    shutil.copytree(ROOT / ".ci", tmp_path / ".ci")
    (tmp_path / "dev").write_text(DEV)
    (tmp_path / "dev").chmod(0o755)
    (tmp_path / "statuses").write_text("".join(f"{words}={code}\n" for words, code in failing.items()))
    done = subprocess.run([tmp_path / ".ci/run"], capture_output=True, text=True, env=os.environ, timeout=900)
    assert done.returncode == status, done.stderr
    said = (tmp_path / "said").read_text().splitlines()
    assert said[:2] == WORDS[:2]
    # Tests and lint are together at work; without its packages there is no lint.
    assert sorted(said[2:]) == WORDS[2:][int("setup lint" in failing) :]
    for words in set(failing) - {"test"}:
        assert f"ci: ./dev {words} failed with status {failing[words]}" in done.stderr
