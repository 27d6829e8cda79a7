"""Read the summary in a job file: sums and histograms of the calls of all its processes."""

from __future__ import annotations

import os
import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ensembles.files.untrusted import open_regular
from ensembles.model.c_layout import CONSTANTS, JOB_CELL, JOB_SUMMARY, TEXT
from ensembles.model.errors import EnsioError
from ensembles.model.events import Call, Events
from ensembles.readers.common.columns import LARGEST_MOVED_BYTES, LARGEST_NS
from ensembles.readers.native.job_file_codec import decode_text
from ensembles.readers.native.process_summary import CARRIED, histogram_of_blocks, plain_columns
from ensembles.readers.native.spool_bytes import JobSummary
from ensembles.summaries.cells import LARGEST, CellSummary

MOST_BYTES = 1 << 28
"""Length of the longest summary that the recorder writes."""

_NO_ERRNO = CONSTANTS["ENSIO_NO_ERRNO"]
_BLOCK_BINS = CONSTANTS["ENSIO_BLOCK_BINS"]
_LATEST_UNIX_NS = 1 << 62
_MOMENTS = ("mean_ns", "m2", "m3", "m4")


@dataclass(frozen=True, slots=True)
class Translation:
    """Translation of ids and times of a job file's summary to those of the run."""

    # Index: call number in the job file. Value: call number in the run. The last entry is for all larger
    # numbers.
    call_numbers: np.ndarray
    files: Mapping[str, int]  # File number in the run, by path
    # Rank in the run and offset of its thread numbers, by rank in the job file
    ranks: Mapping[int, tuple[int, int]]
    origin_unix_ns: int  # Time 0 of the run, ns since 1970


class _Parts(NamedTuple):
    cells: np.ndarray
    counts: np.ndarray
    paths: dict[int, str]
    processes: int
    level: int


