"""``ensio rate``: show the aggregate data rate over time, and its plateaus."""

from __future__ import annotations

import argparse

from ensembles.cli.question import add_question, selected_run, show

NAME = "rate"
HELP = "show the aggregate data rate over time, and its plateaus"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_question(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the data rates."""
    from ensembles.answers.rate import answer_rate

    return show(args, answer_rate(*selected_run(args)))
