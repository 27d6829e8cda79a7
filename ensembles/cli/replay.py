"""``ensio replay``: execute a pattern with real MPI and real I/O, recorded."""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import secrets
import shlex
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ensembles.cli.options import add_json, add_new_run_directory, warn
from ensembles.cli.replay_of_run import (
    add_directory,
    add_launcher,
    add_run_arguments,
    add_with,
    execute_replay,
)
from ensembles.cli.replay_program import (
    INTERRUPTED,
    find_launcher,
    find_program,
    mpi_environment,
    run_launcher,
    steps_of_table,
    steps_text,
)
from ensembles.cli.workload_args import (
    add_model_arguments,
    add_pattern_arguments,
    find_pattern,
    model_if_asked_for,
    planned,
)
from ensembles.model.errors import EnsioError
from ensembles.passes.progress import announced, is_listened_to
from ensembles.recorder.run_directory import new_run_directory, shown

if TYPE_CHECKING:
    from ensembles.workloads.patterns import Pattern, Plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_pattern_arguments(parser)
    add_directory(parser, "default: the current folder; of a recorded run an empty one, by default a new one")
    parser.add_argument(
        "--keep", action="store_true", help="keep the data files (default: remove them at the end)"
    )
    add_new_run_directory(parser)
    add_launcher(parser)
    add_run_arguments(parser)
    add_with(parser)
    add_model_arguments(parser, required=False)
    add_json(parser, "print the result as one JSON object")


def execute(args: argparse.Namespace) -> int:
    """Replay a pattern; return 0 for success, 1 if it failed, 2 if it cannot be started."""
    if _is_run(args.pattern):
        return execute_replay(args)
    pattern, plan = planned(args)
    program = find_program(pattern.layers)
    launcher = find_launcher(args.launcher)
    data = _data_paths(plan, args.directory or ".")
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
            status, lines = run_launcher(command, environment, quiet=args.json)
    steps = steps_of_table(lines, len(plan.steps))
    if status:
        warn(f"the replay failed (exit status {status}): its record is in {shown(directory)}")
        return INTERRUPTED if status == INTERRUPTED else 1
    if args.json:
        print(json.dumps(_result(pattern, plan, directory, data if args.keep else [], steps)))
    else:
        print(steps_text(plan.tasks, steps))
        print(f"\nrecorded in {shown(directory)}: look at it with ensio info {shlex.quote(shown(directory))}")
    return 0


def _is_run(name: str) -> bool:
    """Whether a name is that of a recorded run: a path that is there, and not the name of a pattern."""
    if not os.path.exists(name) or name.endswith(".toml") or "/" in name:
        return os.path.exists(name) and not name.endswith(".toml")
    try:
        find_pattern(name)
    except EnsioError:
        return True
    return False


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
            "choose another with --directory, or smaller sizes with --set scale=1/N"
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
