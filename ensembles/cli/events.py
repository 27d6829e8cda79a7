"""``ensio events``: print the events of a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import TYPE_CHECKING, Any

from ensembles.cli.options import (
    add_filter_arguments,
    add_limit,
    add_output,
    add_run,
    parse_ratio,
    selection_from_args,
    warn,
    warn_of,
)
from ensembles.files.atomic_write import atomic_write
from ensembles.files.readership import find_readership
from ensembles.model.errors import EnsioError
from ensembles.model.holds import Holds
from ensembles.model.units import ROWS_AT_ONCE

if TYPE_CHECKING:
    from ensembles.model.events import Events
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection
    from ensembles.summaries.longest_calls import LongestCalls

TABLE_LIMIT = 50
MOST_SLOWEST = 1 << 24
"""Calls that `--slowest` can select: they are held in memory."""

_PATHS = "surrogateescape"
"""Paths that are not valid UTF-8 are written byte for byte."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    parser.add_argument(
        "--format",
        choices=("table", "csv", "jsonl", "parquet"),
        default="table",
        help="output format; times are in seconds in a table, in ns since the start of the "
        "run in the others (default: table)",
    )
    add_output(parser, "FILE", "file to write; parquet needs it (default: standard output)")
    add_limit(
        parser,
        "events",
        None,
        f"maximum number of events (default: {TABLE_LIMIT} in a table, all in the other formats)",
    )
    parser.add_argument(
        "--slowest",
        metavar="N",
        type=_slowest,
        help="only the N calls with the longest durations, or a share of the calls such as 0.01, the longest "
        "first; waiting for other tasks does not count",
    )
    add_filter_arguments(parser)


def _slowest(text: str) -> float:
    """Parse a number of calls, or a share of them."""
    number = parse_ratio(text)
    if not (0 < number < 1 or (1 <= number < MOST_SLOWEST and number.is_integer())):
        raise argparse.ArgumentTypeError(
            f'"{text[:20]}" is neither a number of calls nor a share of them: write it like 20 or 0.01'
        )
    return number


def execute(args: argparse.Namespace) -> int:
    """Write the events by rank, and by completion within a thread."""
    import ensembles
    from ensembles.run.nothing_selected import not_nothing

    run = ensembles.open(args.run)
    run.reading.need(Holds.SOME_CALLS, "there are no calls to list (ensio info has the totals)")
    selection = selection_from_args(args).for_run(run)
    limit = args.limit
    if limit is None and args.format == "table" and args.slowest is None:
        limit = TABLE_LIMIT
    if args.slowest is None:
        # Few calls are found soon, and their table has few headings: one where a chunk needs wider columns.
        parts = run.reading.chunks_for(selection, None if limit is None else 4 * ROWS_AT_ONCE)
    else:
        parts = _longest(run, selection, args.slowest)
    parts = not_nothing(run, selection, parts)
    with _destination(args.output, args.format, run) as stream:
        more = _write(parts, _writer(args.format, stream), limit)
    if more:
        warn("more events are not shown: raise --limit to see them")
    warn_of([*run.notes, *run.info.notes_on_calls])
    return 0


def _longest(run: Run, selection: Selection, most: float) -> Iterator[Events]:
    """Find the longest of the selected calls; `most` is a number of calls, or a share of them."""
    from ensembles.model.events import wanted_calls

    if most < 1:
        # The number of calls is known after a pass only.
        most = wanted_calls(most, run.summarize(partial(_longest_calls, 0), selection=selection).io_calls)
    found = run.summarize(partial(_longest_calls, int(most)), selection=selection).events
    if not len(found) and any(map(len, run.reading.chunks_for(selection, None))):
        raise EnsioError("these calls wait for other tasks, which --slowest does not count: leave it out")
    yield found


def _longest_calls(most: int, run: Run) -> LongestCalls:
    from ensembles.summaries.longest_calls import LongestCalls

    return LongestCalls(most, run.calls, run.files)


def _write(parts: Iterable[Events], writer: Any, limit: int | None) -> bool:
    """Write up to `limit` events part by part, and return whether there are more; no others are read."""
    left, more = limit, False
    for events in parts:
        wanted = len(events) if left is None else min(len(events), left)
        if wanted:
            writer.write(events if wanted == len(events) else events[:wanted])
        if left is not None:
            left -= wanted
        more = wanted < len(events)
        if more:
            break
    if hasattr(writer, "close"):
        writer.close()
    return more


def _writer(kind: str, stream: Any) -> Any:
    if kind == "parquet":
        from ensembles.writers.exchange.parquet import ParquetWriter

        return ParquetWriter(stream)
    from ensembles.writers.exchange.text import CsvWriter, JsonLinesWriter, TableWriter

    return {"table": TableWriter, "csv": CsvWriter, "jsonl": JsonLinesWriter}[kind](stream)


@contextmanager
def _destination(output: str | None, kind: str, run: Run) -> Iterator[Any]:
    """Yield standard output, or a temporary file that is renamed to `output` when it is complete."""
    if output is None:
        if kind == "parquet":
            raise EnsioError("Parquet is not written to standard output: name a file with -o FILE")
        yield sys.stdout
        return
    text: dict[str, Any] = {"mode": "w", "encoding": "utf-8", "errors": _PATHS, "newline": ""}
    how = {"mode": "wb"} if kind == "parquet" else text
    try:
        with (
            atomic_write(output, find_readership(run.path)) as descriptor,
            open(descriptor, closefd=False, **how) as stream,
        ):
            yield stream
    except OSError as error:
        raise EnsioError(f"{output} cannot be written: {error.strerror or error}") from error
