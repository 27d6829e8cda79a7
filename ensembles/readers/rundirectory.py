"""Reads a run directory: what all processes of a job left, in a job file and in spools, as one run."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from functools import cached_property, lru_cache
from threading import Lock

import numpy as np

from ensembles.errors import EnsioError
from ensembles.events import COLUMNS, Events
from ensembles.metadata import Process, RunMetadata
from ensembles.readers import jobfile
from ensembles.readers.alignment import Alignment
from ensembles.readers.clock import Clocks, notes_on_wrong_clocks
from ensembles.readers.decode import (
    BlockReader,
    Decoding,
    ReusedColumns,
    empty_columns,
    sort_by_rank_and_start,
)
from ensembles.readers.dictionary import Dictionary
from ensembles.readers.facts import add_facts
from ensembles.readers.flaws import Flaws
from ensembles.readers.notes import few
from ensembles.readers.ranks import Member, assign_ranks
from ensembles.readers.regions import marked_spools, read_regions
from ensembles.readers.runsummary import RunSummary
from ensembles.readers.spans import even_spans
from ensembles.readers.spool import Spool, read_spool
from ensembles.regiontable import RegionTable
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable

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
        Name of each spool and job file that was read → its size in bytes and time of change in ns.
    has_summary : bool
        The recorder kept summaries.
    """

    def __init__(self, spools: Sequence[Spool], notes: Sequence[str] = ()) -> None:
        clocks = Clocks(spools)
        members = assign_ranks(spools)
        members.sort(key=lambda member: (member.rank, member.first_thread, member.spool.path))
        dictionary = Dictionary()
        alignment = Alignment(spools, clocks)
        started_ns = {spool.path: _aligned_ns(spool, alignment, "first") for spool in spools}
        origin_ns = min(started_ns.values())
        decodings = [
            Decoding(
                path=member.spool.path,
                job_path=member.spool.job_path,
                windows=member.spool.windows,
                coded=member.spool.coded,
                rank=member.rank,
                first_thread=member.first_thread,
                call_numbers=dictionary.call_numbers(member.spool.calls_text),
                file_numbers=dictionary.file_numbers(member.spool.files),
                first_ticks=member.spool.head.first_ticks,
                ns_per_tick=clocks.ns_per_tick(member.spool) * (1 - alignment.correction(member.spool).drift),
                start_ns=started_ns[member.spool.path] - origin_ns,
            )
            for member in members
        ]
        self._marked = marked_spools(members, decodings, dictionary)
        self._decodings = [decoding for decoding in decodings if decoding.windows or decoding.coded]
        self._summary = RunSummary(members, decodings, dictionary.files, origin_ns)
        self.slots = sum(spool.slots for spool in spools)
        self.spools = {
            os.path.basename(spool.job_path or spool.path): identity(spool.status) for spool in spools
        }
        processes = [_process(member, alignment) for member in members]
        self.metadata = _describe(spools, processes, origin_ns)
        # Processes of which all events are in a job file have no summary there: it follows from the events.
        bare = any(spool.coded and not spool.is_summarised for spool in spools)
        kept = any(spool.is_summarised for spool in spools)
        self.has_summary = kept and not (bare and self.metadata.has_all_events)
        self.metadata.calls = tuple(dictionary.calls)
        self.metadata.files = list(dictionary.files)
        self.metadata.clock_error_s = alignment.error_s
        add_facts(self.metadata, [member.spool for member in members])
        self.complete = all(process.ended for process in processes)
        tasks, rank_notes = _count_tasks(spools, members)
        self.metadata.tasks = tasks
        for sentence in (
            *notes,
            *few([sentence for spool in spools for sentence in spool.notes], "spools are damaged"),
            *_notes_on_unknown(spools),
            *rank_notes,
            *_notes_on_launches(spools),
            *_notes_on_job_file(spools),
            *_notes_on_children(spools),
            *_notes_on_folding(spools),
            *few(list(dict.fromkeys(clocks.notes)), "clock rates are doubtful"),
            *alignment.notes,
            *(
                []
                if alignment.error_s
                else few(notes_on_wrong_clocks(spools), "hosts have a wrong time of day")
            ),
            *_notes_on_ends(processes),
            *few(dictionary.notes, "tables of calls are damaged"),
        ):
            self.metadata.note(sentence)

    def chunks(self, max_events: int, names: Sequence[str] | None = None) -> Iterator[Events]:
        """At most `max_events` at a time, in the order of ranks, those of a thread in order of completion;
        with these columns and those that are read anyway (`Events.partly`), or with all."""
        reader = BlockReader(self._decodings)
        yield from self._chunks_of(reader, max_events, names)
        self.note_flaws(reader.flaws)

    def parts(
        self, most_parts: int, max_events: int, names: Sequence[str] | None = None
    ) -> list[Iterator[Events]]:
        """The same in up to `most_parts` parts, about equally long, which threads may read side by side."""
        sizes = [_slots_of(decoding) for decoding in self._decodings]
        part_of = np.cumsum(sizes) * most_parts // (sum(sizes) + 1)
        places = [np.flatnonzero(part_of == part) for part in np.unique(part_of)]
        readers = [BlockReader([self._decodings[i] for i in group]) for group in places]
        waiting, lock = len(readers), Lock()

        def part(reader: BlockReader) -> Iterator[Events]:
            nonlocal waiting
            yield from self._chunks_of(reader, max_events, names)
            with lock:
                waiting -= 1
                if not waiting:
                    for other in readers[1:]:
                        readers[0].flaws.merge(other.flaws)
                    self.note_flaws(readers[0].flaws)

        return [part(reader) for reader in readers]

    def spans_of_ranks(self, most_parts: int) -> list[tuple[int, int]]:
        """Up to so many spans of ranks with about equally many events, which together are all: the first and
        the last rank of each."""
        events: Counter[int] = Counter()
        for decoding in self._decodings:
            events[decoding.rank] += _slots_of(decoding)
        return even_spans(sorted(events), [events[rank] for rank in sorted(events)], most_parts)

    def chunks_of_ranks(
        self, span: tuple[int, int], max_events: int, names: Sequence[str] | None, flaws: Flaws
    ) -> Iterator[Events]:
        """As `chunks`, of the ranks of a span; what is wrong with them is added to `flaws`."""
        low, high = span
        reader = BlockReader([decoding for decoding in self._decodings if low <= decoding.rank <= high])
        yield from self._chunks_of(reader, max_events, names)
        flaws.merge(reader.flaws)

    def _chunks_of(
        self, reader: BlockReader, max_events: int, names: Sequence[str] | None
    ) -> Iterator[Events]:
        reused = ReusedColumns(max_events, names)
        while True:
            columns, count = reused.taken(), 0
            while count < max_events:
                more = reader.read(columns, count, max_events - count)
                if more == 0:
                    break
                count += more
            if count:
                yield self._events(columns, count)
            if count < max_events:
                break

    def some_ranks(self, most_events: int, least_ranks: int) -> Events:
        """All events of some ranks, evenly spaced among all, by rank and start: about `most_events`, of
        `least_ranks` ranks at least."""
        ranks = sorted({decoding.rank for decoding in self._decodings})
        wanted = max(least_ranks, int(len(ranks) * most_events / max(self.slots, 1)))
        places = np.linspace(0, len(ranks) - 1, min(wanted, len(ranks))).astype(int)
        chosen = {ranks[place] for place in places.tolist()}
        reader = BlockReader([decoding for decoding in self._decodings if decoding.rank in chosen])
        parts = [Events.empty(self.metadata.calls, self.metadata.files)]
        while True:
            columns = empty_columns(1 << 16)
            count = reader.read(columns, 0, 1 << 16)
            if not count:
                return Events.concatenate(parts).sorted()
            parts.append(self._events(columns, count))

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
        self.note_flaws(reader.flaws)
        events = self._events(columns, count)
        sort_by_rank_and_start(events.columns)
        return events

    def regions(self) -> RegionTable:
        """The phases and regions that the program named; read when they are asked for."""
        return read_regions(self._marked)

    def summary(self) -> CellSummary | None:
        """What all calls add up to, those included that are not among the events; None: the recorder kept no
        summary.

        Raises
        ------
        EnsioError
            A spool cannot be read any more.
        """
        return self._summaries[0] if self.has_summary else None

    def ranks(self) -> RankTable | None:
        """The same by rank and function, without sizes and ordinals; None: the recorder kept no summary.

        Raises
        ------
        EnsioError
            A spool cannot be read any more.
        """
        return self._summaries[1] if self.has_summary else None

    @cached_property
    def _summaries(self) -> tuple[CellSummary, RankTable]:
        return self._summary.read(self.metadata)

    def _events(self, columns: dict[str, np.ndarray], count: int) -> Events:
        columns = {name: column[:count] for name, column in columns.items()}
        make = Events if len(columns) == len(COLUMNS) else Events.partly
        return make(columns, self.metadata.calls, self.metadata.files)

    def note_flaws(self, flaws: Flaws) -> None:
        """Say in the notes what a pass over all events found."""
        for sentence in flaws.sentences:
            self.metadata.note(sentence)


