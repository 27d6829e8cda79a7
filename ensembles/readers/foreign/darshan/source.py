"""Read Darshan logs: DXT segments as events, or sums of counters if there are no segments.

Darshan's library reads the log in a separate process (`sandbox_process`).
"""

from __future__ import annotations

import mmap
import os
import struct
import subprocess
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import IO, Any

import numpy as np

from ensembles.model.counters import Counters, HeatMap
from ensembles.model.errors import EnsioError, MissingLibrary
from ensembles.model.events import Call
from ensembles.model.lustre import encode_layout
from ensembles.model.metadata import RunMetadata
from ensembles.model.units import HALF_INT64, LONGEST_S
from ensembles.readers.common.call_dictionary import UNKNOWN_CALL
from ensembles.readers.foreign.common.import_table import ForeignTrace
from ensembles.readers.foreign.common.text_blocks import note_others
from ensembles.readers.foreign.darshan import counter_semantics, counters, job, segments
from ensembles.readers.foreign.darshan.header import (
    SEGMENT_BYTES,
    DamagedLog,
    FrameError,
    Header,
    damaged,
    end_library,
    logs_of,
    open_header,
    read_frame,
    runs_of,
    start_library,
)
from ensembles.readers.foreign.darshan.record_sums import LAYERS, RecordSums
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable

CALLS: tuple[Call, ...] = tuple(
    dict.fromkeys((UNKNOWN_CALL, *counter_semantics.CALLS, *sum(segments.CALLS.values(), ())))
)


def read(path: str) -> DarshanImport:
    """Open a Darshan log, or the logs in a folder if they are of one job.

    The tasks of several logs are numbered in the order of their starts.
    """
    logs, others = logs_of(path)
    headers = {log: open_header(log) for log in logs}
    jobs = len({header.number for header in headers.values()})
    if jobs > 1:
        raise EnsioError(
            f"{path} holds Darshan logs of {jobs:,} jobs: name one of its logs, or compare all of them in a "
            f"history (ensio history add --darshan {path})"
        )
    paths = sorted(headers, key=lambda log: (headers[log].start_ns, log))
    found = DarshanImport(*paths)
    note_others(found.metadata.note, others, "Darshan")
    if not os.path.isdir(path):
        _note_siblings(found.metadata, path, headers[path])
    return found


def _note_siblings(metadata: RunMetadata, path: str, header: Header) -> None:
    """Note the logs beside this one of processes of the same run, by the number of the job in their names."""
    folder, word = os.path.dirname(path) or ".", f"_id{header.number}"
    with suppress(OSError):
        names = sorted(name for name in os.listdir(folder) if word in name and name.endswith(".darshan"))
        for run in runs_of(os.path.join(folder, name) for name in names):
            if len(run) > 1 and os.path.basename(path) in map(os.path.basename, run):
                metadata.note(
                    f"job {header.number} has {len(run):,} logs in {folder}, one a process: name a folder "
                    "that holds only them, to read them as one run"
                )


