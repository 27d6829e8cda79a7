"""``ensio events``: print the events of a run."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from ensembles.cli.options import (
    add_filter_arguments,
    add_limit,
    add_output,
    add_run,
    selection_from_args,
    warn,
)
from ensembles.files.atomic_write import atomic_write
from ensembles.files.readership import find_readership
from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection

NAME = "events"
HELP = "print the events as a table, CSV or JSON lines, or write them as Parquet"

TABLE_LIMIT = 50

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
    add_filter_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Write the events by rank, and by completion within a thread."""
    import ensembles

    run = ensembles.open(args.run)
    if run.mode == "profile":
        raise EnsioError(
            f"{args.run} {run.how_it_was_recorded}: use ensio info for the totals, or {run.how_to_keep_calls}"
        )
    selection = selection_from_args(args).for_run(run)
    limit = TABLE_LIMIT if args.limit is None and args.format == "table" else args.limit
    with _destination(args.output, args.format, run) as stream:
        more = _write(run, selection, _writer(args.format, stream), limit)
    if more:
        warn(f"{more:,} more events are not shown: raise --limit to see them")
    if run.mode == "tail":
        warn("note: recorded in mode tail: only the slowest calls are events")
    for note in run.notes:
        warn(f"note: {note}")
    return 0


def _write(run: Run, selection: Selection, writer: Any, limit: int | None) -> int:
    """Write up to `limit` events chunk by chunk, and return the number of the others."""
    written = found = 0
    for events in run.chunks_for(selection):
        found += len(events)
        wanted = len(events) if limit is None else min(len(events), limit - written)
        if wanted:
            writer.write(events if wanted == len(events) else events[:wanted])
            written += wanted
    if hasattr(writer, "close"):
        writer.close()
    return found - written


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
