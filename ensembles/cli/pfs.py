"""``ensio pfs``: run real programs under the model of a parallel file system."""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
from dataclasses import asdict
from pathlib import Path

from ensembles.cli.options import add_json, add_old_names, add_set, parse_count, parse_path, warn
from ensembles.cli.run import cannot_start, inherited_environment, run_command
from ensembles.cli.workload_args import FS_SCALE, add_model_arguments, model_from_args
from ensembles.model.errors import EnsioError


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    actions = parser.add_subparsers(title="actions", metavar="ACTION", dest="action", required=True)
    run = actions.add_parser(
        "run",
        help="run a program, and delay its calls on the files of a folder as the model requires",
        usage="ensio pfs run [-h] --fs MODEL [--set fs_scale=1/N] [--fault ID=STRENGTH]\n"
        "                     [--seed S] [--directory DIR] [--tasks N]\n"
        "                     -- COMMAND [ARGUMENT ...]",
    )
    add_model_arguments(run)
    add_set(run, FS_SCALE, {"--fs-scale": "fs_scale"})
    run.add_argument(
        "--tasks",
        type=parse_count("tasks", least=1),
        metavar="N",
        help="number of tasks, from which the model draws a straggler (default: unknown)",
    )
    run.add_argument(
        "--directory",
        metavar="DIR",
        action="append",
        type=parse_path("folder"),
        help="folder whose files are under the model; may be repeated (default: the current folder)",
    )
    add_old_names(run, {"--root": "--directory"})
    run.add_argument(
        "argv", nargs=argparse.REMAINDER, metavar="COMMAND", help="program and arguments, after --"
    )
    run.set_defaults(act=_run)
    status = actions.add_parser("status", help="print the counters of a model")
    status.add_argument(
        "model",
        metavar="FOLDER",
        nargs="?",
        type=parse_path("folder"),
        help="folder of the model (default: $ENSIO_PFS)",
    )
    add_json(status, "print one JSON object")
    status.set_defaults(act=_status)


def execute(args: argparse.Namespace) -> int:
    """Run the action; ``run`` returns the exit status of the program."""
    status: int = args.act(args)
    return status


def main() -> int:
    """Run the command ``ensio-pfs``, which is ``ensio pfs``."""
    from ensembles.cli.main import main as ensio

    return ensio(["pfs", *sys.argv[1:]])


def _run(args: argparse.Namespace) -> int:
    from ensembles.workloads.simulation.live_model import environment_for, held_back, shared_model

    command = args.argv[1:] if args.argv[:1] == ["--"] else args.argv
    if not command:
        raise EnsioError("there is no command to run: ensio pfs run --fs MODEL -- COMMAND [ARGUMENT ...]")
    if "/" not in command[0] and not shutil.which(command[0]):
        return cannot_start(command[0])
    inherited = {os.fsdecode(key): os.fsdecode(value) for key, value in inherited_environment().items()}
    with shared_model(model_from_args(args).settings_text(), args.seed, args.tasks) as model:
        environment = environment_for(model, [Path(root) for root in args.directory or ["."]], inherited)
        try:
            status = run_command(
                command, {os.fsencode(key): os.fsencode(value) for key, value in environment.items()}
            )
        except OSError as error:
            return cannot_start(command[0], error)
        for sentence in held_back(model).sentences():
            warn(sentence)
    return status


def _status(args: argparse.Namespace) -> int:
    from ensembles.workloads.simulation.live_model import held_back

    folder = args.model or os.environ.get("ENSIO_PFS")
    if not folder:
        raise EnsioError(
            "no model is selected: name its folder, which is ENSIO_PFS in the environment of its programs"
        )
    found = held_back(Path(folder))
    if args.json:
        values = asdict(found)
        print(json.dumps({key: None if value != value else value for key, value in values.items()}))
    else:
        print(*found.sentences(), sep="\n")
    return 0
