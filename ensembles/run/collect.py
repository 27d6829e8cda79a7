"""Run directories: reading spools or ``trace.h5``, and collecting the former."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ensembles.files.names import TRACE_FILE
from ensembles.model.errors import EnsioError
from ensembles.readers.native.directory import (
    chosen_records,
    identity,
    lies_elsewhere,
    resolve_run_directory,
)
from ensembles.readers.native.owners import Chosen

if TYPE_CHECKING:
    from ensembles.readers.native.spool_source import SpoolSource
    from ensembles.readers.tracefile.tracefile import TraceFileSource

AUTOMATIC_EVENTS = 1 << 22
"""Runs with more event slots than this are written to ``trace.h5`` only by ``ensio collect``.

Collecting a million events takes about a fifth of a second on two processors, once. Spools are read at least
as fast as ``trace.h5``, so a reader need not wait for it. The file takes a tenth of the space of the spools.
"""


def open_directory(path: str) -> SpoolSource | TraceFileSource:
    """Open a run directory.

    The ``trace.h5`` in it is read if it was written after all processes had ended, and if every spool and
    job file that is still there is one of its sources and has not changed. Otherwise the spools are read.
    Then a ``trace.h5`` is written on the way if there is none yet, all processes have ended, the run has at
    most `AUTOMATIC_EVENTS` slots for events, no event was dropped for lack of space, and the directory
    belongs to this user. A failure to write it is not an error.

    Parameters
    ----------
    path : str
        The run directory.

    Returns
    -------
    SpoolSource or TraceFileSource

    Raises
    ------
    EnsioError
        The directory holds no run, or the run cannot be read.
    """
    trace_path = os.path.join(path, TRACE_FILE)
    stored = _stored_run(trace_path, chosen_records(path))
    if stored is not None:
        return stored
    from ensembles.readers.native.records import open_run_directory

    source = open_run_directory(path)
    wanted = (
        source.is_complete and source.capacity <= AUTOMATIC_EVENTS and (source.capacity or source.has_summary)
    )
    # A disk that was too full for the events has no space for this file.
    wanted = wanted and not any(
        process.dropped_events > process.lost_calls for process in source.metadata.processes
    )
    if wanted and not os.path.lexists(trace_path) and _is_ours(path):
        from ensembles.files.atomic_write import Interfered
        from ensembles.files.readership import find_readership
        from ensembles.writers.tracefile.tracefile import write_trace_file

        with suppress(OSError, Interfered):
            write_trace_file(source, trace_path, find_readership(path), follow=False)
    return source


def _stored_run(trace_path: str, records: Chosen) -> TraceFileSource | None:
    """Open the ``trace.h5`` if it can be read in place of these records.

    None: it cannot.
    """
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


def _is_ours(directory: str) -> bool:
    """Check whether files may be written there without a request.

    They are not written to a run of another user, even by root.
    """
    return os.access(directory, os.W_OK) and os.stat(directory).st_uid == os.geteuid()


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

    The spools stay. While the file matches them, `ensembles.open` reads it in their place; the spools may
    also be deleted.

    Parameters
    ----------
    directory : str
        The run directory, or a directory that holds one run directory and no other records.
    output : str, optional
        The file to write. Default: ``trace.h5`` in the run directory.
    compression : str
        One of `ensembles.writers.tracefile.filters.FILTERS`. Files with the filter ``"gzip"`` are read by
        every HDF5 library without a plugin.

    Returns
    -------
    path : str
        The file that was written.
    events : int
        The number of events in it.

    Raises
    ------
    EnsioError
        The directory holds no run, or the file cannot be written.
    KeyError
        There is no such filter.

    Examples
    --------
    >>> from ensembles.run.collect import collect
    >>> path, events = collect("ensio-ior")
    >>> path, events
    ('ensio-ior/trace.h5', 336)
    >>> len(en.open(path).events)
    336
    """
    from ensembles.files.readership import find_readership
    from ensembles.readers.native.records import open_run_directory
    from ensembles.writers.tracefile.filters import FILTERS
    from ensembles.writers.tracefile.tracefile import write_trace_file

    if not os.path.isdir(directory):
        raise EnsioError(f"{directory} is not a directory: give the run directory that holds the spools")
    directory = resolve_run_directory(directory)
    path = output if output is not None else os.path.join(directory, TRACE_FILE)
    source = open_run_directory(directory)
    try:
        readers = find_readership(directory)
        return path, write_trace_file(source, path, readers, FILTERS[compression], follow=output is not None)
    except OSError as error:
        raise EnsioError(f"{path} cannot be written: {error.strerror or error}") from error
