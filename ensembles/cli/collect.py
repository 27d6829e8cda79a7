"""``ensio collect``: puts a run directory into one file."""

from __future__ import annotations

import argparse
import os

from ensembles.cli.arguments import path_of
from ensembles.cli.streams import tell

NAME = "collect"
HELP = "put the spools of a run directory into one file, trace.h5"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("directory", metavar="DIR", type=path_of("run"), help="run directory")
    parser.add_argument(
        "-o",
        "--output",
        metavar="FILE",
        type=path_of("file"),
        help="file to write (default: DIR/trace.h5)",
    )


def execute(args: argparse.Namespace) -> int:
    """Write the file, and say so on standard error."""
    from ensembles.collection import collect
    from ensembles.units import bytes_text, count_text

    path, events = collect(args.directory, args.output)
    size = bytes_text(os.path.getsize(path))
    tell(f"{count_text(events, 'call')} in {path} ({size})")
    return 0
