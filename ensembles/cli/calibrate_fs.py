"""``ensio calibrate-fs``: measure what calls cost on a file system."""

from __future__ import annotations

import argparse

from ensembles.cli import replay
from ensembles.cli.options import parse_path

_PATTERN = "calibrate-fs"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command: those of a replay, and the folder comes first."""
    parser.add_argument("folder", metavar="DIR", type=parse_path("folder"), help="folder on the file system")
    parser.add_argument(
        "options", nargs=argparse.REMAINDER, help="options of ensio replay, such as --tasks 8"
    )


def execute(args: argparse.Namespace) -> int:
    """Replay the pattern of the calibration in the folder."""
    parser = argparse.ArgumentParser("ensio calibrate-fs")
    replay.add_arguments(parser)
    return replay.execute(parser.parse_args([_PATTERN, "--directory", args.folder, *args.options]))