def _slots_of(decoding: Decoding) -> int:
    """How many events there are at most."""
    return sum(window.slots for window in decoding.windows) + sum(block.events for block in decoding.coded)


def open_spool(path: str) -> SpoolSource:
    """A single spool as a run.

    Raises
    ------
    EnsioError
        The file cannot be read, or is no sound spool.
    """
    return SpoolSource([read_spool(path)])


def open_job_file(path: str) -> SpoolSource:
    """A single job file as a run.

    Raises
    ------
    EnsioError
        The file cannot be read, or is no sound job file.
    """
    return SpoolSource(jobfile.read_job_file(path))


def open_run_directory(path: str) -> SpoolSource:
    """What the processes of a job left in a directory, as a run; its notes name files that cannot be read.

    A spool holds all that its process recorded, and goes before what a job file says of the same process: it
    may have been written to after that.

    Raises
    ------
    EnsioError
        The directory cannot be read, or there is nothing in it that can.
    """
    spools: dict[str, Spool] = {}
    collected: dict[str, Spool] = {}
    failures, paths = [], record_paths(path)
    elsewhere = [record_path for record_path in paths if lies_elsewhere(record_path)]
    for record_path in paths:
        if record_path in elsewhere:
            continue
        try:
            if record_path.endswith(jobfile.SUFFIX):
                collected.update((spool.name, spool) for spool in jobfile.read_job_file(record_path))
            else:
                spools[os.path.basename(record_path)] = read_spool(record_path)
        except EnsioError as error:
            failures.append((record_path, str(error)))
    # A spool that went away while the directory was read is in the job file by now.
    sentences = [
        sentence
        for place, sentence in failures
        if os.path.basename(place) not in collected or os.path.lexists(place)
    ]
    sentences += _notes_on_other_nodes(elsewhere, path)
    for name in collected.keys() & spools.keys():
        spools[name].leave_to(collected[name])
    everything = list((collected | spools).values())
    if not everything:
        if len(sentences) == 1:
            raise EnsioError(sentences[0])
        if sentences:
            raise EnsioError(f"none of the {len(paths)} spools in {path} can be read: {sentences[0]}")
        raise EnsioError(f"{path} is not a run directory: there is no spool in it")
    return SpoolSource(everything, few(sentences, "spools cannot be read"))


