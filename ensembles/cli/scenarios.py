"""``ensio scenarios``: simulate runs with a known cause of slow I/O, to test diagnoses."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from ensembles.cli.options import (
    add_json,
    add_output,
    add_set,
    parse_count,
    parse_path,
    settings_from_args,
    warn,
)
from ensembles.cli.workload_args import add_seed, find_pattern
from ensembles.model.errors import EnsioError
from ensembles.model.units import count_text, seconds_text
from ensembles.model.wrapped import wrapped

if TYPE_CHECKING:
    from ensembles.workloads.simulation.scenarios import Scenario


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    commands = parser.add_subparsers(metavar="COMMAND", dest="what", required=True)
    listing = commands.add_parser("list", help="list the scenarios", description="List the scenarios.")
    add_json(listing, "print one JSON object")
    running = commands.add_parser(
        "run", help="simulate all scenarios, or some", description="Simulate all scenarios, or some."
    )
    add_seed(running)
    running.add_argument(
        "--scenario",
        action="append",
        metavar="NAME",
        help="scenario to simulate; may be repeated (default: all)",
    )
    running.add_argument(
        "--tasks",
        type=parse_count("tasks", least=1),
        metavar="N",
        help="number of tasks (default: that of the scenario)",
    )
    add_set(
        running,
        "strength=X: strength of the cause: 1 as in the scenario (default), 0 without it",
        {"--strength": "strength"},
    )
    running.add_argument(
        "--fs",
        metavar="MODEL",
        type=parse_path("model"),
        help="model of a file system (default: that of the scenario)",
    )
    written = "folder to create; each run is a folder in it, with truth.json"
    add_output(running, "DIR", written, what="folder", required=True)
    add_json(running, "print one JSON object")


def execute(args: argparse.Namespace) -> int:
    """List the scenarios, or run them."""
    from ensembles.workloads.simulation.scenarios import read_scenarios

    scenarios = read_scenarios()
    return _list(args, scenarios) if args.what == "list" else _run(args, _chosen(args, scenarios))


def _list(args: argparse.Namespace, scenarios: list[Scenario]) -> int:
    if args.json:
        entries = [
            {"name": s.name, "cause": s.cause, "pattern": s.pattern, "model": s.model, "title": s.title}
            for s in scenarios
        ]
        print(json.dumps({"scenarios": entries}, indent=2))
        return 0
    print("\n\n".join(map(_described, scenarios)))
    return 0


def _described(scenario: Scenario) -> str:
    """Return a name above its sentence, which is too long for a table, and above what it is made of."""
    made_of = f"cause {scenario.cause or 'none'} · pattern {scenario.pattern} · model {scenario.model}"
    return "\n".join([scenario.name, wrapped(scenario.title, "  ", "  "), wrapped(made_of, "  ", "  ")])


def _chosen(args: argparse.Namespace, scenarios: list[Scenario]) -> list[Scenario]:
    if args.scenario is None:
        return scenarios
    by_name = {scenario.name: scenario for scenario in scenarios}
    for name in args.scenario:
        if name not in by_name:
            raise EnsioError(f"{name}: no such scenario: choose from {', '.join(by_name)}")
    return [by_name[name] for name in dict.fromkeys(args.scenario)]


def _run(args: argparse.Namespace, scenarios: list[Scenario]) -> int:
    from ensembles.recorder.run_directory import new_run_directory, removed_unless_made
    from ensembles.workloads.simulation.scenarios import run_scenario

    made, strength = [], _strength(args)
    for scenario in scenarios:
        directory = new_run_directory(str(Path(args.output) / scenario.name), scenario.name)
        with removed_unless_made(directory):
            result = run_scenario(scenario, directory, find_pattern, args.seed, strength, args.tasks, args.fs)
        cause = scenario.cause if strength else None
        made.append(
            {"run": str(directory), "scenario": scenario.name, "cause": cause, "span_s": result.span_s}
        )
        warn(
            f"{scenario.name}: {count_text(result.tasks, 'task')}, {count_text(result.events, 'call')}, "
            f"{seconds_text(result.span_s)} in virtual time"
        )
    if args.json:
        print(json.dumps({"runs": made}, indent=2))
    else:
        for entry in made:
            print(f"{entry['run']}: {entry['cause'] or 'no cause'}")
    return 0


def _strength(args: argparse.Namespace) -> float:
    given = settings_from_args(args)
    text = given.pop("strength", "1")
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if given or not 0 <= value <= 100:
        raise EnsioError(f"--set {args.set[-1]}: write it like --set strength=0.5, a number from 0 to 100")
    return value
