"""``ensio scenarios``: runs with a planted cause of slow I/O and an answer sheet, to test diagnoses on."""

from __future__ import annotations

import argparse
import json
import math
from pathlib import Path
from typing import TYPE_CHECKING

from ensembles.cli.common_args import add_json, add_output, parse_count, parse_path
from ensembles.cli.pattern_args import find_pattern
from ensembles.cli.stdio import warn
from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.workloads.simulation.scenarios import Scenario

NAME = "scenarios"
HELP = "make simulated runs in which a known cause was planted, with an answer sheet"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    commands = parser.add_subparsers(metavar="COMMAND", dest="what", required=True)
    listing = commands.add_parser("list", help="which there are", description="which there are")
    add_json(listing, "one JSON object")
    told = "make the runs of all scenarios, or of some"
    running = commands.add_parser("run", help=told, description=told)
    running.add_argument(
        "--seed", type=parse_count("seed", least=0), default=0, metavar="S", help="of what is drawn"
    )
    running.add_argument(
        "--scenario", action="append", metavar="NAME", help="this one only; may be repeated (default: all)"
    )
    running.add_argument(
        "--tasks", type=parse_count("tasks", least=1), metavar="N", help="instead of the scenario's"
    )
    running.add_argument(
        "--strength",
        type=_strength,
        default=1.0,
        metavar="X",
        help="of what is planted: 1 as the scenario says, 0 not at all (default: 1)",
    )
    running.add_argument(
        "--fs", metavar="MODEL", type=parse_path("model"), help="instead of the scenario's model"
    )
    told = "folder; each run becomes a folder in it, with truth.json"
    add_output(running, "DIR", told, what="folder", required=True)
    add_json(running, "one JSON object")


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
    from tabulate import tabulate

    rows = [(s.name, s.cause or "none", s.pattern, s.model, s.title) for s in scenarios]
    print(tabulate(rows, ("scenario", "cause", "pattern", "model", "what it is"), disable_numparse=True))
    return 0


def _chosen(args: argparse.Namespace, scenarios: list[Scenario]) -> list[Scenario]:
    if args.scenario is None:
        return scenarios
    by_name = {scenario.name: scenario for scenario in scenarios}
    for name in args.scenario:
        if name not in by_name:
            raise EnsioError(f"{name}: no such scenario: it may be {', '.join(by_name)}")
    return [by_name[name] for name in dict.fromkeys(args.scenario)]


def _run(args: argparse.Namespace, scenarios: list[Scenario]) -> int:
    from ensembles.recorder.run_directory import new_run_directory, removed_unless_made
    from ensembles.workloads.simulation.scenarios import run_scenario

    made = []
    for scenario in scenarios:
        directory = new_run_directory(str(Path(args.output) / scenario.name), scenario.name)
        with removed_unless_made(directory):
            result = run_scenario(
                scenario, directory, find_pattern, args.seed, args.strength, args.tasks, args.fs
            )
        cause = scenario.cause if args.strength else None
        made.append(
            {"run": str(directory), "scenario": scenario.name, "cause": cause, "span_s": result.span_s}
        )
        warn(
            f"{scenario.name}: {result.tasks:,} tasks, {result.events:,} calls, {result.span_s:.3f} s in "
            "virtual time"
        )
    if args.json:
        print(json.dumps({"runs": made}, indent=2))
    else:
        for entry in made:
            print(f"{entry['run']}: {entry['cause'] or 'no cause'}")
    return 0


def _strength(text: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 100:
        raise argparse.ArgumentTypeError(f'"{text}" is no strength from 0 to 100')
    return value
