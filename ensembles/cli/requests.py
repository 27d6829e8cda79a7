"""``ensio requests``: show the sizes of reads and of writes of each API."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
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
from ensembles.model.units import share_text

if TYPE_CHECKING:
    from ensembles.run.requests import RequestTotals

NAME = "requests"
HELP = "show number, sizes and alignment of reads and of writes of each API"

SIZES = 4


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    parser.add_argument(
        "--align",
        metavar="SIZE",
        type=_size,
        help="boundary for misaligned requests, such as 4KiB (default: the stripe size of each file, else "
        "the block size of its file system)",
    )
    add_limit(parser, "sizes of each API", SIZES)
    add_json(parser)
    add_filter_arguments(parser)
    add_scale_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Print the requests."""
    from ensembles.run.nothing_selected import refuse_nothing
    from ensembles.run.requests import MOST_SIZES, requests_of_run
    from ensembles.structure.counters import counted_requests

    run = open_run(args, args.run)
    filters: Any = {name: getattr(args, name) for name in FILTERS if getattr(args, name)}
    found = requests_of_run(run, args.align, max(args.limit, MOST_SIZES), **filters)
    counted = counted_requests(run.info)
    refuse_nothing(run, selection_from_args(args), len(found))
    if args.json:
        result = {
            "run": run.path,
            "align_bytes": args.align,
            "requests": [row.to_json() for row in found],
            **({"counted": counted} if counted else {}),
            "complete": not run.notes,
            "notes": run.notes,
        }
        print(json.dumps(result, indent=2))
    else:
        print(_text(found, args.limit, counted, args.align))
    warn_of(run.notes)
    return 0


def _size(text: str) -> int:
    from ensembles.model.errors import EnsioError
    from ensembles.model.filters import parse_size

    try:
        size = parse_size(text)
    except EnsioError as error:
        raise argparse.ArgumentTypeError(str(error)) from None
    if size < 1:
        raise argparse.ArgumentTypeError("the boundary must be at least 1 B")
    return size


def _text(
    found: Sequence[RequestTotals],
    limit: int,
    counted: Sequence[dict[str, Any]] = (),
    align_bytes: int | None = None,
) -> str:
    from ensembles.model.table import first_that_fits, table_text
    from ensembles.model.units import size_text
    from ensembles.run.requests import REQUEST_HEADERS, notes_on_requests, request_cells

    if not found:
        return "No read or write was recorded."
    totals = [request_cells(row) for row in found]
    headers = REQUEST_HEADERS
    sizes = [
        (
            row.layer if number == 0 else "",
            row.op if number == 0 else "",
            size_text(size.low_bytes)
            if size.low_bytes == size.high_bytes
            else f"{size_text(size.low_bytes)} to {size_text(size.high_bytes)}",
            f"{size.count:,}",
            share_text(size.share, 1),
        )
        for row in found
        for number, size in enumerate(row.sizes[:limit])
    ]
    parts = [first_that_fits(_tables(headers, totals))]
    parts.append(table_text(("API", "op", "request size", "count", "share"), sizes, left=2))
    if counted:
        parts.append(_counted_text(counted, limit))
    notes = notes_on_requests(found, align_bytes, bool(counted))
    return "\n\n".join([*parts, *notes])


def _tables(headers: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Format the totals: whole, without a column that has nothing, and as two tables."""
    from ensembles.model.table import columns_text, folded_table_text, table_text

    yield table_text(headers, rows, left=2)
    collective = headers.index("collective")
    if not any(row[collective] for row in rows):
        yield columns_text(headers, rows, {0, 1}, [at for at in range(len(headers)) if at != collective])
    yield folded_table_text(headers, rows, left=2, together=(collective - 2, 3), first=2)


def _counted_text(counted: Sequence[dict[str, Any]], limit: int) -> str:
    """Format what counters say of reads and writes together."""
    from ensembles.model.table import table_text
    from ensembles.model.units import size_text
    from ensembles.run.requests import part_text

    rows = [
        (
            entry["layer"] if number == 0 else "",
            part_text(entry["misaligned"], entry["count"]) if number == 0 else "",
            ", ".join(size_text(bytes_) for bytes_ in entry["alignment_bytes"]) if number == 0 else "",
            *((size_text(size["bytes"]), f"{size['count']:,}") if size else ("", "")),
        )
        for entry in counted
        for number, size in enumerate(entry["common_sizes"][:limit] or [None])
    ]
    headers = ("API", "misaligned", "to", "common size", "count")
    text = table_text(headers, rows, left=1)
    return f"Reads and writes together, as counted (at least: four sizes of a file are kept)\n\n{text}"
