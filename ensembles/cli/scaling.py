"""``ensio scaling``: rates of several runs against the number of tasks, nodes or writers."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ensembles.cli.options import add_json, add_scale_arguments, open_run, parse_bytes
from ensembles.cli.questions import show

if TYPE_CHECKING:
    from ensembles.run.run import Run

DESCRIPTION = (
    "Show the rates of several runs against the number of tasks, nodes or writers. Runs with equal numbers, "
    "layer and kind of files are repetitions. The rate is by the time in which files were open; that of IOR "
    "also counts time in which no task has one open."
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    parser.add_argument("runs", metavar="RUN", nargs="+", help="run, as for the other commands")
    parser.add_argument(
        "--op",
        choices=("write", "read"),
        default="write",
        help="direction of the data (default: %(default)s)",
    )
    parser.add_argument(
        "--by",
        choices=("tasks", "nodes", "writers"),
        default="tasks",
        help="number on the axis; writers: tasks that transfer at the lowest recorded layer (default: tasks)",
    )
    parser.add_argument(
        "--maximum",
        metavar="RATE",
        type=parse_bytes("maximum", "/s"),
        help="rate that the file system can reach, such as 20GB/s (default: the highest of these runs)",
    )
    parser.add_argument(
        "--file",
        metavar="GLOB",
        action="append",
        help="calls on these files only, such as '*.h5' for the part of a benchmark that uses HDF5: absolute "
        "paths, with wildcards; may be repeated",
    )
    parser.add_argument("--phase", metavar="NUMBERS", help="calls of these phases only, such as 3 or 1,4-8")
    add_json(parser)
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the rates."""
    from ensembles.answers.scaling import answer_scaling, scaling

    filters = {name: value for name in ("file", "phase") if (value := getattr(args, name))}
    return show(args, answer_scaling(scaling(_opened(args), args.op, args.by, args.maximum, **filters)))


def _opened(args: argparse.Namespace) -> Iterator[Run]:
    for path in args.runs:
        yield open_run(args, path)
