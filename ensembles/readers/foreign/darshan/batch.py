"""Read the counters of many Darshan logs with one process."""

from __future__ import annotations

import os
import struct
import subprocess
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from ensembles.model.errors import EnsioError, MissingLibrary
from ensembles.readers.foreign.darshan.counters import CountedSummary
from ensembles.readers.foreign.darshan.header import (
    DamagedLog,
    FrameError,
    damaged,
    end_library,
    read_frame,
    start_library,
)
from ensembles.readers.foreign.darshan.source import DarshanImport


@dataclass(frozen=True)
class CountedLog:
    """The counters of a log."""

    path: str
    command: str
    job: str
    uid: str
    # tasks, start_ns, end_ns: Times since 1970
    tasks: int
    start_ns: int
    end_ns: int
    files: int
    summary: CountedSummary  # A cell for each kind of calls
    has_segments: bool  # Whether the log also has DXT segments, which are not read
    is_partial: bool  # Whether Darshan lacked memory for some files


def read_counters(paths: Iterable[str]) -> Iterator[tuple[str, CountedLog | EnsioError]]:
    """Read the counters of logs."""
    child = None
    try:
        for path in paths:
            if child is None:  # after damage, frames of that log may be left in the pipe
                child = _start()
            try:
                yield path, _read(child, path)
            except MissingLibrary:
                raise
            except EnsioError as error:
                end_library(child)
                child = None
                yield path, error
            except DamagedLog as error:
                end_library(child)
                child = None
                yield path, damaged(path, str(error))
            except (FrameError, BrokenPipeError):
                end_library(child)
                child = None
                yield path, damaged(path, "Darshan's library failed on it")
    finally:
        if child is not None:
            end_library(child)


def _start() -> subprocess.Popen[bytes]:
    child = start_library("batch_process")
    assert child.stdout is not None
    head = read_frame(child.stdout)[0]
    if "library" in head:
        end_library(child)
        raise MissingLibrary(head["library"])
    return child


def _read(child: subprocess.Popen[bytes], path: str) -> CountedLog:
    assert child.stdin is not None
    assert child.stdout is not None
    name = os.fsencode(path)
    child.stdin.write(struct.pack("<I", len(name)) + name)
    child.stdin.flush()
    log = DarshanImport(path, keeps_records=False)
    while True:
        head, arrays = read_frame(child.stdout)
        if head.get("kind") == "end":
            break
        log.take(head, arrays)
    state, metadata = log.state, log.metadata
    return CountedLog(
        path=path,
        command=state.lives[0][0],
        job=metadata.job,
        uid=metadata.uid,
        tasks=metadata.tasks,
        start_ns=state.start_ns,
        end_ns=state.end_ns,
        files=len(metadata.files) - 1,
        summary=log.counters.summary(metadata.files),
        has_segments=any(module.startswith("DXT_") for module in state.modules),
        is_partial=any(bool(known["partial"]) for known in state.modules.values()),
    )
