"""``ensio scaling``: rates of several runs against the number of tasks, nodes or writers."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from typing import TYPE_CHECKING

from ensembles.cli.options import add_json, add_scale_arguments, open_run, warn_of
from ensembles.model.units import ratio_text, share_text

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.run.scaling import Scaling

NAME = "scaling"
HELP = "show rates of several runs against the number of tasks, nodes or writers"
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
        type=_rate,
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
    from ensembles.run.scaling import scaling

    filters = {name: value for name in ("file", "phase") if (value := getattr(args, name))}
    found = scaling(_opened(args), args.op, args.by, args.maximum, **filters)
    print(json.dumps(found.to_json(), indent=2) if args.json else _text(found))
    warn_of(found.notes)
    return 0


def _opened(args: argparse.Namespace) -> Iterator[Run]:
    for path in args.runs:
        yield open_run(args, path)


def _rate(text: str) -> float:
    from ensembles.model.errors import EnsioError
    from ensembles.model.filters import parse_size

    try:
        size = parse_size(text.strip().removesuffix("/s"))
    except EnsioError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if size < 1:
        raise argparse.ArgumentTypeError("the maximum must be at least 1 B/s")
    return float(size)


def _text(found: Scaling) -> str:
    from ensembles.model.table import folded_table_text
    from ensembles.run.scaling import label_of

    rows = [
        (
            point.layer,
            point.files,
            f"{point.at:,}",
            f"{len(point.runs):,}",
            _rate_text(point.median_bytes_per_s),
            "" if point.spread is None else ratio_text(point.spread),
            _rate_text(point.median_bytes_per_s / point.at),
            share_text(point.efficiency, None),
            share_text(point.share_of_maximum, None),
        )
        for point in found.points
    ]
    counted = label_of(found.by, found.direction)
    each = f"a {counted.removesuffix('s')}"
    headers = ("layer", "files", counted, "runs", "median", "spread", each, "efficiency", "of max.")
    direction = "written" if found.direction == "write" else "read"
    source = "the highest of these runs" if found.maximum_is_measured else "as given"
    head = f"Rates of bytes {direction}, while files were open"
    notes = [
        f"maximum: {_rate_text(found.maximum_bytes_per_s)}, {source}",
        "spread: highest rate of the runs divided by the lowest",
        f"efficiency: rate {each}, relative to the fewest {counted} of same layer and files",
    ]
    listed = [run.path for point in found.points for run in point.runs]
    if len(listed) > len(set(listed)):
        notes.append("runs of one task are of both kinds: their one file is shared and per task")
    table = folded_table_text(headers, rows, left=2, together=(3, 3), first=3)
    return "\n".join([head, "", table, "", *notes])


def _rate_text(bytes_per_s: float) -> str:
    from ensembles.model.units import bytes_text

    return f"{bytes_text(round(bytes_per_s))}/s"
