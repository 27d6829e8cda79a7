"""`Run`: the record of one job, its metadata and its events."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Unpack, overload
from uuid import uuid4

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, Events
from ensembles.model.filters import within_ranges
from ensembles.model.metadata import Process
from ensembles.model.regions import KINDS, RegionTable
from ensembles.model.surroundings import SurroundingsTable, surroundings_of
from ensembles.passes.damage import DamageReport
from ensembles.passes.executors import Executor, ThreadExecutor
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.memory import Budget
from ensembles.passes.reading import Ranges, ReadRequest, ascending_ranges, sample_size
from ensembles.passes.spec import Choose, PassSpec, compute_fingerprint
from ensembles.passes.start_order import sort_by_rank_and_start
from ensembles.passes.summary import BY_RANK, RANK_ORDER, S
from ensembles.readers.common.source import EventSource
from ensembles.run.kept import KeptSummaries
from ensembles.run.read_limits import limits_of
from ensembles.run.selection import Filters, Selection, select_chunks
from ensembles.run.totals import RunWithTotals

if TYPE_CHECKING:
    from ensembles.ensemble.ensemble import Ensemble
    from ensembles.ensemble.from_run import Per
    from ensembles.model.filters import Quantity
    from ensembles.structure.phases.detect import Phases
    from ensembles.structure.phases.sampled_ranks import ExtraSummary

__all__ = ["Process", "Run"]


class Run(RunWithTotals):
    """The record of one job; events are read when they are needed.

    `ensembles.open` makes runs. Metadata are attributes (`ensembles.model.run_info.RunInfo`). Events come in
    four ways: `events` holds all of them, `select` those that filters match, `chunks` reads them in bounded
    memory, and `summarize` fills mergeable summaries in one pass.

    Parameters
    ----------
    path : str
        Path of the files, used in messages and by worker processes.
    source : EventSource
        Reads the events (`ensembles.readers`).

    Attributes
    ----------
    path : str
        Path from which the run was read.
    executor : Executor
        Makes the passes over the events (`ensembles.passes.executors`).
    budget : Budget
        Memory that a pass may take.
    reopen : callable or None
        Opens the run in a worker process, given its path and its memory in bytes. `ensembles.open` sets it.
    kept : KeptSummaries
        Results of passes that were made before.

    Examples
    --------
    >>> run = en.open("ensio-ior")
    >>> run.tasks
    8
    >>> len(run.events), int(run.events.ordinal.max())
    (336, 20)
    >>> writes = run.select(op="write", rank="0-3")
    >>> len(writes), int(writes.moved.sum())
    (80, 83886080)
    >>> run.phases.rule, run.phases.count
    ('steps', 12)
    """

    def __init__(self, path: str, source: EventSource) -> None:
        super().__init__(path, source)
        self.executor: Executor = ThreadExecutor()
        self.budget = Budget.default()
        self.reopen: Callable[[str, int], Run] | None = None
        self._open_token = uuid4().hex
        self.kept = KeptSummaries(self)
        self._is_damaged = False

    def _repr_html_(self) -> str:
        from ensembles.run.notebook_view import run_facts_html

        facts = run_facts_html(self)  # It reads the run, which may add notes.
        return super()._repr_html_() + facts

    @property
    def source(self) -> EventSource:
        """The reader of the events, for writers that copy a whole run."""
        return self._source

    @cached_property
    def phases(self) -> Phases | None:
        """Phases of the run, detected when first asked for.

        None if not every call is an event and the program named no phases.

        Raises
        ------
        EnsioError
            A file cannot be read any more, or the calls of a few ranks do not fit into memory.
        """
        from ensembles.structure.phases.detect import detect_phases, find_phases

        if self.keeps_all_calls:
            return detect_phases(self)
        if not self.has_phases:
            return None
        return find_phases(Events.empty(self.calls, self.files), self.regions, self.clock_error_ns)

    @property
    def knows_phases(self) -> bool:
        """Whether phases have been detected already, so that `phases` makes no pass."""
        return "phases" in self.__dict__

    def find_phases(self, some: Events | None = None, beside: ExtraSummary | None = None) -> Phases:
        """Detect the phases and keep them in `phases`, of a run that keeps all calls.

        Parameters
        ----------
        some, beside
            As for `ensembles.structure.phases.detect.detect_phases`.

        Returns
        -------
        Phases

        Raises
        ------
        EnsioError
            As `phases`; also if the run does not keep every call.
        """
        from ensembles.structure.phases.detect import detect_phases

        phases = self.__dict__["phases"] = detect_phases(self, some=some, beside=beside)
        return phases

    @property
    def has_phases(self) -> bool:
        """Whether phases can be found: all calls are events, or the program named some."""
        return self.keeps_all_calls or bool((self.regions.kind == KINDS.index("phase")).any())

    @property
    def most_events(self) -> int:
        """Upper bound of the number of events, known without reading them."""
        return self._source.capacity

    def some_ranks(self, most_events: int, least_ranks: int = 3, among: Ranges | None = None) -> Events:
        """Read all events of some ranks, evenly spaced among all ranks.

        Parameters
        ----------
        most_events : int
            Approximate number of events wanted.
        least_ranks : int
            Smallest number of ranks, even if they have more events.
        among : sequence of (int, int), optional
            Ranges of ranks, ascending and disjoint, of which the ranks are taken. Default: all.

        Returns
        -------
        Events
            Sorted by (rank, start).

        Raises
        ------
        EnsioError
            The events do not fit into the memory budget, or a file cannot be read any more.
        """
        share = -(-self.most_events * least_ranks // max(self.tasks, 1))
        what = f"all calls of {least_ranks} tasks, which phase detection needs"
        self.budget.check_events(self.path, share, what)
        ranks = self._source.rank_sizes().rank
        wanted = sample_size(len(ranks), self.most_events, most_events, least_ranks)
        if among is not None:
            ranks = ranks[within_ranges(ranks, among)]
        places = np.linspace(0, len(ranks) - 1, min(wanted, len(ranks))).astype(int)
        chosen = ascending_ranges([(rank, rank) for rank in ranks[places].tolist()])
        request = ReadRequest(is_ordered=False, ranks=chosen)
        # Damage is not noted, as a pass over all events counts it.
        return self._joined(self._source.chunks(request, DamageReport())).sorted()

    def chunks(self, max_events: int = 1 << 20, columns: Sequence[str] | None = None) -> Iterator[Events]:
        """Iterate over the events in chunks, in bounded memory.

        Chunks come in the order of ranks. The calls of one thread come in the order of completion, so that an
        inner call precedes the call around it.

        Parameters
        ----------
        max_events : int
            Largest number of events in a chunk.
        columns : sequence of str, optional
            Columns to read; a reader may read more. Default: all.

        Yields
        ------
        Events

        Raises
        ------
        ValueError
            `max_events` is less than 1.
        EnsioError
            A file cannot be read any more.

        Examples
        --------
        >>> run = en.open("ensio-ior")
        >>> sum(int(chunk.duration.sum()) for chunk in run.chunks(64)) == int(run.events.duration.sum())
        True
        """
        if max_events < 1:
            raise ValueError("a chunk holds at least one event: give a positive max_events")
        return self._noting(ReadRequest(max_events, None if columns is None else tuple(columns)))

    def _noting(self, request: ReadRequest) -> Iterator[Events]:
        """Iterate over requested events, and note the damage at the end."""
        damage = DamageReport()
        yield from self._source.chunks(request, damage)
        self.note_damage(damage)

    def _joined(self, chunks: Iterable[Events]) -> Events:
        parts = list(chunks) or [Events.empty(self.calls, self.files)]
        joined = parts[0] if len(parts) == 1 else Events.concatenate(parts)
        joined.clock_step_s = self.clock_step_s
        return joined

    def note_damage(self, damage: DamageReport) -> None:
        """Add the damage that a pass found to the notes of the run.

        Parameters
        ----------
        damage : DamageReport
            Counts of the whole pass.
        """
        for sentence in damage.sentences:
            self._is_damaged = True
            self._metadata.note(sentence)

    @property
    def is_final(self) -> bool:
        """Whether every process has ended, and no damage was found in the events that were read."""
        return self._source.is_complete and not self._is_damaged

    @overload
    def summarize(
        self,
        wanted: Callable[[Run], S],
        columns: Iterable[str] | None = None,
        selection: Selection | None = None,
    ) -> S: ...

    @overload
    def summarize(
        self,
        wanted: Mapping[str, SummaryRequest],
        columns: None = None,
        selection: Selection | None = None,
    ) -> SummaryGroup: ...

    def summarize(
        self,
        wanted: Callable[[Run], S] | Mapping[str, SummaryRequest],
        columns: Iterable[str] | None = None,
        selection: Selection | None = None,
    ) -> S | SummaryGroup:
        """Fill summaries with the events, in one pass and in bounded memory.

        The executor of the run makes the pass: threads, processes or a Dask cluster.

        Parameters
        ----------
        wanted : callable, or mapping of str to SummaryRequest
            Makes an empty summary (`ensembles.passes.summary.Summary`), given the run. It is a class or
            function of a module, or a partial of one, as worker processes get it pickled. A mapping requests
            several summaries by name, which share the pass.
        columns : iterable of str, optional
            Columns that a single summary needs. Default: its attribute ``columns``.
        selection : Selection, optional
            Events to add, from `Selection.for_run` of this run. Default: all. The events have phases and
            ordinals if the selection filters by them.

        Returns
        -------
        Summary or SummaryGroup
            A group if `wanted` is a mapping.

        Raises
        ------
        EnsioError
            A file cannot be read any more, a worker ended early, or the pass exceeds the memory budget.

        Examples
        --------
        >>> from ensembles.passes.group import SummaryRequest
        >>> from ensembles.passes.summary import ignoring_run
        >>> from ensembles.summaries.calltable import CallTable
        >>> from ensembles.summaries.sizes import SizeTable
        >>> run = en.open("ensio-ior")
        >>> run.summarize(ignoring_run(CallTable)).events
        336
        >>> group = run.summarize({
        ...     "calls": SummaryRequest(ignoring_run(CallTable)),
        ...     "sizes": SummaryRequest(ignoring_run(SizeTable)),
        ... })
        >>> group["sizes"].frequent("posix")
        [(1048576, 320)]
        """
        if isinstance(wanted, Mapping):
            return self._summarize(wanted, selection)
        request = SummaryRequest(wanted, None if columns is None else tuple(columns))
        summary: S = self._summarize({"": request}, selection)[""]
        return summary

    def _summarize(self, requests: Mapping[str, SummaryRequest], selection: Selection | None) -> SummaryGroup:
        found = SummaryGroup(requests, self)
        missing = self.kept.restore(requests, selection, found)
        if missing:
            filled = self._pass(missing, selection)
            self.kept.keep(missing, selection, filled)
            found.summaries |= filled.summaries
        return found

    def _pass(self, requests: Mapping[str, SummaryRequest], selection: Selection | None) -> SummaryGroup:
        """Fill summaries with the events."""
        empty, limits = SummaryGroup(requests, self), limits_of(self, selection)
        columns, requires = empty.columns, empty.requires
        if columns is not None and (selection is not None or requires is BY_RANK):
            columns |= {"rank", "start"} | {*(() if selection is None else selection.columns)}
        if selection is not None and selection.ordinals is not None:
            # To count ordinals, all columns of whole ranks are concatenated.
            columns, requires = None, max(requires, RANK_ORDER)
        group = self.executor.summarize(
            self,
            PassSpec(
                path=os.path.abspath(self.path),
                open_token=self._open_token,
                fingerprint=compute_fingerprint(self),
                reopen=self.reopen,
                requests=requests,
                columns=None if columns is None else tuple(name for name in COLUMNS if name in columns),
                choose=None if selection is None else self._choose(selection),
                requires=requires,
                budget=self.budget,
                ranks=limits.ranks,
                times_ns=limits.times_ns,
                contents=limits.contents,
            ),
        )
        if group.left_out_ranks:
            self._metadata.note(
                f"{group.left_out_ranks:,} tasks made more calls than fit into memory at once, and the order "
                "of their calls was not examined: give more memory (--memory)"
            )
        return group

    def is_read_whole(self, selection: Selection) -> bool:
        """Whether all events have to be read to find those of a selection for this run."""
        return limits_of(self, selection).are_none

    def _choose(self, selection: Selection) -> Choose:
        """Make the function that reduces chunks of this run to the selected events."""
        phases = None if selection.phases is None else self.phases
        return partial(select_chunks, selection, None if phases is None else phases.phase_index)

    @cached_property
    def events(self) -> Events:
        """All events, sorted by (rank, start), in memory: 57 bytes an event.

        Raises
        ------
        EnsioError
            The events do not fit into memory, or a file cannot be read any more.
        """
        # One event more than there are: a source sees in the same chunk that no other event follows.
        request = ReadRequest(self.most_events + 1, is_ordered=False)
        try:
            events = self._joined(self._noting(request))
        except MemoryError as error:
            raise EnsioError(
                f"{self.most_events:,} events do not fit into memory: use Run.chunks() instead of Run.events"
            ) from error
        if self._source.row_unit is None:
            sort_by_rank_and_start(events.columns)
        return events.with_derived(self._derived)

    def _derived(self, name: str) -> np.ndarray | None:
        """Compute ``phase`` or ``ordinal`` of all events; None: not determined."""
        if name == "phase":
            return None if self.phases is None else self.phases.phase_index(self.events)
        if not self.keeps_all_calls:
            return None
        from ensembles.structure.ordinals.numbering import compute_ordinals

        return compute_ordinals(self.events)

    @cached_property
    def regions(self) -> RegionTable:
        """Phases and regions that the program named.

        It names them by ``ensio.h`` or `ensembles.recorder.annotate`.
        """
        return self._source.regions()

    def surroundings(self) -> SurroundingsTable:
        """Read samples of the kernel's counters around the program's I/O.

        Returns
        -------
        SurroundingsTable
            A row per sample: bytes that the process moved, and dirty pages, I/O pressure, cgroup, NFS and
            Lustre of the node. No rows: recorded without, or by another tool.

        Raises
        ------
        EnsioError
            A file of the run cannot be read any more.
        """
        return surroundings_of(self._source)

    def select(self, **filters: Unpack[Filters]) -> Events:
        """Read the events that match filters.

        An event must match every filter that is given. A filter takes a text as on the command line, a
        number, or a list of these, of which one must match.

        Parameters
        ----------
        **filters
            See `ensembles.run.selection.Selection.parse` for the syntax of each:

            * ``op``: operations, such as ``"write"``; ``call``: functions, such as ``"pread,pwrite"``;
              ``layer``: layers, such as ``"posix"``
            * ``file``: glob for absolute paths
            * ``rank``: ranges of ranks, such as ``"0-63"``
            * ``size``: requested bytes, such as ``"1MiB..4MiB"``
            * ``time``: start of the call in seconds since the origin of the run, such as ``"10..20"``
            * ``region``: name of a phase or region of the program
            * ``site``: call site, such as ``"restart.f90:212"``, a source file or a function
            * ``phase``, ``ordinal``: ranges of phase numbers and of call indices, such as ``"4-8"``
            * ``per_byte``: True selects calls that moved bytes

        Returns
        -------
        Events
            Sorted by (rank, start).

        Raises
        ------
        EnsioError
            A filter is malformed or names what the run does not have, or a file cannot be read any more.

        Examples
        --------
        >>> run = en.open("ensio-ior")
        >>> writes = run.select(op="write", rank="0-3", size="1MiB")
        >>> len(writes)
        80
        >>> round(float(np.median(writes.duration)) * 1e-9, 3)  # seconds
        0.011
        >>> len(run.select(op=["read", "write"], phase="2-3"))
        64
        >>> len(run.select(op="read", ordinal="4-8"))
        40
        """
        return self.chosen_by(Selection.parse(**filters).for_run(self))

    def ensemble(
        self, per: Per = "call", quantity: Quantity = "duration", **filters: Unpack[Filters]
    ) -> Ensemble:
        """Make an ensemble of the calls that match filters.

        Where filters leave open layer, operation or size, the outermost calls of the layer, operation and
        size class that moved most bytes are taken; a note tells the rest. ``size="0.."`` takes all sizes.

        Parameters
        ----------
        per : {"call", "MiB"}
            Durations in seconds a call, or in seconds per MiB that the call moved.
        quantity : {"duration", "flight"}
            "flight": of non-blocking requests, the time from the post to the observed completion.
        **filters
            As for `select`.

        Returns
        -------
        Ensemble

        Raises
        ------
        EnsioError
            A filter is malformed or matches no call, or the run does not record what it asks for.

        Examples
        --------
        >>> en.open("ensio-ior").ensemble(op="write").n
        160
        """
        from ensembles.ensemble.main_group import main_ensemble
        from ensembles.run.nothing_selected import refuse_nothing

        selection = Selection.parse(quantity=quantity, **filters).for_run(self, from_summary=True)
        ensemble = main_ensemble(self, selection, per)[1]
        refuse_nothing(self, selection, ensemble.n)
        return ensemble

    def chosen_by(self, selection: Selection) -> Events:
        """Read the events of a selection.

        Parameters
        ----------
        selection : Selection
            From `Selection.for_run` of this run.

        Returns
        -------
        Events
            Sorted by (rank, start).
        """
        if "events" in self.__dict__:
            return selection.apply(self.events)
        # Sorted here; only the count of ordinals needs the order of completion before.
        chosen = self._joined(self._chunks_for(selection, None, selection.ordinals is not None)).sorted()

        def ask(name: str) -> np.ndarray | None:
            if name == "phase":
                return None if self.phases is None else self.phases.phase_index(chosen)
            # Both were sorted stably, so that events of equal rank and start are in one order.
            return selection.apply(self.events).ordinal if self.keeps_all_calls else None

        return chosen.with_derived(ask)

    def chunks_for(self, selection: Selection, max_events: int | None = None) -> Iterator[Events]:
        """Iterate over the events of a selection for this run, in the order of ranks.

        Parameters
        ----------
        selection : Selection
            From `Selection.for_run` of this run.
        max_events : int, optional
            Largest number of events read at a time. Default: as the memory budget allows.

        Yields
        ------
        Events
        """
        return self._chunks_for(selection, max_events, True)

    def _chunks_for(self, selection: Selection, max_events: int | None, is_ordered: bool) -> Iterator[Events]:
        limits = limits_of(self, selection)
        request = ReadRequest(
            max_events or self.budget.chunk_events,
            is_ordered=is_ordered,
            ranks=limits.ranks,
            times_ns=limits.times_ns,
            contents=limits.contents,
        )
        return self._choose(selection)(self._noting(request), self.budget, self.path)
