"""Metadata of the job in a Darshan log, and notes on what the log lacks."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from ensembles.model.events import Call
from ensembles.model.masked_command import mask_command
from ensembles.model.metadata import Mount, Process, RunMetadata
from ensembles.model.units import LATEST_S, MOST_TASKS, count_text, seconds_text
from ensembles.readers.foreign.common.id_tables import FileIds
from ensembles.readers.foreign.darshan.counter_semantics import WAYS
from ensembles.readers.foreign.darshan.counters import Counters
from ensembles.readers.foreign.darshan.header import DamagedLog
from ensembles.readers.foreign.darshan.record_sums import LAYERS
from ensembles.readers.foreign.darshan.segments import CALLS, Converter, SegmentBlocks

_LATEST_NS = LATEST_S * 10**9
_MODULE_OF = {"DXT_POSIX": "POSIX", "DXT_MPIIO": "MPI-IO"}
_UNDERSTOOD = {*LAYERS, *CALLS, "LUSTRE", "HEATMAP", "BG/Q"}
_WITHOUT_IO = {"APMPI", "APXC", "APSS"}
"""Modules that count messages and network traffic."""
_CORRUPT_VERSION = "3.20"


@dataclass(slots=True)
class JobState:
    """Metadata that are collected while a log is read."""

    has_segments: bool = False  # Whether the log has DXT segments
    first_rank: int = 0  # Number of the first task of this log; of several logs, tasks count on
    after_s: float = 0.0  # Start of this log, since that of the first
    # start_ns, end_ns: Start and end of the job, ns since 1970
    start_ns: int = 0
    end_ns: int = 0
    # Command, start and end of each log, by its first task
    lives: dict[int, tuple[str, int, int]] = field(default_factory=dict)
    version: str = ""
    modules: dict[str, dict[str, Any]] = field(default_factory=dict)
    mounts: tuple[Mount, ...] = ()
    paths: dict[int, str] = field(default_factory=dict)  # Paths by file id
    counted: Counter[Call] = field(default_factory=Counter)  # Number of DXT segments by kind of call
    nameless: set[int] = field(default_factory=set)
    hosts: dict[int, str] = field(default_factory=dict)  # Name of the node by rank
    files: FileIds = field(default_factory=FileIds)

    def see_end(self, after_s: float) -> None:
        """Extend this log's life to the end of a call, s since its start: job times are whole seconds."""
        line, start_ns, end_ns = self.lives[self.first_rank]
        end_ns = max(end_ns, min(start_ns + round(after_s * 1e9), _LATEST_NS))
        self.lives[self.first_rank] = line, start_ns, end_ns
        self.end_ns = max(self.end_ns, end_ns)

    def add_names(self, identity: np.ndarray, names: list[str]) -> None:
        """Add paths of files by their ids."""
        self.paths.update(zip(identity.tolist(), map(str, names), strict=True))

    def see(self, identity: np.ndarray) -> np.ndarray:
        """Return the file numbers of the run for file ids."""
        paths = {known: self.paths.get(known, "") for known in identity.tolist()}
        self.nameless.update(known for known, path in paths.items() if not path)
        return np.array([self.files.number(paths[known]) for known in identity.tolist()], np.int64)

    def see_hosts(self, rank: np.ndarray, host: np.ndarray, names: list[str]) -> None:
        """Add the nodes on which ranks ran."""
        for of_rank, number in zip(rank.tolist(), host.tolist(), strict=True):
            self.hosts.setdefault(of_rank, str(names[number]))

    def leave_calls_out(self) -> None:
        """Forget the segments: the counters alone are shown."""
        self.has_segments = False
        self.hosts.clear()

    def count(self, parts: SegmentBlocks) -> None:
        """Count segments by kind of call."""
        self.has_segments = True
        read, write = CALLS[parts.module]
        writes = int(parts.count[parts.is_write > 0].sum())
        self.counted[write] += writes
        self.counted[read] += parts.length - writes


def describe(metadata: RunMetadata, state: JobState, head: dict[str, Any]) -> None:
    """Add the description of the job to the metadata."""
    job = head["job"]
    tasks, start_ns, end_ns = int(job["nprocs"]), int(job["start_ns"]), int(job["end_ns"])
    if not 1 <= tasks <= MOST_TASKS:
        raise DamagedLog(f"its job has {tasks:,} tasks")
    if not 0 <= start_ns <= _LATEST_NS or not 0 <= end_ns <= _LATEST_NS:
        raise DamagedLog("the time of its job is impossible")
    state.first_rank = metadata.tasks
    if not state.lives:
        state.start_ns = start_ns
    state.end_ns, state.after_s = max(state.end_ns, end_ns), (start_ns - state.start_ns) * 1e-9
    command = " ".join(mask_command(tuple(str(job["command"]).split(" "))))
    state.lives[metadata.tasks] = (command, start_ns, end_ns)
    state.version = str(head["version"])
    for module, known in head["modules"].items():
        is_partial = bool(known["partial"]) or state.modules.get(module, known)["partial"]
        state.modules[module] = known | {"partial": is_partial}
    state.mounts = tuple(Mount(str(point), str(kind), "") for point, kind in head["mounts"])
    told = dict(line.partition("=")[::2] for line in job["metadata"].splitlines())
    metadata.tasks += tasks
    metadata.origin_unix_ns = state.start_ns
    metadata.job, metadata.uid = str(job["jobid"]), str(job["uid"])
    metadata.user = metadata.uid
    metadata.recorder = f"Darshan {told.get('lib_ver', '')}".strip()


