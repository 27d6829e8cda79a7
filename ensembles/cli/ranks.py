"""``ensio ranks``: show the totals of each rank."""

from __future__ import annotations

import argparse

from ensembles.cli.question import add_question, add_sort, given_filters, selected_run, show

NAME = "ranks"
HELP = "show calls, bytes, rates, time in I/O and time waiting of each rank"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_question(parser, "ranks", 20)
    add_sort(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the ranks."""
    from ensembles.answers.totals import answer_ranks
    from ensembles.run.nothing_selected import refuse_nothing

    run, selection = selected_run(args)
    found = answer_ranks(run, args.sort, given_filters(args))
    refuse_nothing(run, selection, len(found.values["ranks"]))
    return show(args, found, args.limit)
