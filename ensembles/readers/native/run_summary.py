"""Summary of all calls of a run: from summaries in job files and spools, and from the remaining events.

The summary in a job file has sums and histograms of the calls of all its processes.
"""

from __future__ import annotations

import os
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from ensembles.files.untrusted import open_regular
from ensembles.model.c_layout import CELL, CONSTANTS, JOB_CALL, JOB_CELL, JOB_SUMMARY, TEXT
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, MISSING, Call, Events
from ensembles.model.metadata import RunMetadata
from ensembles.model.units import HALF_INT64, ROWS_AT_ONCE, count_text, few
from ensembles.readers.common.columns import LARGEST_MOVED_BYTES, LARGEST_NS, empty_columns
from ensembles.readers.native.account import sum_words
from ensembles.readers.native.block_reader import BlockReader
from ensembles.readers.native.job_file_codec import decode_text
from ensembles.readers.native.process_metadata import Member
from ensembles.readers.native.spool import BLOCK_BYTES, Spool, Window
from ensembles.readers.native.spool_bytes import JobSummary
from ensembles.readers.native.window_decoder import Decoding, decode, sound
from ensembles.summaries.bins import bin_edges_s
from ensembles.summaries.cells import LARGEST, CellSummary
from ensembles.summaries.ranktable import COLUMNS as OF_RANKS
from ensembles.summaries.ranktable import RankTable

_BLOCK_BINS = CONSTANTS["ENSIO_BLOCK_BINS"]

_CARRIED = "CARRIED_READ CARRIED_WRITE OPENED_TO_READ OPENED_TO_WRITE WAITS_FOR_DEVICE SAME_CALL"
CARRIED = sum(CONSTANTS[f"ENSIO_{name}"] for name in _CARRIED.split())
"""The flags of an event that the column ``carried`` has."""
_SAME = ("count", "errors", "moved", "time_ns", "inner_ns", "min_ns", "max_ns", "without_bin")


def read_summary(
    spool: Spool, decoding: Decoding, calls: tuple[Call, ...], files: list[str]
) -> tuple[CellSummary, int]:
    """Read the summary of a process, without the events that it does not include yet.

    `damaged`: number of cells that are left out: their values are impossible, or they are empty before the
    last one.
    """
    for _ in range(2):  # a running process may have changed a cell while it was read
        with spool.contents.opened() as contents:
            raw = [contents.read(part.length * CELL.size, part.position) for part in spool.cells]
            blocks = [contents.read(part.length * BLOCK_BYTES, part.position) for part in spool.blocks]
        used = [_array(part, CELL.dtype) for part in raw]
        lost = sum(int(np.count_nonzero(part["call"][:-1] == 0)) for part in used)
        cells = np.concatenate([np.empty(0, CELL.dtype), *used])
        counts = np.concatenate([np.empty(0, "u8"), *(_array(part, "u8") for part in blocks)])
        counts = counts.reshape(-1, _BLOCK_BINS)
        cells = cells[(cells["call"] != 0) & (cells["count"] > 0)]
        sound = _sound_of_process(cells, counts, decoding)
        if sound.all():
            break
    if not spool.head.folding:
        sound &= _has_sum(cells)
    summary = CellSummary(calls, files)
    if sound.any():
        summary.merge(_decoded_of_process(cells[sound], counts, decoding, calls, files))
    return summary, lost + int(len(cells) - np.count_nonzero(sound))


