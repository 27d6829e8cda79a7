"""``ensio export``: a run, or a part of it, in a format that other programs read."""

from __future__ import annotations

import argparse
import errno
import os
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ensembles.cli.common_args import add_run, parse_count, parse_path
from ensembles.cli.filter_args import FILTERS, add_filter_arguments, selection_from_args
from ensembles.cli.stdio import warn
from ensembles.files.atomic_write import atomic_write
from ensembles.files.readership import Readership, find_readership
from ensembles.model.errors import EnsioError

if TYPE_CHECKING:
    from ensembles.run.run import Run
    from ensembles.run.selection import Selection


MANY_FILES = 1000


def add_otf2_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments that only OTF2 knows."""
    parser.add_argument(
        "--ranks-per-location",
        metavar="N",
        type=parse_count("ranks", least=1),
        default=1,
        help="otf2: it has two files for each thread; with this, for each N ranks with all of their threads, "
        "which are then shown in one row (default: 1, a row for each thread)",
    )


def export_otf2(run: Run, destination: str, ranks_per_location: int) -> int:
    """Say what an archive will cost, and write it; the number of calls in it."""
    from ensembles.model.units import bytes_text, count_text
    from ensembles.passes.summary import ignoring_run
    from ensembles.summaries.eventcount import EventCount
    from ensembles.writers.exchange.otf2 import estimate_cost, write_otf2

    cost = estimate_cost(run, ranks_per_location)
    fewer = estimate_cost(run, max(64, ranks_per_location))
    advice = ""
    if cost.files > MANY_FILES and fewer.files < cost.files:
        advice = f"; --ranks-per-location 64 makes {fewer.files:,} of them"
    files = count_text(cost.files, "file")
    warn(f"{destination}: up to {files}, about {bytes_text(cost.size_bytes)}{advice}")
    written = write_otf2(run, destination, ranks_per_location)
    if written.late_calls:
        warn(
            f"note: {count_text(written.late_calls, 'call')} stand later in the archive than they began; "
            "the attribute ensio.start tells when"
        )
    return run.summarize(ignoring_run(EventCount)).events


NAME = "export"
HELP = "write a run, or a part of it, for other programs: OTF2, HDF5, Parquet, CSV, Perfetto"


@dataclass(frozen=True)
class _Task:
    """What is to be written where.

    Attributes
    ----------
    run : Run
    selection : Selection
    words : str
        The filters as they were given; "": none.
    path : str
    ranks_per_location : int
        In OTF2.
    """

    run: Run
    selection: Selection
    words: str
    path: str
    ranks_per_location: int

    @property
    def readers(self) -> Readership:
        """Who may read what is written."""
        return find_readership(self.run.path)

    @property
    def about(self) -> dict[str, Any]:
        """Facts of the run that go into files with room for them."""
        run = self.run
        return {
            "made_by": "ensio export",
            "run": run.path,
            "filters": self.words,
            "tasks": run.tasks,
            "threads": run.threads,
            "origin_unix_ns": run.origin_unix_ns,
            "program": run.program,
            "command": list(run.command),
            "hosts": list(run.hosts),
            "mode": run.mode,
            "job": run.job,
            "clock_error_s": run.clock_error_s,
            "dropped_events": run.dropped_events,
            "notes": list(run.notes),
        }


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the arguments."""
    add_run(parser)
    parser.add_argument(
        "--to",
        choices=tuple(_FORMATS),
        required=True,
        help="hdf5: as ensio collect does it; perfetto: JSON for ui.perfetto.dev; times in csv, parquet and "
        "hdf5 are in ns since the run's start",
    )
    parser.add_argument("destination", metavar="DEST", type=parse_path("file"), help="what is to be written")
    add_otf2_arguments(parser)
    add_filter_arguments(parser)


