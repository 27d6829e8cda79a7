"""Opening what was recorded, whatever it is."""

from __future__ import annotations

import builtins
import os
import stat

from ensembles.files.names import SPOOL_SUFFIX
from ensembles.model.errors import EnsioError
from ensembles.passes.executors import Executor, executor_for
from ensembles.passes.memory import Budget
from ensembles.readers.foreign.common.import_table import ImportedSource
from ensembles.readers.foreign.detection import BEGINNING_BYTES, detect_format
from ensembles.readers.native.directory import open_job_file, open_spool, resolve_run_directory
from ensembles.readers.native.job_file import MAGIC
from ensembles.run.collect import open_directory
from ensembles.run.run import Run

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"


def open(
    path: str | os.PathLike[str], workers: int | str | Executor | None = None, memory_bytes: int | None = None
) -> Run:
    """Open what was recorded, recognised by content: a run directory, a spool, a job file, a ``trace.h5``, or
    another tool's trace (`ensembles.readers.foreign`). Of a folder that holds no record but one run directory
    (``ensio-*``), this run is opened, and a message says so (logger ``ensembles``; by default on standard
    error).

    Parameters
    ----------
    path : path-like
    workers : int, str or Executor, optional
        What makes the passes over the events: so many processes on this machine, or the workers of a Dask
        cluster, of which this is the scheduler's address (``"tcp://…"``). Default: threads of this process.
    memory_bytes : int, optional
        Memory that this may take, worker processes on this machine included; default: a quarter of the
        machine's.

    Raises
    ------
    EnsioError
        There is nothing at `path`, or it is none of these, or it cannot be read, or it holds several runs.
    """
    budget = Budget.default() if memory_bytes is None else Budget(memory_bytes)
    run = _read(os.fspath(path), budget)
    run.executor, run.budget, run.reopen = executor_for(workers), budget, _reopen
    return run


def _reopen(path: str, memory_bytes: int) -> Run:
    """The run once more, in a worker process."""
    return open(path, memory_bytes=memory_bytes)


def _read(path: str, budget: Budget) -> Run:
    if os.path.isdir(path):
        foreign = _foreign(path, None, budget)
        if foreign is None:
            path = resolve_run_directory(path)
        return foreign or Run(path, open_directory(path))
    try:
        if not stat.S_ISREG(os.stat(path).st_mode):
            raise EnsioError(f"{path} is neither a directory nor a file: name a run directory or a trace.h5")
        with builtins.open(path, "rb") as file:
            beginning = file.read(BEGINNING_BYTES)
    except OSError as error:
        raise EnsioError(f"{path} cannot be read: {error.strerror}") from error
    if beginning.startswith(HDF5_SIGNATURE):
        from ensembles.readers.tracefile.tracefile import TraceFileSource

        return Run(path, TraceFileSource(path))
    if beginning.startswith(bytes(8)) and not path.endswith(SPOOL_SUFFIX):
        raise EnsioError(
            f"{path} is unfinished: the process that wrote it was killed before it was whole; read the run's "
            "spools, or make it again from them with ensio collect"
        )
    if beginning.startswith(MAGIC):
        return Run(path, open_job_file(path))
    return _foreign(path, beginning, budget) or Run(path, open_spool(path))


def _foreign(path: str, beginning: bytes | None, budget: Budget) -> Run | None:
    """The run in another tool's file, or in its folder (None in place of the first bytes); None: it is
    ensio's own, or nothing that is known."""
    known = detect_format(path, beginning)
    return None if known is None else Run(path, ImportedSource(path, known.read(path), budget))
