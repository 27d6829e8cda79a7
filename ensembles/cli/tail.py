"""``ensio tail``: how slow the slowest of N tasks will be."""

from __future__ import annotations

import argparse
import sys
from typing import TYPE_CHECKING, Any

from tabulate import tabulate

from ensembles.cli.common_args import add_json, add_run, parse_count, parse_level
from ensembles.cli.execution_args import add_scale_arguments
from ensembles.cli.filter_args import add_filter_arguments
from ensembles.model.units import count_text, seconds_text

if TYPE_CHECKING:
    from ensembles.statistics.extremes.backtest import Backtest
    from ensembles.statistics.extremes.maximum import Tail


def tail_text(tail: Tail, unit: str = "") -> str:
    """The slowest of N beside the paper's answer, and what was found about exchangeability.

    Parameters
    ----------
    tail : Tail
    unit : str
        What follows the unit of time: ``/MiB`` of an ensemble per MiB.
    """
    from ensembles.statistics.extremes.maximum import METHODS

    def time(value_s: float | None) -> str:
        return "-" if value_s is None else seconds_text(value_s) + unit

    level = f"{100 * tail.level:g} %"
    rows = [["this program", time(tail.median_s), time(tail.low_s), time(tail.high_s), time(tail.mean_s)]]
    if tail.equation1 is not None:
        one = tail.equation1
        rows.append(["Equation 1", time(one.median_s), time(one.low_s), time(one.high_s), time(one.mean_s)])
    lines = [
        f"The slowest of {count_text(tail.tasks, 'call')}, one a task, from {count_text(tail.n, 'call')} seen"
        + (f" in {count_text(tail.phases, 'phase')}" if tail.phases is not None else ""),
        "",
        tabulate(rows, ["", "median", f"{level} from", "to", "mean"], disable_numparse=True),
        "",
    ]
    if tail.refused is not None:
        lines.append(f"No answer: {tail.refused}.")
    else:
        lines.append(f"Stands on {METHODS[tail.method]}.")
    if tail.unsettled is not None:
        lines.append(f"It holds for phases from all over such a run only: {tail.unsettled}.")
    lines.append(f"Slowest call seen: {time(tail.observed_max_s)}.")
    lines.append(_exchangeability(tail))
    lines.append("Equation 1 takes all calls as independent draws of what was seen, and cannot exceed it.")
    return "\n".join(lines)


def _exchangeability(tail: Tail) -> str:
    if tail.exchangeable is None:
        return (
            "Whether calls are exchangeable could not be tested: neither phases, ranks nor times are known."
        )
    if tail.exchangeable:
        return "No test finds that it matters which phase, task or time a call belongs to."
    causes = ", ".join(f"{one.name} ({100 * one.share:.0f} %)" for one in tail.broken_by)
    line = (
        f"Calls are not exchangeable: durations depend on {causes} (shares of the variance of log duration)."
    )
    if tail.effective_n < 0.9 * tail.n:
        line += f" For an average they are worth {count_text(round(tail.effective_n), 'independent call')}."
    if tail.effective_phases is not None and tail.phases and tail.effective_phases < 0.9 * tail.phases:
        line += (
            f" Phases resemble their neighbours, and are worth {tail.effective_phases:.0f} independent ones."
        )
    return line


def backtest_text(backtest: Backtest) -> str:
    """Coverage of each way of leaving out."""
    rows = []
    for kind in backtest.kinds:
        if kind.coverage is None or kind.below is None or kind.above is None or kind.width is None:
            rows.append([kind.kind, "-", "-", "-", "-", "0", f"{kind.refused:,}"])
            continue
        shares = [f"{100 * share:.0f} %" for share in (kind.coverage, kind.below, kind.above)]
        rows.append([kind.kind, *shares, f"x {kind.width:.3g}", f"{kind.trials:,}", f"{kind.refused:,}"])
    header = ["left out", "inside", "faster", "slower", "width", "trials", "refused"]
    lines = [
        f"Intervals that should hold in {100 * backtest.level:g} % of cases: how often they did",
        "",
        tabulate(rows, header, disable_numparse=True),
    ]
    lines += [f"{kind.kind}: {kind.reason}." for kind in backtest.kinds if kind.reason]
    return "\n".join(lines)


NAME = "tail"
HELP = "how slow the slowest of N tasks will be, with an interval, and what that stands on"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run(parser)
    parser.add_argument(
        "--tasks",
        metavar="N",
        type=parse_count("tasks", 1),
        help="tasks, one call each, of which the slowest is asked for (default: those of the run)",
    )
    parser.add_argument(
        "--level", metavar="P", type=parse_level, default=0.9, help="chance of the interval (default: 0.9)"
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
    from ensembles.cli.ensemble_args import ensemble_from_args

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
        unit = "/MiB" if ensemble.per == "MiB" else ""
        print(backtest_text(found) if args.backtest else tail_text(found, unit))  # type: ignore[arg-type]
    return 0


def _tasks_of(ensemble: Any) -> int:
    import numpy as np

    return 1 if ensemble.rank is None or not ensemble.n else len(np.unique(ensemble.rank))
