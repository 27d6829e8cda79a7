"""Events and metadata of a run in spools and job files.

The notes of a run are its data-quality warnings.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

import numpy as np

from ensembles.model.c_layout import CONSTANTS, SURROUNDINGS
from ensembles.model.events import Events
from ensembles.model.filters import within_ranges
from ensembles.model.flights import flights_by_operation
from ensembles.model.metadata import Process, RunMetadata
from ensembles.model.regions import RegionTable
from ensembles.model.run_info import WHY_DROPPED
from ensembles.model.sites import SiteTable
from ensembles.model.spans import find_spans, some_spans_text
from ensembles.model.surroundings import COLUMNS as SAMPLED
from ensembles.model.surroundings import COUNTERS, OF_NODE, UNKNOWN, SurroundingsTable
from ensembles.model.units import MOST_NAMED, count_text, few
from ensembles.passes.damage import DamageReport
from ensembles.passes.reading import Ranges, RankSizes, ReadRequest
from ensembles.readers.common.call_dictionary import Dictionary
from ensembles.readers.common.columns import ReusedColumns
from ensembles.readers.native.block_reader import BlockReader
from ensembles.readers.native.clock import Clocks, notes_on_wrong_clocks
from ensembles.readers.native.clock_alignment import Alignment
from ensembles.readers.native.directory import identity
from ensembles.readers.native.flights import NO_FLIGHTS, FlightRows, flights_of_sums
from ensembles.readers.native.process_metadata import (
    Member,
    add_facts,
    aligned_ns,
    assign_ranks,
    count_tasks,
    describe_processes,
    described,
    identity_of,
    waited_for,
)
from ensembles.readers.native.region_events import marked_spools, read_regions
from ensembles.readers.native.run_summary import RunSummary
from ensembles.readers.native.spool import Spool, SummaryPart
from ensembles.readers.native.spool_bytes import Contents
from ensembles.readers.native.window_decoder import Decoding
from ensembles.recorder.site_places import resolve_sites
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable

_Table = TypeVar("_Table", RegionTable, SurroundingsTable)


class SpoolSource:
    """The events and metadata of the processes of a run; an `EventSource`.

    `complete`: whether every process has ended, so that the spools are final.
    `slots`: upper bound on the number of events.
    `spools`: by name of each spool and job file that was read: size in bytes and modification time in ns.
    `has_summary`: whether the recorder kept summaries.
    """

    kept = None

    def __init__(
        self, spools: Sequence[Spool], notes: Sequence[str] = (), launchers: Sequence[Spool] = ()
    ) -> None:
        clocks = Clocks(spools)
        members = assign_ranks(spools)
        members.sort(key=lambda member: (member.rank, member.first_thread))  # of equal ones, by start
        dictionary = Dictionary()
        alignment = Alignment(spools, clocks)
        started_ns = {spool.path: aligned_ns(spool, alignment, "first") for spool in spools}
        origin_ns = min(started_ns.values())
        files_of, sites_of = _Numbers(dictionary.file_numbers), _Numbers(dictionary.site_numbers)
        decodings = [
            Decoding(
                path=member.spool.path,
                job_path=member.spool.job_path or member.spool.coded_path,
                windows=member.spool.windows,
                coded=member.spool.coded,
                rank=member.rank,
                first_thread=member.first_thread,
                call_numbers=dictionary.call_numbers(member.spool.calls_text),
                file_numbers=files_of(member.spool.files),
                site_numbers=sites_of(member.spool.sites),
                first_ticks=member.spool.head.first_ticks,
                ns_per_tick=clocks.ns_per_tick(member.spool) * (1 - alignment.correction(member.spool).drift),
                start_ns=started_ns[member.spool.path] - origin_ns,
                flights=(
                    FlightRows(member.spool.contents, member.spool.flights)
                    if member.spool.flights
                    else NO_FLIGHTS
                ),
                wide_files=member.spool.has_wide_files,
                uncoded=not member.spool.is_collected,
                life_ticks=clocks.life_ticks(member.spool),
            )
            for member in members
        ]
        self._marked = marked_spools(members, decodings, dictionary)
        self._sampled = sampled_spools(members, decodings)
        self._decodings = [decoding for decoding in decodings if decoding.windows or decoding.coded]
        self._summary = RunSummary(members, decodings, dictionary.files, origin_ns)
        self.capacity = sum(spool.slots for spool in spools)
        self.spool_identities = {
            os.path.basename(spool.job_path or spool.path): identity(spool.status) for spool in spools
        }
        processes = describe_processes(members, alignment)
        self.metadata = described(spools, processes, origin_ns, launchers)
        # If all events of a process are in a job file, its summary is not: it is computed from the events.
        self.has_summary = any(spool.is_summarised for spool in spools)
        # Spools have no sums: their times are looked at where that needs no pass over the events.
        self.is_checked = not self.has_summary or all(spool.job_path for spool in spools)
        self.metadata.calls = tuple(dictionary.calls)
        self.metadata.files = list(dictionary.files)
        self.metadata.sites = SiteTable(list(dictionary.sites), resolve_sites)
        self.metadata.clock_error_s = alignment.error_s
        self.metadata.flights = flights_by_operation(
            flights_of_sums(spool.flight_sums, clocks.ns_per_tick(spool)) for spool in spools
        )
        self.metadata.clock_step_s = clocks.step_s()
        add_facts(self.metadata, members)
        self.is_complete = all(process.ended for process in processes)
        if notes or any(spool.notes for spool in spools):
            self.metadata.note_damage(notes, [-1])
        tasks, rank_notes = count_tasks(spools, members)
        self.metadata.tasks = tasks
        for sentence in (
            *notes_on_spools(spools, rank_notes),
            *notes_on_clocks(spools, clocks, alignment),
            *notes_on_ends(processes, self.metadata.left_out),
            *notes_on_losses(self.metadata),
            *few(dictionary.notes, "tables of calls are damaged"),
        ):
            self.metadata.note(sentence)

    row_unit = None
    is_quick_to_open = True

    @property
    def decodings(self) -> Sequence[Decoding]:
        """Locations of the events of each process, for a reader that follows the run."""
        return self._decodings

    def rank_sizes(self) -> RankSizes:
        """Return the ranks with events, and upper bounds of their numbers of events."""
        events: Counter[int] = Counter()
        for decoding in self._decodings:
            events[decoding.rank] += sum(window.slots for window in decoding.windows)
            events[decoding.rank] += sum(block.events for block in decoding.coded)
        ranks = sorted(events)
        return RankSizes(np.array(ranks, np.int64), np.array([events[rank] for rank in ranks], np.int64))

    def chunks(self, request: ReadRequest, damage: DamageReport) -> Iterator[Events]:
        """Yield the requested events in chunks, ordered by rank, and by completion within each thread."""
        reader = BlockReader(self._decodings_of(request.ranks))
        reused = ReusedColumns(request.max_events, request.columns)
        while True:
            columns, count = reused.taken(), 0
            while count < request.max_events:
                more = reader.read(columns, count, request.max_events - count)
                if more == 0:
                    break
                count += more
            if count:
                yield self._events(columns, count)
            if count < request.max_events:
                break
        damage.merge(reader.flaws)

    def _decodings_of(self, ranks: Ranges | None) -> list[Decoding]:
        if ranks is None:
            return self._decodings
        wanted = within_ranges(np.array([decoding.rank for decoding in self._decodings], np.int64), ranks)
        return [self._decodings[place] for place in np.flatnonzero(wanted).tolist()]

    def regions(self) -> RegionTable:
        """Read the phases and regions that the program named."""
        return self._with_damage(read_regions, self._marked)

    def surroundings(self) -> SurroundingsTable:
        """Read the samples of the kernel's counters."""
        return self._with_damage(read_surroundings, self._sampled)

    def _with_damage(self, read: Callable[[Any, DamageReport], _Table], spools: Any) -> _Table:
        damage = DamageReport()
        table = read(spools, damage)
        for sentence in damage.sentences:
            self.metadata.note(sentence)
        return table

    def summary(self) -> CellSummary | None:
        """Read the summary of all calls, including those without an event."""
        return self._summaries[0] if self.has_summary else None

    def ranks(self) -> RankTable | None:
        """Read the summary of all calls by rank and function, without sizes and ordinals."""
        return self._summaries[1] if self.has_summary else None

    @cached_property
    def _summaries(self) -> tuple[CellSummary, RankTable]:
        return self._summary.read(self.metadata)

    def _events(self, columns: dict[str, np.ndarray], count: int) -> Events:
        columns = {name: column[:count] for name, column in columns.items()}
        return Events.partly(columns, self.metadata.calls, self.metadata.files, self.metadata.sites)