def _array(raw: bytes, dtype: np.dtype | str) -> np.ndarray:
    dtype = np.dtype(dtype)
    return np.frombuffer(raw, dtype, len(raw) // dtype.itemsize)


def _has_sum(cells: np.ndarray) -> np.ndarray:
    """Test which cells are as the recorder summed them, or have no sum."""
    words = cells.view("u1").reshape(len(cells), CELL.size)[:, : CELL.field_offset("largest")].copy()
    at = CELL.field_offset("sum")
    words[:, at : at + 4] = 0
    found: np.ndarray = (cells["sum"] == 0) | (cells["sum"] == sum_words(words.view("u8")))
    return found


def _sound_of_process(cells: np.ndarray, counts: np.ndarray, decoding: Decoding) -> np.ndarray:
    """Test which cells have possible values that agree with their bins: bool, shape (cells,)."""
    sound = sound_cells(cells, counts)
    sound &= (cells["time_ns"] <= LARGEST_NS) & (cells["inner_ns"] <= LARGEST_NS)
    for name in ("first_start", "last_end"):
        sound &= decoding.since(cells[name])[1]
    sound &= np.isfinite(cells["power4"]) & (cells["shift_ns"] <= cells["max_ns"])
    return sound


def sound_cells(cells: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Test which cells of a spool or job file have possible values: bool, shape (cells,).

    The bins of a cell hold its calls, but for the last one of a killed process, and bound their time.
    """
    sound: np.ndarray = (cells["count"] < 1 << 60) & (cells["blocks"].max(axis=1, initial=0) <= len(counts))
    for name in ("errors", "nested_count", "without_bin"):
        sound &= cells[name] <= cells["count"]
    sound &= (cells["moved"] < HALF_INT64) & (cells["carried_moved"] <= cells["moved"])
    sound &= (cells["min_ns"] <= cells["max_ns"]) & (cells["max_ns"] <= LARGEST_NS)
    sound &= (cells["time_ns"] < HALF_INT64) & (cells["inner_ns"] < HALF_INT64)
    sound &= (cells["nested_ns"] <= cells["time_ns"]) & (cells["min_requested"] <= cells["max_requested"])
    row, bins, n = histogram_of_blocks(cells[sound], counts)
    edges_ns, kinds = bin_edges_s() * 1e9, np.count_nonzero(sound)
    binned, least_ns, most_ns = (
        np.bincount(row, n * each, kinds) for each in (1.0, edges_ns[bins], edges_ns[bins + 1])
    )
    of = cells[sound]
    rest_ns = (np.maximum(of["count"] - binned, 0) + 1) * of["max_ns"]
    fits = (binned <= of["count"] + 1.0) & (of["time_ns"] + 1.0 * of["max_ns"] >= least_ns * (1 - 1e-9))
    sound[sound] = fits & (of["time_ns"] <= (most_ns + rest_ns) * (1 + 1e-9))
    return sound


def _part(
    cells: np.ndarray,
    counts: np.ndarray,
    call_numbers: np.ndarray,
    columns: dict[str, np.ndarray],
    calls: tuple[Call, ...],
    files: list[str],
) -> CellSummary:
    """Make a summary of cells, without their longest calls; `columns` depend on clocks and moments."""
    part = CellSummary(calls, files)
    part.cells = plain_columns(cells, call_numbers) | columns
    part.histogram = histogram_of_blocks(cells, counts)
    return part


def _decoded_of_process(
    cells: np.ndarray, counts: np.ndarray, decoding: Decoding, calls: tuple[Call, ...], files: list[str]
) -> CellSummary:
    times = {
        name: decoding.times_ns(decoding.since(cells[of])[0])
        for name, of in (("start_ns", "first_start"), ("end_ns", "last_end"))
    }
    part = _part(cells, counts, decoding.call_numbers, times | _central(cells), calls, files)
    binned = np.bincount(part.histogram[0], part.histogram[2], len(cells)).astype(np.int64)
    part.cells["without_bin"] = np.maximum(part.cells["count"] - binned, 0)
    part.longest = _longest_of_process(cells, decoding, calls, files)
    return part


def _central(cells: np.ndarray) -> dict[str, np.ndarray]:
    """Compute mean and central sums of powers from sums of powers of deviations from the first duration."""
    n = cells["count"].astype(np.float64)
    beyond = (cells["time_ns"] - cells["count"] * cells["shift_ns"]).view("i8").astype(np.float64)
    d = beyond / n
    s2, s3, s4 = (cells[name] for name in ("power2", "power3", "power4"))
    return {
        "mean_ns": cells["shift_ns"] + d,
        "m2": np.maximum(s2 - n * d**2, 0.0),
        "m3": s3 - 3 * d * s2 + 2 * n * d**3,
        "m4": np.maximum(s4 - 4 * d * s3 + 6 * d**2 * s2 - 3 * n * d**4, 0.0),
    }


def _longest_of_process(
    cells: np.ndarray, decoding: Decoding, calls: tuple[Call, ...], files: list[str]
) -> tuple[np.ndarray, Events]:
    used = np.arange(LARGEST) < cells["count"][:, None]
    cell, place = np.nonzero(used)
    raw = cells["largest"][cell, place]
    kept = sound(decoding, raw)
    cell, place, raw = cell[kept], place[kept], raw[kept]
    columns = {name: np.empty(len(raw), kind) for name, kind in COLUMNS.items() if name not in MISSING}
    decode(decoding, 0, raw, columns)
    threads = cells["threads"][cell, place].astype(np.int64)
    columns["thread"][:] = np.minimum(decoding.first_thread + threads, 0xFFFF)
    columns["carried"] &= CARRIED
    return cell, Events(columns, calls, files)


def plain_columns(cells: np.ndarray, call_numbers: np.ndarray) -> dict[str, np.ndarray]:
    """Make the columns of a `CellSummary` that need no clock."""
    return {
        "call": np.take(call_numbers, cells["call"], mode="clip").astype(np.int64),
        "size_class": cells["size_class"].astype(np.int64),
        "ordinal_class": cells["ordinal_class"].astype(np.int64),
        **{name: cells[name].astype(np.int64) for name in _SAME},
        "outer_count": (cells["count"] - cells["nested_count"]).astype(np.int64),
        "outer_moved": (cells["moved"] - cells["carried_moved"]).astype(np.int64),
        "outer_ns": (cells["time_ns"] - cells["nested_ns"]).astype(np.int64),
        "min_requested": cells["min_requested"],
        "max_requested": cells["max_requested"],
    }


def histogram_of_blocks(cells: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make a sparse histogram from the blocks of bins of cells."""
    cell, octave = np.nonzero(cells["blocks"])
    block = counts[cells["blocks"][cell, octave].astype(np.int64) - 1]
    row, column = np.nonzero(block)
    return cell[row], octave[row] * _BLOCK_BINS + column, block[row, column].astype(np.int64)


_LARGEST = 1 << 60
_ROWS = tuple(name for name in OF_RANKS if name != "rank")
"""Columns of sums that both job files and cells have."""


class RunSummary:
    """The summaries of a run, read on demand."""

    def __init__(
        self, members: Sequence[Member], decodings: Sequence[Decoding], files: dict[str, int], origin_ns: int
    ) -> None:
        both = [(member.spool, decoding) for member, decoding in zip(members, decodings, strict=True)]
        self._own = [(spool, decoding) for spool, decoding in both if _adds_to_summary(spool)]
        self._rows = [
            (spool.call_rows, decoding)
            for spool, decoding in both
            if spool.call_rows is not None and len(spool.call_rows)
        ]
        self._of_jobs = _job_summaries(members, decodings, files, origin_ns)

    def read(self, metadata: RunMetadata) -> tuple[CellSummary, RankTable]:
        """Read the summary of all calls, and the table by rank and function."""
        summary, ranks = CellSummary(metadata.calls, metadata.files), RankTable(metadata.calls)
        notes: list[str] = []
        self._add_job_summaries(summary, metadata, notes)
        rows = [self._rows_of_jobs(metadata)]
        for spool, decoding in self._own:
            part, damaged = read_summary(spool, decoding, metadata.calls, metadata.files)
            summary.merge(part)
            sums = {name: part.cells[name] for name in _ROWS}
            rows.append(sums | {"rank": np.full(len(sums["count"]), max(decoding.rank, 0))})
            if damaged:
                notes.append(_damaged_cells(spool.name, damaged))
        ranks.add_rows(
            metadata.calls, {name: np.concatenate([part[name] for part in rows]) for name in OF_RANKS}
        )
        metadata.note_damage(few(notes, "spools have a damaged summary"), [-1] * bool(notes))
        for events in self._rest(metadata):
            summary.add(events, ordinals_known=False)
            ranks.add(events)
        without_bin = int(summary.cells["without_bin"].sum())
        if without_bin:
            metadata.note(f"the histograms lack {count_text(without_bin, 'call')}: no room, or damaged bins")
        return summary, ranks

    def _add_job_summaries(self, summary: CellSummary, metadata: RunMetadata, notes: list[str]) -> None:
        for place, translation in self._of_jobs.items():
            try:
                part, damaged = read_job_summary(place, translation, metadata.calls, metadata.files)
            except EnsioError as error:
                notes.append(f"{error}; sums and histograms do not include the calls in it")
                continue
            summary.merge(part)
            if damaged:
                notes.append(_damaged_cells(os.path.basename(place.path), damaged))

    def _rows_of_jobs(self, metadata: RunMetadata) -> dict[str, np.ndarray]:
        """Return the sums by rank and function of the processes in job files."""
        joined = np.frombuffer(b"".join([part.tobytes() for part, _ in self._rows]), JOB_CALL.dtype)
        lengths = np.array([len(part) for part, _ in self._rows], np.int64)
        call = np.empty(len(joined), np.int64)
        # Nearly always all processes have one table of calls.
        for numbers in {
            id(decoding.call_numbers): decoding.call_numbers for _, decoding in self._rows
        }.values():
            whose = [decoding.call_numbers is numbers for _, decoding in self._rows]
            mine = slice(None) if all(whose) else np.repeat(whose, lengths)
            call[mine] = np.take(numbers, joined["call"][mine], mode="clip")
        columns = {name: joined[name] for name in _ROWS}
        columns["call"] = call
        columns["rank"] = np.repeat([max(decoding.rank, 0) for _, decoding in self._rows], lengths)
        sound = joined["errors"] <= joined["count"]
        for name in _ROWS[1:]:
            sound &= joined[name] < _LARGEST
        if not sound.all():
            what = (
                "a job file is damaged: sums of some ranks are left out, because their numbers are impossible"
            )
            metadata.note_damage([what], [-1])
        return {name: column[sound].astype(np.int64) for name, column in columns.items()}

    def _rest(self, metadata: RunMetadata) -> Iterator[Events]:
        """Yield the events after the recorder's last update of the summary; their ordinals are unknown."""
        kept = BlockReader([_rest(spool, decoding) for spool, decoding in self._own])
        own = [(each, spool.scratch) for spool, each in self._own if not spool.job_path]
        scratch = BlockReader([_windows(*pair) for pair in own])
        for reader in (kept, scratch):
            while count := reader.read(columns := empty_columns(ROWS_AT_ONCE), 0, ROWS_AT_ONCE):
                columns = {name: column[:count] for name, column in columns.items()}
                yield Events(columns, metadata.calls, metadata.files)
        for sentence in scratch.flaws.sentences:  # those of the kept ones are found by passes over all events
            metadata.note(sentence)


def _adds_to_summary(spool: Spool) -> bool:
    """Test whether a process may have calls that no job file's summary includes."""
    if spool.job_path and spool.job_summary is not None:
        return False
    return bool(spool.cells or spool.windows or spool.coded or spool.pending)


def _rest(spool: Spool, decoding: Decoding) -> Decoding:
    """Select the events that the summary of the process does not include."""
    if spool.job_path:
        return replace(decoding, windows=[], coded=() if spool.is_summarised else spool.coded)
    return _windows(decoding, spool.windows)


def _windows(decoding: Decoding, windows: Sequence[Window]) -> Decoding:
    return replace(decoding, windows=[window.rest for window in windows], coded=())


def _job_summaries(
    members: Sequence[Member], decodings: Sequence[Decoding], files: dict[str, int], origin_ns: int
) -> dict[JobSummary, Translation]:
    """Return the summaries of the job files, and the translation of their ids."""
    ranks: dict[JobSummary, dict[int, tuple[int, int]]] = {}
    numbers: dict[JobSummary, np.ndarray] = {}
    for member, decoding in zip(members, decodings, strict=True):
        place = member.spool.job_summary
        if place is not None:
            ranks.setdefault(place, {})[max(member.spool.head.rank, 0)] = member.rank, member.first_thread
            numbers[place] = decoding.call_numbers
    return {
        place: Translation(numbers[place], files, ranks_of, origin_ns) for place, ranks_of in ranks.items()
    }


def _damaged_cells(name: str, count: int) -> str:
    cells = "1 cell of its summary is" if count == 1 else f"{count} cells of its summary are"
    return f"{name} is damaged: {cells} left out, because their numbers are impossible or missing"


_NO_ERRNO = CONSTANTS["ENSIO_NO_ERRNO"]
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
    sound = _sound(cells, parts.counts)
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


def _sound(cells: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Test which cells have possible values: bool, shape (cells,)."""
    sound = sound_cells(cells, counts) & (cells["count"] > 0) & (cells["longest"] <= LARGEST)
    for name in ("first_start_ns", "last_end_ns"):
        sound &= (cells[name] >= 0) & (cells[name] <= HALF_INT64)
    for name in _MOMENTS:
        sound &= np.isfinite(cells[name])
    return sound & (cells["call"] > 0)


def _decoded(
    parts: _Parts, translation: Translation, calls: tuple[Call, ...], files: list[str]
) -> CellSummary:
    cells = parts.cells
    columns = {
        "start_ns": cells["first_start_ns"] - translation.origin_unix_ns,
        "end_ns": cells["last_end_ns"] - translation.origin_unix_ns,
        **{name: cells[name] for name in _MOMENTS},
    }
    part = _part(cells, parts.counts, translation.call_numbers, columns, calls, files)
    part.longest = _longest(parts, translation, part.cells["call"], calls, files)
    return part


def _longest(
    parts: _Parts, translation: Translation, call: np.ndarray, calls: tuple[Call, ...], files: list[str]
) -> tuple[np.ndarray, Events]:
    cells = parts.cells
    cell, place = np.nonzero(np.arange(LARGEST) < cells["longest"][:, None])
    raw = cells["largest"][cell, place]
    sound = (raw["duration_ns"] <= LARGEST_NS) & (raw["moved"] <= LARGEST_MOVED_BYTES)
    sound &= (raw["start_ns"] >= 0) & (raw["start_ns"] <= HALF_INT64)
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
