"""``ensio collect``: put a run directory into one file."""

from __future__ import annotations

import argparse
import os

from ensembles.cli.options import add_old_names, add_output, parse_path, warn, warn_of
from ensembles.writers.tracefile.filters import FILTERS


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("directory", metavar="DIR", type=parse_path("run"), help="run directory")
    add_output(parser, "FILE", "file to write (default: DIR/trace.h5)")
    parser.add_argument(
        "--format",
        choices=tuple(FILTERS),
        default="gzip",
        help="compression of the events; every HDF5 library reads gzip and none, the others need a plugin "
        "(default: gzip)",
    )
    add_old_names(parser, {"--filter": "--format"})


def execute(args: argparse.Namespace) -> int:
    """Write the file and report its size on standard error."""
    from ensembles.model.units import bytes_text, count_text
    from ensembles.readers.native.directory import run_directory_at
    from ensembles.run.collect import collect, is_collected
    from ensembles.run.open import open_as
    from ensembles.run.run import Run

    was_collected = os.path.isdir(args.directory) and is_collected(run_directory_at(args.directory))
    path, events = collect(args.directory, args.output, args.format)
    size = bytes_text(os.path.getsize(path))
    words = "nothing to do: the run is collected already, " if was_collected else ""
    warn(f"{words}{count_text(events, 'call')} in {path} ({size})")
    warn_of(open_as(Run, path).notes)
    if FILTERS[args.format].needs and not was_collected:
        warn(f"note: to read it, other programs need {FILTERS[args.format].needs}")
    return 0
