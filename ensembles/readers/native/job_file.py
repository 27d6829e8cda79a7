"""Read a job file, which the ranks of a job write together in MPI_Finalize, or a process at its end.

It contains the content of the spool of each process. The file is untrusted: it may be damaged, truncated, or
not a job file.
"""

from __future__ import annotations

import os
import zlib
from itertools import accumulate
from typing import Any, NamedTuple

import numpy as np

from ensembles.files.untrusted import MOST_PART_BYTES, Reading, open_regular
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
from ensembles.model.units import MOST_TASKS
from ensembles.readers.native.account import RECORDER_NS
from ensembles.readers.native.job_file_codec import BLOCK_EVENTS, decode_text
from ensembles.readers.native.spool import (
    HEADER_BYTES,
    LEAST_EVENT_BYTES,
    OF_EVENTS,
    Coded,
    Spool,
    add_window,
    checked_head,
    read_texts,
)
from ensembles.readers.native.spool_bytes import OTHER_VERSION, JobSummary, KnownTexts, Piece

MAGIC = CONSTANTS["ENSIO_JOB_MAGIC"].to_bytes(8, "little")

_SUMMED = CONSTANTS["ENSIO_JOB_VERSION"]
VERSIONS = ((2, 3), (3, 4), (_SUMMED, CONSTANTS["ENSIO_SPOOL_VERSION"]))
"""Versions that are read: of the job file, and of the spools in it. Version 2 has no sites. Before version 4,
texts lie behind the name, and neither they nor the head have sums."""

_SUMMED_HEAD_BYTES = JOB.field_offset("checksum")
_CHECKED_FROM = JOB_PROCESS.field_offset("name_bytes")
_HEAD_FROM = JOB_PROCESS.field_offset("spool")
_SUM_BYTES = 4
_CONTENTS = {
    CONSTANTS["ENSIO_WINDOW_MARKS"]: "phases and regions",
    CONSTANTS["ENSIO_WINDOW_FLIGHTS"]: "flights of requests",
    CONSTANTS["ENSIO_WINDOW_SURROUNDINGS"]: "counters of the kernel",
}


def read_job_file(path: str) -> list[Spool]:
    """Read the records of all processes, without their events."""
    with Reading(path), open_regular(path) as file:
        status = os.fstat(file.fileno())
        head = _checked_job(path, os.pread(file.fileno(), JOB.size, 0), status.st_size)
        file.seek(head.records)
        records = file.read(head.bytes - head.records)
        if len(records) != head.bytes - head.records:
            raise _damaged(path)
        job = _JobFile(path, file.fileno(), status, head, head.version == _SUMMED)
        return _read_records(job, records, file.read(1 << 18))


def _damaged(path: str) -> EnsioError:
    return EnsioError(
        f"{path} is damaged: its contents cannot be located; read the job's spools if there are any"
    )


def _checked_job(path: str, beginning: bytes, size: int) -> Any:
    if beginning[:8] == MAGIC[::-1]:
        raise EnsioError(f"{path} was recorded with another byte order: read it on a machine of that order")
    if beginning[:8] == bytes(8):
        raise EnsioError(
            f"{path} is unfinished or damaged, its first bytes are zeros: read the spools if there are any"
        )
    if beginning[:8] != MAGIC:
        raise EnsioError(
            f"{path} is not a job file of ensio, or damaged: it begins otherwise"
            if beginning
            else f"{path} is empty: copy it again, or record the run again"
        )
    if len(beginning) < _SUMMED_HEAD_BYTES:
        raise EnsioError(f"{path} is cut short: it ends within its head, nothing can be read from it")
    head = JOB.unpack(beginning.ljust(JOB.size, b"\0"))
    if (head.version, head.spool_version) not in VERSIONS:
        raise EnsioError(
            f"{path} has layout version {head.version}.{head.spool_version}, not "
            f"{VERSIONS[-1][0]}.{VERSIONS[-1][1]}: {OTHER_VERSION}"
        )
    is_as_written = head.version != _SUMMED or head.checksum == zlib.crc32(beginning[:_SUMMED_HEAD_BYTES])
    if head.event_bytes != EVENT.size or not is_as_written:
        raise _damaged(path)
    if size < head.bytes:
        raise EnsioError(
            f"{path} is cut short: it has {size} of {head.bytes} bytes, and its end, which says where the "
            "calls are, is missing, so nothing can be read from it"
        )
    if not (_SUMMED_HEAD_BYTES <= head.records <= head.bytes and 0 < head.processes <= MOST_TASKS):
        raise _damaged(path)
    if head.summary and not (
        _SUMMED_HEAD_BYTES <= head.summary <= head.records - head.summary_coded
        and head.summary_bytes <= MOST_PART_BYTES
    ):
        raise _damaged(path)
    return head


