"""Commands stay within --memory on runs that do not fit into it, or refuse."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from synthetic_runs import synthetic_run

pytestmark = pytest.mark.slow

TASKS, EVENTS = 96, 31_250
MEMORY_MIB = 208
"""Less than the 55 bytes an event take by themselves, beside Python and its libraries."""

COMMANDS = {
    "report": ("-o", "report.html"),
    "rate": ("--phase", "2-3", "--where", "ordinal=5-90"),
    "phases": (),
    "ordinals": ("--by", "phase", "--op", "write"),
    "modes": ("--op", "write", "--where", "ordinal=1-900"),
}


@pytest.fixture(scope="module")
def run_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("memory") / "run"
    synthetic_run(folder, TASKS, EVENTS)
    (folder / "trace.h5").touch()  # so that none is made
    return folder


# What getrusage says of a process that was just started is the peak of the one that started it.
PROGRAM = """
import sys
from ensembles.cli.main import main
status = main(sys.argv[2:])
with open("/proc/self/status") as file, open(sys.argv[1], "w") as answer:
    answer.write(file.read().partition("VmHWM:")[2].split()[0])
sys.exit(status)
"""


def peak_mib(*arguments: object, cwd: Path) -> tuple[int, float, str]:
    """Exit status, peak memory and last words of a command."""
    answer = cwd / "peak"
    words = [sys.executable, "-c", PROGRAM, str(answer), *map(str, arguments)]
    done = subprocess.run(words, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, cwd=cwd, text=True)
    return done.returncode, int(answer.read_text()) / 1024, done.stderr


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
