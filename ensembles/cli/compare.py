"""``ensio compare``: decide whether runs are the same or different, and by how much."""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ensembles.cli.options import (
    add_filter_arguments,
    add_json,
    add_scale_arguments,
    open_run,
    parse_path,
    selection_from_args,
    warn,
)
from ensembles.cli.terminal import print_coloured
from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.comparison.report import Comparison

NAME = "compare"
HELP = "compare runs or groups of runs: totals, verdict, changes of modes and tail, tests"

DESCRIPTION = (
    "Compare runs or groups of runs. Without --with, each RUN is a group, and the first is the baseline. "
    "With --with, the RUNs before it are repetitions of the baseline, and the RUNs after each --with are "
    "another group. The run is the sampling unit: several baselines show how much runs vary, so that one new "
    "run can be judged. One run per group shows only how much each varies within itself."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    run = parse_path("run")
    parser.add_argument("runs", metavar="RUN", nargs="+", type=run, help="run, as for the other commands")
    parser.add_argument(
        "--with",
        dest="others",
        metavar="RUN",
        nargs="+",
        action="append",
        type=run,
        help="runs of another group; may be repeated",
    )
    parser.add_argument(
        "--margin",
        metavar="PERCENT",
        type=percent,
        default=0.1,
        help="largest change of a mode or of the tail, in percent, at which groups count as the same "
        "(default: 10%%)",
    )
    parser.add_argument(
        "--level",
        metavar="PERCENT",
        type=percent,
        default=0.05,
        help="significance level of the tests, in percent (default: 5%%)",
    )
    parser.add_argument(
        "--fail-on",
        metavar="WHAT",
        type=failure,
        default=None,
        help="exit with status 1: difference: if the verdict is different; slower: if something certainly "
        "takes longer, whole runs of groups are longer in I/O, or fewer tasks do it and its critical path is "
        "longer; slower=10%%: by that or more",
    )
    parser.add_argument(
        "--fail-on-difference",
        dest="fail_on",
        action="store_const",
        const=0.0,
        help="the same as --fail-on difference",
    )
    add_json(parser)
    add_filter_arguments(parser)
    add_scale_arguments(parser)


def percent(text: str) -> float:
    """Parse a share between 0 and 1: ``10%`` or ``0.1``."""
    value = _ratio(text)
    if not 0 < value < 1:
        raise argparse.ArgumentTypeError(f'"{text}" is not a share between 0 and 1: write it like 10% or 0.1')
    return value


def _ratio(text: str) -> float:
    """Parse a number or a percentage; −1: it is neither."""
    number = text.strip().removesuffix("%")
    try:
        return float(number) / (100 if text.strip().endswith("%") else 1)
    except ValueError:
        return -1.0


def failure(text: str) -> float:
    """Parse what fails: 0 for any difference, else the factor from which on slower calls fail."""
    what, equals, share = text.partition("=")
    if what == "difference" and not equals:
        return 0.0
    more = _ratio(share) if equals else 0.0
    if what == "slower" and 0 <= more < float("inf"):
        return 1.0 + more
    raise argparse.ArgumentTypeError(
        f'"{text}" is nothing to fail on: write difference, slower, or slower=10%'
    )


def why_it_fails(found: Sequence[Comparison], fail_on: float, of_whole_runs: bool = True) -> list[str]:
    """Return why the comparisons fail, a sentence each; `fail_on` is 0 for any difference, else a factor.

    Slower is also, unless filters select some of the I/O, a group whose runs certainly spend more time in
    I/O, summed over tasks or on the critical path (where this is certainly shorter, the sum does not count),
    and a group in which fewer tasks do the I/O and the critical path is longer. Durations of calls of other
    sizes are not compared at all (`Comparison.sizes_differ`).
    """
    from ensembles.comparison.whole_runs import RUN_LABELS, changes_of_runs, groups_of_fewer_tasks

    different = [comparison for comparison in found if comparison.verdict == "different"]
    if not fail_on:
        return [f"{_kind(each)} is different" for each in different]
    changes = changes_of_runs(found[0].run_tests, found[0].level) if of_whole_runs else []
    shorter = {one.group for one in changes if one.what == "critical_path_s" and one.ratio < 1}
    reasons = [
        f"{RUN_LABELS[change.what]}: {change.group} takes {change.ratio:.3g} times as long"
        for change in changes
        if change.what in ("io_time_s", "critical_path_s")
        and change.group not in shorter
        and change.ratio > 1
        and change.ratio >= fail_on
    ]
    if of_whole_runs:
        reasons += [
            f"fewer tasks do the I/O of {one.group}, and it is longer on the critical path"
            for one in groups_of_fewer_tasks(found[0])
            if one.is_slower(fail_on)
        ]
    return reasons + [
        f"{_kind(each)} is slower, × {each.slowdown:.3g}"
        for each in different
        if each.direction != "faster" and each.slowdown > 1 and each.slowdown >= fail_on
    ]


def _kind(found: Comparison) -> str:
    return " ".join(name for name in (found.layer, found.op) if name) or "I/O"


def execute(args: argparse.Namespace) -> int:
    """Print the comparison."""
    groups = [args.runs, *args.others] if args.others else [[path] for path in args.runs]
    if len(groups) < 2:
        raise EnsioError("a comparison needs two groups: name a second RUN, or a group of runs after --with")
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
        from ensembles.comparison.text import comparisons_text

        print_coloured(comparisons_text(found))
    places = [{os.path.realpath(path) for path in group} for group in groups]
    for path in sorted(set.intersection(places[0], set.union(*places[1:]))):
        warn(f"note: {path} is in both groups: a run is the same as itself")
    for note in dict.fromkeys(note for group in runs for run in group for note in run.notes):
        warn(f"note: {note}")
    is_whole = selection == type(selection)()
    reasons = [] if args.fail_on is None else why_it_fails(found, args.fail_on, is_whole)
    for reason in reasons:
        warn(f"failed: {reason}")
    return int(bool(reasons))
