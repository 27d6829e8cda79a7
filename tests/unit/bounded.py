"""A command of ensio in its own process, in bounded memory and time."""

from __future__ import annotations

import os
import resource
import signal
import sys
from importlib import import_module
from pathlib import Path

from ensembles.cli.main import COMMANDS, main
from ensembles.cli.questions import QUESTIONS

# What commands import is there before the process forks, and not loaded by each child again.
for name in (
    *(f"cli.{command.replace('-', '_')}" for command in COMMANDS if command not in QUESTIONS),
    *("answers.phases", "answers.rate", "answers.requests", "answers.sites", "answers.totals"),
    *("readers.tracefile", "writers.tracefile", "readers.foreign.darshan", "readers.foreign.dftracer"),
    *("readers.foreign.otf2", "readers.foreign.strace"),
):
    import_module(f"ensembles.{name}")

MOST_MORE_BYTES = 1 << 30
MOST_S, HANGS_S = 60, 900
"""Of processor time, and of time on a machine however busy."""


def command(folder: Path, *arguments: str, most_more_bytes: int = MOST_MORE_BYTES) -> tuple[int, str]:
    """Exit code and complaint of a command (it is kept in `folder`); below 0: the signal that ended it."""
    told = folder / "told"
    complaint = os.open(told, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC)
    child = os.fork()
    if child == 0:
        code = 99
        try:
            pages = int(Path("/proc/self/statm").read_text().split()[0])
            limit = pages * resource.getpagesize() + most_more_bytes
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
            resource.setrlimit(resource.RLIMIT_CPU, (MOST_S, MOST_S))
            signal.alarm(HANGS_S)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(complaint, 2)
            sys.stdout, sys.stderr = open(1, "w", closefd=False), open(2, "w", closefd=False)  # noqa: SIM115
            code = main(arguments)
            sys.stderr.flush()
        finally:
            os._exit(code)
    os.close(complaint)
    _, status = os.waitpid(child, 0)
    return os.waitstatus_to_exitcode(status), told.read_text()