class _Numbers:
    """Numbers of files or call sites, made once for the spools that share their texts."""

    def __init__(self, make: Callable[[Sequence[tuple[int, bytes]]], np.ndarray]) -> None:
        self._make = make
        self._known: dict[int, np.ndarray] = {}

    def __call__(self, texts: Sequence[tuple[int, bytes]]) -> np.ndarray:
        found = self._known.get(id(texts))
        if found is None:
            found = self._known[id(texts)] = self._make(texts)
        return found


_GROUPS = {
    "PROCESS": ("read_by_calls", "cancelled_write_bytes"),
    "MEMORY": ("available_bytes", "writeback_bytes"),
    "PRESSURE": ("some_us", "full_us"),
    "CGROUP": ("cgroup_read_bytes", "cgroup_writes"),
    "CGROUP_PRESSURE": ("cgroup_some_us", "cgroup_full_us"),
    "NFS": ("nfs_read_bytes", "nfs_retransmissions"),
    "LUSTRE_DIRTY": ("lustre_dirty_bytes", "lustre_dirty_bytes"),
    "LUSTRE_AHEAD": ("lustre_ahead_hits", "lustre_ahead_misses"),
    "LUSTRE_RPCS": ("lustre_read_rpcs", "lustre_write_pages"),
}
_NAMES = list(COUNTERS)
_BIT_OF = {
    name: CONSTANTS[f"ENSIO_READ_{group}"]
    for group, (first, last) in _GROUPS.items()
    for name in _NAMES[_NAMES.index(first) : _NAMES.index(last) + 1]
}


