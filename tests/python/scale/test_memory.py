"""Commands stay within --memory on runs that do not fit into it, or refuse."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from ensembles.writers.synthetic import synthetic_run

TASKS, EVENTS = 96, 31_250
MEMORY_MIB = 208
"""Less than the 55 bytes an event take by themselves, beside Python and its libraries."""

COMMANDS = {
    "report": ("-o", "report.html"),
    "rate": ("--phase", "2-3", "--ordinal", "5-90"),
    "phases": (),
    "ordinals": ("--within", "phase", "--op", "write"),
    "modes": ("--op", "write", "--ordinal", "1-900"),
}


@pytest.fixture(scope="module")
def run_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memory") / "run"
    synthetic_run(folder, TASKS, EVENTS)
    (folder / "trace.h5").touch()  # so that none is made
    return folder


def peak_mib(*arguments: object, cwd: Path) -> tuple[int, float, str]:
    """Exit status, peak memory and last words of a command."""
    words = [sys.executable, "-m", "ensembles.cli.main", *map(str, arguments)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=cwd) as process:
        told = process.stderr.read().decode()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    return process.returncode, usage.ru_maxrss / 1024, told


@pytest.mark.parametrize("name", COMMANDS)
def test_commands_take_no_more_than_they_may(name: str, run_path: Path, tmp_path: Path) -> None:
    status, peak, told = peak_mib(
        name, run_path, *COMMANDS[name], "--memory", f"{MEMORY_MIB}MiB", cwd=tmp_path
    )
    assert status == 0, told
    assert peak < MEMORY_MIB


def test_what_cannot_be_done_with_so_little_is_refused(run_path: Path, tmp_path: Path) -> None:
    status, _, told = peak_mib("info", run_path, "--memory", "16MiB", cwd=tmp_path)
    assert status == 2
    assert told.count("\n") == 1
    assert "more memory than the 16.0 MiB that a process may take (--memory)" in told