def read_job_summary(
    place: JobSummary, translation: Translation, calls: tuple[Call, ...], files: list[str]
) -> tuple[CellSummary, int]:
    """Read the summary in a job file."""
    try:
        parts = _parts(_uncoded(place))
    except OSError as error:
        raise EnsioError(f"{place.path} cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise EnsioError(f"{os.path.basename(place.path)} is damaged: {error}") from error
    cells = parts.cells
    sound = _sound(cells, len(parts.counts))
    summary = CellSummary(calls, files)
    if sound.any():
        summary.merge(_decoded(parts._replace(cells=cells[sound]), translation, calls, files))
    return summary, len(cells) - int(np.count_nonzero(sound))


def _uncoded(place: JobSummary) -> bytes:
    with open_regular(place.path) as file:
        coded = os.pread(file.fileno(), place.coded, place.position)
    if len(coded) != place.coded or zlib.crc32(coded) != place.checksum:
        raise ValueError("the checksum of its summary is wrong")
    return decode_text(coded, b"", place.length)


def _parts(raw: bytes) -> _Parts:
    if len(raw) < JOB_SUMMARY.size:
        raise ValueError("its summary is too short")
    head = JOB_SUMMARY.unpack(raw)
    blocks_at = JOB_SUMMARY.size + head.cells * JOB_CELL.size
    texts_at = blocks_at + head.blocks * _BLOCK_BINS * 8
    if texts_at + head.text_bytes != len(raw):
        raise ValueError("the length of its summary differs from the sum of its parts")
    cells = np.frombuffer(raw, JOB_CELL.dtype, head.cells, JOB_SUMMARY.size)
    counts = np.frombuffer(raw, "u8", head.blocks * _BLOCK_BINS, blocks_at).reshape(-1, _BLOCK_BINS)
    return _Parts(cells, counts, _paths(raw, texts_at), head.processes, head.level)


def _paths(raw: bytes, position: int) -> dict[int, str]:
    paths = {}
    while position + TEXT.size <= len(raw):
        entry = TEXT.unpack(raw, position)
        begin = position + TEXT.size
        if entry.kind != CONSTANTS["ENSIO_TEXT_FILE"] or begin + entry.length > len(raw):
            raise ValueError("a path in its summary is incomplete")
        paths[entry.id] = os.fsdecode(raw[begin : begin + entry.length])
        position = begin + entry.length + -entry.length % 8
    return paths


def _sound(cells: np.ndarray, blocks: int) -> np.ndarray:
    """Test which cells have possible values: bool, shape (cells,)."""
    sound = (cells["count"] > 0) & (cells["count"] < 1 << 60) & (cells["longest"] <= LARGEST)
    sound &= cells["blocks"].max(axis=1, initial=0) <= blocks
    for name in ("min_ns", "max_ns"):
        sound &= cells[name] <= LARGEST_NS
    for name in ("time_ns", "inner_ns", "moved"):
        sound &= cells[name] < 1 << 62
    for name in ("errors", "nested_count", "without_bin"):
        sound &= cells[name] <= cells["count"]
    sound &= (cells["carried_moved"] <= cells["moved"]) & (cells["nested_ns"] <= cells["time_ns"])
    for name in ("first_start_ns", "last_end_ns"):
        sound &= (cells[name] >= 0) & (cells[name] <= _LATEST_UNIX_NS)
    for name in _MOMENTS:
        sound &= np.isfinite(cells[name])
    return sound & (cells["call"] > 0)


def _decoded(
    parts: _Parts, translation: Translation, calls: tuple[Call, ...], files: list[str]
) -> CellSummary:
    cells, counts = parts.cells, parts.counts
    part = CellSummary(calls, files)
    part.cells = {
        **plain_columns(cells, translation.call_numbers),
        "start_ns": cells["first_start_ns"] - translation.origin_unix_ns,
        "end_ns": cells["last_end_ns"] - translation.origin_unix_ns,
        **{name: cells[name] for name in _MOMENTS},
    }
    part.histogram = histogram_of_blocks(cells, counts)
    part.longest = _longest(parts, translation, part.cells["call"], calls, files)
    return part


def _longest(
    parts: _Parts, translation: Translation, call: np.ndarray, calls: tuple[Call, ...], files: list[str]
) -> tuple[np.ndarray, Events]:
    cells = parts.cells
    cell, place = np.nonzero(np.arange(LARGEST) < cells["longest"][:, None])
    raw = cells["largest"][cell, place]
    sound = (raw["duration_ns"] <= LARGEST_NS) & (raw["moved"] <= LARGEST_MOVED_BYTES)
    sound &= (raw["start_ns"] >= 0) & (raw["start_ns"] <= _LATEST_UNIX_NS)
    cell, raw = cell[sound], raw[sound]
    numbers, place_of_file = np.unique(raw["file"], return_inverse=True)
    file_of = [translation.files.get(parts.paths.get(number, ""), 0) for number in numbers.tolist()]
    ranks, place_of_rank = np.unique(raw["rank"], return_inverse=True)
    rank_of = [translation.ranks.get(rank, (rank, 0)) for rank in ranks.tolist()]
    rank, first_thread = np.array(rank_of, np.int64).reshape(-1, 2)[place_of_rank].T
    moved = raw["moved"]
    columns = {
        "rank": np.maximum(rank, 0),
        "thread": np.minimum(first_thread + raw["thread"], 0xFFFF),
        "call": call[cell],
        "depth": raw["depth"],
        "carried": raw["flags"] & CARRIED,
        "file": np.array(file_of, np.int64)[place_of_file],
        "offset": raw["offset"],
        "requested": raw["requested"],
        "moved": np.where(moved < 0, -1, moved),
        "error": np.where((moved < 0) & (moved > -_NO_ERRNO), -moved, 0),
        "start": raw["start_ns"] - translation.origin_unix_ns,
        "duration": raw["duration_ns"].astype(np.int64),
    }
    return cell, Events(columns, calls, files)