_OF_PROCESS = [name for name in COUNTERS if name not in OF_NODE]
_Process = tuple[bytes, int]
_Columns = dict[str, np.ndarray]


@dataclass(frozen=True, slots=True)
class SampledSpool:
    """A spool with samples."""

    decoding: Decoding
    contents: Contents
    parts: Sequence[SummaryPart]  # Locations of the rows in the contents
    process: _Process
    children: set[_Process]  # For which the process waited


def sampled_spools(members: Sequence[Member], decodings: Sequence[Decoding]) -> list[SampledSpool]:
    """Select the spools with samples."""
    if not any(member.spool.surroundings for member in members):
        return []
    decoding_of = {decoding.path: decoding for decoding in decodings}
    children: dict[_Process, set[_Process]] = {}
    for child, owner in waited_for([member.spool for member in members]):
        children.setdefault(identity_of(owner), set()).add(identity_of(child))
    return [
        SampledSpool(
            decoding_of[spool.path],
            spool.contents,
            spool.surroundings,
            identity_of(spool),
            children.get(identity_of(spool), set()) - {identity_of(spool)},
        )
        for spool in (member.spool for member in members)
        if spool.surroundings and spool.path in decoding_of
    ]


def read_surroundings(spools: Sequence[SampledSpool], damage: DamageReport) -> SurroundingsTable:
    """Read all samples of some spools, and report those that are left out."""
    parts: dict[_Process, list[_Columns]] = {}
    for spool in spools:
        parts.setdefault(spool.process, []).append(_columns(spool, damage))
    if not parts:
        return SurroundingsTable.empty()
    processes = {process: _joined(each) for process, each in parts.items()}
    _take_off_children(processes, {spool.process: spool.children for spool in spools})
    tasks: dict[int, list[_Columns]] = {}
    for spool in spools:
        if (columns := processes.pop(spool.process, None)) is not None:
            tasks.setdefault(spool.decoding.rank, []).append(columns)
    return SurroundingsTable(_joined([_added_up(each) for each in tasks.values()]))


