"""Reads a run directory: the spools of all processes of a job, as one run."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from functools import lru_cache

import numpy as np

from ensembles.errors import EnsioError
from ensembles.events import Events
from ensembles.metadata import Process, RunMetadata
from ensembles.readers.clock import Clocks, notes_on_wrong_clocks
from ensembles.readers.decode import BlockReader, Decoding, empty_columns, sort_by_rank_and_start
from ensembles.readers.dictionary import Dictionary
from ensembles.readers.layout import CONSTANTS
from ensembles.readers.ranks import Member, assign_ranks
from ensembles.readers.spool import Spool, read_spool

SUFFIX = ".spool"


class SpoolSource:
    """The spools of a run.

    Parameters
    ----------
    spools : sequence of Spool
        At least one.
    notes : sequence of str
        What is already known to be missing.

    Attributes
    ----------
    metadata : RunMetadata
    complete : bool
        Every process has ended: its spool will not change any more.
    slots : int
        Places for events: at least as many as there are events.
    spools : dict of str to (int, int)
        Name of each spool → its size in bytes and time of change in ns.
    """

    def __init__(self, spools: Sequence[Spool], notes: Sequence[str] = ()) -> None:
        clocks = Clocks(spools)
        members = assign_ranks(spools)
        members.sort(key=lambda member: (member.rank, member.first_thread, member.spool.path))
        dictionary = Dictionary()
        origin_ns = min(spool.head.first_realtime_ns for spool in spools)
        self._decodings = [
            Decoding(
                path=member.spool.path,
                windows=member.spool.windows,
                rank=member.rank,
                first_thread=member.first_thread,
                call_numbers=dictionary.call_numbers(member.spool.calls_text),
                file_numbers=dictionary.file_numbers(member.spool.files),
                first_ticks=member.spool.head.first_ticks,
                ns_per_tick=clocks.ns_per_tick(member.spool),
                start_ns=member.spool.head.first_realtime_ns - origin_ns,
            )
            for member in members
            if member.spool.windows
        ]
        self.slots = sum(window.slots for spool in spools for window in spool.windows)
        self.spools = {spool.name: identity(spool.status) for spool in spools}
        processes = [_process(member) for member in members]
        self.metadata = _describe(spools, processes, origin_ns)
        self.metadata.calls = tuple(dictionary.calls)
        self.metadata.files = list(dictionary.files)
        self.complete = all(process.ended for process in processes)
        tasks, rank_notes = _count_tasks(spools, members)
        self.metadata.tasks = tasks
        for sentence in (
            *notes,
            *_few([sentence for spool in spools for sentence in spool.notes], "spools are damaged"),
            *rank_notes,
            *_notes_on_launches(spools),
            *_notes_on_children(spools),
            *_few(clocks.notes, "clock rates are doubtful"),
            *_few(notes_on_wrong_clocks(spools), "hosts have a wrong time of day"),
            *_notes_on_ends(processes),
            *_few(dictionary.notes, "tables of calls are damaged"),
        ):
            self.metadata.note(sentence)

    def chunks(self, max_events: int) -> Iterator[Events]:
        """At most `max_events` at a time, in the order of ranks, those of a thread in order of completion."""
        reader = BlockReader(self._decodings)
        while True:
            columns, count = empty_columns(max_events), 0
            while count < max_events:
                more = reader.read(columns, count, max_events - count)
                if more == 0:
                    break
                count += more
            if count:
                yield self._events(columns, count)
            if count < max_events:
                break
        self._note_flaws(reader)

    def events(self) -> Events:
        """All events, by rank and start."""
        reader = BlockReader(self._decodings)
        try:
            columns = empty_columns(self.slots)
        except MemoryError as error:
            raise EnsioError(
                f"{self.slots:,} events do not fit into memory: use Run.chunks() instead of Run.events"
            ) from error
        count = 0
        while count < self.slots:
            more = reader.read(columns, count, self.slots - count)
            if more == 0:
                break
            count += more
        self._note_flaws(reader)
        events = self._events(columns, count)
        sort_by_rank_and_start(events.columns)
        return events

    def _events(self, columns: dict[str, np.ndarray], count: int) -> Events:
        columns = {name: column[:count] for name, column in columns.items()}
        return Events(columns, self.metadata.calls, self.metadata.files)

    def _note_flaws(self, reader: BlockReader) -> None:
        notes = []
        for path, count in reader.damaged.items():
            events = "1 event is" if count == 1 else f"{count} events are"
            notes.append(
                f"{os.path.basename(path)} is damaged: {events} left out for impossible times or sizes"
            )
        for sentence in _few(notes, "spools have events with impossible times or sizes"):
            self.metadata.note(sentence)
        if reader.unknown_calls:
            self.metadata.note(f"{reader.unknown_calls} calls are of functions that no table of calls names")
        if reader.unknown_files:
            self.metadata.note(f"{reader.unknown_files} calls are on files that no spool names")


def open_spool(path: str) -> SpoolSource:
    """A single spool as a run.

    Raises
    ------
    EnsioError
        The file cannot be read, or is no sound spool.
    """
    return SpoolSource([read_spool(path)])


def open_run_directory(path: str) -> SpoolSource:
    """All spools of a directory as a run. Those that cannot be read are named in its notes.

    Raises
    ------
    EnsioError
        The directory cannot be read, or there is no spool in it that can.
    """
    spools, notes = [], []
    paths = spool_paths(path)
    for spool_path in paths:
        try:
            spools.append(read_spool(spool_path))
        except EnsioError as error:
            notes.append(str(error))
    if not spools:
        if len(notes) == 1:
            raise EnsioError(notes[0])
        if notes:
            raise EnsioError(f"none of the {len(paths)} spools in {path} can be read: {notes[0]}")
        raise EnsioError(f"{path} is not a run directory: there is no spool in it")
    return SpoolSource(spools, _few(notes, "spools cannot be read"))


def identity(status: os.stat_result) -> tuple[int, int]:
    """What tells whether a spool has changed: its size in bytes and time of change in ns."""
    return status.st_size, status.st_mtime_ns


def spool_paths(directory: str) -> list[str]:
    """The spools in a directory, by their names, sorted.

    Raises
    ------
    EnsioError
        The directory cannot be read.
    """
    try:
        with os.scandir(directory) as entries:
            return sorted(entry.path for entry in entries if entry.name.endswith(SUFFIX))
    except OSError as error:
        raise EnsioError(f"{directory} cannot be read: {error.strerror}") from error


@lru_cache(maxsize=4096)
def _text(value: bytes) -> str:
    """The same few texts come from every process."""
    return os.fsdecode(value)


def _process(member: Member) -> Process:
    spool, head = member.spool, member.spool.head
    command = spool.properties.get(b"command", b"")
    return Process(
        rank=member.rank,
        host=_text(spool.properties.get(b"host", b"")),
        pid=head.pid,
        parent_pid=head.parent_pid,
        program=_text(spool.properties.get(b"program", b"")),
        command=tuple(_text(command).split("\x1f")) if command else (),
        cwd=_text(spool.properties.get(b"cwd", b"")),
        user=_text(spool.properties.get(b"user", b"")),
        start_unix_ns=head.first_realtime_ns,
        end_unix_ns=head.last_realtime_ns,
        ended=member.replaced or head.state == CONSTANTS["ENSIO_STATE_ENDED"],
        threads=member.threads,
        first_thread=member.first_thread,
        dropped_events=head.dropped_events,
        excluded_calls=head.excluded_calls,
        source=spool.name,
    )


def _describe(spools: Sequence[Spool], processes: list[Process], origin_ns: int) -> RunMetadata:
    def first(key: str) -> str:
        values = (spool.properties.get(key.encode(), b"") for spool in spools)
        return os.fsdecode(next((value for value in values if value), b""))

    return RunMetadata(
        tasks=0,
        threads=sum(process.threads for process in processes),
        origin_unix_ns=origin_ns,
        calls=(),
        files=[],
        processes=processes,
        notes=[],
        mode=first("mode"),
        job=first("job"),
        launcher=first("launcher"),
        recorder=first("recorder"),
        exclude=first("exclude"),
        hosts=sorted({process.host for process in processes if process.host}),
    )


def _count_tasks(spools: Sequence[Spool], members: Sequence[Member]) -> tuple[int, list[str]]:
    """The number of tasks, and what is to be said about ranks."""
    notes = list(dict.fromkeys(member.note for member in members if member.note))
    ranks = {member.rank for member in members if member.rank >= 0}
    expected = max(spool.head.tasks for spool in spools)
    tasks = max(expected, len(ranks), max(ranks, default=-1) + 1, 1)
    if ranks and len(ranks) < tasks:
        missing = tasks - len(ranks)
        notes.append(f"{missing} of {tasks} ranks left no spool: their calls are missing, or they made none")
    return tasks, _few(notes, "processes without a rank made calls")


def _notes_on_launches(spools: Sequence[Spool]) -> list[str]:
    launches = {spool.properties.get(b"launch", b"") for spool in spools if spool.head.rank >= 0}
    if len(launches) < 2:
        return []
    return [
        f"{len(launches)} launches recorded into this directory, and are shown as one run: give each an "
        "ENSIO_DIR of its own to tell them apart"
    ]


def _notes_on_children(spools: Sequence[Spool]) -> list[str]:
    count = sum(spool.head.unrecorded_children for spool in spools)
    if count == 0:
        return []
    return [
        f"{count} forked process{'es' if count > 1 else ''} could not be recorded (no space, or the run "
        "directory was gone): their calls are missing"
    ]


def _notes_on_ends(processes: Sequence[Process]) -> list[str]:
    notes = []
    running = [process for process in processes if not process.ended]
    if 0 < len(running) <= 3:
        for process in running:
            rank = f" (rank {process.rank})" if process.rank >= 0 else ""
            host = process.host or "an unknown host"
            notes.append(
                f"process {process.pid}{rank} on {host} did not end its recording (still running, or "
                "killed); every call that it had completed is here"
            )
    elif running:
        notes.append(
            f"{len(running)} of {len(processes)} processes did not end their recording "
            "(still running, or killed); every call that they had completed is here"
        )
    dropped = sum(process.dropped_events for process in processes)
    if dropped:
        count = sum(process.dropped_events > 0 for process in processes)
        notes.append(
            f"{dropped} calls of {count} process{'es' if count > 1 else ''} were not recorded for want of "
            "space (or of a file descriptor): counts, times and bytes are too low by them"
        )
    return notes


def _few(sentences: Sequence[str], what: str) -> list[str]:
    """The first sentences, and how many more there are."""
    if len(sentences) <= 3:
        return list(sentences)
    return [*sentences[:2], f"{len(sentences) - 2} more {what}"]
