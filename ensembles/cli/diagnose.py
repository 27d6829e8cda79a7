"""``ensio diagnose``: find causes of slow I/O in a run."""

from __future__ import annotations

import argparse

from ensembles.cli.options import add_json, add_run, add_scale_arguments, open_run, warn, warn_of
from ensembles.cli.questions import show


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    add_json(parser)
    parser.add_argument(
        "--verbose", action="store_true", help="print all evidence, and why causes were not examined"
    )
    parser.add_argument(
        "--fail-on",
        choices=("warning", "critical"),
        help="exit with status 1 if there is a finding of this severity, or a higher one",
    )
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the findings."""
    from ensembles.answers.diagnose import diagnose
    from ensembles.diagnosis.finding import SEVERITIES

    run = open_run(args, args.run)
    found = diagnose(run)
    show(args, found.in_full() if args.verbose else found)
    warn_of(found.hints)
    if args.fail_on is None:
        return 0
    if found.lacks:
        warn(f"{args.run}: --fail-on {args.fail_on} cannot be answered: {found.lacks}")
        return 2
    least = SEVERITIES.index(args.fail_on)
    return int(any(SEVERITIES.index(finding.severity) >= least for finding in found.findings))
