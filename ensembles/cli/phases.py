"""``ensio phases``: list the phases of a run, and the time that tasks are idle in each."""

from __future__ import annotations

import argparse

from ensembles.cli.question import add_question, selected_run, show

NAME = "phases"
HELP = "list the phases of a run: time, bytes, idle time of tasks, slowest rank"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_question(parser, "phases", 50)
    parser.add_argument(
        "--by",
        choices=("named", "barriers", "steps"),
        help="source of the phases: names that the program sets, barriers, or steps of I/O separated by gaps "
        "(default: the first of these that the run has)",
    )


def execute(args: argparse.Namespace) -> int:
    """Print the phases."""
    from ensembles.answers.phases import answer_phases
    from ensembles.run.nothing_selected import refuse_nothing

    run, selection = selected_run(args)
    found = answer_phases(run, selection, args.by)
    refuse_nothing(run, selection, len(found.phases) + (0 if selection.phases else found.outside))
    return show(args, found, args.limit)
