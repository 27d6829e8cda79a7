"""Events and metadata of a run in spools and job files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterator, Sequence
from functools import cached_property
from threading import Lock

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, Events
from ensembles.model.regions import RegionTable
from ensembles.model.units import few
from ensembles.passes.damage import DamageReport
from ensembles.readers.common.call_dictionary import Dictionary
from ensembles.readers.common.column_buffers import ReusedColumns, empty_columns
from ensembles.readers.native.block_reader import (
    BlockReader,
    sort_by_rank_and_start,
)
from ensembles.readers.native.caveats import notes_on_clocks, notes_on_ends, notes_on_losses, notes_on_spools
from ensembles.readers.native.clock import Clocks
from ensembles.readers.native.clock_alignment import Alignment
from ensembles.readers.native.directory import identity
from ensembles.readers.native.process_metadata import (
    add_facts,
    aligned_ns,
    count_tasks,
    describe_process,
    described,
)
from ensembles.readers.native.rank_assignment import assign_ranks
from ensembles.readers.native.region_events import marked_spools, read_regions
from ensembles.readers.native.run_summary import RunSummary
from ensembles.readers.native.spool import Spool
from ensembles.readers.native.window_decoder import Decoding
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable


class SpoolSource:
    """The events and metadata of the processes of a run; an `EventSource`.

    Parameters
    ----------
    spools : sequence of Spool
        At least one.
    notes : sequence of str
        Sentences about data that are known to be missing.

    Attributes
    ----------
    metadata : RunMetadata
    complete : bool
        Whether every process has ended, so that the spools are final.
    slots : int
        Upper bound on the number of events.
    spools : dict of str to (int, int)
        By name of each spool and job file that was read: size in bytes and modification time in ns.
    has_summary : bool
        Whether the recorder kept summaries.
    """

    def __init__(self, spools: Sequence[Spool], notes: Sequence[str] = ()) -> None:
        clocks = Clocks(spools)
        members = assign_ranks(spools)
        members.sort(key=lambda member: (member.rank, member.first_thread, member.spool.path))
        dictionary = Dictionary()
        alignment = Alignment(spools, clocks)
        started_ns = {spool.path: aligned_ns(spool, alignment, "first") for spool in spools}
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
        self.capacity = sum(spool.slots for spool in spools)
        self.spool_identities = {
            os.path.basename(spool.job_path or spool.path): identity(spool.status) for spool in spools
        }
        processes = [describe_process(member, alignment) for member in members]
        self.metadata = described(spools, processes, origin_ns)
        # If all events of a process are in a job file, its summary is not: it is computed from the events.
        bare = any(spool.coded and not spool.is_summarised for spool in spools)
        kept = any(spool.is_summarised for spool in spools)
        self.has_summary = kept and not (bare and self.metadata.has_all_events)
        self.metadata.calls = tuple(dictionary.calls)
        self.metadata.files = list(dictionary.files)
        self.metadata.clock_error_s = alignment.error_s
        add_facts(self.metadata, [member.spool for member in members])
        self.is_complete = all(process.ended for process in processes)
        tasks, rank_notes = count_tasks(spools, members)
        self.metadata.tasks = tasks
        for sentence in (
            *notes,
            *notes_on_spools(spools, rank_notes),
            *notes_on_clocks(spools, clocks, alignment),
            *notes_on_ends(processes),
            *notes_on_losses(self.metadata),
            *few(dictionary.notes, "tables of calls are damaged"),
        ):
            self.metadata.note(sentence)

    def chunks(self, max_events: int, names: Sequence[str] | None = None) -> Iterator[Events]:
        """Yield all events in chunks, ordered by rank, and by completion within each thread.

        Parameters
        ----------
        max_events : int
            Maximum length of a chunk.
        names : sequence of str, optional
            Names of the wanted columns (`Events.partly`). Default: all columns.

        Yields
        ------
        Events
        """
        reader = BlockReader(self._decodings)
        yield from self._chunks_of(reader, max_events, names)
        self.note_damage(reader.flaws)

    def parts(
        self, most_parts: int, max_events: int, names: Sequence[str] | None = None
    ) -> list[Iterator[Events]]:
        """Split the events into parts of about equal length that threads can read concurrently.

        Parameters
        ----------
        most_parts : int
            Maximum number of parts.
        max_events, names
            As for `chunks`.

        Returns
        -------
        list of iterator of Events
        """
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
                    self.note_damage(readers[0].flaws)

        return [part(reader) for reader in readers]

    def spans_of_ranks(self, most_parts: int) -> list[tuple[int, int]]:
        """Split the ranks into contiguous spans with about equal numbers of events.

        Parameters
        ----------
        most_parts : int
            Maximum number of spans.

        Returns
        -------
        list of (int, int)
            First and last rank of each span.
        """
        events: Counter[int] = Counter()
        for decoding in self._decodings:
            events[decoding.rank] += _slots_of(decoding)
        return even_spans(sorted(events), [events[rank] for rank in sorted(events)], most_parts)

    def chunks_of_ranks(
        self, span: tuple[int, int], max_events: int, names: Sequence[str] | None, flaws: DamageReport
    ) -> Iterator[Events]:
        """Yield the events of a span of ranks in chunks, as `chunks`.

        Parameters
        ----------
        span : (int, int)
            First and last rank.
        max_events, names
            As for `chunks`.
        flaws : DamageReport
            Receives the damage found.

        Yields
        ------
        Events
        """
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
        """Return all events of evenly spaced ranks, sorted by rank and start.

        Parameters
        ----------
        most_events : int
            Approximate number of events.
        least_ranks : int
            Minimum number of ranks.

        Returns
        -------
        Events
        """
        ranks = sorted({decoding.rank for decoding in self._decodings})
        wanted = max(least_ranks, int(len(ranks) * most_events / max(self.capacity, 1)))
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
        """Return all events, sorted by rank and start.

        Raises
        ------
        EnsioError
            They do not fit into memory, or a file cannot be read.
        """
        reader = BlockReader(self._decodings)
        try:
            columns = empty_columns(self.capacity)
        except MemoryError as error:
            raise EnsioError(
                f"{self.capacity:,} events do not fit into memory: use Run.chunks() instead of Run.events"
            ) from error
        count = 0
        while count < self.capacity:
            more = reader.read(columns, count, self.capacity - count)
            if more == 0:
                break
            count += more
        self.note_damage(reader.flaws)
        events = self._events(columns, count)
        sort_by_rank_and_start(events.columns)
        return events

    def regions(self) -> RegionTable:
        """Read the phases and regions that the program named."""
        return read_regions(self._marked)

    def summary(self) -> CellSummary | None:
        """Read the summary of all calls, including those without an event.

        Returns
        -------
        CellSummary or None
            None: the recorder kept no summary.

        Raises
        ------
        EnsioError
            A spool cannot be read any more.
        """
        return self._summaries[0] if self.has_summary else None

    def ranks(self) -> RankTable | None:
        """Read the summary of all calls by rank and function, without sizes and ordinals.

        Returns
        -------
        RankTable or None
            None: the recorder kept no summary.

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

    def note_damage(self, flaws: DamageReport) -> None:
        """Add the damage found by a pass over all events to the notes."""
        for sentence in flaws.sentences:
            self.metadata.note(sentence)


