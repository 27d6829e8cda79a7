"""What ``ensio files`` and ``ensio ranks`` share: options, the table, JSON."""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from ensembles.cli.options import (
    FILTERS,
    add_filter_arguments,
    add_json,
    add_limit,
    add_run,
    add_scale_arguments,
    open_run,
    selection_from_args,
    warn_of,
)
from ensembles.model.units import count_text, share_text

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.run.selection import Filters

ROWS = 20


def add_table_arguments(parser: argparse.ArgumentParser, what: str) -> None:
    """Declare the arguments of a command that prints a table of totals."""
    add_run(parser)
    parser.add_argument(
        "--sort",
        choices=("time", "bytes", "calls"),
        default="time",
        help="what to sort by, the largest first (default: time in I/O)",
    )
    add_limit(parser, what, ROWS)
    add_json(parser, "print one JSON object, in SI units, with all rows")
    add_filter_arguments(parser)
    add_scale_arguments(parser)


def open_table(args: argparse.Namespace) -> tuple[Run, Filters]:
    """Open the run; return it with the filters."""
    filters: Any = {name: getattr(args, name) for name in FILTERS if getattr(args, name)}
    return open_run(args, args.run), filters


def print_table(
    args: argparse.Namespace,
    run: Run,
    rows: Sequence[Any],
    what: str,
    headers: Sequence[str],
    first_cells: Callable[[Any], Sequence[str]],
    waits: bool = False,
    counted: int | None = None,
    more: Mapping[str, Any] | None = None,
) -> int:
    """Print a table of totals, or its JSON.

    Parameters
    ----------
    args : argparse.Namespace
    run : Run
    rows : sequence of `ensembles.run.tables.Totals`
        In the order of the table.
    what : str
        Noun for a row.
    headers : sequence of str
        Headers of the first columns.
    first_cells : callable
        Gives the cells of the first columns of a row.
    waits : bool
        Whether to show the longest call, and the time waiting for other tasks.
    counted : int, optional
        Rows that are one of `what`, if not all are.
    more : mapping of str to object, optional
        Further entries of the JSON.

    Returns
    -------
    int
        Exit code.
    """
    from ensembles.run.nothing_selected import refuse_nothing
    from ensembles.run.tables import sums_of_totals

    refuse_nothing(run, selection_from_args(args), len(rows))
    sums = sums_of_totals(rows)
    if args.json:
        result = {
            "run": run.path,
            "sort": args.sort,
            f"{what}s": [row.to_json() for row in rows],
            "total": sums,
            **(more or {}),
            "complete": not run.notes,
            "notes": run.notes,
        }
        print(json.dumps(result, indent=2))
    else:
        head = count_text(len(rows) if counted is None else counted, what)
        print(_text(rows[: args.limit], len(rows), sums, what, headers, first_cells, waits, head))
    warn_of(run.notes)
    return 0


def _text(
    shown: Sequence[Any],
    count: int,
    sums: dict[str, Any],
    what: str,
    headers: Sequence[str],
    first_cells: Callable[[Any], Sequence[str]],
    waits: bool,
    head: str,
) -> str:
    from ensembles.model.table import table_text, text_width
    from ensembles.model.units import bytes_text, seconds_text
    from ensembles.model.wrapped import WIDTH, wrapped

    def bytes_cell(value: int | None) -> str:
        return "unknown" if value is None else bytes_text(value) if value else ""

    columns = [*headers, "calls", "read", "written", "I/O time", "share"]
    columns += ["longest", "waiting"] if waits else []
    rows = [
        (
            *first_cells(row),
            f"{row.calls:,}",
            bytes_cell(row.bytes_read),
            bytes_cell(row.bytes_written),
            seconds_text(row.io_time_s),
            share_text(row.share, 1),
            *([_time_cell(row.longest_s), seconds_text(row.wait_s)] if waits else []),
        )
        for row in shown
    ]
    table = table_text(columns, rows) if rows else ""
    beyond = text_width(table) - WIDTH
    if beyond > 0 and headers[0] == "file":
        # Paths were cut for numbers of usual length.
        rows = [(_shorter(row[0], max(len(row[0]) for row in rows) - beyond), *row[1:]) for row in rows]
        table = table_text(columns, rows)
    moved = [
        f"{bytes_cell(sums[key])} {label}"
        for key, label in (("bytes_read", "read"), ("bytes_written", "written"))
        if sums[key] is None or sums[key]
    ]
    whole = [
        head,
        count_text(sums["calls"], "call"),
        *moved,
        f"{seconds_text(sums['io_time_s'])} in I/O",
    ]
    text = wrapped(" · ".join(whole)) + (f"\n\n{table}" if rows else "")
    if waits and sums["wait_s"]:
        text += "\n\n" + wrapped(
            "Calls that wait for other tasks are among the calls; their time is waiting, and not in I/O time."
        )
    more = count - len(shown)
    return text + (f"\n\n{count_text(more, f'more {what}')}: raise --limit to see them" if more else "")


def _shorter(path: str, most: int) -> str:
    """Return the end of a path, of so many characters at most."""
    return path if len(path) <= most else "..." + path.removeprefix("...")[3 - most :]


def _time_cell(time_s: float | None) -> str:
    from ensembles.model.units import seconds_text

    return "" if time_s is None else seconds_text(time_s)
