"""``ensio export --to otf2``: what only OTF2 archives ask for, and what they cost."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from ensembles.cli.arguments import count_of
from ensembles.cli.streams import tell

if TYPE_CHECKING:
    from ensembles.run import Run

MANY_FILES = 1000


def add_otf2_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that only OTF2 knows."""
    parser.add_argument(
        "--ranks-per-location",
        metavar="N",
        type=count_of("ranks", least=1),
        default=1,
        help="otf2: it has two files for each thread; with this, for each N ranks with all of their threads, "
        "which are then shown in one row (default: 1, a row for each thread)",
    )


def export_otf2(run: Run, destination: str, ranks_per_location: int) -> int:
    """Say what an archive will cost, and write it; the number of calls in it."""
    from ensembles.passes.summary import ignoring_run
    from ensembles.summaries.eventcount import EventCount
    from ensembles.units import bytes_text, count_text
    from ensembles.writers.otf2 import cost_of, write_otf2

    cost = cost_of(run, ranks_per_location)
    fewer = cost_of(run, max(64, ranks_per_location))
    advice = ""
    if cost.files > MANY_FILES and fewer.files < cost.files:
        advice = f"; --ranks-per-location 64 makes {fewer.files:,} of them"
    files = count_text(cost.files, "file")
    tell(f"{destination}: up to {files}, about {bytes_text(cost.size_bytes)}{advice}")
    written = write_otf2(run, destination, ranks_per_location)
    if written.late_calls:
        tell(
            f"note: {count_text(written.late_calls, 'call')} stand later in the archive than they began; "
            "the attribute ensio.start tells when"
        )
    return run.summarize(ignoring_run(EventCount)).events
