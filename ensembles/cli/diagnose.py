"""``ensio diagnose``: find causes of slow I/O in a run."""

from __future__ import annotations

import argparse
import json

from ensembles.cli.options import add_json, add_run, add_scale_arguments, open_run, warn

NAME = "diagnose"
HELP = "find causes of slow I/O: evidence, advice and predicted gain of each"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    add_json(parser)
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the findings."""
    from ensembles.diagnosis.diagnose import diagnose

    found = diagnose(open_run(args, args.run))
    print(json.dumps(found.to_json(), indent=2) if args.json else found)
    for note in found.notes:
        warn(f"note: {note}")
    return 0
