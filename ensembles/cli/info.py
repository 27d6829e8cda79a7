"""``ensio info``: summarize a run."""

from __future__ import annotations

import argparse

from ensembles.cli.options import add_json, add_run, add_scale_arguments, open_run
from ensembles.cli.questions import show
from ensembles.model.errors import SeveralRuns


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    add_json(parser)
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the summary."""
    from ensembles.answers.info import answer_info

    try:
        run = open_run(args, args.run)
    except SeveralRuns as several:
        from ensembles.answers.info import answer_run_list

        return show(args, answer_run_list(args.run, several.paths, lambda path: open_run(args, path)))
    return show(args, answer_info(run))
