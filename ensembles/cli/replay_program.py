"""The program ``ensio-replay``: how it is started, and what it prints."""

from __future__ import annotations

import hashlib
import os
import shlex
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TextIO

from ensembles.cli.options import warn
from ensembles.cli.run import find_preload_library, preloaded
from ensembles.files.user_cache import made_once
from ensembles.model import __version__
from ensembles.model.errors import EnsioError, MissingLibrary
from ensembles.model.table import table_text
from ensembles.model.units import bytes_text, count_text, seconds_text
from ensembles.passes.progress import advance, clear, is_listened_to
from ensembles.recorder.install_paths import installed

PROGRAM = "ensio-replay"

_COLUMNS = ["phase", "repetition", "tasks", "calls", "bytes", "slowest_task_s", "phase_s", "MiB_per_s"]

_DONE = "steps done: "
"""Begin of a line of progress of testbed/replay/replay.c."""

INTERRUPTED = 128 + signal.SIGINT
"""Exit status."""


ANY_TASKS = {
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
    "OMPI_MCA_mpi_yield_when_idle": "1",
    "OMPI_MCA_rmaps_base_oversubscribe": "1",
    "PRTE_MCA_rmaps_default_mapping_policy": ":oversubscribe",
}
"""Variables by which Open MPI 4 and 5 start more tasks than there are cores, for root as well."""


def mpi_environment(directory: Path, layers: frozenset[str]) -> dict[str, str]:
    """Return the launcher's environment; a preloaded recorder alone sees calls inside shared libraries."""
    from ensembles.workloads.patterns.calls import COLLECTIVELY_OPENED

    environment = {**ANY_TASKS, **os.environ, "ENSIO_DIR": str(directory).replace("%", "%%")}
    if not layers.isdisjoint(COLLECTIVELY_OPENED):
        others = os.environb.get(b"LD_PRELOAD", b"")
        environment["LD_PRELOAD"] = os.fsdecode(preloaded(os.fsencode(find_preload_library()), others))
    return environment


def find_program(layers: frozenset[str]) -> str:
    """Return the path of the program that makes the calls of layers.

    It is the installed one. Where there is none (a wheel knows no MPI), or ``MPICC`` names a compiler driver
    of an MPI, it is linked for that one when it is first needed, with the libraries that the layers need.
    """
    asked = os.environ.get("MPICC", "")
    if not asked:
        with suppress(MissingLibrary):
            return str(installed(f"bin/{PROGRAM}"))
    driver = shutil.which(asked or "mpicc")
    if driver is None:
        raise MissingLibrary(
            f"{PROGRAM} is linked by the MPI's {asked or 'mpicc'}, which is not found: install an MPI "
            "(Debian: libopenmpi-dev openmpi-bin), or name its compiler driver in MPICC"
        )
    build = ["sh", str(installed("share/ensio/replay/build.sh")), driver]
    path = f"{installed('bin/ensio-cc').parent}:{os.environ.get('PATH', os.defpath)}"
    libraries: list[str] = []
    if layers & {"hdf5", "netcdf", "pnetcdf"}:
        needed = os.environ | {"NEEDED": " ".join(layers)}
        found = subprocess.run(build, env=needed, capture_output=True, text=True)
        if found.returncode:
            raise MissingLibrary(found.stderr.strip().rpartition("\n")[2])
        libraries = found.stdout.split()

    def link(program: str) -> None:
        warn(f"{PROGRAM} is linked for the MPI of {driver}, this once")
        command, environment = [*build, program, *libraries], os.environ | {"PATH": path}
        done = subprocess.run(command, env=environment, capture_output=True, text=True, errors="replace")
        if done.returncode:
            raise EnsioError(f"{PROGRAM} cannot be linked by {driver}: {done.stderr.partition(chr(10))[0]}")

    names = (__version__, __file__, os.path.realpath(driver), os.stat(driver).st_mtime_ns, libraries)
    key = hashlib.blake2b(repr(names).encode(), digest_size=8).hexdigest()
    try:
        return made_once(f"replay-{key}", PROGRAM, link)
    except OSError as error:
        remedy = "name a folder that is yours in XDG_CACHE_HOME"
        raise EnsioError(f"{PROGRAM} cannot be kept ({error}): {remedy}") from None


def find_launcher(line: str) -> list[str]:
    """Split the command that starts tasks into words."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise EnsioError(f"the launcher {line} is not a command line: {error}") from None
    if not words or not shutil.which(words[0]):
        raise EnsioError(
            f'the launcher "{line}" is not found: install an MPI (Debian: openmpi-bin), '
            "or name another launcher with --launcher"
        )
    return words


def interrupt_on_signals() -> None:
    """Let signals that end a program raise, so that the data is removed."""
    for each in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(each, signal.default_int_handler)


def run_launcher(command: list[str], environment: dict[str, str], quiet: bool) -> tuple[int, list[str]]:
    """Run the launcher; return its exit status and its output.

    Lines that are neither of the table of testbed/replay/summary.c nor of progress are printed as they come,
    unless `quiet`.
    """
    lines = []
    interrupt_on_signals()
    with subprocess.Popen(
        command,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE if is_listened_to() else None,
        text=True,
        errors="replace",
    ) as process:
        assert process.stdout is not None
        messages = None
        if process.stderr is not None:
            messages = threading.Thread(target=_pass_on, args=(process.stderr,), daemon=True)
            messages.start()
        try:
            for line in process.stdout:
                if is_listened_to() and line.startswith(_DONE):
                    advance(1)
                    continue
                lines.append(line)
                if not quiet and not _is_of_table(line):
                    print(line, end="", flush=True)
            return process.wait(), lines
        except KeyboardInterrupt:
            process.terminate()
            process.wait()
            return INTERRUPTED, lines
        finally:
            if messages is not None:
                messages.join()


def _pass_on(messages: TextIO) -> None:
    """Print what the tasks write to standard error, such as the banner: not beside a bar of progress."""
    for line in messages:
        clear()
        print(line, end="", file=sys.stderr, flush=True)


def _is_of_table(line: str) -> bool:
    fields = line.split()
    return fields[:3] == _COLUMNS[:3] or (len(fields) == len(_COLUMNS) and fields[1].isdecimal())


def steps_of_table(lines: Sequence[str], count: int) -> list[dict[str, Any]]:
    """Return the rows of the table of testbed/replay/summary.c."""
    rows = [line.split() for line in lines if _is_of_table(line)][1:]
    return [
        {
            "phase": phase,
            "repetition": int(repetition),
            "calls": int(calls),
            "bytes": int(moved),
            "slowest_task_s": float(slowest_task),
            "phase_s": float(phase_s),
        }
        for phase, repetition, _, calls, moved, slowest_task, phase_s, _ in rows[-count:]
    ]


def steps_text(tasks: int, steps: list[dict[str, Any]]) -> str:
    """Format the steps: the time in calls of the slowest task, and the time from barrier to barrier."""
    rows = [
        (
            step["phase"],
            step["repetition"],
            f"{step['calls']:,}",
            bytes_text(step["bytes"]) if step["bytes"] else "",
            seconds_text(step["slowest_task_s"]),
            seconds_text(step["phase_s"]),
            f"{bytes_text(step['bytes'] / step['phase_s'])}/s" if step["bytes"] and step["phase_s"] else "",
        )
        for step in steps
    ]
    headers = ("phase", "repetition", "calls", "bytes", "slowest task", "time", "rate")
    return f"{count_text(tasks, 'task')}\n\n{table_text(headers, rows)}"
