"""``ensio history site`` and ``metrics``: the history for browsers and for monitoring."""

from __future__ import annotations

import argparse
from typing import Any

from ensembles.cli.history_options import add_action, open_history
from ensembles.cli.options import parse_path
from ensembles.model.units import count_text


def add_output_actions(subparsers: Any) -> None:
    """Declare the actions."""
    writer = add_action(
        subparsers, "site", _site, "write the history as static pages for a web server without Python"
    )
    writer.add_argument("folder", metavar="DIR", type=parse_path("folder"), help="folder of the pages")
    meter = add_action(
        subparsers, "metrics", _metrics, "print the latest run of each experiment as OpenMetrics text"
    )
    meter.add_argument(
        "-o", "--output", metavar="FILE", type=parse_path("metrics"), help="write a file (default: print)"
    )


def _site(args: argparse.Namespace) -> int:
    from ensembles.viz.history.site import write_site

    written = write_site(open_history(args), args.folder)
    print(f"{written[0]}: {count_text(len(written) - 1, 'experiment')}")
    return 0


def _metrics(args: argparse.Namespace) -> int:
    from ensembles.files.atomic_write import atomic_write
    from ensembles.files.readership import Readership
    from ensembles.history.metrics import openmetrics

    text = openmetrics(open_history(args))
    if args.output is None:
        print(text, end="")
        return 0
    with (
        atomic_write(args.output, Readership(everyone=True)) as descriptor,
        open(descriptor, "wb", closefd=False) as file,
    ):
        file.write(text.encode())
    return 0
