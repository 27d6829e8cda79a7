"""``ensio sites``: show which places in the program led to the calls."""

from __future__ import annotations

import argparse

from ensembles.cli.question import add_question, selected_run, show

NAME = "sites"
HELP = "show which places in the program led to the calls, with their time"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_question(parser, "sites", 20)


def execute(args: argparse.Namespace) -> int:
    """Print the sites."""
    from ensembles.answers.sites import answer_sites
    from ensembles.run.nothing_selected import refuse_nothing

    run, selection = selected_run(args)
    found = answer_sites(run, selection)
    refuse_nothing(run, selection, len(found.values["sites"]))
    return show(args, found, args.limit)
