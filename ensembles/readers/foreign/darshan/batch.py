"""Read the counters of many Darshan logs with one process."""

from __future__ import annotations

import os
import struct
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass

from ensembles.model.errors import EnsioError, MissingLibrary
from ensembles.readers.foreign.darshan.counters import CountedSummary
from ensembles.readers.foreign.darshan.frames import FrameError, read_frame
from ensembles.readers.foreign.darshan.header import DamagedLog, damaged
from ensembles.readers.foreign.darshan.source import DarshanImport


@dataclass(frozen=True)
class CountedLog:
    """The counters of a log.

    Attributes
    ----------
    path, command, job, uid : str
    tasks, start_ns, end_ns : int
        Times since 1970.
    files : int
    summary : CountedSummary
        A cell for each kind of calls.
    has_segments : bool
        Whether the log also has DXT segments, which are not read.
    is_partial : bool
        Whether Darshan lacked memory for some files.
    """

    path: str
    command: str
    job: str
    uid: str
    tasks: int
    start_ns: int
    end_ns: int
    files: int
    summary: CountedSummary
    has_segments: bool
    is_partial: bool


def read_counters(paths: Iterable[str]) -> Iterator[tuple[str, CountedLog | EnsioError]]:
    """Read the counters of logs.

    Yields
    ------
    path : str
    CountedLog or EnsioError
        The error says why the log cannot be read; the next logs are read nevertheless.

    Raises
    ------
    MissingLibrary
        Darshan's library is not installed, or does not work.
    """
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
                _end(child)
                child = None
                yield path, error
            except DamagedLog as error:
                _end(child)
                child = None
                yield path, damaged(path, str(error))
            except (FrameError, BrokenPipeError):
                _end(child)
                child = None
                yield path, damaged(path, "Darshan's library failed on it")
    finally:
        if child is not None:
            _end(child)


def _start() -> subprocess.Popen[bytes]:
    # -P: do not import modules from the current directory.
    child = subprocess.Popen(
        [sys.executable, "-P", "-m", f"{__package__}.batch_process"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )
    assert child.stdout is not None
    head = read_frame(child.stdout)[0]
    if "library" in head:
        _end(child)
        raise MissingLibrary(head["library"])
    return child


def _end(child: subprocess.Popen[bytes]) -> None:
    child.kill()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with suppress(BrokenPipeError):
                stream.close()
    child.wait()


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