class DarshanImport(ForeignTrace):
    """A Darshan log, or several of one job; a `ForeignTrace`."""

    def __init__(self, *paths: str) -> None:
        self._paths, self.path = paths, paths[0]
        self.metadata = RunMetadata(0, 0, 0, CALLS, [""], [], [])
        self.state = job.JobState()
        self._converter = segments.Converter(CALLS)
        self._sums: dict[str, RecordSums] = {}
        self._heatmaps = HeatMapSums()
        self._moved = self._is_traced = False  # whether this log has reads or writes, and calls

    @cached_property
    def counters(self) -> counters.Counters:
        """Sums by kind of call, when all is read."""
        return counters.Counters(self._sums)

    def blocks(self, max_events: int) -> Iterator[Mapping[str, np.ndarray]]:
        """Yield blocks of the reads and writes in DXT; times are by the local clocks of the ranks."""
        memory = os.memfd_create("ensio-darshan")
        try:
            os.ftruncate(memory, max_events * SEGMENT_BYTES)
            # Not closed explicitly: arrays in the traceback of an error may still refer to it.
            shared = mmap.mmap(memory, max_events * SEGMENT_BYTES, prot=mmap.PROT_READ)
            lacking = []
            for path in self._paths:
                self.path, self._moved = path, False
                yield from self._blocks(memory, shared, max_events)
                lacking += [path] if self._moved and not self._is_traced else []
            self._leave_calls_out(lacking)
            job.finish(self.metadata, self.state, self.counters, self._converter)
        except DamagedLog as error:
            raise damaged(self.path, str(error)) from error
        except FrameError as error:
            raise damaged(self.path, "Darshan's library failed on it") from error
        finally:
            os.close(memory)
        run_time_s = max(self.state.end_ns - self.state.start_ns, 0) * 1e-9
        self.metadata.counters = Counters(
            self.metadata.recorder,
            self.metadata.tasks,
            run_time_s,
            {name: self._sums[name].finished(run_time_s) for name in LAYERS if name in self._sums},
            self._heatmaps.finished(),
            job.unread(self.state),
        )
        if any((each.totals.get("MMAPS") or 0) > 0 for each in self.metadata.counters.modules.values()):
            self.metadata.has_maps()

    def _blocks(self, memory: int, shared: mmap.mmap, max_events: int) -> Iterator[Mapping[str, np.ndarray]]:
        child = start_library(self.path, str(memory), str(max_events), shared=[memory])
        acknowledgements, frames = _pipes(child)
        try:
            while True:
                head, arrays = read_frame(frames)
                if head.get("kind") == "end":
                    return
                block = self.taken(head, arrays, shared, max_events)
                if block is not None:
                    yield block
                    with suppress(BrokenPipeError):
                        acknowledgements.write(b"+")
                        acknowledgements.flush()
        finally:
            end_library(child)

    def _leave_calls_out(self, lacking: Sequence[str]) -> None:
        """Show counters only if some logs of a run lack the calls that they count."""
        logs = len(self._paths)
        if not lacking or logs == 1:
            return
        self.state.leave_calls_out()
        self._converter = segments.Converter(CALLS)
        if len(lacking) < logs:
            self.metadata.note(
                f"{len(lacking):,} of {logs:,} logs, such as {lacking[0]}, have counters only: the single "
                "calls (DXT) of the others are not shown, name a log for its calls"
            )

    def taken(
        self,
        head: dict[str, Any],
        arrays: list[np.ndarray],
        shared: mmap.mmap | None = None,
        room: int = 0,
    ) -> Mapping[str, np.ndarray] | None:
        """Take a frame, and return the calls of one with segments."""
        try:
            return self._taken(head, arrays, shared, room)
        except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
            raise FrameError from error

    def _taken(
        self, head: dict[str, Any], arrays: list[np.ndarray], shared: mmap.mmap | None, room: int
    ) -> Mapping[str, np.ndarray] | None:
        kind = head["kind"]
        if kind == "error":
            if "library" in head:
                raise MissingLibrary(head["library"])
            raise (
                EnsioError(head["text"])
                if "text" in head
                else DamagedLog(f"Darshan's library could not {head['failed']}")
            )
        if kind == "job":
            job.describe(self.metadata, self.state, head)
            self._is_traced = any(map(segments.CALLS.__contains__, head["modules"]))
        elif kind == "names":
            self.state.add_names(arrays[0], head["names"])
        elif kind == "layout":
            self._add_layout(int(arrays[0][0]), head["components"])
        elif kind == "counters":
            self._add_counters(head, counters.counter_columns(arrays[0], *head["shape"]))
        elif kind == "heatmap" and len(self._paths) == 1:
            self._ranks(arrays[1], -1)
            self._heatmaps.add(self.state.paths.get(int(arrays[0][0]), ""), float(head["width_s"]), arrays)
        elif kind == "segments" and shared is not None:
            return self._segments(head, arrays, shared, room)
        return None

    def _add_counters(self, head: dict[str, Any], columns: tuple[np.ndarray, ...]) -> None:
        module, names = str(head["module"]), (head["counters"], head["times"])
        identity, rank, whole, real = columns
        rank = self._ranks(rank, -1)
        # Times are since the start of this log. Zero means that there is none.
        stamps = np.array([name.endswith("_TIMESTAMP") for name in names[1]])
        self.state.see_end(float(real[:, stamps].max(initial=0.0)))
        real = np.where(stamps & (real > 0), real + self.state.after_s, real)
        file = self.state.see(identity)
        if module not in self._sums:
            known = self.state.modules[module]
            self._sums[module] = RecordSums(module, int(known["version"]), bool(known["partial"]))
        # Calls of MPI-IO lie around those of the same log only: each log has other numbers of files.
        of_log = identity + np.uint64(self.state.first_rank)
        moved = self._sums[module].add(names, (of_log, rank, whole, real), file)
        self._moved |= moved and module in counter_semantics.WAYS and module != "STDIO"

    def _add_layout(self, identity: int, components: list[dict[str, Any]]) -> None:
        attribute = encode_layout(components)
        path = self.state.paths.get(identity, "")
        if attribute is not None and path:
            self.metadata.file_facts.setdefault(path, {})["lustre.lov"] = attribute

    def _segments(
        self, head: dict[str, Any], arrays: list[np.ndarray], shared: mmap.mmap, room: int
    ) -> Mapping[str, np.ndarray]:
        identity, rank, count, is_write, host = arrays
        rank = self._ranks(rank, 0)
        parts = segments.SegmentBlocks(
            head["module"],
            rank,
            count,
            is_write,
            self.state.see(identity),
            bool(head["has_threads"]),
            bool(head["has_offsets"]),
            bool(head["swapped"]),
            self.state.after_s,
        )
        if len({len(column) for column in arrays}) != 1 or count.min() < 1 or parts.length > room:
            raise FrameError
        self.state.see_hosts(rank, host, head["hosts"])
        columns = self._converter.columns(parts, shared)
        self.state.count(parts)
        return columns

    def _ranks(self, rank: np.ndarray, least: int) -> np.ndarray:
        """Return the ranks of the run for those of this log; sums over its one rank are of that rank."""
        first, tasks = self.state.first_rank, self.metadata.tasks - self.state.first_rank
        if rank.min(initial=0) < least or rank.max(initial=0) >= tasks:
            raise DamagedLog(f"it has a record of rank {int(rank.max(initial=0)):,} of {tasks:,} tasks")
        alone = tasks == 1 and len(self._paths) > 1
        return np.where((rank >= 0) | alone, np.maximum(rank, 0) + first, rank)

    def summary(self) -> CellSummary | None:
        """Return the sums of the counters; None if there are segments, from which sums are computed."""
        return None if self.state.has_segments else self.counters.summary(self.metadata.files)

    def ranks(self) -> RankTable | None:
        """Return the sums by rank and function; None also if the log has sums over all ranks only."""
        return None if self.state.has_segments or self.counters.shared_records else self.counters.table


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
    summary: counters.CountedSummary  # A cell for each kind of calls
    has_segments: bool  # Whether the log also has DXT segments, which are not read
    is_partial: bool  # Whether Darshan lacked memory for some files


