"""``ensio ordinals``: show durations by call index, and their trend."""

from __future__ import annotations

import argparse

from ensembles.cli.question import add_question, selected_run, show

NAME = "ordinals"
HELP = "show durations by call index (first, second, ... call of a task on a file) and their trend"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_question(parser, "ordinals", 40)
    parser.add_argument(
        "--within",
        choices=("file", "phase"),
        default="file",
        help="count the calls of a task and operation on each file or in each phase (default: file)",
    )


def execute(args: argparse.Namespace) -> int:
    """Print the ordinals."""
    from ensembles.answers.ordinals import answer_ordinals
    from ensembles.run.ordinals import durations_by_ordinal

    run, selection = selected_run(args)
    found = durations_by_ordinal(run, selection, args.within)
    return show(args, answer_ordinals(found, run.notes), args.limit)
