"""``ensio simulate``: execute a pattern in virtual time on a model of a parallel file system."""

from __future__ import annotations

import argparse
import json
import shlex
import signal
import sys
from typing import TYPE_CHECKING

from ensembles.cli.options import add_json, add_new_run_directory
from ensembles.cli.workload_args import (
    PAPER,
    add_model_arguments,
    add_pattern_arguments,
    model_from_args,
    planned,
)
from ensembles.model.table import table_text
from ensembles.model.units import count_text, seconds_text
from ensembles.model.wrapped import wrapped
from ensembles.recorder.run_directory import new_run_directory, removed_unless_made, shown

if TYPE_CHECKING:
    from ensembles.workloads.patterns import Plan
    from ensembles.workloads.simulation import Model, SimulationResult


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_pattern_arguments(parser, PAPER)
    add_model_arguments(parser)
    parser.add_argument(
        "--mode",
        choices=("trace", "profile"),
        default="trace",
        help="mode of recording: trace, every call; profile, totals and histograms only (default: "
        "%(default)s)",
    )
    add_new_run_directory(parser)
    add_json(parser, "print the result as one JSON object")


def execute(args: argparse.Namespace) -> int:
    """Simulate a pattern; return 0."""
    from ensembles.workloads.simulation import simulate

    model = model_from_args(args)
    pattern, plan = planned(args)
    directory = new_run_directory(args.output, pattern.name)
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # so that nothing is left on SIGTERM too
    with removed_unless_made(directory):
        command = ("ensio", *sys.argv[1:])
        result = simulate(plan, model, directory, pattern.name, args.seed, args.mode, command)
    if args.json:
        print(json.dumps(_as_json(args, pattern.name, plan, model, result)))
    else:
        print(_as_text(model, result))
    return 0


def _as_json(
    args: argparse.Namespace, name: str, plan: Plan, model: Model, result: SimulationResult
) -> dict[str, object]:
    return {
        "run": str(result.directory),
        "pattern": name,
        "parameters": dict(plan.parameters),
        "tasks": result.tasks,
        "nodes": result.nodes,
        "model": model.name,
        "faults": dict(model.faults),
        "seed": args.seed,
        "mode": args.mode,
        "events": result.events,
        "span_s": result.span_s,
        "steps": [
            {"phase": phase, "repetition": repetition, "phase_s": length_s}
            for phase, repetition, length_s in result.steps
        ],
    }


def _as_text(model: Model, result: SimulationResult) -> str:
    rows = [(phase, number, seconds_text(length_s)) for phase, number, length_s in result.steps]
    table = table_text(("phase", "repetition", "time"), rows)
    faults = model.faults_text()
    run = shown(result.directory)
    return (
        f"{table}\n\n"
        + wrapped(
            f"{count_text(result.tasks, 'task')} on {count_text(result.nodes, 'node')}, "
            f"{count_text(result.events, 'call')}, {seconds_text(result.span_s)} in virtual time "
            f"on the model {model.name}{f' with {faults}' if faults else ''}"
        )
        + "\n"
        f"the run is in {run}: look at it with ensio info {shlex.quote(run)}"
    )