def execute(args: argparse.Namespace) -> int:
    """Write the file, and say so on standard error."""
    import ensembles
    from ensembles.model.units import bytes_text, count_text
    from ensembles.recorder import otf2_program

    if args.to == "otf2":  # before a long run is read for nothing
        otf2_program.program()
    run = ensembles.open(args.run)
    words = _words(args)
    if run.mode == "profile" and args.to != "hdf5":
        raise EnsioError(
            f"{args.run} was recorded in mode profile, which keeps no events: export it --to hdf5, or record "
            "again with ensio run --mode trace"
        )
    task = _Task(
        run, selection_from_args(args).for_run(run), words, args.destination, args.ranks_per_location
    )
    if args.to != "otf2":  # whose writer makes a folder, and only where there is nothing yet
        _check_destination(run, args.destination)
    write = _FORMATS[args.to]
    try:
        count = write(task)
        size = bytes_text(os.path.getsize(task.path)) if os.path.isfile(task.path) else args.to
    except OSError as error:
        raise EnsioError(f"{task.path} cannot be written: {_reason(error)}") from error
    warn(f"{count_text(count, 'call')} in {task.path} ({size})")
    if run.mode == "tail":
        warn("note: mode tail: of all calls, only the slowest are kept as events")
    for note in run.notes:
        warn(f"note: {note}")
    return 0


def _words(args: argparse.Namespace) -> str:
    """The filters as they were given."""
    words = []
    for name in FILTERS:
        value = getattr(args, name)
        for text in value if isinstance(value, list) else [value]:
            option = f"--{name.replace('_', '-')}"
            if text is not None and text is not False:
                words.append(option if text is True else f"{option} {text}")
    return " ".join(words)


def _check_destination(run: Run, path: str) -> None:
    """See that nobody's record is replaced by what is made of it."""
    if os.path.isdir(path):
        raise EnsioError(f"{path} is a directory: name the file that is to be written")
    if os.path.exists(path) and os.path.exists(run.path) and os.path.samefile(path, run.path):
        raise EnsioError(f"{path} is the run itself: name another file")


def _reason(error: OSError) -> str:
    """What the system says; some libraries tell it in a long text of their own."""
    return os.strerror(error.errno) if error.errno else str(error).splitlines()[0] or os.strerror(errno.EIO)


def _to_hdf5(task: _Task) -> int:
    from ensembles.writers.native.extract import Extract
    from ensembles.writers.tracefile.tracefile import write_trace_file

    source = Extract(task.run, task.selection, task.words) if task.words else task.run.source
    return write_trace_file(source, task.path, task.readers)


def _to_parquet(task: _Task) -> int:
    from ensembles.writers.exchange.parquet import ParquetWriter

    with atomic_write(task.path, task.readers) as descriptor, open(descriptor, "wb", closefd=False) as file:
        return _written(task, ParquetWriter(file, task.about))


def _to_csv(task: _Task) -> int:
    from ensembles.writers.exchange.text import CsvWriter

    with atomic_write(task.path, task.readers) as descriptor, _text(descriptor) as stream:
        return _written(task, CsvWriter(stream))


def _to_perfetto(task: _Task) -> int:
    from ensembles.writers.exchange.perfetto import PerfettoWriter

    with atomic_write(task.path, task.readers) as descriptor, _text(descriptor) as stream:
        return _written(task, PerfettoWriter(stream, task.run.tasks, task.run.processes, task.about))


def _to_otf2(task: _Task) -> int:
    if task.words:
        raise EnsioError("OTF2 archives hold whole runs: leave the filters out")
    return export_otf2(task.run, task.path, task.ranks_per_location)


def _text(descriptor: int) -> Any:
    """A file of text, in which paths that are no UTF-8 stand byte for byte."""
    return open(descriptor, "w", encoding="utf-8", errors="surrogateescape", newline="", closefd=False)


def _written(task: _Task, writer: Any) -> int:
    """Write the events chunk by chunk; how many there were."""
    count = 0
    for events in task.run.chunks_for(task.selection):
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
"""What writes each format."""
