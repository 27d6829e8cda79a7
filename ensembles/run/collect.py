"""Run directories: reading spools or ``trace.h5``, and collecting the former."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ensembles.files.names import TRACE_FILE, split_launch
from ensembles.model.errors import EnsioError
from ensembles.readers.native.directory import (
    Chosen,
    chosen_records,
    identity,
    lies_elsewhere,
    record_paths,
    resolve_run_directory,
)

if TYPE_CHECKING:
    from ensembles.readers.native.spool_source import SpoolSource
    from ensembles.readers.tracefile.tracefile import TraceFileSource


def open_directory(path: str, launch: int = 0) -> SpoolSource | TraceFileSource:
    """Open a run directory.

    The ``trace.h5`` in it (`collect`) is read if it was written after all processes had ended, and if every
    spool and job file that is still there is one of its sources and has not changed. Otherwise the spools
    are read, which is as fast. Nothing is written into the run directory.

    `launch`: number of the launch, if several recorded into it; 0: there has to be only one.
    """
    trace_path = os.path.join(path, TRACE_FILE)
    stored = None if launch else _stored_run(trace_path, chosen_records(path))
    if stored is not None:
        return stored
    from ensembles.readers.native.records import open_run_directory

    return open_run_directory(path, launch)


def _stored_run(trace_path: str, records: Chosen) -> TraceFileSource | None:
    """Open the ``trace.h5``, if it can be read in place of these records."""
    # Opening a pipe of this name would block.
    if not os.path.isfile(trace_path) or not records.includes(trace_path):
        return None
    spools = records.paths
    from ensembles.readers.tracefile.tracefile import TraceFileSource

    try:
        stored = TraceFileSource(trace_path)
    except EnsioError:
        if spools:
            return None
        raise
    if not spools or (stored.is_complete and _unchanged(spools, stored.spool_identities)):
        return stored
    return None


def is_collected(directory: str) -> bool:
    """Whether a run directory has a ``trace.h5`` and no spools that could be put into it."""
    return os.path.isfile(os.path.join(directory, TRACE_FILE)) and not record_paths(directory)


def _unchanged(paths: Sequence[str], known: dict[str, tuple[int, int]]) -> bool:
    try:
        return all(
            name in known if lies_elsewhere(path) else known.get(name) == identity(os.stat(path))
            for name, path in zip(map(os.path.basename, paths), paths, strict=True)
        )
    except OSError:
        return False


def collect(directory: str, output: str | None = None, compression: str = "gzip") -> tuple[str, int]:
    """Write the spools of a run directory to one HDF5 file.

    A directory whose ``trace.h5`` is all that it has, as simulated runs are written, stays as it is.

    The spools stay. While the file matches them, `ensembles.open` reads it in their place; the spools may
    also be deleted.

    `output`: the file to write. Default: ``trace.h5`` in the run directory.
    """
    from ensembles.files.readership import find_readership
    from ensembles.readers.native.records import open_run_directory
    from ensembles.run.kept_in_file import KeptInFile
    from ensembles.run.run import Run
    from ensembles.writers.tracefile.filters import FILTERS
    from ensembles.writers.tracefile.tracefile import write_trace_file

    directory, launch = split_launch(directory)
    if not os.path.isdir(directory):
        raise EnsioError(f"{directory} is not a directory: give the run directory that holds the spools")
    directory = resolve_run_directory(directory)
    if launch and output is None:
        raise EnsioError(f"{directory} holds several runs: name the file for this one with -o")
    path = output if output is not None else os.path.join(directory, TRACE_FILE)
    if not launch and is_collected(directory):
        stored = os.path.join(directory, TRACE_FILE)
        if output is None:
            return stored, Run(stored, open_directory(directory)).reading.most_events
        raise EnsioError(f"{directory} is collected already, and has no spools: copy {stored}")
    source = open_run_directory(directory, launch)
    try:
        readers = find_readership(directory)
        summaries = KeptInFile(Run(directory, source))
        how = FILTERS[compression]
        return path, write_trace_file(source, path, readers, how, output is not None, summaries)
    except OSError as error:
        raise EnsioError(f"{path} cannot be written: {error.strerror or error}") from error