def unread(state: JobState) -> tuple[str, ...]:
    """Return the names of modules that may hold I/O, and are not read."""
    return tuple(sorted(set(state.modules) - _UNDERSTOOD - _WITHOUT_IO))


def finish(metadata: RunMetadata, state: JobState, counters: Counters, converter: Converter) -> None:
    """Complete the metadata after the whole log has been read."""
    metadata.mode = "trace" if state.has_segments else "profile"
    metadata.files = state.files.paths
    metadata.threads = len(converter.threads) if state.has_segments else metadata.tasks
    metadata.hosts = sorted({host for host in state.hosts.values() if host})
    if state.mounts:
        metadata.mounts = {metadata.hosts[0] if metadata.hosts else "": state.mounts}
    lost = _lost(state, counters)
    ranks = sorted({*state.lives, *state.hosts, *counters.table.rank.tolist()})
    threads = Counter(rank for rank, _ in converter.threads)
    first = 0
    for rank in ranks:
        count = threads[rank] if state.has_segments else 1
        metadata.processes.append(_process(state, rank, count, first, lost if rank == 0 else 0))
        first += count
    for sentence in _notes(metadata, state, counters, converter, lost):
        metadata.note(sentence)


def _process(state: JobState, rank: int, threads: int, first_thread: int, lost: int) -> Process:
    line, start_ns, end_ns = state.lives[max(first for first in state.lives if first <= rank)]
    command = tuple(line.split(" ")) if line else ()
    return Process(
        rank=rank,
        host=state.hosts.get(rank, ""),
        program=command[0] if command and command[0].startswith("/") else "",
        command=command,
        start_unix_ns=start_ns,
        end_unix_ns=max(end_ns, start_ns),
        threads=threads,
        first_thread=first_thread,
        dropped_events=lost,
        lost_calls=lost,
    )


def _lost(state: JobState, counters: Counters) -> int:
    """Count the reads and writes of traced modules that are counted but have no DXT segment."""
    traced = [call for module in CALLS if module in state.modules for call in CALLS[module]]
    counted = {call: counters.sums[call].count for call in traced if call in counters.sums}
    if not state.has_segments:
        return 0
    return sum(max(count - state.counted[call], 0) for call, count in counted.items())


def _notes(
    metadata: RunMetadata, state: JobState, counters: Counters, converter: Converter, lost: int
) -> list[str]:
    notes = []
    full = [module for module, known in state.modules.items() if known["partial"]]
    if full:
        notes.append(
            f"Darshan's memory for {', '.join(full)} was full, later calls are missing: increase it "
            "(DARSHAN_MODMEM, or MODMEM in its configuration)"
        )
    if lost:
        notes.append(f"{lost:,} reads and writes are counted by Darshan but missing in DXT")
    if state.has_segments:
        notes += _only_counted(state, counters)
    else:
        notes.append(
            "the log holds counters: sums of calls, bytes and time, not single calls, which Darshan traces "
            "with DXT (DXT_ENABLE_IO_TRACE=1)"
        )
        if counters.shared_records:
            notes.append(
                f"{count_text(counters.shared_records, 'file record')} with sums over all ranks: of single "
                "ranks only the fastest and the slowest are known"
            )
    passed = sorted({*unread(state), *(_WITHOUT_IO & set(state.modules))})
    if passed:
        notes.append(f"counters of Darshan's modules {', '.join(passed)} are not shown")
    if state.first_rank and "HEATMAP" in state.modules:
        notes.append("heat maps of several logs are not added up")
    if state.nameless:
        notes.append(f"the log lacks the names of {count_text(len(state.nameless), 'file')}")
    if counters.negative_times:
        timers = count_text(counters.negative_times, "negative Darshan timer")
        notes.append(f"ignored {timers} (clock stepped backwards?)")
    if converter.turned:
        calls = count_text(converter.turned, "call")
        notes.append(
            f"{calls} with an end before the start (clock stepped backwards?): shown with duration 0"
        )
    if state.version == _CORRUPT_VERSION:
        notes.append("Darshan 3.2.0 wrote this log; this release is known for corrupted counters")
    return notes


def _only_counted(state: JobState, counters: Counters) -> list[str]:
    """Describe the calls without a segment in a log with DXT."""
    traced = {_MODULE_OF[module] for module in CALLS if module in state.modules}
    texts = []
    for module, ways in WAYS.items():
        for way in ways:
            found = counters.sums.get(way.call)
            if found is not None and found.count and not (module in traced and way.moved):
                time = seconds_text(found.time_ns * 1e-9)
                texts.append(
                    f"{found.count:,} × {way.call.name.replace(', ', '/')} of {way.call.layer} ({time})"
                )
    if not texts:
        return []
    return ["DXT traces reads and writes of POSIX and MPI-IO; counted only: " + ", ".join(texts)]
