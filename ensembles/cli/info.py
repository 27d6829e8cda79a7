"""``ensio info``: summarize a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable
from typing import Any

from ensembles.cli.options import add_json, add_run, add_scale_arguments, open_run
from ensembles.model.errors import SeveralRuns

HELP = "summarize a run: time, calls, bytes, access sizes, lost events"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    add_json(parser)
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the summary."""
    from ensembles.run.information import collect_information

    try:
        run = open_run(args, args.run)
    except SeveralRuns as several:
        from ensembles.cli.run_list import collect_runs, run_list_text

        runs = collect_runs(several.paths, lambda path: open_run(args, path))
        _print(args, {"runs": runs}, lambda listing: run_list_text(args.run, listing["runs"]))
        return 0
    _print(args, collect_information(run), _text)
    return 0


def _text(information: dict[str, Any]) -> str:
    from ensembles.cli.info_text import information_text

    return information_text(information)


def _print(args: argparse.Namespace, result: dict[str, Any], text: Callable[[dict[str, Any]], str]) -> None:
    if args.json:
        import json

        json.dump(result, sys.stdout, indent=2)
        print()
    else:
        print(text(result))
