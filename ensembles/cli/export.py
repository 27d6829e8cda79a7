"""``ensio export``: write a run, or a selection of it, in a format of other programs."""

from __future__ import annotations

import argparse
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ensembles.cli.options import (
    add_filter_arguments,
    add_run,
    add_set,
    filter_words,
    parse_path,
    selection_from_args,
    settings_from_args,
    warn,
    warn_of,
)
from ensembles.files.atomic_write import atomic_write
from ensembles.files.readership import Readership, find_readership
from ensembles.model.errors import EnsioError
from ensembles.model.holds import Holds
from ensembles.passes.progress import announced, counted

if TYPE_CHECKING:
    from ensembles.model.surroundings import SurroundingsTable
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection
    from ensembles.writers.exchange.perfetto import Counter


MANY_FILES = 1000


def export_otf2(run: Run, destination: str, ranks_per_location: int) -> int:
    """Report the size of an archive, write it, and return the number of calls in it."""
    from ensembles.model.units import bytes_text, count_text
    from ensembles.passes.summary import ignoring_run
    from ensembles.summaries.runtotals import EventCount
    from ensembles.writers.exchange.otf2 import estimate_cost, write_otf2

    cost = estimate_cost(run, ranks_per_location)
    fewer = estimate_cost(run, max(64, ranks_per_location))
    advice = ""
    if cost.files > MANY_FILES and fewer.files < cost.files:
        advice = f"; --ranks-per-location 64 reduces them to {fewer.files:,}"
    files = count_text(cost.files, "file")
    warn(f"{destination}: up to {files}, about {bytes_text(cost.size_bytes)}{advice}")
    written = write_otf2(run, destination, ranks_per_location)
    if written.late_calls:
        warn(
            f"note: {count_text(written.late_calls, 'call')} have a later time stamp in the archive than "
            "their start; the attribute ensio.start has the start"
        )
    return run.summarize(ignoring_run(EventCount)).events


