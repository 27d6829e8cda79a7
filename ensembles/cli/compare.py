"""``ensio compare``: same or different, what moved and by how much."""

from __future__ import annotations

import argparse
import sys

from ensembles.cli.common_args import add_json, parse_path
from ensembles.cli.execution_args import add_scale_arguments, open_run
from ensembles.cli.filter_args import add_filter_arguments, selection_from_args
from ensembles.cli.stdio import warn
from ensembles.model.errors import EnsioError

NAME = "compare"
HELP = "runs or groups of runs: same or different, what moved and by how much, with tests"

DESCRIPTION = (
    "Compares runs. Every RUN is a group of its own, the first is what the others are compared with; or, "
    "with --with, the "
    "RUNs are repetitions of the same, and so are those behind each --with. Several runs a group tell "
    "more than one: at "
    "least four on each of two sides are needed to be sure of a difference at the usual level."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.description = DESCRIPTION
    run = parse_path("run")
    parser.add_argument("runs", metavar="RUN", nargs="+", type=run, help="run directory, spool or trace.h5")
    parser.add_argument(
        "--with",
        dest="others",
        metavar="RUN",
        nargs="+",
        action="append",
        type=run,
        help="runs of another group; may be repeated for further groups",
    )
    parser.add_argument(
        "--margin",
        metavar="PERCENT",
        type=percent,
        default=0.1,
        help="groups are the same if nothing can have moved by more than this (default: 10%%)",
    )
    parser.add_argument(
        "--level",
        metavar="PERCENT",
        type=percent,
        default=0.05,
        help="chance of calling different what is the same (default: 5%%)",
    )
    parser.add_argument(
        "--fail-on-difference", action="store_true", help="exit with 1 if anything is different"
    )
    add_json(parser)
    add_filter_arguments(parser)
    add_scale_arguments(parser)


def percent(text: str) -> float:
    """A part of one: ``10%`` or ``0.1``."""
    number = text.strip().removesuffix("%")
    try:
        value = float(number) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        value = -1.0
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is no part of one: write it like 10% or 0.1')
    return value


def execute(args: argparse.Namespace) -> int:
    """Print the comparison."""
    groups = [args.runs, *args.others] if args.others else [[path] for path in args.runs]
    if len(groups) < 2:
        raise EnsioError(
            "one run alone cannot be compared: name a second one, or a group of them behind --with"
        )
    selection = selection_from_args(args)
    from ensembles.comparison.compare import compare_runs

    count = sum(map(len, groups))
    runs = [[open_run(args, path, count) for path in group] for group in groups]
    found = compare_runs(runs, selection=selection, margin=args.margin, level=args.level)
    if args.json:
        import json

        ops = [comparison.to_json() for comparison in found]
        json.dump(ops[0] | {"ops": ops}, sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        from ensembles.comparison.report import comparisons_text

        print(comparisons_text(found))
    for note in dict.fromkeys(note for group in runs for run in group for note in run.notes):
        warn(f"note: {note}")
    different = any(comparison.verdict == "different" for comparison in found)
    return int(args.fail_on_difference and different)
