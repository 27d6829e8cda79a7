"""``ensio tail``: how slow the slowest of N tasks will be."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from ensembles.cli.arguments import add_json, add_run, count_of, level_of
from ensembles.cli.filters import add_filter_arguments
from ensembles.cli.scale import add_scale_arguments

if TYPE_CHECKING:
    from ensembles.statistics.slowest.backtest_result import Backtest
    from ensembles.statistics.slowest.tail_result import Tail

NAME = "tail"
HELP = "how slow the slowest of N tasks will be, with an interval, and what that stands on"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run(parser)
    parser.add_argument(
        "--tasks",
        metavar="N",
        type=count_of("tasks", 1),
        help="tasks, one call each, of which the slowest is asked for (default: those of the run)",
    )
    parser.add_argument(
        "--level", metavar="P", type=level_of, default=0.9, help="chance of the interval (default: 0.9)"
    )
    parser.add_argument(
        "--backtest",
        action="store_true",
        help="leave phases and ranks out, predict them from the others, and count how often that came true",
    )
    add_filter_arguments(parser)
    add_scale_arguments(parser)
    add_json(parser, "one JSON object, in seconds")


def execute(args: argparse.Namespace) -> int:
    """Print the slowest of N, or how often such predictions come true."""
    from ensembles.cli.ensembles_of import ensemble_from_args

    ensemble = ensemble_from_args(args)
    found: Backtest | Tail
    if args.backtest:
        found = ensemble.backtest(args.tasks, level=args.level)
    else:
        found = ensemble.tail(args.tasks or _tasks_of(ensemble), level=args.level)
    if args.json:
        import json

        json.dump(found.to_json(), sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        from ensembles.cli.tail_text import backtest_text, tail_text

        unit = "/MiB" if ensemble.per == "MiB" else ""
        print(backtest_text(found) if args.backtest else tail_text(found, unit))  # type: ignore[arg-type]
    return 0


def _tasks_of(ensemble: Any) -> int:
    import numpy as np

    return 1 if ensemble.rank is None or not ensemble.n else len(np.unique(ensemble.rank))
