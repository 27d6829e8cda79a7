"""`Run`: the record of one job, its metadata and its events."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Unpack, overload

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.model.metadata import KernelBytes, Process
from ensembles.model.regions import RegionTable
from ensembles.model.run_info import RunInfo
from ensembles.model.surroundings import SurroundingsTable, surroundings_of
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.reading import ReadRequest
from ensembles.passes.start_order import sort_by_rank_and_start
from ensembles.passes.summary import S
from ensembles.readers.common.source import EventSource
from ensembles.run.filter_arguments import with_filters
from ensembles.run.reading import RunReading
from ensembles.run.selection import Filters, Selection
from ensembles.run.totals import RunWithTotals

if TYPE_CHECKING:
    from ensembles.ensemble.ensemble import Ensemble
    from ensembles.ensemble.from_run import Per
    from ensembles.model.counters import Counters
    from ensembles.model.events import Call
    from ensembles.model.filters import Quantity
    from ensembles.structure.phases.detect import Phases
    from ensembles.structure.unseen import Unseen

__all__ = ["Process", "Run"]


class Run(RunWithTotals):
    """The record of one job; events are read when they are needed.

    `ensembles.open` makes runs. Facts about the job and its record are in `info`. Events come in four ways:
    `events` holds all of them, `select` those that filters match, `chunks` reads them in bounded memory, and
    `summarize` fills mergeable summaries in one pass. `reading` has what readers, writers and executors need.

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
    info : RunInfo
        Where and how the job ran, what was recorded, and what may be missing.
    reading : RunReading
        How the events are read.

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
        self.path = path
        source.metadata.has_events = source.capacity > 0
        self.info = RunInfo(path, source.metadata)
        self.reading = RunReading(self, source)

    def __repr__(self) -> str:
        return repr(self.info)

    def _repr_html_(self) -> str:
        from ensembles.run.notebook_view import run_facts_html

        facts = run_facts_html(self)  # It reads the run, which may add notes.
        return self.info._repr_html_() + facts

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
        lacks = [self.reading.lacks] if self.reading.lacks else []
        return list(dict.fromkeys([*self.info.notes, *lacks, *unseen, *self._implausible]))

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

        has_gaps = self.info.lost_calls or self.info.environment.get("ENSIO_LAYERS")
        hides = any(call.name in HIDING for call in self.calls)
        if has_gaps or not (self.info.kernel_bytes or hides):
            return None
        ranks = self.reading.ranks
        sums = {
            call: (int((ranks.count - ranks.errors)[mine].sum()), int(ranks.moved[mine].sum()))
            for number, call in enumerate(ranks.calls)
            if (mine := ranks.call == number).any()
        }
        kernel = self.info.kernel_bytes or KernelBytes(0, 0, 0, 0)
        return find_unseen(kernel, sums, len(self.info.hosts), len(self.info.processes))

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

        Raises
        ------
        EnsioError
            The events do not fit into memory, or a file cannot be read any more.
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

        Raises
        ------
        EnsioError
            A file of the run cannot be read any more.
        """
        return surroundings_of(self.reading.source, {each.rank: each.host for each in self.info.processes})

    @with_filters
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
            * ``duration``: time that the call took, such as ``"0.5..2"`` (seconds) or ``"10ms.."``
            * ``offset``: where in its file the call begins, such as ``"1GiB..2GiB"``
            * ``rate``: bytes moved per second of the call, such as ``"..10MiB"``
            * ``failed``: True selects calls that failed
            * ``error``: the errors of failed calls, such as ``"ENOSPC,EIO"``
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
        return self.reading.chosen_by(Selection.parse(**filters).for_run(self))

    @with_filters
    def ensemble(
        self, per: Per = "call", quantity: Quantity = "duration", **filters: Unpack[Filters]
    ) -> Ensemble:
        """Make an ensemble of the calls that match filters.

        Where filters leave open layer, operation or size, the outermost calls of the layer, operation and
        size class that took most time are taken; a note tells the rest. ``size="0.."`` takes all sizes.

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
        from ensembles.ensemble.main_ensemble import main_ensemble
        from ensembles.run.nothing_selected import refuse_nothing

        selection = Selection.parse(quantity=quantity, **filters).for_run(self, from_summary=True)
        ensemble = main_ensemble(self, selection, per)[1]
        refuse_nothing(self, selection, ensemble.n)
        return ensemble
