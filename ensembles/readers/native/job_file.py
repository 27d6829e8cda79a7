"""Read a job file, which the ranks of a job write together in MPI_Finalize, or a process at its end.

It contains the content of the spool of each process. The file is untrusted: it may be damaged, truncated, or
not a job file.
"""

from __future__ import annotations

import os
import zlib
from itertools import accumulate
from typing import Any

import numpy as np

from ensembles.model.c_layout import (
    CONSTANTS,
    EVENT,
    JOB,
    JOB_CALL,
    JOB_DATA,
    JOB_PROCESS,
    JOB_WINDOW,
    SPOOL,
    WINDOW,
)
from ensembles.model.errors import EnsioError
from ensembles.readers.native.job_file_codec import BLOCK_EVENTS, decode_text
from ensembles.readers.native.job_summary import MOST_BYTES, JobSummary
from ensembles.readers.native.spool import HEADER_BYTES, Coded, Spool, add_window, checked_head, read_texts
from ensembles.readers.native.spool_bytes import Piece

MAGIC = CONSTANTS["ENSIO_JOB_MAGIC"].to_bytes(8, "little")

VERSIONS = ((2, 3), (CONSTANTS["ENSIO_JOB_VERSION"], CONSTANTS["ENSIO_SPOOL_VERSION"]))
"""Versions that are read: of the job file, and of the spools in it. Version 2 has no sites."""

_CHECKED_FROM = JOB_PROCESS.field_offset("name_bytes")
_HEAD_FROM = JOB_PROCESS.field_offset("spool")
_MOST_PROCESSES = 1 << 24
_MOST_WINDOW_BYTES = 1 << 28
_OF_EVENTS = (CONSTANTS["ENSIO_WINDOW_EVENTS"],)
_LEAST_EVENT_BYTES = 3
"""An event takes one byte for its template, and at least one byte for each of its two times."""


