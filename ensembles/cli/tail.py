"""``ensio tail``: predict the slowest of N tasks."""

from __future__ import annotations

import argparse
import math
import sys
from typing import TYPE_CHECKING

from ensembles.cli.options import (
    add_filter_arguments,
    add_json,
    add_quantity,
    add_run,
    add_scale_arguments,
    parse_count,
    parse_level,
)
from ensembles.model.units import count_text, ratio_text, seconds_text, share_text
from ensembles.model.wrapped import with_wrapped_lines

if TYPE_CHECKING:
    from ensembles.statistics.extremes.backtest import Backtest
    from ensembles.statistics.extremes.order_statistics import Equation1
    from ensembles.statistics.extremes.slowest_of_n import Tail


def tail_text(tail: Tail, unit: str = "") -> str:
    """Format the prediction, Equation 1 of the paper, and the tests of exchangeability.

    Parameters
    ----------
    tail : Tail
    unit : str
        Suffix of the unit of time: ``/MiB`` for an ensemble per MiB.
    """
    from ensembles.model.table import table_text
    from ensembles.statistics.extremes.slowest_of_n import METHODS, UNSEEN_LEVEL

    def time(value_s: float | None) -> str:
        return "-" if value_s is None else seconds_text(value_s) + unit

    def row(name: str, found: Tail | Equation1) -> list[str]:
        ends = [found.low_s, found.high_s]
        if found.low_s is None:
            return [name, "-", "-", "-", "-"]
        if found.high_s is None:
            # The median of the slowest of N lies among n calls if N < n log 2.
            reaches = tail.tasks < tail.n * math.log(2)
            median = time(found.median_s) if reaches else f"at least {time(found.median_s)}"
            return [name, median, f"{time(found.low_s)} or more", "-", f"at least {time(found.mean_s)}"]
        interval = " – ".join(map(time, ends))
        width = ratio_text(found.high_s / found.low_s) if found.low_s > 0 else "-"
        return [name, time(found.median_s), interval, width, time(found.mean_s)]

    rows = [row("prediction", tail)]
    if tail.equation1 is not None:
        rows.append(row("Equation 1", tail.equation1))
    slowest = f"Slowest of {count_text(tail.tasks, 'call')}, one per task"
    what = "Any call of a task" if tail.tasks == 1 else slowest
    lines = [
        f"{what}; {count_text(tail.n, 'call')} observed"
        + (f" in {count_text(tail.phases, 'phase')}" if tail.phases is not None else ""),
        "",
        table_text(["", "median", f"{100 * tail.level:g} % interval", "width", "mean"], rows),
        "",
    ]
    if tail.tasks == 1:
        lines.append("There is one task: --tasks N predicts the slowest call of N.")
    if tail.refused is not None:
        lines.append(f"No prediction: {tail.refused}.")
    else:
        lines.append(f"Method: {METHODS[tail.method]}.")
        if tail.mean_s is None:
            lines.append("Mean: not determined, because durations beyond all that was seen decide it.")
    if tail.unsettled is not None:
        lines.append(f"Valid only for phases drawn from the whole run: {tail.unsettled}.")
    following = tail.next_phase
    if following is not None:
        ends_s = (following.low_s, following.high_s)
        what = following.refused if following.refused else " – ".join(map(time, ends_s))
        lines.append(
            f"Next phase, from the phases before it: {what}; "
            f"{share_text(following.coverage)} of {following.trials:,} past phases lay within such "
            f"intervals, of median width {ratio_text(following.width)}."
        )
    lines.append(f"Observed maximum: {time(tail.observed_max_s)}.")
    lines.append(_exchangeability(tail))
    if 0.5 < tail.unseen_share < 1:
        lines.append("So few calls do not show whether most calls are of a slower kind.")
    elif 0 < tail.unseen_share < 1:
        lines.append(
            f"Up to 1 in {1 / tail.unseen_share:,.0f} calls may be of a slower kind that these calls do not "
            f"show ({100 * UNSEEN_LEVEL:g} %)."
        )
    if tail.equation1 is not None:
        line = "Equation 1 assumes i.i.d. calls and is bounded by the observed maximum."
        if tail.equation1.is_bound:
            calls = count_text(tail.n, "call")
            line += f" {calls} do not reach to the upper end of the slowest of {tail.tasks:,}."
        made = tail.equation1.phases
        if (
            not tail.equation1.is_bound
            and made is not None
            and tail.phases is not None
            and made < tail.phases
        ):
            line += f" Its interval has calls of {made} of {count_text(tail.phases, 'phase')}."
        lines.append(line)
    return with_wrapped_lines("\n".join(lines))


