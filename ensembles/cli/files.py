"""``ensio files``: show the totals of each file."""

from __future__ import annotations

import argparse

from ensembles.cli.question import add_question, add_sort, given_filters, selected_run, show

NAME = "files"
HELP = "show calls, bytes, rates and time in I/O of each file"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_question(parser, "files", 20)
    add_sort(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the files."""
    from ensembles.answers.totals import answer_files
    from ensembles.run.nothing_selected import refuse_nothing

    run, selection = selected_run(args)
    found = answer_files(run, args.sort, given_filters(args))
    refuse_nothing(run, selection, len(found.values["files"]))
    return show(args, found, args.limit)