def _joined(parts: Sequence[_Columns]) -> _Columns:
    return {name: np.concatenate([part[name] for part in parts]) for name in SAMPLED}


def _take_off_children(processes: dict[_Process, _Columns], children: dict[_Process, set[_Process]]) -> None:
    """Take off what the kernel added to a process that waited for children: their last counters."""
    seen = {process: np.flatnonzero(each[_OF_PROCESS[0]] != UNKNOWN) for process, each in processes.items()}
    last = {
        process: {name: each[name][seen[process][-1]] for name in ("time", *_OF_PROCESS)}
        for process, each in processes.items()
        if len(seen[process])
    }
    for process, each in processes.items():
        waited, rows = children[process] & last.keys(), seen[process]
        for name in _OF_PROCESS if waited else ():
            own = each[name][rows]
            for child in waited:
                own -= last[child][name] * (each["time"][rows] >= last[child]["time"])
            each[name][rows] = np.maximum.accumulate(np.maximum(own, 0))


def _added_up(processes: Sequence[_Columns]) -> _Columns:
    """Make the counters of a task of those of its processes."""
    columns = _joined(processes)
    seen = np.flatnonzero(columns[_OF_PROCESS[0]] != UNKNOWN)
    of = np.repeat(np.arange(len(processes)), [len(each["time"]) for each in processes])[seen]
    order = np.argsort(columns["time"][seen], kind="stable")
    for name in _OF_PROCESS if of.any() else ():
        values = columns[name][seen]
        rises = np.where(np.diff(of, prepend=-1) != 0, 0, np.diff(values, prepend=0))
        columns[name][seen[order]] = values[order[0]] + np.cumsum(rises[order])
    return columns


def _columns(spool: SampledSpool, damage: DamageReport) -> _Columns:
    """Decode the complete rows of a process with possible times; its bytes are untrusted."""
    decoding = spool.decoding
    with spool.contents.opened() as contents:
        rows, lost = contents.rows(SURROUNDINGS, "read", spool.parts)
    since, sound = decoding.since(rows["ticks"])
    damage.leave_out(decoding.path, lost + int(np.count_nonzero(~sound)), "counter sample")
    rows, since = rows[sound], since[sound]
    counters = {
        name: np.where((rows["read"] & bit) != 0, np.maximum(rows[name].astype("i8"), UNKNOWN), UNKNOWN)
        for name, bit in _BIT_OF.items()
    }
    return {
        "rank": np.full(len(rows), decoding.rank, "u4"),
        "time": decoding.times_ns(since),
        "cost": rows["cost_ns"].astype("i8"),
        **counters,
    }


def notes_on_spools(spools: Sequence[Spool], about_ranks: Sequence[str]) -> list[str]:
    """Describe damage, unknown records and missing processes."""
    return [
        *few([sentence for spool in spools for sentence in spool.notes], "spools are damaged"),
        *_notes_on_unknown(spools),
        *about_ranks,
        *_notes_on_mpi_ends(spools),
        *_notes_on_job_file(spools),
        *_notes_on_children(spools),
        *_notes_on_folding(spools),
    ]


def notes_on_clocks(spools: Sequence[Spool], clocks: Clocks, alignment: Alignment) -> list[str]:
    """Describe doubtful clock rates, unaligned clocks and wrong times of day."""
    wrong = [] if alignment.error_s else few(notes_on_wrong_clocks(spools), "hosts have a wrong time of day")
    doubtful = few(list(dict.fromkeys(clocks.notes)), "clock rates are doubtful")
    return [*doubtful, *alignment.notes, *wrong]