def lies_elsewhere(path: str) -> bool:
    """Whether a spool was written into a folder of its node (``ENSIO_SPOOL``) that is not there here."""
    return os.path.islink(path) and not os.path.exists(path)


def _notes_on_other_nodes(links: Sequence[str], directory: str) -> list[str]:
    """Which spools lie on other nodes, one sentence a folder."""
    places = Counter(
        (os.path.basename(link).rsplit("-", 2)[0], os.path.dirname(os.readlink(link))) for link in links
    )
    return [
        f"the spools of {count} process{'es' * (count > 1)} on host {host} lie in {folder} on that host "
        f"and cannot be reached from here, their calls are missing: copy them from there to {directory}"
        for (host, folder), count in places.items()
    ]


def identity(status: os.stat_result) -> tuple[int, int]:
    """What tells whether a spool has changed: its size in bytes and time of change in ns."""
    return status.st_size, status.st_mtime_ns


def record_paths(directory: str) -> list[str]:
    """The spools and then the job files in a directory, each by their names, sorted.

    Raises
    ------
    EnsioError
        The directory cannot be read.
    """
    try:
        with os.scandir(directory) as entries:
            names = sorted(entry.name for entry in entries if entry.name.endswith((SUFFIX, jobfile.SUFFIX)))
    except OSError as error:
        raise EnsioError(f"{directory} cannot be read: {error.strerror}") from error
    names.sort(key=lambda name: name.endswith(jobfile.SUFFIX))
    return [os.path.join(directory, name) for name in names]


