"""The options that choose events, the same for every command."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ensembles.run.selection import Selection


FILTERS = (
    "op",
    "call",
    "layer",
    "file",
    "rank",
    "size",
    "time",
    "region",
    "phase",
    "ordinal",
    "per_byte",
)
"""Their names, as they stand among the arguments."""


def add_filter_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the filters."""
    group = parser.add_argument_group("filters (several choices are parted by commas)")
    group.add_argument("--op", metavar="OP", help="read, write, open, close, seek, sync, meta or wait")
    group.add_argument("--call", metavar="NAME", help="functions, for example pread,pwrite")
    group.add_argument("--layer", metavar="NAME", help="layers, for example posix")
    group.add_argument("--file", metavar="GLOB", action="append", help="absolute paths; may be repeated")
    group.add_argument("--rank", metavar="RANKS", help="for example 0-63 or 0,5")
    group.add_argument("--size", metavar="SIZES", help="requested bytes, for example 1MiB or 1MiB..4MiB")
    group.add_argument("--time", metavar="FROM..TO", help="calls that start then, in seconds of the run")
    group.add_argument(
        "--region",
        metavar="NAME",
        action="append",
        help="calls that start in a phase or region of their task with this name; may be repeated",
    )
    group.add_argument("--phase", metavar="NUMBERS", help="phases, as ensio phases numbers them: 3 or 1,4-8")
    group.add_argument(
        "--ordinal", metavar="NUMBERS", help="which call of its rank, operation and file it is, from 1: 4-8"
    )
    group.add_argument(
        "--per-byte", action="store_true", help="calls that moved bytes, and their durations for each MiB"
    )


def selection_from_args(args: argparse.Namespace) -> Selection:
    """The selection that the arguments describe.

    Raises
    ------
    EnsioError
        A filter makes no sense.
    """
    from ensembles.run.selection import Selection

    return Selection.parse(**{name: getattr(args, name) for name in FILTERS})
