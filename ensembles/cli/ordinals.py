"""``ensio ordinals``: show durations by call index, and their trend."""

from __future__ import annotations

import argparse
import json
from typing import TYPE_CHECKING

from ensembles.cli.options import (
    add_filter_arguments,
    add_json,
    add_limit,
    add_run,
    add_scale_arguments,
    open_run,
    selection_from_args,
    warn_of,
)

if TYPE_CHECKING:
    from ensembles.run.ordinals import RunOrdinals

NAME = "ordinals"
HELP = "show durations by call index (first, second, ... call of a task on a file) and their trend"

ROWS = 40


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    parser.add_argument(
        "--within",
        choices=("file", "phase"),
        default="file",
        help="count the calls of a task and operation on each file or in each phase (default: file)",
    )
    add_limit(parser, "ordinals", ROWS)
    add_json(parser)
    add_filter_arguments(parser)
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the ordinals."""
    from ensembles.run.ordinals import durations_by_ordinal

    run = open_run(args, args.run)
    found = durations_by_ordinal(run, selection_from_args(args), args.within)
    if args.json:
        result = found.to_json()
        result |= {"complete": not run.notes, "notes": [*run.notes, *found.notes]}
        print(json.dumps(result, indent=2))
    else:
        print(_text(found, args.limit))
    warn_of((*run.notes, *found.notes))
    return 0


def _text(found: RunOrdinals, limit: int) -> str:
    from ensembles.model.table import table_text
    from ensembles.model.units import count_text, seconds_text
    from ensembles.model.wrapped import wrapped

    totals, unit = found.totals, "/MiB" if found.per == "MiB" else ""
    scope = "in each phase" if found.within == "phase" else "on each file"
    sizes = "" if found.size is None else f"; {found.what}"
    head = wrapped(f"Durations by call index (n-th {found.op} of a task {scope}{sizes})")
    if not totals:
        return f"{head}: no calls"
    rows = []
    for entry in totals[:limit]:
        number = f"{entry.ordinal:,}" if entry.ordinal == entry.to else f"{entry.ordinal:,} to {entry.to:,}"
        times = (entry.median_s, entry.p90_s, entry.max_s)
        tasks = "" if entry.tasks is None else f"{entry.tasks:,}"
        rows.append([number, f"{entry.n:,}", tasks, *(seconds_text(time_s) + unit for time_s in times)])
    headers = ["ordinal", "calls", "tasks", "median", "p90", "max"]
    parts = [head]
    if rows:
        parts.append(table_text(headers, rows, 0))
    if len(totals) > limit:
        more = count_text(len(totals) - limit, "more row")
        parts.append(f"not shown: {more}, up to ordinal {totals[-1].to:,}; raise --limit to see them")
    parts.append(wrapped(f"Trend: {found.trend}."))
    return "\n\n".join(parts)