@lru_cache(maxsize=4096)
def _text(value: bytes) -> str:
    """The same few texts come from every process."""
    return os.fsdecode(value)


def _aligned_ns(spool: Spool, alignment: Alignment, which: str) -> int:
    """The first or the last reading of a process's clock, by the clock of rank 0's node."""
    time_ns: int = getattr(spool.head, f"{which}_realtime_ns")
    return time_ns - alignment.correction(spool).ahead_ns(time_ns)


def _process(member: Member, alignment: Alignment) -> Process:
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
        start_unix_ns=_aligned_ns(spool, alignment, "first"),
        end_unix_ns=_aligned_ns(spool, alignment, "last"),
        ended=member.replaced or spool.ended,
        threads=member.threads,
        first_thread=member.first_thread,
        dropped_events=head.dropped_events
        + (spool.pending if spool.properties.get(b"mode") == b"trace" else 0),
        lost_calls=head.lost_calls if spool.is_summarised else head.dropped_events,
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
    return tasks, few(notes, "processes without a rank made calls")


def _notes_on_unknown(spools: Sequence[Spool]) -> list[str]:
    unknown = sum(spool.unknown for spool in spools)
    if not unknown:
        return []
    return [
        f"{unknown:,} records are of kinds that this ensio does not know, and were passed over: "
        "use the ensio that recorded them"
    ]


def _notes_on_launches(spools: Sequence[Spool]) -> list[str]:
    launches = {spool.properties.get(b"launch", b"") for spool in spools if spool.head.rank >= 0}
    if len(launches) < 2:
        return []
    return [
        f"{len(launches)} launches recorded into this directory, and are shown as one run: give each an "
        "ENSIO_DIR of its own to tell them apart"
    ]


def _notes_on_job_file(spools: Sequence[Spool]) -> list[str]:
    reasons = {spool.properties[b"no_job_file"] for spool in spools if b"no_job_file" in spool.properties}
    return [
        f"the ranks could not put their calls into one file ({os.fsdecode(reason)}): all that they recorded "
        "is in their spools"
        for reason in sorted(reasons)
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
    return notes + _notes_on_losses(processes)


def _notes_on_losses(processes: Sequence[Process]) -> list[str]:
    notes = []
    dropped = sum(process.dropped_events for process in processes)
    lost = sum(process.lost_calls for process in processes)
    if dropped > lost:
        notes.append(
            f"{dropped - lost} calls of {_processes(process.dropped_events for process in processes)} were "
            "dropped from the events for want of space or of budget (ENSIO_MAX_BYTES): tables, sums and "
            "histograms count them, pictures and lists of single calls lack them"
        )
    if lost:
        notes.append(
            f"{lost} calls of {_processes(process.lost_calls for process in processes)} were not recorded "
            "for want of space (or of a file descriptor): counts, times and bytes are too low by them"
        )
    return notes


def _processes(losses: Iterable[int]) -> str:
    count = sum(loss > 0 for loss in losses)
    return f"{count} process{'es' if count > 1 else ''}"


def _notes_on_folding(spools: Sequence[Spool]) -> list[str]:
    """A summary that may be off by one call."""
    count = sum(spool.head.folding and not spool.ended for spool in spools)
    if count == 0:
        return []
    return [
        f"{count} process{'es were' if count > 1 else ' was'} killed while a call was being added to the "
        "summary: of this one call, a part may be missing there or counted twice"
    ]
