"""``ensio split``: predict the effect of splitting each call into k smaller calls."""

from __future__ import annotations

import argparse
import json

from ensembles.cli.options import (
    add_filter_arguments,
    add_json,
    add_run,
    add_scale_arguments,
    parse_count,
    parse_level,
    warn_of,
)
from ensembles.model.wrapped import with_wrapped_lines

HELP = "predict the phase time if each call is split into k smaller calls, with an interval"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    parser.add_argument(
        "--calls",
        metavar="K,K,...",
        type=_calls,
        default=(1, 2, 4, 8),
        help="numbers of calls that replace each call (default: 1,2,4,8)",
    )
    parser.add_argument(
        "--tasks",
        metavar="N",
        type=parse_count("tasks", least=1),
        help="number of tasks that wait for each other (default: that of the selected calls)",
    )
    parser.add_argument(
        "--level",
        metavar="P",
        type=parse_level,
        default=0.9,
        help="level of the prediction intervals, between 0 and 1 (default: %(default)s)",
    )
    add_json(parser)
    add_filter_arguments(parser)
    add_scale_arguments(parser)


def _calls(text: str) -> tuple[int, ...]:
    number = parse_count("calls", least=1)
    return tuple(number(part.strip()) for part in text.split(","))


def execute(args: argparse.Namespace) -> int:
    """Print the prediction."""
    from ensembles.cli.options import ensemble_from_args

    ensemble = ensemble_from_args(args, transfers=True)
    split = ensemble.split(args.calls, args.tasks, level=args.level)
    warn_of(split.notes)
    if args.json:
        print(json.dumps(split.to_json(), allow_nan=False))
    else:
        print(with_wrapped_lines(split.text(per="" if ensemble.per == "call" else "/MiB")))
    return 0
