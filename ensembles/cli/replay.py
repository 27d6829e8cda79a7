"""``ensio replay``: execute a pattern with real MPI and real I/O, recorded."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TextIO

from ensembles.cli.model_args import add_model_arguments, model_if_asked_for
from ensembles.cli.options import add_json, add_new_run_directory, parse_path, warn
from ensembles.cli.pattern_args import add_pattern_arguments, planned
from ensembles.cli.run import find_preload_library, preloaded
from ensembles.model.errors import EnsioError
from ensembles.model.table import table_text
from ensembles.model.units import bytes_text, count_text, seconds_text
from ensembles.passes.progress import advance, announced, clear, is_listened_to
from ensembles.recorder.install_paths import installed
from ensembles.recorder.run_directory import new_run_directory, shown

if TYPE_CHECKING:
    from ensembles.workloads.patterns import Pattern, Plan

HELP = "execute a pattern with real MPI and real I/O, and record it"

PROGRAM = "ensio-replay"

_COLUMNS = ["phase", "repetition", "tasks", "calls", "bytes", "slowest_task_s", "phase_s", "MiB_per_s"]

_DONE = "steps done: "
"""Begin of a line of progress of testbed/replay/replay.c."""

_INTERRUPTED = 130


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_pattern_arguments(parser)
    parser.add_argument(
        "--directory",
        metavar="DIR",
        type=parse_path("folder"),
        default=".",
        help="folder for the data files (default: the current folder)",
    )
    parser.add_argument(
        "--keep", action="store_true", help="keep the data files (default: remove them at the end)"
    )
    add_new_run_directory(parser)
    parser.add_argument(
        "--launcher",
        default="mpiexec",
        help="command that starts the tasks; it is given -n N and a program (default: %(default)s)",
    )
    add_model_arguments(parser, required=False)
    add_json(parser, "print the result as one JSON object")


def execute(args: argparse.Namespace) -> int:
    """Replay a pattern; return 0 for success, 1 if it failed, 2 if it cannot be started."""
    program = str(installed(f"bin/{PROGRAM}"))
    pattern, plan = planned(args)
    launcher = _launcher(args.launcher)
    data = _data_paths(plan, args.directory)
    directory = new_run_directory(args.output, pattern.name)
    folder = data[0].parent  # unlike /tmp, all nodes see it
    with (
        tempfile.TemporaryDirectory(prefix=".ensio-replay-", dir=folder) as scratch,
        _removed(data, keep=args.keep),
        _under_model(args, plan, folder, Path(scratch)) as under_model,
    ):
        plan_path = Path(scratch) / f"{pattern.name}.plan"
        plan.write(plan_path, folder, secrets.randbits(64))
        progress = ["--progress"] if is_listened_to() else []
        command = [*launcher, "-n", str(plan.tasks), program, *progress, str(plan_path)]
        warn(shlex.join(command))
        environment = under_model(mpi_environment(directory, pattern.layers))
        with announced("replaying", pattern.name, len(plan.steps), "steps"):
            status, lines = _run(command, environment, quiet=args.json)
    steps = _steps(plan, lines)
    if status:
        warn(f"the replay failed (exit status {status}): its record is in {shown(directory)}")
        return _INTERRUPTED if status == _INTERRUPTED else 1
    if args.json:
        print(json.dumps(_result(pattern, plan, directory, data if args.keep else [], steps)))
    else:
        print(_table(plan, steps))
        print(f"\nrecorded in {shown(directory)}: look at it with ensio info {shlex.quote(shown(directory))}")
    return 0


@contextlib.contextmanager
def _under_model(
    args: argparse.Namespace, plan: Plan, folder: Path, scratch: Path
) -> Iterator[Callable[[dict[str, str]], dict[str, str]]]:
    """Put the files of the pattern under the selected model, except for the plan that the tasks read."""
    from ensembles.workloads.simulation.live_model import environment_for, held_back, shared_model

    machine = model_if_asked_for(args)
    if machine is None:
        yield lambda environment: environment
        return
    settings = machine.with_tasks_per_node(plan.tasks_per_node).settings_text()
    with shared_model(settings, args.seed, plan.tasks) as model:
        yield lambda environment: environment_for(model, [folder], environment, without=[scratch])
        for sentence in held_back(model).sentences():
            warn(sentence)


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


def _launcher(line: str) -> list[str]:
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


def _data_paths(plan: Plan, directory: str) -> list[Path]:
    """Return the paths of the data files, in a folder with enough space and without any of them."""
    folder = Path(directory).absolute()
    if not os.access(folder, os.W_OK | os.X_OK) or not folder.is_dir():
        raise EnsioError(f"{folder}: not a writable folder: choose another with --directory")
    if not str(folder).isprintable():
        raise EnsioError(
            f"{str(folder)!r}: a name with control characters cannot be used: choose another with --directory"
        )
    paths = [folder / name for name in plan.files]
    for path in paths:
        if os.path.lexists(path):
            raise EnsioError(f"{path}: exists already: remove it, or choose another folder with --directory")
    needed, free = plan.needed_bytes(), shutil.disk_usage(folder).free
    if needed > free:
        raise EnsioError(
            f"{folder}: {free:,} bytes are free, but the pattern writes {needed:,}: "
            "choose another with --directory, or smaller sizes with --scale"
        )
    return paths


@contextlib.contextmanager
def _removed(paths: list[Path], keep: bool) -> Iterator[None]:
    """Remove the files at the end in every case, unless they are to be kept."""
    try:
        yield
    finally:
        if not keep:
            for path in paths:
                path.unlink(missing_ok=True)


def _run(command: list[str], environment: dict[str, str], quiet: bool) -> tuple[int, list[str]]:
    """Run the launcher; return its exit status and its output.

    Lines that are neither of the table of testbed/replay/summary.c nor of progress are printed as they come,
    unless `quiet`.
    """
    lines = []
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that the data is removed on SIGTERM too
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
            return _INTERRUPTED, lines
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


def _steps(plan: Plan, lines: list[str]) -> list[dict[str, Any]]:
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
        for phase, repetition, _, calls, moved, slowest_task, phase_s, _ in rows[-len(plan.steps) :]
    ]


def _table(plan: Plan, steps: list[dict[str, Any]]) -> str:
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
    return f"{count_text(plan.tasks, 'task')}\n\n{table_text(headers, rows)}"


def _result(
    pattern: Pattern, plan: Plan, directory: Path, kept: list[Path], steps: list[dict[str, Any]]
) -> dict[str, object]:
    """Return the result for JSON."""
    return {
        "run": str(directory),
        "pattern": pattern.name,
        "parameters": dict(plan.parameters),
        "tasks": plan.tasks,
        "data": [str(path) for path in kept],
        "steps": steps,
    }