def _exchangeability(tail: Tail) -> str:
    if tail.exchangeable is None:
        return "Assumes independent calls: phases, ranks and times are unknown, so that nothing was tested."
    if tail.exchangeable:
        return "Exchangeability not rejected: no test finds an effect of phase, task or time."
    causes = ", ".join(f"{one.name} ({share_text(one.share)})" for one in tail.broken_by)
    what = (
        "Not exchangeable" if tail.method not in EXCHANGEABLE else "Calls taken as exchangeable, although not"
    )
    line = f"{what}; explained variance of log duration: {causes}."
    if tail.effective_n < 0.9 * tail.n:
        line += f" Effective sample size: {count_text(round(tail.effective_n), 'call')}."
    if tail.effective_phases is not None and tail.phases and tail.effective_phases < 0.9 * tail.phases:
        line += (
            f" Neighbouring phases are correlated; effective number of phases: {tail.effective_phases:.0f}."
        )
    return line


def backtest_text(backtest: Backtest) -> str:
    """Format the empirical coverage of each kind of cross-validation."""
    from ensembles.model.table import table_text

    rows = []
    for kind in backtest.kinds:
        if kind.coverage is None or kind.below is None or kind.above is None or kind.width is None:
            rows.append([kind.kind, "-", "-", "-", "-", "0", f"{kind.refused:,}"])
            continue
        shares = [share_text(share) for share in (kind.coverage, kind.below, kind.above)]
        rows.append([kind.kind, *shares, ratio_text(kind.width), f"{kind.trials:,}", f"{kind.refused:,}"])
    header = ["predicted", "coverage", "below", "above", "width", "trials", "refused"]
    lines = [
        f"Empirical coverage of nominal {100 * backtest.level:g} % intervals",
        "",
        table_text(header, rows),
    ]
    lines += [f"{kind.kind}: {kind.reason}." for kind in backtest.kinds if kind.reason]
    return with_wrapped_lines("\n".join(lines))


EXCHANGEABLE = ("within-reach", "beyond")
"""Methods that take calls as exchangeable."""

HELP = "predict the slowest of N tasks, with a prediction interval and the method used"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    parser.add_argument(
        "--tasks",
        metavar="N",
        type=parse_count("tasks", 1),
        help="number of tasks, each with one call (default: that of the run)",
    )
    parser.add_argument(
        "--level",
        metavar="P",
        type=parse_level,
        default=0.9,
        help="level of the prediction interval, between 0 and 1 (default: %(default)s)",
    )
    parser.add_argument(
        "--backtest",
        action="store_true",
        help="cross-validate: leave out phases or ranks and predict them from the rest, predict each phase "
        "from those before it, and print the coverage of the intervals",
    )
    add_quantity(parser)
    add_filter_arguments(parser)
    add_scale_arguments(parser)
    add_json(parser, "print one JSON object, in SI units")


def execute(args: argparse.Namespace) -> int:
    """Print the prediction, or the empirical coverage of such predictions."""
    from ensembles.cli.options import ensemble_from_args, warn
    from ensembles.ensemble.main_ensemble import tasks_of

    ensemble = ensemble_from_args(args)
    if args.duration is not None or args.rate is not None:
        warn(
            "note: these calls were chosen by their durations or rates: the slowest of them is not the "
            "slowest call of a task; leave out --duration and --rate to ask for that"
        )
    found: Backtest | Tail
    if args.backtest:
        found = ensemble.backtest(args.tasks, level=args.level)
    else:
        found = ensemble.tail(args.tasks or tasks_of(ensemble), level=args.level)
    if args.json:
        import json

        json.dump(found.to_json(), sys.stdout, indent=2, allow_nan=False)
        print()
    else:
        unit = "/MiB" if ensemble.per == "MiB" else ""
        print(backtest_text(found) if args.backtest else tail_text(found, unit))  # type: ignore[arg-type]
    return 0
