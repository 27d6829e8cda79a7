"""`open`: reads a run from any format that ensio reads."""

from __future__ import annotations

import os

from ensembles.files.names import SPOOL_SUFFIX, split_launch
from ensembles.files.untrusted import Reading, open_regular
from ensembles.model.errors import EnsioError
from ensembles.passes.executors import Executor, executor_for
from ensembles.passes.memory import Budget
from ensembles.readers.native.directory import holds_record, resolve_run_directory
from ensembles.run.collect import open_directory
from ensembles.run.run import Run

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"

_BEGINNING_BYTES = 4096
"""Bytes by which every format is recognised."""


def open(
    path: str | os.PathLike[str], workers: int | str | Executor | None = None, memory_bytes: int | None = None
) -> Run:
    """Open a recorded run.

    The format is detected from the content, not from the name. Known are ensio's run directories, spools, job
    files and ``trace.h5``, and the traces of other tools (`ensembles.readers.foreign`): OTF2 archives,
    Darshan logs, DFTracer traces and strace logs. Opening reads the metadata only; events are read when
    they are needed.

    Parameters
    ----------
    path : path-like
        A file or a directory. If a directory holds no record but exactly one run directory, that run is
        opened, and the logger ``ensembles`` reports it (by default on standard error). If several launches
        recorded into a directory, ``DIRECTORY#2`` is the second of them.
    workers : int, str or Executor, optional
        What makes the passes over the events: a number of processes on this machine, or the address of a Dask
        scheduler (``"tcp://…"``). Default: threads of this process.
    memory_bytes : int, optional
        Memory in bytes that the analysis may take, including worker processes on this machine. Default: a
        quarter of the memory of the machine or control group.

    Returns
    -------
    Run

    Raises
    ------
    EnsioError
        `path` does not exist, is not of a known format, cannot be read, or holds several runs; or there is no
        Dask scheduler at the given address.

    Examples
    --------
    >>> run = en.open("ensio-ior")
    >>> run.tasks, len(run.events)
    (8, 336)

    Two worker processes read the same run. Counts are equal to the last bit:

    >>> en.open("ensio-ior", workers=2).summary.count
    336
    """
    budget = Budget.default() if memory_bytes is None else Budget(memory_bytes)
    run = _read(os.fspath(path), budget)
    run.reading.executor, run.reading.budget, run.reading.reopen = executor_for(workers), budget, _reopen
    return run


def _reopen(path: str, memory_bytes: int) -> Run:
    """Open the run again, in a worker process."""
    return open(path, memory_bytes=memory_bytes)


def _read(path: str, budget: Budget) -> Run:
    """Open a directory or a file; readers of other formats than that of `path` are not imported."""
    directory, launch = split_launch(path)
    if launch:
        return Run(path, open_directory(directory, launch))
    if os.path.isdir(path):
        foreign = None if holds_record(path) else _foreign(path, None, budget)
        if foreign is not None:
            return foreign
        path = resolve_run_directory(path)
        return Run(path, open_directory(path))
    with Reading(path), open_regular(path) as file:
        beginning = file.read(_BEGINNING_BYTES)
    if beginning.startswith(HDF5_SIGNATURE):
        from ensembles.readers.tracefile.tracefile import TraceFileSource

        return Run(path, TraceFileSource(path))
    if beginning.startswith(bytes(8)) and not path.endswith(SPOOL_SUFFIX):
        raise EnsioError(
            f"{path} is unfinished or damaged, its first bytes are zeros: write or copy it again (trace.h5 "
            "with ensio collect)"
        )
    from ensembles.readers.native.job_file import MAGIC
    from ensembles.readers.native.records import open_job_file, open_spool

    if beginning.startswith(MAGIC):
        return Run(path, open_job_file(path))
    return _foreign(path, beginning, budget) or Run(path, open_spool(path))


def _foreign(path: str, beginning: bytes | None, budget: Budget) -> Run | None:
    """Open the trace of another tool: a file, or a directory if `beginning` is None.

    None: the format is one of ensio's, or unknown.
    """
    from ensembles.readers.foreign.common.import_table import ImportedSource
    from ensembles.readers.foreign.detection import detect_format

    known = detect_format(path, beginning)
    return None if known is None else Run(path, ImportedSource(path, known.read(path), budget))
