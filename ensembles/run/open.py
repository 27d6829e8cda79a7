"""`open_as`: reads a run from any format that ensio reads."""

from __future__ import annotations

import os
from typing import TypeVar

from ensembles.files.names import SPOOL_SUFFIX, split_launch
from ensembles.files.untrusted import Reading, open_regular
from ensembles.model.errors import EnsioError
from ensembles.passes.executors import Executor, executor_for
from ensembles.passes.memory import Budget
from ensembles.readers.common.source import EventSource
from ensembles.readers.native.directory import holds_record, resolve_run_directory
from ensembles.run.collect import open_directory
from ensembles.run.run import Run

R = TypeVar("R", bound=Run)

HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"

_BEGINNING_BYTES = 4096
"""Bytes by which every format is recognised."""


def open_as(
    kind: type[R],
    path: str | os.PathLike[str],
    workers: int | str | Executor | None = None,
    memory_bytes: int | None = None,
) -> R:
    """Open a run as an object of a class; arguments and errors are those of `ensembles.open`."""
    budget = Budget.default() if memory_bytes is None else Budget(memory_bytes)
    run = kind(*_read(os.fspath(path), budget))
    run.reading.executor, run.reading.budget, run.reading.reopen = executor_for(workers), budget, _reopen
    return run


def _reopen(path: str, memory_bytes: int) -> Run:
    """Open the run again, in a worker process."""
    return open_as(Run, path, memory_bytes=memory_bytes)


def _read(path: str, budget: Budget) -> tuple[str, EventSource]:
    """Open a directory or a file; readers of other formats than that of `path` are not imported."""
    directory, launch = split_launch(path)
    if launch:
        return path, open_directory(directory, launch)
    if os.path.isdir(path):
        foreign = None if holds_record(path) else _foreign(path, None, budget)
        if foreign is not None:
            return path, foreign
        path = resolve_run_directory(path)
        return path, open_directory(path)
    with Reading(path), open_regular(path) as file:
        beginning = file.read(_BEGINNING_BYTES)
    if beginning.startswith(HDF5_SIGNATURE):
        from ensembles.readers.tracefile.tracefile import TraceFileSource

        return path, TraceFileSource(path)
    if beginning.startswith(bytes(8)) and not path.endswith(SPOOL_SUFFIX):
        raise EnsioError(
            f"{path} is unfinished or damaged, its first bytes are zeros: write or copy it again (trace.h5 "
            "with ensio collect)"
        )
    from ensembles.readers.native.job_file import MAGIC
    from ensembles.readers.native.records import open_job_file, open_spool

    if beginning.startswith(MAGIC):
        return path, open_job_file(path)
    return path, _foreign(path, beginning, budget) or open_spool(path)


def _foreign(path: str, beginning: bytes | None, budget: Budget) -> EventSource | None:
    """Open the trace of another tool: a file, or a directory if `beginning` is None; None: no format fits."""
    from ensembles.readers.foreign.common.import_table import ImportedSource
    from ensembles.readers.foreign.detection import detect_format

    known = detect_format(path, beginning)
    return None if known is None else ImportedSource(path, known.read(path), budget)