def read_counters(runs: Iterable[Sequence[str]]) -> Iterator[tuple[str, CountedLog | EnsioError]]:
    """Read the counters of the logs of many runs with one process."""
    child = None
    try:
        for path, *others in runs:
            if child is None:  # after damage, frames of that log may be left in the pipe
                child = start_library()
                head = read_frame(_pipes(child)[1])[0]
                if "library" in head:
                    raise MissingLibrary(head["library"])
            found: CountedLog | EnsioError
            try:
                found = _counted(child, path, *others)
            except MissingLibrary:
                raise
            except EnsioError as error:
                found = error
            except DamagedLog as error:
                found = damaged(path, str(error))
            except (FrameError, BrokenPipeError):
                found = damaged(path, "Darshan's library failed on it")
            if isinstance(found, EnsioError):
                end_library(child)
                child = None
            yield path, found
    finally:
        if child is not None:
            end_library(child)


def _pipes(child: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    assert child.stdin is not None
    assert child.stdout is not None
    return child.stdin, child.stdout


def _counted(child: subprocess.Popen[bytes], *paths: str) -> CountedLog:
    requests, frames = _pipes(child)
    log = DarshanImport(*paths)
    for name in map(os.fsencode, paths):
        requests.write(struct.pack("<I", len(name)) + name)
        requests.flush()
        while (read := read_frame(frames))[0].get("kind") != "end":
            if read[0].get("kind") == "segments":
                raise FrameError
            log.taken(*read)
    state, metadata = log.state, log.metadata
    return CountedLog(
        path=paths[0],
        command=state.lives[0][0],
        job=metadata.job,
        uid=metadata.uid,
        tasks=metadata.tasks,
        start_ns=state.start_ns,
        end_ns=state.end_ns,
        files=len(state.files.paths) - 1,
        summary=log.counters.summary(state.files.paths),
        has_segments=any(module.startswith("DXT_") for module in state.modules),
        is_partial=any(bool(known["partial"]) for known in state.modules.values()),
    )


_PREFIX = "heatmap:"
_MOST_ROWS = 512


class _Grid:
    """Bytes by rank and time in a bounded number of rows, of one rank each or of 2, 4, … neighbours."""

    def __init__(self) -> None:
        self.per_row = 1
        self.rows = np.zeros((0, 0), np.int64)

    def add(self, rank: int, moved: np.ndarray) -> None:
        while rank // self.per_row >= _MOST_ROWS:
            self.per_row *= 2
            self.rows = _with_shape(self.rows, -(-len(self.rows) // 2) * 2, self.rows.shape[1])
            self.rows = self.rows[::2] + self.rows[1::2]
        row = rank // self.per_row
        rows, bins = max(len(self.rows), row + 1), max(self.rows.shape[1], len(moved))
        self.rows = _with_shape(self.rows, rows, bins)
        self.rows[row, : len(moved)] += moved


class HeatMapSums:
    """Sums of the records of the module HEATMAP: one for each interface and rank."""

    def __init__(self) -> None:
        self._width_s: dict[str, float] = {}
        self._ranks: dict[str, dict[int, list[int]]] = {}
        self._grids: dict[str, tuple[_Grid, _Grid]] = {}
        self._moved: Counter[str] = Counter()

    def add(self, name: str, width_s: float, arrays: Sequence[np.ndarray]) -> None:
        """Add a record."""
        _, rank, written, read = arrays
        if not 0 < width_s < LONGEST_S or len(written) != len(read):
            raise DamagedLog("a heat map in it is impossible")
        if min(written.min(initial=0), read.min(initial=0)) < 0:
            raise DamagedLog("a heat map in it is negative")
        module = name.removeprefix(_PREFIX)
        if self._width_s.setdefault(module, width_s) != width_s:
            raise DamagedLog("the heat maps of its ranks have bins of different widths")
        moved = [sum(column.tolist()) for column in (read, written)]
        self._moved[module] += sum(moved)
        if self._moved[module] > HALF_INT64:
            raise DamagedLog("the sums of a heat map are impossibly large")
        self._ranks.setdefault(module, {})[int(rank[0])] = moved
        grids = self._grids.setdefault(module, (_Grid(), _Grid()))
        for grid, column in zip(grids, (read, written), strict=True):
            grid.add(int(rank[0]), column)

    def finished(self) -> dict[str, HeatMap]:
        """Return the sums by name of the interface."""
        found = {}
        for module, (read, written) in self._grids.items():
            ranks = sorted(self._ranks[module].items())
            read_by_rank, written_by_rank = np.array([moved for _, moved in ranks], np.int64).T
            found[module] = HeatMap(
                self._width_s[module],
                read.rows.sum(axis=0),
                written.rows.sum(axis=0),
                np.array([rank for rank, _ in ranks], np.int64),
                read_by_rank,
                written_by_rank,
                read.per_row,
                read.rows,
                written.rows,
            )
        return found


def _with_shape(rows: np.ndarray, count: int, bins: int) -> np.ndarray:
    if rows.shape == (count, bins):
        return rows
    found = np.zeros((count, bins), np.int64)
    found[: len(rows), : rows.shape[1]] = rows
    return found
