"""``ensio split``: k calls before a barrier instead of one."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from ensembles.cli.arguments import count_of, level_of, path_of
from ensembles.cli.filters import add_filter_arguments
from ensembles.cli.streams import tell

if TYPE_CHECKING:
    from ensembles.statistics.split import Split

NAME = "split"
HELP = "what k calls before a barrier take where one was made: the slowest of N tasks, with an interval"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", metavar="RUN", type=path_of("run"), help="run directory, job file or trace.h5")
    parser.add_argument(
        "--calls",
        metavar="K,K,...",
        type=_calls,
        default=(1, 2, 4, 8),
        help="into how many calls each one is split (default: 1,2,4,8)",
    )
    parser.add_argument(
        "--tasks",
        metavar="N",
        type=count_of("tasks", least=1),
        help="tasks that wait for each other (default: those of the calls)",
    )
    parser.add_argument(
        "--level",
        metavar="P",
        type=level_of,
        default=0.9,
        help="probability of the intervals (default: 0.9)",
    )
    parser.add_argument("--json", action="store_true", help="one JSON object")
    add_filter_arguments(parser)


def _calls(text: str) -> tuple[int, ...]:
    number = count_of("calls", least=1)
    return tuple(number(part.strip()) for part in text.split(","))


def execute(args: argparse.Namespace) -> int:
    """Print the prediction."""
    from ensembles.cli.ensembles_of import ensemble_from_args

    ensemble = ensemble_from_args(args)
    split = ensemble.split(args.calls, args.tasks, level=args.level)
    for note in split.notes:
        tell(f"note: {note}")
    if args.json:
        print(json.dumps(split.to_json(), allow_nan=False))
    elif split.refused:
        print(f"cannot say: {split.refused}")
    else:
        print(_text(split, ensemble.unit))
    return 0


def _text(split: Split, unit: str) -> str:
    from tabulate import tabulate

    percent = f"{split.level * 100:g} %"
    rows = [
        (
            one.calls,
            f"{one.median_s:.4g}",
            f"{one.low_s:.4g} to {one.high_s:.4g}",
            f"{one.mean_s:.4g}",
            f"{one.speedup:.2f}",
            f"{one.independent_speedup:.2f}",
            f"{one.spread:.2f}",
        )
        for one in split.splits
    ]
    head = (
        "calls",
        f"median [{unit}]",
        f"{percent} within [{unit}]",
        f"mean [{unit}]",
        "speedup",
        "at most",
        "spread",
    )
    shared = split.dependence.of_phase
    lags = split.dependence.lags
    alike = f"{shared:.2f} by their phase, {lags[0]:.2f} by their task" if len(lags) else "not known"
    return "\n".join(
        [
            f"The slowest of {split.tasks:,} tasks, each of {split.n:,} calls being split into smaller ones:",
            "",
            tabulate(rows, head, stralign="right", disable_numparse=True),
            "",
            '"at most" is the speedup if calls had nothing in common; spread is standard deviation over mean',
            f"of one task's time. Correlation of calls: {alike}.",
        ]
    )
