"""Read Darshan logs: DXT segments as events, or sums of counters if there are no segments.

Darshan's library reads the log in a separate process (`sandbox_process`).
"""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Any

import numpy as np

from ensembles.model.counters import Counters
from ensembles.model.errors import EnsioError, MissingLibrary
from ensembles.model.events import Call
from ensembles.model.metadata import RunMetadata
from ensembles.readers.common.call_dictionary import UNKNOWN_CALL
from ensembles.readers.foreign.common.import_table import ForeignTrace
from ensembles.readers.foreign.darshan import counter_semantics, counters, job, segments
from ensembles.readers.foreign.darshan.frames import (
    SEGMENT_BYTES,
    FrameError,
    end_library,
    read_frame,
    start_library,
)
from ensembles.readers.foreign.darshan.header import DamagedLog, damaged, logs_of, open_header
from ensembles.readers.foreign.darshan.heat_map import HeatMapSums
from ensembles.readers.foreign.darshan.lustre_layout import encode_attribute
from ensembles.readers.foreign.darshan.record_sums import LAYERS, RecordSums
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable

CALLS: tuple[Call, ...] = tuple(
    dict.fromkeys((UNKNOWN_CALL, *counter_semantics.CALLS, *sum(segments.CALLS.values(), ())))
)


def read(path: str) -> DarshanImport:
    """Open a Darshan log, or the logs in a folder if they are of one job.

    The tasks of several logs are numbered in the order of their starts.

    Raises
    ------
    EnsioError
        The library does not read a log, or the logs are of several jobs.
    """
    headers = {log: open_header(log) for log in logs_of(path)}
    jobs = len({header.number for header in headers.values()})
    if jobs > 1:
        raise EnsioError(
            f"{path} holds Darshan logs of {jobs:,} jobs: name one of its logs, or compare all of them in a "
            f"history (ensio history add --darshan {path})"
        )
    return DarshanImport(*sorted(headers, key=lambda log: (headers[log].start_ns, log)))


class DarshanImport(ForeignTrace):
    """A Darshan log, or several of one job; a `ForeignTrace`.

    Parameters
    ----------
    keeps_records : bool
        Whether the counters of files and ranks are kept too.

    Attributes
    ----------
    metadata : RunMetadata
    state : JobState
    counters : Counters
        Sums by kind of call.
    """

    def __init__(self, *paths: str, keeps_records: bool = True) -> None:
        self.keeps_records = keeps_records
        self._paths, self.path = paths, paths[0]
        self.metadata = RunMetadata(0, 0, 0, CALLS, [""], [], [])
        self.state = job.JobState()
        self.counters = counters.Counters()
        self._converter = segments.Converter(CALLS)
        self._sums: dict[str, RecordSums] = {}
        self._heatmaps = HeatMapSums()

    def blocks(self, max_events: int) -> Iterator[Mapping[str, np.ndarray]]:
        """Yield blocks of the reads and writes in DXT; times are by the local clocks of the ranks."""
        memory = os.memfd_create("ensio-darshan")
        try:
            os.ftruncate(memory, max_events * SEGMENT_BYTES)
            # Not closed explicitly: arrays in the traceback of an error may still refer to it.
            shared = mmap.mmap(memory, max_events * SEGMENT_BYTES, prot=mmap.PROT_READ)
            for path in self._paths:
                self.path = path
                yield from self._blocks(memory, shared, max_events)
        except DamagedLog as error:
            raise damaged(self.path, str(error)) from error
        except FrameError as error:
            raise damaged(self.path, "Darshan's library failed on it") from error
        finally:
            os.close(memory)
        job.finish(self.metadata, self.state, self.counters, self._converter)
        run_time_s = max(self.state.end_ns - self.state.start_ns, 0) * 1e-9
        self.metadata.counters = Counters(
            self.metadata.recorder,
            self.metadata.tasks,
            run_time_s,
            {name: self._sums[name].finished(run_time_s) for name in LAYERS if name in self._sums},
            self._heatmaps.finished(),
            job.unread(self.state),
        )

    def _blocks(self, memory: int, shared: mmap.mmap, max_events: int) -> Iterator[Mapping[str, np.ndarray]]:
        child = start_library("sandbox_process", self.path, str(memory), str(max_events), shared=[memory])
        assert child.stdin is not None
        assert child.stdout is not None
        try:
            while True:
                head, arrays = read_frame(child.stdout)
                if head.get("kind") == "end":
                    return
                try:
                    block = self._taken(head, arrays, shared, max_events)
                except (KeyError, TypeError, ValueError, IndexError, OverflowError, AttributeError) as error:
                    raise FrameError from error
                if block is not None:
                    yield block
                    with suppress(BrokenPipeError):
                        child.stdin.write(b"+")
                        child.stdin.flush()
        finally:
            end_library(child)

    def take(self, head: dict[str, Any], arrays: list[np.ndarray]) -> None:
        """Take a frame without segments."""
        if head.get("kind") == "segments":
            raise FrameError
        try:
            self._taken(head, arrays, None, 0)
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
        file = self.state.see(self.metadata, identity)
        if self.keeps_records:
            if module not in self._sums:
                known = self.state.modules[module]
                self._sums[module] = RecordSums(module, int(known["version"]), bool(known["partial"]))
            self._sums[module].add(names, (identity, rank, whole, real), file)
        if module in counter_semantics.WAYS:
            # Calls of MPI-IO lie around those of the same log only: each log has other numbers of files.
            of_log = identity + np.uint64(self.state.first_rank)
            self.counters.add(module, names, (of_log, rank, whole, real))

    def _add_layout(self, identity: int, components: list[dict[str, Any]]) -> None:
        attribute = encode_attribute(components)
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
            self.state.see(self.metadata, identity),
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
