"""``ensio compare``: decide whether runs are the same or different, and by how much."""

from __future__ import annotations

import argparse
import os

from ensembles.cli.options import (
    add_filter_arguments,
    add_json,
    add_old_names,
    add_scale_arguments,
    open_run,
    parse_path,
    parse_ratio,
    parse_share,
    selection_from_args,
    warn,
    warn_of,
)
from ensembles.cli.questions import show
from ensembles.model.errors import EnsioError

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
        type=parse_share,
        default=0.1,
        help="largest change of a mode or of the tail, in percent, at which groups count as the same "
        "(default: 10%%)",
    )
    parser.add_argument(
        "--level",
        metavar="PERCENT",
        type=parse_share,
        default=0.05,
        help="significance level of the tests, in percent (default: 5%%)",
    )
    parser.add_argument(
        "--fail-on",
        metavar="WHAT",
        type=failure,
        default=None,
        help="exit with status 1: difference: if the verdict is different; slower: if whole runs certainly "
        "take longer in I/O, or if the calls of one kind together do and add 5%% to runs that are longer "
        "too; slower=10%%: by that or more",
    )
    add_old_names(parser, {"--fail-on-difference": "--fail-on difference"})
    add_json(parser)
    add_filter_arguments(parser)
    add_scale_arguments(parser)


def failure(text: str) -> float:
    """Parse what fails: 0 for any difference, else the factor from which on slower calls fail."""
    what, equals, share = text.partition("=")
    if what == "difference" and not equals:
        return 0.0
    more = parse_ratio(share) if equals else 0.0
    if what == "slower" and 0 <= more < float("inf"):
        return 1.0 + more
    raise argparse.ArgumentTypeError(
        f'"{text}" is nothing to fail on: write difference, slower, or slower=10%'
    )


def execute(args: argparse.Namespace) -> int:
    """Print the comparison."""
    groups = [args.runs, *args.others] if args.others else [[path] for path in args.runs]
    if len(groups) < 2:
        raise EnsioError("a comparison needs two groups: name a second RUN, or a group of runs after --with")
    selection = selection_from_args(args)
    from ensembles.answers.compare import answer_comparisons
    from ensembles.comparison.compare import compare_runs
    from ensembles.faces.words import cell

    count = sum(map(len, groups))
    runs = [[open_run(args, path, count) for path in group] for group in groups]
    found = compare_runs(runs, selection=selection, margin=args.margin, level=args.level)
    judged = None
    lacking = [f"{run.path}: {run.reading.lacks}" for group in runs for run in group if run.reading.lacks]
    if args.fail_on is not None and not lacking:
        from ensembles.comparison.report import gate

        judged = gate(found, args.fail_on, of_whole_runs=selection == type(selection)())
    asked = "" if args.fail_on is None else _asked(args.fail_on)
    show(args, answer_comparisons(found, judged, asked))
    places = [{os.path.realpath(path) for path in group} for group in groups]
    for path in sorted(set.intersection(places[0], set.union(*places[1:]))):
        warn(f"note: {path} is in both groups: a run is the same as itself")
    warn_of(dict.fromkeys(note for group in runs for run in group for note in run.notes))
    if judged is None:
        if asked:
            warn(f"--fail-on {asked} cannot be answered: {lacking[0]}")
        return 2 * bool(asked)
    for reason in judged.failed:
        warn(f"failed: {cell(reason, '')}")
    for reason in judged.undecided:
        warn(f"not decided: {cell(reason, '')}")
    return int(bool(judged.failed))


def _asked(fail_on: float) -> str:
    """Write what fails as the option has it."""
    if not fail_on:
        return "difference"
    return "slower" if fail_on == 1 else f"slower={100 * (fail_on - 1):.3g}%"
