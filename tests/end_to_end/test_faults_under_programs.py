"""The commands of docs/reference/pfs.md: a real MADbench on a model with Franklin's fault, and without it."""

import json
import re
import subprocess
import tempfile
from pathlib import Path

import pytest
from places import ROOT

PAGE = (ROOT / "docs" / "reference" / "pfs.md").read_text()
COMMANDS = re.findall(r"^    (ensio .*(?:madbench .*fs_scale|diagnose).*)$", PAGE, re.M)


@pytest.fixture
def in_memory():
    with tempfile.TemporaryDirectory(prefix="ensio-madbench-", dir="/dev/shm") as folder:
        yield folder


def test_strided_readahead_shows_in_real_runs(tmp_path, in_memory):
    faulty, patched, diagnose = COMMANDS
    for command in (faulty, patched):
        line = command.replace("/dev/shm", in_memory)
        done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
    findings = {
        run: json.loads(
            subprocess.run(
                diagnose.replace("faulty", run) + " --json",
                shell=True,
                cwd=tmp_path,
                stdout=subprocess.PIPE,
                check=True,
            ).stdout
        )["findings"]
        for run in ("faulty", "patched")
    }

    (finding,) = findings["faulty"]
    assert finding["id"] == "strided-readahead"
    assert findings["patched"] == []
    assert not list(Path(in_memory).iterdir())