class _JobFile(NamedTuple):
    """An open job file."""

    path: str
    descriptor: int
    status: os.stat_result
    head: Any
    has_sums: bool


def _read_records(job: _JobFile, records: bytes, copy: bytes) -> list[Spool]:
    path, head = job.path, job.head
    spools: list[Spool] = []
    notes: list[str] = []
    where = head.summary, head.summary_coded, head.summary_checksum, head.summary_bytes
    position, summary = 0, JobSummary(path, *where) if head.summary else None
    shared = decode_text(copy[_SUM_BYTES:], b"", head.shared_bytes) if copy and _has_sum(copy) else b""
    for number in range(head.processes):
        if position + JOB_PROCESS.size > len(records):
            raise _damaged(path)
        process = JOB_PROCESS.unpack(records, position)
        try:
            spool, text, end = _read_record(job, process, records, position, shared if number else b"")
            if process.summarised:
                if summary is None:
                    raise ValueError("the record refers to a missing summary")
                spool.job_summary = summary
                spool.has_events |= process.calls > 0
        except ValueError:
            if not shared or process.bytes < JOB_PROCESS.size:
                raise _damaged(path) from None  # the texts of all others refer to its texts
            notes.append(f"{os.path.basename(path)} is damaged: the record of one process cannot be read")
            position += process.bytes
            continue
        position = end
        if number == 0:
            text = text if text is not None or not shared else shared
            if text is None:
                raise _damaged(path)  # what its calls did is not known
            shared = text[: head.shared_bytes]
        if text is None or len(text) < process.text_bytes:
            spool.notes.append(
                f"{os.path.basename(path)} is damaged: texts of {spool.name} cannot be read, so files, "
                "phases and properties of it have no names"
            )
        read_texts(spool, text or b"")
        if text is None:  # one recorder wrote all of them
            spool.calls_text = KnownTexts().parsed(shared).calls_text
        spool.rest_in_spool = head.rest_in_spool != 0
        if head.processes == 1 and head.recorder_us:
            spool.properties[RECORDER_NS] = b"%d000" % head.recorder_us
        spools.append(spool)
    if position != len(records) or not spools:
        raise _damaged(path)
    spools[0].notes.extend(notes)
    return spools


