"""Every command line of docs/reference/patterns.md is run, its first example as the user's own pattern."""

import os
import re
import subprocess
import sys

import pytest
from places import BUILD, PATIENCE_S, ROOT

import ensembles

README = (ROOT / "docs" / "reference" / "patterns.md").read_text()
COMMANDS = re.findall(r"^    (ensio replay [^#\n]*?) *(?:#|$)", README, re.MULTILINE)
MIB = 1 << 20


@pytest.fixture
def folder(tmp_path):
    example = re.search(r"\n\n(    title(?:.*\n)*?)(?=\S)", README)[1]
    (tmp_path / "mine.toml").write_text(re.sub("^    ", "", example, flags=re.MULTILINE))
    (tmp_path / "data").mkdir()
    return tmp_path


def test_there_are_commands():
    assert len(COMMANDS) == 5


@pytest.mark.parametrize("command", COMMANDS)
def test_command_does_what_it_says(folder, command):
    if not (BUILD / "bin" / "ensio-replay").exists():
        pytest.fail(f"ensio-replay is not built in {BUILD}; run ./dev setup")
    path = f"{BUILD}/bin:{os.path.dirname(sys.executable)}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", f"{command} -o run"],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
    )
    assert done.returncode == 0, done.stderr
    run = ensembles.open(folder / "run")
    layers = {run.calls[call].layer for call in set(run.events.call.tolist())}
    assert "posix" in layers
    assert ("mpiio" in layers) == ("mpiio" in command)
    if "--keep" in command:
        parts = sorted((folder / "data").iterdir())
        assert [part.name for part in parts] == [f"part.{rank}" for rank in range(4)]
        assert {part.stat().st_size for part in parts} == {4096 + 3 * MIB}
    else:
        assert not any((folder / "data").iterdir())
