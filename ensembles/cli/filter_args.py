"""The options that select events, the same for every command."""

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
"""Names of the filters in the parsed arguments."""


def add_filter_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options that select events."""
    group = parser.add_argument_group("filters (comma-separated lists; default: every call)")
    group.add_argument("--op", metavar="OP", help="read, write, open, close, seek, sync, meta or wait")
    group.add_argument("--call", metavar="NAME", help="functions, such as pread,pwrite")
    group.add_argument("--layer", metavar="NAME", help="layers: posix, stdio, mpiio, mpisync or hdf5")
    group.add_argument(
        "--file", metavar="GLOB", action="append", help="absolute paths, with wildcards; may be repeated"
    )
    group.add_argument("--rank", metavar="RANKS", help="ranks, such as 0-63 or 0,5")
    group.add_argument("--size", metavar="SIZES", help="requested bytes, such as 1MiB or 1MiB..4MiB")
    group.add_argument(
        "--time",
        metavar="FROM..TO",
        help="start of the call, in seconds since the start of the run, such as 1.5..3",
    )
    group.add_argument(
        "--region",
        metavar="NAME",
        action="append",
        help="calls that start in a phase or region with this name; may be repeated",
    )
    group.add_argument(
        "--phase", metavar="NUMBERS", help="phases, as numbered by ensio phases, such as 3 or 1,4-8"
    )
    group.add_argument(
        "--ordinal",
        metavar="NUMBERS",
        help="call index among the calls of a rank, operation and file, from 1, such as 4-8",
    )
    group.add_argument(
        "--per-byte",
        action="store_true",
        help="only calls that moved bytes, with durations in seconds per MiB",
    )


def selection_from_args(args: argparse.Namespace) -> Selection:
    """Return the selection that the arguments describe.

    Raises
    ------
    EnsioError
        A filter is not valid.
    """
    from ensembles.run.selection import Selection

    return Selection.parse(**{name: getattr(args, name) for name in FILTERS})
