"""``ensio export``: a run in another format."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ensembles.cli.arguments import count_of, path_of
from ensembles.cli.streams import tell
from ensembles.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.run import Run

NAME = "export"
HELP = "write a run in a format that other tools read: an OTF2 archive"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    parser.add_argument("run", metavar="RUN", type=path_of("run"), help="run directory, spool, trace.h5, ...")
    parser.add_argument("--to", required=True, choices=("otf2",), help="the format")
    parser.add_argument("destination", metavar="DEST", type=path_of("destination"), help="what to make")
    add_otf2_arguments(parser)


def add_otf2_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare those that only OTF2 knows."""
    parser.add_argument(
        "--ranks-per-location",
        metavar="N",
        type=count_of("ranks", least=1),
        default=1,
        help="OTF2 has two files for each thread; with this, for each N ranks with all their threads, which "
        "are then shown in one row (default: 1, a row for each thread)",
    )


def execute(args: argparse.Namespace) -> int:
    """Write it, and say so on standard error."""
    import ensembles

    run = ensembles.open(args.run)
    if run.mode == "profile":
        raise EnsioError(
            f"{args.run} was recorded in mode profile, which keeps no events: record it again with "
            "ensio run --mode trace"
        )
    export_otf2(run, args)
    for note in run.notes:
        tell(f"note: {note}")
    return 0


def export_otf2(run: Run, args: argparse.Namespace) -> None:
    """Say what an archive will cost, and write it."""
    from ensembles.units import bytes_text, count_text
    from ensembles.writers.otf2 import cost_of, write_otf2

    cost = cost_of(run, args.ranks_per_location)
    fewer = cost_of(run, max(64, args.ranks_per_location))
    advice = ""
    if cost.files > 1000 and fewer.files < cost.files:
        advice = f"; --ranks-per-location 64 makes {fewer.files:,} of them"
    tell(
        f"{args.destination}: up to {count_text(cost.files, 'file')}, "
        f"about {bytes_text(cost.size_bytes)}{advice}"
    )
    written = write_otf2(run, args.destination, args.ranks_per_location)
    if written.late_calls:
        tell(
            f"note: {count_text(written.late_calls, 'call')} stand later in the archive than they began; "
            "the attribute ensio.start tells when"
        )
    tell(f"{count_text(run.most_events, 'call')} in {written.anchor}")