def notes_on_ends(processes: Sequence[Process], left_out: int = 0) -> list[str]:
    """Describe the processes that did not end their recording, in one sentence."""
    running = [process for process in processes if not process.ended]
    if not running:
        return []
    count = len(running)
    who = f"{count} of {len(processes):,} processes"
    names = []
    for process in running[:MOST_NAMED]:
        rank = f" (rank {process.rank})" if process.rank >= 0 else ""
        names.append(f"{process.pid}{rank} on {process.host or 'an unknown host'}")
    if len(processes) == 1:
        who, names = f"process {names[0]}", []
    its = "its" if count == 1 else "their"
    why = "still running, killed, or left by a raw system call, as programs in Go do"
    if _are_workers_of_python(running, processes):
        why = "killed, as Python's multiprocessing.Pool ends its workers"
    named = f": {' and '.join(names)}" if names and count <= MOST_NAMED else ""
    is_whole = not left_out and not any(process.lost_calls for process in processes)
    whole = "; this loses no call that was complete" if is_whole else ""
    return [f"{who} did not end {its} recording ({why}){named}{whole}"]


def _are_workers_of_python(running: Sequence[Process], processes: Sequence[Process]) -> bool:
    """Whether processes are copies of Python processes that ended in order."""
    ended = {
        (process.host, process.pid): (process.program, process.command)
        for process in processes
        if process.ended and os.path.basename(process.program).startswith("python")
    }
    return all(
        ended.get((process.host, process.parent_pid)) == (process.program, process.command)
        for process in running
    )


def notes_on_losses(metadata: RunMetadata) -> list[str]:
    """Describe the calls without an event, without any record, or without their path, and the reasons."""
    notes, processes = [], metadata.processes
    why = "; ".join(
        WHY_DROPPED[reason] + (f" ({count:,})" if len(metadata.dropped_by_reason) > 1 else "")
        for reason, count in metadata.dropped_by_reason.items()
    )
    dropped = sum(process.dropped_events for process in processes)
    lost = sum(process.lost_calls for process in processes)
    if dropped > lost:
        notes.append(
            f"{dropped - lost} calls of {_processes(process.dropped_events for process in processes)} were "
            f"dropped from the events ({why}): tables, sums and histograms include them, pictures and lists "
            "of single calls do not"
        )
    if lost:
        notes.append(
            f"{lost} calls of {_processes(process.lost_calls for process in processes)} were not recorded "
            f"({why}): counts, times and bytes do not include them"
        )
    if metadata.calls_on_other_paths:
        notes.append(
            f"{metadata.calls_on_other_paths:,} calls name files beyond the number of paths that a process "
            "keeps: they are counted under the nearest folder that it keeps, or under (other paths)"
        )
    return notes


def _processes(losses: Iterable[int]) -> str:
    count = sum(loss > 0 for loss in losses)
    return f"{count} process{'es' if count > 1 else ''}"


def _notes_on_unknown(spools: Sequence[Spool]) -> list[str]:
    unknown = sum(spool.unknown for spool in spools)
    if not unknown:
        return []
    return [
        f"skipped {count_text(unknown, 'record')} of kinds that this ensio does not know: use the ensio that "
        "recorded them"
    ]


def _notes_on_mpi_ends(spools: Sequence[Spool]) -> list[str]:
    """Describe ranks that ended in order, but not by MPI: nothing else tells them from a complete run."""
    begun = [spool for spool in spools if b"mpi_end" in spool.properties]
    without = [spool for spool in begun if spool.ended and spool.properties[b"mpi_end"] == b"missing"]
    if not without:
        return []
    ranks = some_spans_text(find_spans([spool.head.rank for spool in without]))
    return [
        f"{len(without)} of the {count_text(len(begun), 'rank')} that called MPI_Init (ranks: {ranks}) "
        "ended without MPI_Finalize: the run may have been stopped early"
    ]


def _notes_on_job_file(spools: Sequence[Spool]) -> list[str]:
    reasons = {spool.properties[b"no_job_file"] for spool in spools if b"no_job_file" in spool.properties}
    return [
        f"the ranks could not write one job file ({os.fsdecode(reason)}): all that they recorded is in their "
        "spools"
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


def _notes_on_folding(spools: Sequence[Spool]) -> list[str]:
    # The summary may be wrong by one call.
    count = sum(spool.head.folding and not spool.ended for spool in spools)
    if count == 0:
        return []
    return [
        f"{count} process{'es were' if count > 1 else ' was'} killed while a call was being added to the "
        "summary: of this one call, a part may be missing there or counted twice"
    ]
