"""Run directories: whether the spools or the ``trace.h5`` beside them is read, and when that is made."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from typing import TYPE_CHECKING

from ensembles.files.names import TRACE_FILE
from ensembles.model.errors import EnsioError
from ensembles.readers.native.directory import (
    chosen_records,
    lies_elsewhere,
    open_run_directory,
    resolve_run_directory,
)
from ensembles.readers.native.owners import Chosen
from ensembles.readers.native.spool_source import SpoolSource, identity

if TYPE_CHECKING:
    from ensembles.readers.tracefile.tracefile import TraceFileSource

AUTOMATIC_EVENTS = 1 << 22
"""Runs with more room for events than this are put into ``trace.h5`` only by ``ensio collect``.

Collecting takes about a fifth of a second for a million events on two processors, once. Spools are read at
least as fast as ``trace.h5``, so nobody has to wait for it; but it is a tenth of their size, and one file.
"""


def open_directory(path: str) -> SpoolSource | TraceFileSource:
    """Open a run directory.

    A ``trace.h5`` is used if all processes had ended when it was written and every spool and job file still
    there is one of those it was made from, unchanged. Otherwise the spools are read; if all their processes
    have ended, there is no ``trace.h5`` yet, the run is not too large (`AUTOMATIC_EVENTS`) and the directory
    belongs to this user, it is written on the way, where that is possible.

    Raises
    ------
    EnsioError
        There is no run in the directory, or it cannot be read.
    """
    trace_path = os.path.join(path, TRACE_FILE)
    stored = _stored_run(trace_path, chosen_records(path))
    if stored is not None:
        return stored
    source = open_run_directory(path)
    wanted = (
        source.is_complete and source.capacity <= AUTOMATIC_EVENTS and (source.capacity or source.has_summary)
    )
    # Where events found no space, there is hardly any for this file.
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
    """The ``trace.h5`` if it is to be read in place of these spools and job files."""
    # A pipe of this name would keep us waiting.
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
    """Whether files that nobody asked for may be made there: not in a run of another user, even by root."""
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
    """Put the spools of a run directory into one file.

    Parameters
    ----------
    directory : str
    output : str, optional
        The file to write (default: ``trace.h5`` in the directory).
    compression : str
        One of `ensembles.writers.tracefile.filters.FILTERS`.

    Returns
    -------
    path : str
    events : int

    Raises
    ------
    EnsioError
        There is no run in the directory, or the file cannot be written.
    """
    from ensembles.files.readership import find_readership
    from ensembles.writers.tracefile.filters import FILTERS
    from ensembles.writers.tracefile.tracefile import write_trace_file

    if not os.path.isdir(directory):
        raise EnsioError(f"{directory} is not a run directory: name the directory that holds the spools")
    directory = resolve_run_directory(directory)
    path = output if output is not None else os.path.join(directory, TRACE_FILE)
    source = open_run_directory(directory)
    try:
        readers = find_readership(directory)
        return path, write_trace_file(source, path, readers, FILTERS[compression], follow=output is not None)
    except OSError as error:
        raise EnsioError(f"{path} cannot be written: {error.strerror or error}") from error
