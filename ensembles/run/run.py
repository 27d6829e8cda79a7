"""`Run`: the record of one job, its metadata and its events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Unpack, overload

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.metadata import KernelBytes
from ensembles.model.regions import RegionTable
from ensembles.model.run_info import RunInfo
from ensembles.model.surroundings import SurroundingsTable, surroundings_of
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.reading import ReadRequest
from ensembles.passes.start_order import sort_by_rank_and_start
from ensembles.passes.summary import S
from ensembles.readers.common.source import EventSource
from ensembles.run.reading import RunReading
from ensembles.summaries.cells import CellSummary

if TYPE_CHECKING:
    from ensembles.model.counters import Counters
    from ensembles.model.events import Call
    from ensembles.passes.spec import PassRun
    from ensembles.run.selection import Filters, Selection
    from ensembles.structure.phases.result import Phases
    from ensembles.structure.unseen import Unseen


class Run:
    """The record of one job, which every room takes; `ensembles.Run` has its questions as methods, too.

    `path`: path of the files, used in messages and by worker processes.
    `source`: reads the events (`ensembles.readers`).
    """

    def __init__(self, path: str, source: EventSource) -> None:
        self.path = path
        source.metadata.has_events = source.capacity > 0
        self.info = RunInfo(path, source.metadata)
        self.reading = RunReading(self, source)

    def __repr__(self) -> str:
        return repr(self.info)

    @property
    def tasks(self) -> int:
        """Number of tasks (ranks). Ranks in events are smaller."""
        return self.info.tasks

    @property
    def calls(self) -> tuple[Call, ...]:
        """Traced functions, which `Events.call` indexes. The first is ``unknown``."""
        return self.info.calls

    @property
    def files(self) -> list[str]:
        """Absolute paths, which `Events.file` indexes. The first is ``""``: none or unknown."""
        return self.info.files

    @property
    def mode(self) -> str:
        """Recording mode: ``trace``, ``profile``, ``tail`` or ``""`` (`RunInfo.mode`)."""
        return self.info.mode

    @property
    def notes(self) -> list[str]:
        """Data-quality warnings: sentences about what is partial or doubtful in this run."""
        unseen = [self.unseen.sentence] if self.unseen else []
        missing = [self.reading.missing] if self.reading.missing else []
        found = [*missing, *unseen, *self.reading.caveats, *self.reading.implausible.values()]
        return list(dict.fromkeys([*self.info.notes, *found]))

    @property
    def counters(self) -> Counters:
        """Counters by file and rank that Darshan kept; empty if another recorder wrote the run."""
        return self.info.counters

    @cached_property
    def unseen(self) -> Unseen | None:
        """I/O that the kernel counted or calls hide, and that was not recorded; None: too little, or unknown.

        Raises
        ------
        EnsioError
            A file cannot be read any more.
        """
        from ensembles.structure.unseen import HIDING, find_unseen

        hides = any(call.name in HIDING for call in self.calls)
        if self.info.environment.get("ENSIO_LAYERS") or not (self.info.kernel_bytes or hides):
            return None
        ranks = self.reading.ranks  # which shows the damage
        if self.info.missing_calls:
            return None
        sums = {
            call: (int((ranks.count - ranks.errors)[mine].sum()), int(ranks.moved[mine].sum()))
            for number, call in enumerate(ranks.calls)
            if (mine := ranks.call == number).any()
        }
        kernel = self.info.kernel_bytes or KernelBytes()
        return find_unseen(kernel, sums, len(self.info.hosts), len(self.info.processes), len(self.files))

    @cached_property
    def phases(self) -> Phases | None:
        """Phases of the run, detected when first asked for.

        None if not every call is an event and the program named no phases.

        Raises
        ------
        EnsioError
            A file cannot be read any more, or the calls of a few ranks do not fit into memory.
        """
        from ensembles.structure.phases.detect import detect_phases

        return detect_phases(self) if self.reading.has_phases else None

    def chunks(self, max_events: int = 1 << 20, columns: Sequence[str] | None = None) -> Iterator[Events]:
        """Iterate over the events in chunks, as `ensembles.Run.chunks` documents."""
        if max_events < 1:
            raise ValueError("a chunk holds at least one event: give a positive max_events")
        return self.reading.noting(ReadRequest(max_events, None if columns is None else tuple(columns)))

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
            return self.reading.fill(wanted, selection)
        request = SummaryRequest(wanted, None if columns is None else tuple(columns))
        summary: S = self.reading.fill({"": request}, selection)[""]
        return summary

    @cached_property
    def events(self) -> Events:
        """All events, sorted by (rank, start), in memory: 57 bytes an event.

        `EnsioError`: the events do not fit into memory, or a file cannot be read any more.
        """
        # One event more than there are: a source sees in the same chunk that no other event follows.
        request = ReadRequest(self.reading.most_events + 1, is_ordered=False)
        try:
            events = self.reading.joined(self.reading.noting(request))
        except MemoryError as error:
            raise EnsioError(
                f"{self.reading.most_events:,} events do not fit into memory: use Run.chunks() instead of "
                "Run.events"
            ) from error
        if self.reading.source.row_unit is None:
            sort_by_rank_and_start(events.columns)
        return self.reading.numbered(events)

    @cached_property
    def regions(self) -> RegionTable:
        """Phases and regions that the program named.

        It names them by ``ensio.h`` or `ensembles.recorder.annotate`.
        """
        return self.reading.source.regions()

    def surroundings(self) -> SurroundingsTable:
        """Read samples of the kernel's counters around the program's I/O.

        Returns
        -------
        SurroundingsTable
            A row per sample: bytes that the process moved, and dirty pages, I/O pressure, cgroup, NFS and
            Lustre of the node. No rows: recorded without, or by another tool.
        """
        return surroundings_of(self.reading.source, {each.rank: each.host for each in self.info.processes})

    def select(self, **filters: Unpack[Filters]) -> Events:
        """Read the events that match filters, as `ensembles.Run.select` documents."""
        from ensembles.run.selection import Selection

        return self.reading.chosen_by(Selection.parse(**filters).for_run(self))

    @cached_property
    def summary(self) -> CellSummary:
        """Sums over all calls by function, size class and ordinal class.

        They include calls that are not events: the recorder keeps them in every mode. If the source has no
        summary, it is computed from the events.
        """
        summary = self.reading.source.summary()
        return self.summarize(_empty_summary) if summary is None else summary

    @cached_property
    def length_s(self) -> float:
        """Length of the run, s: from the start of its first process to the end of its last.

        Severities and shares of the run are parts of it. It is at least the span of its calls: some are made
        after the last reading of the clock, by other threads and in processes that did not end in order, and
        other tools keep times of processes in whole seconds, or not at all.

        Examples
        --------
        >>> en.open("ensio-ior").length_s
        12.0
        """
        life_ns, is_exact = self.reading.life
        # Where the events would have to be read for it, exact lives are enough.
        cells = self.summary.cells if self.reading.has_summary or not is_exact else {}
        if len(cells.get("end_ns", ())):
            life_ns = max(life_ns, int(cells["end_ns"].max() - cells["start_ns"].min()))
        return life_ns * 1e-9


def _empty_summary(run: PassRun) -> CellSummary:
    return CellSummary(run.calls, run.files)