def even_spans(ranks: Sequence[int], events: Sequence[int], most_parts: int) -> list[tuple[int, int]]:
    """Split ranks into contiguous spans with about equal numbers of events.

    Parameters
    ----------
    ranks : sequence of int
        Ascending.
    events : sequence of int
        Number of events of each rank.
    most_parts : int
        Maximum number of spans.

    Returns
    -------
    list of (int, int)
        First and last rank of each span, ascending and disjoint.

    Examples
    --------
    >>> from ensembles.readers.native.spool_source import even_spans
    >>> even_spans([0, 1, 2, 3], [10, 10, 10, 30], 2)
    [(0, 2), (3, 3)]
    """
    if not len(ranks):
        return []
    behind = np.cumsum(np.asarray(events, np.float64))
    middle = behind - np.asarray(events) / 2
    part = np.minimum(middle * most_parts / max(behind[-1], 1), most_parts - 1).astype(int)
    first = np.flatnonzero(np.diff(part, prepend=-1))
    last = np.append(first[1:], len(ranks)) - 1
    return [
        (int(ranks[low]), int(ranks[high])) for low, high in zip(first.tolist(), last.tolist(), strict=True)
    ]


def _slots_of(decoding: Decoding) -> int:
    """Return an upper bound on the number of events."""
    return sum(window.slots for window in decoding.windows) + sum(block.events for block in decoding.coded)