def read_job_file(path: str) -> list[Spool]:
    """Read the records of all processes, without their events.

    Parameters
    ----------
    path : str

    Returns
    -------
    list of Spool
        One per process. Damaged records of single processes are left out, with a note.

    Raises
    ------
    EnsioError
        The file cannot be read, is not a job file, or is damaged as a whole.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        try:
            status = os.fstat(descriptor)
            head = _checked_job(path, os.pread(descriptor, JOB.size, 0), status.st_size)
            records = _read_all(descriptor, head.records, head.bytes - head.records)
        finally:
            os.close(descriptor)
    except OSError as error:
        raise EnsioError(f"{path} cannot be read: {error.strerror}") from error
    if len(records) != head.bytes - head.records:
        raise _damaged(path)
    return _read_records(path, status, head, records)


def _read_all(descriptor: int, position: int, length: int) -> bytes:
    pieces = []
    while length > 0:
        piece = os.pread(descriptor, min(length, 1 << 30), position)
        if not piece:
            break
        pieces.append(piece)
        position += len(piece)
        length -= len(piece)
    return b"".join(pieces)


def _damaged(path: str) -> EnsioError:
    return EnsioError(
        f"{path} is damaged: its contents cannot be located; read the job's spools if there are any"
    )


def _checked_job(path: str, beginning: bytes, size: int) -> Any:
    if beginning[:8] == MAGIC[::-1]:
        raise EnsioError(f"{path} was recorded with another byte order: read it on a machine of that order")
    if beginning[:8] == bytes(8):
        raise EnsioError(
            f"{path} is unfinished: the job was killed while its ranks wrote it; read the job's spools if "
            "there are any"
        )
    if beginning[:8] != MAGIC:
        raise EnsioError(
            f"{path} is not a job file of ensio (bad magic number): name a run directory or trace"
        )
    if len(beginning) < JOB.size:
        raise EnsioError(f"{path} is cut short: it ends within its head, nothing can be read from it")
    head = JOB.unpack(beginning)
    if (head.version, head.spool_version) not in VERSIONS or head.event_bytes != EVENT.size:
        raise EnsioError(
            f"{path} has layout version {head.version}.{head.spool_version}, not "
            f"{VERSIONS[-1][0]}.{VERSIONS[-1][1]}: use the ensio that recorded it"
        )
    if size < head.bytes:
        raise EnsioError(
            f"{path} is cut short: it has {size} of {head.bytes} bytes, nothing can be read from it"
        )
    if not (JOB.size <= head.records <= head.bytes and 0 < head.processes <= _MOST_PROCESSES):
        raise _damaged(path)
    if head.summary and not (
        JOB.size <= head.summary <= head.records - head.summary_coded and head.summary_bytes <= MOST_BYTES
    ):
        raise _damaged(path)
    return head


def _summary_of(path: str, head: Any) -> JobSummary | None:
    if not head.summary:
        return None
    return JobSummary(path, head.summary, head.summary_coded, head.summary_checksum, head.summary_bytes)


def _read_records(path: str, status: os.stat_result, head: Any, records: bytes) -> list[Spool]:
    spools: list[Spool] = []
    notes: list[str] = []
    shared, position, summary = b"", 0, _summary_of(path, head)
    for number in range(head.processes):
        if position + JOB_PROCESS.size > len(records):
            raise _damaged(path)
        process = JOB_PROCESS.unpack(records, position)
        record = records[position : position + process.bytes]
        position += process.bytes
        whole = JOB_PROCESS.size <= process.bytes == len(record)
        if process.magic != CONSTANTS["ENSIO_JOB_PROCESS_MAGIC"] or not whole:
            raise _damaged(path)
        try:
            spool, text = _read_record(path, status, process, record, shared, head.records)
            if process.summarised:
                _put_into(summary, spool, record, process.calls)
        except ValueError:
            if number == 0:  # the texts of all others refer to its texts
                raise _damaged(path) from None
            notes.append(f"{os.path.basename(path)} is damaged: the record of one process cannot be read")
            continue
        spool.rest_in_spool = head.rest_in_spool != 0
        spools.append(spool)
        if number == 0:
            shared = text[: head.shared_bytes]
    if position != len(records):
        raise _damaged(path)
    spools[0].notes.extend(notes)
    return spools


def _read_record(
    path: str, status: os.stat_result, process: Any, record: bytes, shared: bytes, data_end: int
) -> tuple[Spool, bytes]:
    """Decode a record into a spool and its texts.

    Raises
    ------
    ValueError
        The record is damaged.
    """
    lengths = (
        JOB_PROCESS.size,
        process.name_bytes,
        process.coded_bytes,
        process.windows * JOB_WINDOW.size,
        process.data * JOB_DATA.size,
        process.calls * JOB_CALL.size,
    )
    ends = list(accumulate(lengths))
    if ends[-1] != len(record) or process.checksum != zlib.crc32(record[_CHECKED_FROM:]):
        raise ValueError("the record's checksum is wrong")
    name = os.fsdecode(record[ends[0] : ends[1]])
    if "/" in name or not name:
        raise ValueError("the record's name is not a file name")
    try:
        head = checked_head(name, record[_HEAD_FROM : _HEAD_FROM + SPOOL.size])
    except EnsioError as error:
        raise ValueError(str(error)) from error
    spool = Spool(os.path.join(os.path.dirname(path), name), head, status, job_path=path)
    spool.head_bytes = record[_HEAD_FROM : _HEAD_FROM + SPOOL.size]
    text = decode_text(record[ends[1] : ends[2]], shared, process.text_bytes)
    read_texts(spool, text)
    windows = np.frombuffer(record, JOB_WINDOW.dtype, process.windows, ends[2])
    data = np.frombuffer(record, JOB_DATA.dtype, process.data, ends[3])
    _find_data(spool, windows, data, data_end)
    return spool, text


def _put_into(summary: JobSummary | None, spool: Spool, record: bytes, calls: int) -> None:
    """Mark a process as part of the summary, and keep the sums of its calls by function."""
    if summary is None:
        raise ValueError("the record refers to a missing summary")
    spool.job_summary = summary
    spool.call_rows = np.frombuffer(record, JOB_CALL.dtype, calls, len(record) - calls * JOB_CALL.size)
    spool.has_events |= calls > 0


def _find_data(spool: Spool, windows: np.ndarray, data: np.ndarray, data_end: int) -> None:
    """Locate the blocks of events and the contents of the other windows of the spool."""
    pieces = data.tolist()
    counts = windows["data"].tolist()
    if sum(counts) != len(pieces) or any(position + length > data_end for position, length, _ in pieces):
        raise ValueError("the pieces of data do not match the windows")
    at = 0
    for number, count in enumerate(counts):
        window = WINDOW.unpack(windows["window"][number].tobytes())
        own = pieces[at : at + count]
        at += count
        if window.kind in _OF_EVENTS:
            spool.taken[int(windows["position"][number]) + HEADER_BYTES] = int(windows["taken"][number])
            _add_events(spool, window, own)
        else:
            _add_contents(spool, window, int(windows["position"][number]) + HEADER_BYTES, own)


def _add_events(spool: Spool, window: Any, pieces: list[tuple[int, int, int]]) -> None:
    for position, length, events in pieces:
        if events > BLOCK_EVENTS or events * _LEAST_EVENT_BYTES > length:
            raise ValueError("a block has more events than fit into it")
        spool.coded.append(Coded(position, length, events, window.thread))
        spool.has_events |= events > 0


def _add_contents(spool: Spool, window: Any, first: int, pieces: list[tuple[int, int, int]]) -> None:
    length = sum(count for _, _, count in pieces)
    if length > _MOST_WINDOW_BYTES or length > window.bytes:
        raise ValueError("a window holds more than fits into it")
    if not add_window(spool, window, first, length):
        spool.unknown += 1
    for position, coded, count in pieces:
        spool.pieces.append(Piece(first, count, position, coded))
        first += count
