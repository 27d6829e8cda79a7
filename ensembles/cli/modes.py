"""``ensio modes``: the durations about which calls gather."""

from __future__ import annotations

import argparse
import sys

from ensembles.cli.arguments import add_json, add_run, count_of
from ensembles.cli.filters import add_filter_arguments
from ensembles.cli.scale import add_scale_arguments
from ensembles.errors import EnsioError

NAME = "modes"
HELP = "the modes of the durations of calls, each with an interval, and their harmonics"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run(parser)
    add_filter_arguments(parser)
    add_scale_arguments(parser)
    group = parser.add_argument_group("fair share")
    group.add_argument("--limit", metavar="RATE", help="what all tasks can move together, for example 16GB/s")
    group.add_argument("--tasks", metavar="N", type=count_of("tasks", 1), help="how many share it")
    add_json(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the modes."""
    from ensembles.cli.ensembles_of import ensemble_from_args

    limit = _limit_of(args.limit, args.tasks)
    ensemble = ensemble_from_args(args)
    modes = ensemble.modes(limit_bytes_per_s=limit, tasks=args.tasks)
    if args.json:
        import json

        json.dump({**modes.to_json(), "run": args.run, "per": ensemble.per}, sys.stdout, indent=2)
        print()
    else:
        from ensembles.cli.modes_text import modes_text

        print(modes_text(modes, ensemble))
    return 0


def _limit_of(text: str | None, tasks: int | None) -> float | None:
    from ensembles.selection import parse_size

    if (text is None) != (tasks is None):
        raise EnsioError("a fair share takes both: give --limit and --tasks")
    if text is None:
        return None
    size, per, second = text.partition("/")
    if per and second.strip() != "s":
        raise EnsioError(f'limit "{text}" is no rate: write it like 16GB/s')
    limit = parse_size(size)
    if not limit:
        raise EnsioError(f'limit "{text}" is zero: nothing can be shared')
    return float(limit)
