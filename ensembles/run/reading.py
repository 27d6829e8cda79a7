"""How the events of a run are read: source, executor, memory, and what is kept of passes.

The events that a selection needs, as readers judge it: ranks, times, durations, functions, files, sizes.

A reader skips chunks that hold no such event. The selection itself examines every event that is read, so that
limits may be wider than its conditions.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property, partial
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from ensembles.model.calls import STORAGE
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, Events
from ensembles.model.filters import within_ranges
from ensembles.model.holds import Holds
from ensembles.model.regions import KINDS
from ensembles.model.spans import MOST_SPANS, find_spans
from ensembles.model.units import (
    DAY_S,
    HALF_INT64,
    NS_PER_S,
    bytes_text,
    count_text,
    seconds_text,
    share_text,
)
from ensembles.passes.damage import DamageReport
from ensembles.passes.executors import Executor, ThreadExecutor
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.memory import Budget
from ensembles.passes.reading import (
    ANYTHING,
    Contents,
    Ranges,
    ReadRequest,
    ascending_ranges,
    sample_size,
    set_of,
)
from ensembles.passes.spec import Choose, PassRun, PassSpec, compute_fingerprint
from ensembles.passes.summary import BY_RANK, RANK_ORDER
from ensembles.readers.common.source import EventSource
from ensembles.run.kept import KeptSummaries
from ensembles.summaries.ranktable import RankTable, empty_ranks

if TYPE_CHECKING:
    from ensembles.model.regions import Spans
    from ensembles.run.selection import Selection
    from ensembles.structure.phases.detect import Phases
    from ensembles.structure.phases.sampled_ranks import ExtraSummary
    from ensembles.structure.recorded_run import RecordedRun


_NOT_SHOWN = "it does not show where the time of the run went, copy it again or record the run again"


_NON_BLOCKING = ("MPI_File_iread", "MPI_File_iwrite", "aio_read", "aio_write")
_MOST_BUSY = 1.01
"""Time in I/O by the time that threads had: times are rounded to the steps of clocks."""
_COPIES = ("copy_file_range", "sendfile", "splice")
"""Calls that may share blocks or pages instead of moving bytes."""
_LONG_S, _SELDOM_S = 30 * DAY_S, 600
"""Batch systems end jobs after days: a longer span with fewer than a call in ten minutes is doubted."""


class RunReading:
    """The part of a run that readers, writers, executors and commands need, and users seldom.

    `source`: the reader of the events.
    `executor`: makes the passes over the events (`ensembles.passes.executors`).
    `budget`: memory that a pass may take.
    `reopen`: opens the run in a worker process, given its path and its memory in bytes. `ensembles.open` sets
    it.
    `kept`: results of passes that were made before.
    """

    def __init__(self, run: RecordedRun, source: EventSource) -> None:
        self._run = run
        self.source = source
        self.executor: Executor = ThreadExecutor()
        self.budget = Budget.default()
        self.reopen: Callable[[str, int], PassRun] | None = None
        self._open_token = os.urandom(16).hex()
        self.kept = KeptSummaries(run)
        self._is_damaged = False

    @property
    def knows_phases(self) -> bool:
        """Whether phases have been detected already, so that `Run.phases` makes no pass."""
        return "phases" in self._run.__dict__

    @property
    def phases_of_calls(self) -> Phases | None:
        """Phases of a run of which every call is an event; None: what happens in them is not known."""
        return self._run.phases if self._run.info.has(Holds.CALL_ORDER) else None

    def need(self, part: Holds, why: str) -> None:
        """Refuse the run if its record does not hold a part."""
        run = self._run
        if not run.info.has(part):
            how, remedy = run.info.how_it_was_recorded, run.info.how_to_keep_calls
            raise EnsioError(f"{run.path} {how}, and {why}: {remedy}")

    def find_phases(self, some: Events | None = None, beside: ExtraSummary | None = None) -> Phases:
        """Detect the phases and keep them in `Run.phases`, of a run that keeps all calls."""
        from ensembles.structure.phases.detect import detect_phases

        phases = self._run.__dict__["phases"] = detect_phases(self._run, some=some, beside=beside)
        return phases

    @property
    def has_phases(self) -> bool:
        """Whether phases can be found: all calls are events, or the program named some."""
        return self._run.info.has(Holds.CALL_ORDER) or bool(
            (self._run.regions.kind == KINDS.index("phase")).any()
        )

    @property
    def most_events(self) -> int:
        """Upper bound of the number of events, known without reading them."""
        return self.source.capacity

    def some_ranks(
        self,
        most_events: int,
        least_ranks: int = 3,
        among: Ranges | None = None,
        columns: tuple[str, ...] | None = None,
    ) -> Events:
        """Read all events of some ranks, evenly spaced among all ranks.

        `among`: ranges of ranks, ascending and disjoint, of which the ranks are taken. Default: all.
        `columns`: columns that are needed, those of rank and start included. Default: all.
        """
        share = -(-self.most_events * least_ranks // max(self._run.tasks, 1))
        what = f"all calls of {least_ranks} tasks, which phase detection needs"
        self.budget.check_events(self._run.path, share, what)
        ranks = self.source.rank_sizes().rank
        wanted = sample_size(len(ranks), self.most_events, most_events, least_ranks)
        if among is not None:
            ranks = ranks[within_ranges(ranks, among)]
        places = np.linspace(0, len(ranks) - 1, min(wanted, len(ranks))).astype(int)
        chosen = ascending_ranges([(rank, rank) for rank in ranks[places].tolist()])
        request = ReadRequest(columns=columns, is_ordered=False, ranks=chosen)
        # Damage is not noted, as a pass over all events counts it.
        return self.joined(self.source.chunks(request, DamageReport())).sorted()

    def noting(self, request: ReadRequest) -> Iterator[Events]:
        """Iterate over requested events, and note the damage at the end."""
        damage = DamageReport()
        yield from self.source.chunks(request, damage)
        self.note_damage(damage)

    def joined(self, chunks: Iterable[Events]) -> Events:
        """Join chunks of events of this run, and empty them."""
        parts = list(chunks) or [Events.empty(self._run.calls, self._run.files)]
        joined = parts[0] if len(parts) == 1 else Events.concatenate(parts, empties_parts=True)
        joined.clock_step_s = self._run.info.clock_step_s
        return joined

    def note_damage(self, damage: DamageReport) -> None:
        """Add the damage that a whole pass found to the notes of the run."""
        self._is_damaged |= bool(damage.sentences)
        self.source.metadata.note_damage(damage.sentences, damage.left_out.values())

    @property
    def has_calls(self) -> bool:
        """Whether a call was recorded, as an event or in sums."""
        return bool(self._run.counters.modules or self.most_events or len(self._run.summary))

    @property
    def lacks(self) -> str:
        """A sentence if the record does not stand for the whole run; ``""``: it does.

        It is doubtful (`doubt`), or the kernel counted much I/O that was not recorded.
        """
        return self.lacking(little=False)

    def lacking(self, *, little: bool = True) -> str:
        """Return the same; `little`: also where the kernel counted little I/O that was not recorded."""
        if self.doubt:
            return self.doubt
        unseen = self._run.unseen
        return unseen.sentence if unseen and (little or unseen.is_much) else ""

    @property
    def doubt(self) -> str:
        """A sentence if times and sums of the record are not those of the run; ``""``: they are.

        No call was recorded, a hundredth of the calls is missing, or a number cannot be so.
        """
        if not self.has_calls or self.missing:  # in this order: sums that are read may be damaged
            return self.missing or self._no_calls
        return "; ".join(self.implausible.values())

    @property
    def _no_calls(self) -> str:
        left_out = self._run.info.excluded_calls
        if left_out:
            which = f"{count_text(left_out, 'call')} on system files, pipes or terminals, and no other"
            return f"{which}: ENSIO_EXCLUDE= records those on files, too"
        shows = "no call was recorded, which does not show that there was no I/O"
        return f"{shows}: ensio help troubleshooting lists the causes"

    @property
    def life(self) -> tuple[int, bool]:
        """Time from the start of the first process to the end of the last, ns, and whether both are known."""
        processes = self._run.info.processes
        lives = [
            (each.start_unix_ns, each.end_unix_ns)
            for each in processes
            if 0 < each.start_unix_ns < each.end_unix_ns
        ]
        life_ns = max(end for _, end in lives) - min(start for start, _ in lives) if lives else 0
        is_exact = bool(lives) and all(end % NS_PER_S for _, end in lives)
        return life_ns, is_exact and all(each.ended for each in processes)

    @property
    def implausible(self) -> dict[str, str]:
        """Sentences about numbers that cannot be so: ``io_time_s``, ``span_s`` and ``bytes``.

        No other number may rest on them. Formats without checksums show damage only here.
        """
        return self._checked[1]

    @property
    def caveats(self) -> list[str]:
        """Sentences about times that mean something else than those of other records."""
        return self._checked[0]

    @cached_property
    def _checked(self) -> tuple[list[str], dict[str, str]]:
        """Compare sums: sentences about what differs from other records, and about what cannot be so."""
        from ensembles.summaries.from_cells import table_from_cells, totals_from_cells

        run = self._run
        known = {number for number, call in enumerate(run.calls) if call.name.startswith(_NON_BLOCKING)}
        if self.source.is_checked and (run.info.flights or not known):
            return [], {}
        names = sorted({run.calls[n].name for n in known & set(run.summary.cells["call"].tolist())})
        if self.source.is_checked and not names:
            return [], {}
        table = table_from_cells(run.summary, run.files)
        io_s = totals_from_cells(run.summary).io_time_ns / NS_PER_S
        span_s, threads = table.span_ns / NS_PER_S, max(run.info.threads, 1)
        life_ns, is_exact = self.life
        most_s = life_ns / NS_PER_S if is_exact else run.length_s
        caveats: list[str] = []
        found: dict[str, str] = {}
        if names and not run.info.flights and io_s > _MOST_BUSY * span_s * threads:
            caveats.append(
                f"the durations of non-blocking requests ({', '.join(names[:3])}) last until their "
                "completion, as an older recorder or another tool stored them: times in I/O include what was "
                "hidden behind other work"
            )
        elif not names and io_s > _MOST_BUSY * most_s * threads:
            found["io_time_s"] = (
                f"{seconds_text(io_s)} in I/O calls of {count_text(threads, 'thread')} within "
                f"{seconds_text(most_s)}: a time is damaged, or the record lacks threads; copy it again"
            )
        if span_s > _LONG_S and table.events * _SELDOM_S < span_s:
            found["span_s"] = (
                f"{count_text(table.events, 'call')} in {span_s / DAY_S:,.0f} days: a time is "
                "probably damaged; copy the record again, or choose the calls by --time"
            )
        for call, sums in table.totals.items():
            # No thread copies 1 TiB/s, not even in its caches; other tools count microseconds.
            most_bytes = (sums.time_ns / NS_PER_S + 1e-6 * sums.count) * (1 << 40)
            if call.layer in STORAGE and not call.name.startswith(_COPIES) and sums.bytes > most_bytes:
                found["bytes"] = (
                    f"{bytes_text(sums.bytes)} in {count_text(sums.count, 'call')} of {call.name} that took "
                    f"{seconds_text(sums.time_ns / NS_PER_S)}: a size is damaged; copy the record again"
                )
        return caveats, {name: f"implausible: {sentence}" for name, sentence in found.items()}

    @property
    def missing(self) -> str:
        """A sentence if a hundredth of the calls is missing in the record; ``""``: it is not.

        They are lost because there was no room for them, or damaged since. Calls that are damaged are known
        once the events have been read.
        """
        missing = self._run.info.missing_calls
        if missing < 0:
            return f"parts of the record are missing or damaged: {_NOT_SHOWN}"
        ranks = self.known_ranks if missing else None
        damaged = self.source.metadata.left_out
        there = max(self.most_events - damaged, 0) if ranks is None else int(ranks.count.sum())
        if 100 * missing <= missing + there:
            return ""
        share = share_text(missing / (missing + there))
        return f"{share} of the calls are missing in the record, {missing:,} or more: {_NOT_SHOWN}"

    @property
    def is_final(self) -> bool:
        """Whether every process has ended, and no damage was found in the events that were read."""
        return self.source.is_complete and not self._is_damaged

    def fill(self, requests: Mapping[str, SummaryRequest], selection: Selection | None) -> SummaryGroup:
        """Fill summaries for `Run.summarize`, from sums, from what is kept and in one pass."""
        found = SummaryGroup(requests, self._run)
        has_all = self._run.info.has(Holds.ALL_CALLS)
        asked = {name: each for name, each in found.summaries.items() if each.of_all_calls and not has_all}
        for name, empty in asked.items():
            from ensembles.summaries.from_cells import from_sums

            found.summaries[name] = (
                from_sums(empty, self._run.summary, self._run.files)
                if selection is None or selection.selects_all
                else empty.without_events()
            )
        requests = {name: request for name, request in requests.items() if name not in asked}
        missing = self.kept.restore(requests, selection, found)
        if missing:
            filled = self._pass(missing, selection)
            self.kept.keep(missing, selection, filled)
            found.summaries |= filled.summaries
        return found

    def _pass(self, requests: Mapping[str, SummaryRequest], selection: Selection | None) -> SummaryGroup:
        """Fill summaries with the events."""
        empty, limits = SummaryGroup(requests, self._run), limits_of(self._run, selection)
        columns, requires = empty.columns, empty.requires
        if columns is not None and (selection is not None or requires is BY_RANK):
            columns |= {"rank", "start"} | {*(() if selection is None else selection.columns)}
            if selection is not None and selection.parts_calls and columns & {"depth", "carried"}:
                columns |= {"thread", "depth", "duration"}
        if selection is not None and selection.ordinals is not None:
            # To count ordinals, all columns of whole ranks are concatenated.
            columns, requires = None, max(requires, RANK_ORDER)
        group = self.executor.summarize(
            self._run,
            PassSpec(
                path=os.path.abspath(self._run.path),
                open_token=self._open_token,
                fingerprint=compute_fingerprint(self._run),
                reopen=self.reopen,
                requests=requests,
                columns=None if columns is None else tuple(name for name in COLUMNS if name in columns),
                choose=None if selection is None else self._choose(selection, to_sum=True),
                requires=requires,
                budget=self.budget,
                ranks=limits.ranks,
                times_ns=limits.times_ns,
                contents=limits.contents,
            ),
        )
        self.budget.spare()
        if group.left_out_ranks:
            self.source.metadata.note(
                f"{group.left_out_ranks:,} tasks made more calls than fit into memory at once, and the order "
                "of their calls was not examined: give more memory (--memory)"
            )
        return group

    def is_read_whole(self, selection: Selection) -> bool:
        """Check whether all events have to be read to find those of a selection for this run."""
        return limits_of(self._run, selection).are_none

    def _choose(self, selection: Selection, *, to_sum: bool = False) -> Choose:
        """Make the function that reduces chunks of this run to the selected events."""
        phases = None if selection.phases is None else self._run.phases
        known = None if phases is None else phases.phase_index
        from ensembles.run.selection import select_chunks

        return partial(select_chunks, selection, known, to_sum=to_sum)

    def chosen_by(self, selection: Selection, columns: Sequence[str] | None = None) -> Events:
        """Read the events of a selection."""
        if "events" in self._run.__dict__:
            return selection.apply(self._run.events)
        # Sorted here; only the count of ordinals needs the order of completion before.
        is_ordered = selection.ordinals is not None
        if columns is not None:
            # To count ordinals, all columns of whole ranks are concatenated.
            needed = {*columns, *selection.columns, "rank", "start"}
            columns = None if is_ordered else tuple(name for name in COLUMNS if name in needed)
        chosen = self.joined(self._chunks_for(selection, None, is_ordered, columns)).sorted()
        if is_ordered and self.source.row_unit is not None and _nested_start_together(chosen):
            return selection.apply(self._run.events)
        return self.numbered(chosen, partial(self._ordinals_of, selection))

    def numbered(self, events: Events, ordinals: Callable[[], np.ndarray | None] | None = None) -> Events:
        """Let events of this run know the phase and the ordinal of each, and return them.

        By default, these are all events of some ranks, among which ordinals are counted. Calls that the
        record lacks would shift those of later calls, which then are unknown.
        """
        from ensembles.structure.ordinals.numbering import compute_ordinals

        def derive(name: str) -> np.ndarray | None:
            if name == "phase":
                return None if self._run.phases is None else self._run.phases.phase_index(events)
            if not self._run.info.has(Holds.CALL_ORDER):
                return None
            return compute_ordinals(events) if ordinals is None else ordinals()

        return events.with_derived(derive)

    def _ordinals_of(self, selection: Selection) -> np.ndarray | None:
        """Compute the ordinals of the events of a selection, sorted by (rank, start)."""
        # Events are sorted stably here and there, so that those of equal rank and start are in one order.
        needs_whole = selection.phases is not None or selection.ordinals is not None
        if needs_whole or "events" in self._run.__dict__ or self.source.row_unit is None:
            return selection.apply(self._run.events).ordinal
        from ensembles.structure.ordinals.numbering import ORDINAL_COLUMNS, compute_ordinals

        # Of a source with sorted rows, a few columns do, which are a third of all.
        names = tuple(name for name in COLUMNS if name in {*ORDINAL_COLUMNS, *selection.columns})
        parts = list(self.noting(ReadRequest(self.most_events + 1, names, is_ordered=False)))
        if len(parts) != 1:
            return selection.apply(self._run.events).ordinal
        ordinals: np.ndarray = compute_ordinals(parts[0])[selection.mask(parts[0])]
        return ordinals

    def chunks_for(self, selection: Selection, max_events: int | None = None) -> Iterator[Events]:
        """Iterate over the events of a selection for this run, in the order of ranks.

        `max_events`: largest number of events read at a time. Default: as the memory budget allows.
        """
        return self._chunks_for(selection, max_events, True)

    def _chunks_for(
        self,
        selection: Selection,
        max_events: int | None,
        is_ordered: bool,
        columns: Sequence[str] | None = None,
    ) -> Iterator[Events]:
        limits = limits_of(self._run, selection)
        request = ReadRequest(
            max_events or self.budget.chunk_events,
            None if columns is None else tuple(columns),
            is_ordered=is_ordered,
            ranks=limits.ranks,
            times_ns=limits.times_ns,
            contents=limits.contents,
        )
        return self._choose(selection)(self.noting(request), self.budget, self._run.path)

    @property
    def has_summary(self) -> bool:
        """Whether `Run.summary` is stored with the run, and need not be computed from the events."""
        return "summary" in self._run.__dict__ or self.source.summary() is not None

    @cached_property
    def known_ranks(self) -> RankTable | None:
        """`ranks`; None: the record has neither all events nor sums by rank."""
        found = self.source.ranks()
        return self._run.summarize(empty_ranks) if found is None else found

    @property
    def ranks(self) -> RankTable:
        """Sums over the calls of each rank by function.

        They include calls that are not events.
        """
        if self.known_ranks is None:
            self._run.reading.need(
                Holds.ALL_CALLS, "its sums are not by rank (ensio info has what is known of them)"
            )
        assert self.known_ranks is not None
        return self.known_ranks

    @property
    def needs_pass_for_ranks(self) -> bool:
        """Whether `ranks` would make a pass over the events."""
        return "known_ranks" not in self.__dict__ and self.source.ranks() is None

    def keep_ranks(self, ranks: RankTable | None) -> None:
        """Keep the sums of a pass over all events as `ranks`, which then makes no pass.

        `ranks`: filled with all events of this run; None: it lacks some.
        """
        if ranks is not None:
            self.__dict__["known_ranks"] = ranks


def _nested_start_together(events: Events) -> bool:
    """Whether a call and one inside start at the same time: rows may have these in another order."""
    together = (events.rank[1:] == events.rank[:-1]) & (events.start[1:] == events.start[:-1])
    return bool((together & (events.depth[1:] != events.depth[:-1])).any())


MOST_FILES = 1 << 16
"""With more files, globs are matched with those of each chunk only: to match all of them takes too long."""


@dataclass(frozen=True)
class ReadLimits:
    """What a selection needs; as in `ensembles.passes.reading.ReadRequest`."""

    ranks: Ranges | None = None
    times_ns: Ranges | None = None
    contents: Contents = ANYTHING

    @property
    def are_none(self) -> bool:
        """Whether all events are needed."""
        return self == ReadLimits()


def limits_of(run: RecordedRun, selection: Selection | None) -> ReadLimits:
    """Find what a selection needs of a run."""
    if selection is None:
        return ReadLimits()
    ranks = selection.read_ranks
    if selection.ordinals is not None:  # they are counted among all calls of a rank
        return ReadLimits(ranks)
    times = None if selection.times_ns is None else ascending_ranges(selection.times_ns)
    if selection.spans is not None:
        ranks, times = _also(ranks, times, *_of_spans(selection.spans))
    if selection.phases is not None and run.phases is not None:
        ranks, times = _also(ranks, times, *run.phases.limits(selection.phases))
    under_way = None
    if selection.under_way_ns is not None:
        low, high = selection.under_way_ns
        times, under_way = _in_both(times, ((-HALF_INT64, high - 1),)), (low - 1, high)
    return ReadLimits(
        None if ranks is None else _joined(ranks),
        None if times is None else _joined(times),
        Contents(
            _calls_of(run, selection),
            _files_of(run, selection.file_globs),
            None if selection.sizes is None else ascending_ranges(selection.sizes),
            under_way,
            None if selection.durations_ns is None else min(low for low, _ in selection.durations_ns),
        ),
    )


def _calls_of(run: RecordedRun, selection: Selection) -> int | None:
    if selection.ops is None and selection.calls is None and selection.layers is None:
        return None
    return set_of(number for number, call in enumerate(run.calls) if selection.wants_call(call))


def _files_of(run: RecordedRun, globs: tuple[str, ...] | None) -> int | None:
    if globs is None or len(run.files) > MOST_FILES:
        return None
    return set_of(
        number for number, path in enumerate(run.files) if any(fnmatchcase(path, glob) for glob in globs)
    )


def _of_spans(spans: Spans) -> tuple[Ranges, Ranges]:
    rank, start, end = spans.joined()
    return find_spans(rank), _joined(
        ascending_ranges(list(zip(start.tolist(), (end - 1).tolist(), strict=True)))
    )


def _also(
    ranks: Ranges | None, times: Ranges | None, other_ranks: Ranges | None, other_times: Ranges | None
) -> tuple[Ranges | None, Ranges | None]:
    """Intersect ranks and times."""
    return _in_both(ranks, other_ranks), _in_both(times, other_times)


def _in_both(some: Ranges | None, other: Ranges | None) -> Ranges | None:
    """Intersect ranges; None stands for all numbers."""
    if some is None or other is None:
        return other if some is None else some
    both = ((max(a, c), min(b, d)) for a, b in some for c, d in other)
    return ascending_ranges([(low, high) for low, high in both if low <= high])


def _joined(ranges: Ranges) -> Ranges:
    """Join ranges across the narrowest gaps until there are few: a reader compares every chunk with each."""
    if len(ranges) <= MOST_SPANS:
        return tuple(ranges)
    gaps = np.array([after[0] - before[1] for before, after in pairwise(ranges)])
    kept = np.sort(np.argsort(-gaps, kind="stable")[: MOST_SPANS - 1])
    begins = [0, *(kept + 1).tolist()]
    ends = [*kept.tolist(), len(ranges) - 1]
    return tuple((ranges[low][0], ranges[high][1]) for low, high in zip(begins, ends, strict=True))