@dataclass(frozen=True)
class _Task:
    """An export: the run, the selected events, and the destination."""

    run: Run
    selection: Selection
    words: str
    path: str
    ranks_per_location: int

    @property
    def readers(self) -> Readership:
        """Which users may read the output."""
        return find_readership(self.run.path)

    @property
    def about(self) -> dict[str, Any]:
        """Metadata of the run, for formats that store it."""
        run = self.run
        return {
            "made_by": "ensio export",
            "run": run.path,
            "filters": self.words,
            "tasks": run.tasks,
            "threads": run.info.threads,
            "origin_unix_ns": run.info.origin_unix_ns,
            "program": run.info.program,
            "command": list(run.info.command),
            "hosts": list(run.info.hosts),
            "mode": run.mode,
            "job": run.info.job,
            "clock_error_s": run.info.clock_error_s,
            "dropped_events": run.info.dropped_events,
            "notes": list(run.notes),
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments of the command."""
    add_run(parser)
    parser.add_argument(
        "--to",
        choices=tuple(_FORMATS),
        required=True,
        help="output format; hdf5: as ensio collect writes it; perfetto: JSON for ui.perfetto.dev; times in "
        "csv, parquet and hdf5 are in ns since the start of the run",
    )
    parser.add_argument(
        "destination", metavar="DEST", type=parse_path("file"), help="file, or for otf2 folder, to write"
    )
    add_set(
        parser,
        "otf2: ranks_per_location=N ranks, whose threads share a location, which has two files and one row "
        "in a viewer (default: a location per thread)",
        {"--ranks-per-location": "ranks_per_location"},
    )
    add_filter_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Write the file and report its size on standard error."""
    import ensembles
    from ensembles.model.units import bytes_text, count_text
    from ensembles.recorder import otf2_program

    if args.to == "otf2":  # fail before a long run is read
        otf2_program.program()
    run = ensembles.open(args.run)
    words = " ".join(filter_words(args))
    if words and args.to == "hdf5":
        run.reading.need(Holds.ALL_CALLS, "its sums cannot be filtered (export it without filters)")
    elif args.to != "hdf5":
        run.reading.need(Holds.SOME_CALLS, "there are no calls to export (--to hdf5 exports the sums)")
    selection = selection_from_args(args)
    task = _Task(run, selection.for_run(run), words, args.destination, _ranks_per_location(args))
    if args.to != "otf2":  # the OTF2 writer creates a folder and refuses an existing one
        _check_destination(run, args.destination)
        if words:
            _refuse_nothing(task, selection)
    write = _FORMATS[args.to]
    try:
        count = write(task)
        size = bytes_text(os.path.getsize(task.path)) if os.path.isfile(task.path) else args.to
    except OSError as error:
        raise EnsioError(f"{task.path} cannot be written: {_reason(error)}") from error
    warn(f"{count_text(count, 'call')} in {task.path} ({size})")
    warn_of([*run.notes, *run.info.notes_on_calls])
    return 0


def _refuse_nothing(task: _Task, selection: Selection) -> None:
    from ensembles.passes.summary import ignoring_run
    from ensembles.run.nothing_selected import refuse_nothing
    from ensembles.summaries.runtotals import EventCount

    found = task.run.summarize(ignoring_run(EventCount), selection=task.selection)
    refuse_nothing(task.run, selection, found.events)


def _ranks_per_location(args: argparse.Namespace) -> int:
    given = settings_from_args(args)
    ranks = given.pop("ranks_per_location", "1")
    if given or not ranks.isdigit() or not int(ranks):
        raise EnsioError(f"--set {args.set[-1]}: write it like --set ranks_per_location=64")
    return int(ranks)


def _check_destination(run: Run, path: str) -> None:
    """Check that the output does not replace a directory or the run itself."""
    if os.path.isdir(path):
        raise EnsioError(f"{path} is a directory: name a file")
    if os.path.exists(path) and os.path.exists(run.path) and os.path.samefile(path, run.path):
        raise EnsioError(f"{path} is the run itself: name another file")


def _reason(error: OSError) -> str:
    """Return the message of the system, without the longer text that some libraries add."""
    return os.strerror(error.errno) if error.errno else str(error).splitlines()[0] or os.strerror(errno.EIO)


def _to_hdf5(task: _Task) -> int:
    from ensembles.writers.tracefile.tracefile import Extract, write_trace_file

    source = Extract(task.run, task.selection, task.words) if task.words else task.run.reading.source
    return write_trace_file(source, task.path, task.readers)


def _to_parquet(task: _Task) -> int:
    from ensembles.writers.exchange.parquet import ParquetWriter
    from ensembles.writers.exchange.text import write_samples_parquet

    with atomic_write(task.path, task.readers) as descriptor, open(descriptor, "wb", closefd=False) as file:
        count = _written(task, ParquetWriter(file, task.about))

    def write(descriptor: int, table: SurroundingsTable) -> None:
        with open(descriptor, "wb", closefd=False) as file:
            write_samples_parquet(file, table, task.about)

    _write_samples(task, write)
    return count


def _to_csv(task: _Task) -> int:
    from ensembles.writers.exchange.text import CsvWriter, write_samples_csv

    with atomic_write(task.path, task.readers) as descriptor, _text(descriptor) as stream:
        count = _written(task, CsvWriter(stream))

    def write(descriptor: int, table: SurroundingsTable) -> None:
        with _text(descriptor) as stream:
            write_samples_csv(stream, table)

    _write_samples(task, write)
    return count


def _write_samples(task: _Task, write: Callable[[int, SurroundingsTable], None]) -> None:
    """Write the samples of the kernel's counters into a second file, if the run has any."""
    from ensembles.model.units import count_text
    from ensembles.writers.exchange.text import samples_path

    table = task.run.surroundings()
    path = samples_path(task.path)
    if not len(table) or not os.path.isfile(task.path):  # of a pipe or device there is no second one
        return
    _check_destination(task.run, path)
    with atomic_write(path, task.readers) as descriptor:
        write(descriptor, table)
    warn(f"{count_text(len(table), 'sample')} of the kernel's counters in {path}")


def _to_perfetto(task: _Task) -> int:
    from ensembles.writers.exchange.perfetto import PerfettoWriter

    with atomic_write(task.path, task.readers) as descriptor, _text(descriptor) as stream:
        counters = _counters_of(task.run)
        return _written(
            task, PerfettoWriter(stream, task.run.tasks, task.run.info.processes, task.about, counters)
        )


def _counters_of(run: Run) -> list[Counter]:
    """Return the samples of the kernel's counters as counters of all ranks."""
    import numpy as np

    from ensembles.structure.surroundings import sum_levels, sum_rates
    from ensembles.writers.exchange.perfetto import Counter

    table = run.surroundings()
    found = []
    for name, what in (("dirty_bytes", "dirty pages"), ("writeback_bytes", "pages being written")):
        levels = sum_levels(table, name)
        found.append(Counter(f"{what}, all nodes", "bytes", levels.time_ns, levels.value))
    for name, what, unit, scale in (
        ("some_us", "I/O pressure, sum of nodes", "ms/s", 1e-3),
        ("read_bytes", "fetched from storage", "bytes/s", 1.0),
        ("write_bytes", "sent to storage", "bytes/s", 1.0),
    ):
        rates = sum_rates(table, name)
        values = scale * np.append(rates.per_s, [0.0] * (len(rates.edges_ns) > 0))
        found.append(Counter(what, unit, rates.edges_ns, values))
    return [counter for counter in found if len(counter.time_ns)]


def _to_otf2(task: _Task) -> int:
    if task.words:
        raise EnsioError("an OTF2 archive holds a whole run: remove the filters")
    return export_otf2(task.run, task.path, task.ranks_per_location)


def _text(descriptor: int) -> Any:
    """Open a text file in which paths that are not valid UTF-8 keep their bytes."""
    return open(descriptor, "w", encoding="utf-8", errors="surrogateescape", newline="", closefd=False)


def _written(task: _Task, writer: Any) -> int:
    """Write the events chunk by chunk, and return their number."""
    count = 0
    reading = task.run.reading
    with announced("reading", task.run.path, reading.most_events):
        for events in counted(reading.chunks_for(task.selection)):
            if len(events):
                writer.write(events)
                count += len(events)
    if hasattr(writer, "close"):
        writer.close()
    return count


_FORMATS: dict[str, Callable[[_Task], int]] = {
    "otf2": _to_otf2,
    "hdf5": _to_hdf5,
    "parquet": _to_parquet,
    "csv": _to_csv,
    "perfetto": _to_perfetto,
}
"""The function that writes each format."""