def _read_record(
    job: _JobFile, process: Any, records: bytes, position: int, shared: bytes
) -> tuple[Spool, bytes | None, int]:
    """Decode a record into a spool without its texts, these (None: damaged), and the record's end."""
    lengths = {
        "name": process.name_bytes,
        "windows": process.windows * JOB_WINDOW.size,
        "data": process.data * JOB_DATA.size,
        "calls": process.calls * JOB_CALL.size,
    }
    texts = {"texts": process.coded_bytes}
    lengths = lengths | texts if job.has_sums else {"name": process.name_bytes} | texts | lengths
    *begins, end = accumulate(lengths.values(), initial=position + JOB_PROCESS.size)
    at = {part: slice(begin, begin + lengths[part]) for part, begin in zip(lengths, begins, strict=True)}
    summed = records[position + _CHECKED_FROM : at["texts"].start if job.has_sums else end]
    if end > len(records) or process.checksum != zlib.crc32(summed):
        raise ValueError("the record's checksum is wrong")
    name = os.fsdecode(records[at["name"]])
    if "/" in name or not name:
        raise ValueError("the record's name is not a file name")
    head_bytes = records[position + _HEAD_FROM : position + _HEAD_FROM + SPOOL.size]
    try:
        head = checked_head(name, head_bytes)
    except EnsioError as error:
        raise ValueError(str(error)) from error
    spool = Spool(os.path.join(os.path.dirname(job.path), name), head, job.status, job_path=job.path)
    spool.head_bytes = head_bytes
    windows = np.frombuffer(records, JOB_WINDOW.dtype, process.windows, at["windows"].start)
    data = np.frombuffer(records, JOB_DATA.dtype, process.data, at["data"].start)
    _find_data(job, spool, windows, data)
    if process.summarised:
        spool.call_rows = np.frombuffer(records, JOB_CALL.dtype, process.calls, at["calls"].start)
    return spool, _texts(job, records[at["texts"]], shared, process.text_bytes), end


def _texts(job: _JobFile, coded: bytes, shared: bytes, length: int) -> bytes | None:
    """Decode the texts of a record; None: they are damaged."""
    if not job.has_sums:
        return decode_text(coded, shared, length)
    if coded and not _has_sum(coded):
        return None
    return decode_text(coded[_SUM_BYTES:], shared, length)


def _find_data(job: _JobFile, spool: Spool, windows: np.ndarray, data: np.ndarray) -> None:
    """Locate the blocks of events and the contents of the other windows of the spool."""
    pieces = data.tolist()
    counts = windows["data"].tolist()
    if sum(counts) != len(pieces) or any(
        position + length > job.head.records for position, length, _ in pieces
    ):
        raise ValueError("the pieces of data do not match the windows")
    at = 0
    for number, count in enumerate(counts):
        window = WINDOW.unpack(windows["window"][number].tobytes())
        own = pieces[at : at + count]
        at += count
        if window.kind in OF_EVENTS:
            spool.taken[int(windows["position"][number]) + HEADER_BYTES] = int(windows["taken"][number])
            _add_events(spool, window, own)
        else:
            _add_contents(job, spool, window, int(windows["position"][number]) + HEADER_BYTES, own)


def _add_events(spool: Spool, window: Any, pieces: list[tuple[int, int, int]]) -> None:
    for position, length, events in pieces:
        if events > BLOCK_EVENTS or events * LEAST_EVENT_BYTES > length:
            raise ValueError("a block has more events than fit into it")
        spool.coded.append(Coded(position, length, events, window.thread))
        spool.has_events |= events > 0


def _add_contents(
    job: _JobFile, spool: Spool, window: Any, first: int, pieces: list[tuple[int, int, int]]
) -> None:
    length = sum(count for _, _, count in pieces)
    if length > MOST_PART_BYTES or length > window.bytes:
        raise ValueError("a window holds more than fits into it")
    if job.has_sums:
        if not all(_has_sum(os.pread(job.descriptor, coded, position)) for position, coded, _ in pieces):
            what = _CONTENTS.get(window.kind, "records of another kind")
            spool.notes.append(f"{os.path.basename(job.path)} is damaged: {what} of {spool.name} are missing")
            return
        pieces = [(position + _SUM_BYTES, coded - _SUM_BYTES, count) for position, coded, count in pieces]
    if not add_window(spool, window, first, length):
        spool.unknown += 1
    for position, coded, count in pieces:
        spool.pieces.append(Piece(first, count, position, coded))
        first += count


def _has_sum(coded: bytes) -> bool:
    """Test the sum before a coded text."""
    return coded[:_SUM_BYTES] == zlib.crc32(coded[_SUM_BYTES:]).to_bytes(_SUM_BYTES, "little")
