"""Run: everything that is known about one job, its events included."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Literal, Unpack, overload
from uuid import uuid4

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, Events
from ensembles.model.metadata import Process
from ensembles.model.regions import KINDS, RegionTable
from ensembles.model.run_info import RunInfo
from ensembles.passes.damage import DamageReport
from ensembles.passes.executors import Executor, ThreadExecutor
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.memory import Budget
from ensembles.passes.spec import Choose, PassSpec, compute_fingerprint
from ensembles.passes.summary import BY_RANK, RANK_ORDER, S
from ensembles.readers.common.source import EventSource, Indexed
from ensembles.run.selection import Filters, Selection, select_chunks
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable

if TYPE_CHECKING:
    from ensembles.ensemble.ensemble import Ensemble
    from ensembles.structure.phases.detect import Phases
    from ensembles.structure.phases.sampled_ranks import ExtraSummary

__all__ = ["Process", "Run"]


class Run(RunInfo):
    """One job, and its events on demand.

    Attributes
    ----------
    executor : Executor
        Makes the passes over its events (`ensembles.passes`).
    budget : Budget
        Memory that a pass may take.
    reopen : callable or None
        Path, bytes of memory → the run, for worker processes; `ensembles.open` sets it.
    """

    def __init__(self, path: str, source: EventSource) -> None:
        super().__init__(path, source.metadata)
        self.executor: Executor = ThreadExecutor()
        self.budget = Budget.default()
        self.reopen: Callable[[str, int], Run] | None = None
        self._open_token = uuid4().hex
        self._source = source

    @property
    def source(self) -> EventSource:
        """What it is read from, for those who write all of it."""
        return self._source

    @cached_property
    def phases(self) -> Phases | None:
        """The phases of the run (`ensembles.structure.phases.detect`).

        None if the events are not all calls and the program named no phases.
        """
        from ensembles.structure.phases.detect import detect_phases, find_phases

        if self.keeps_all_calls:
            return detect_phases(self)
        if not self.has_phases:
            return None
        return find_phases(Events.empty(self.calls, self.files), self.regions, self.clock_error_ns)

    @property
    def knows_phases(self) -> bool:
        """Whether the phases have been looked for, so that `phases` costs nothing."""
        return "phases" in self.__dict__

    def find_phases(self, some: Events | None = None, beside: ExtraSummary | None = None) -> Phases:
        """`phases`, of a run that keeps all calls; the arguments are those of
        `ensembles.structure.phases.detect.detect_phases`."""
        from ensembles.structure.phases.detect import detect_phases

        phases = detect_phases(self, some=some, beside=beside)
        self.__dict__["phases"] = phases
        return phases

    @property
    def has_phases(self) -> bool:
        """Whether every call is among the events, or the program named phases."""
        return self.keeps_all_calls or bool((self.regions.kind == KINDS.index("phase")).any())

    @property
    def most_events(self) -> int:
        """How many events there are at most, without a look at them."""
        return self._source.capacity

    def some_ranks(self, most_events: int, least_ranks: int = 3) -> Events:
        """All events of some ranks, evenly spaced among all, sorted by (rank, start): about `most_events`,
        and of `least_ranks` ranks at least."""
        share = -(-self.most_events * least_ranks // max(self.tasks, 1))
        self.budget.check_events(self.path, share, f"all calls of {least_ranks} tasks, which tell the phases")
        return self._source.some_ranks(most_events, least_ranks)

    def chunks(self, max_events: int = 1 << 20, columns: Sequence[str] | None = None) -> Iterator[Events]:
        """Go through the events, holding only `max_events` at a time.

        Chunks come in the order of ranks. The calls of one thread are in the order of their completion, so
        that an inner call comes before the one around it.

        Parameters
        ----------
        max_events : int
        columns : sequence of str, optional
            Read these columns (and perhaps some others); default: all.

        Raises
        ------
        EnsioError
            A file cannot be read any more.
        """
        if max_events < 1:
            raise ValueError("a chunk holds at least one event")
        return self._source.chunks(max_events, columns)

    def parts(
        self, most_parts: int, max_events: int = 1 << 20, columns: Sequence[str] | None = None
    ) -> list[Iterator[Events]]:
        """As `chunks`, in up to `most_parts` iterators that threads may go through side by side."""
        return self._source.parts(most_parts, max_events, columns)

    def spans_of_ranks(self, most_parts: int) -> list[tuple[int, int]]:
        """Up to so many spans of ranks with about equally many events, which together are all: the first and
        the last rank of each."""
        return self._source.spans_of_ranks(most_parts)

    def chunks_of_ranks(
        self, span: tuple[int, int], max_events: int, columns: Sequence[str] | None, flaws: DamageReport
    ) -> Iterator[Events]:
        """As `chunks`, of the ranks of a span; what is wrong with them is added to `flaws`, not noted."""
        return self._source.chunks_of_ranks(span, max_events, columns, flaws)

    def note_damage(self, flaws: DamageReport) -> None:
        """Say in the notes what a pass over all events found."""
        self._source.note_damage(flaws)

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
        """Summarize the events in one pass, in bounded memory, by the executor of this run.

        Parameters
        ----------
        wanted : callable, or mapping of str to SummaryRequest
            Run → an empty summary (`ensembles.passes.summary.Summary`): a class or function of a module, or a
            partial of one. Or several summaries by name, which share the pass.
        columns : iterable of str, optional
            Columns that a single summary needs; default: those that it names itself.
        selection : Selection, optional
            For this run: which events are added. They know their phases and ordinals where it asks for any.

        Returns
        -------
        Summary or SummaryGroup
            A group for a mapping.

        Raises
        ------
        EnsioError
            A file cannot be read any more, a worker ended, or more memory is needed than there may be.
        """
        if isinstance(wanted, Mapping):
            return self._summarize(wanted, selection)
        request = SummaryRequest(wanted, None if columns is None else tuple(columns))
        return self._summarize({"": request}, selection)[""]

    def _summarize(self, requests: Mapping[str, SummaryRequest], selection: Selection | None) -> SummaryGroup:
        empty = SummaryGroup(requests, self)
        columns, requires = empty.columns, empty.requires
        if columns is not None and (selection is not None or requires is BY_RANK):
            columns |= {"rank", "start"} | {*(() if selection is None else selection.columns)}
        if selection is not None and selection.ordinals is not None:
            # All columns of whole ranks are put together where ordinals are counted.
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
            ),
        )
        if group.left_out_ranks:
            self._metadata.note(
                f"{group.left_out_ranks:,} tasks made more calls than may be held at once, and the order of "
                "their calls was not looked at: give more memory (--memory)"
            )
        return group

    def _choose(self, selection: Selection) -> Choose:
        """Turns chunks of this run into the events that a selection chooses."""
        phases = None if selection.phases is None else self.phases
        return partial(select_chunks, selection, None if phases is None else phases.phase_index)

    @cached_property
    def events(self) -> Events:
        """All events, sorted by (rank, start). Takes 55 bytes of memory an event."""
        return self._source.events().with_derived(self._derived)

    def _derived(self, name: str) -> np.ndarray | None:
        """``phase`` or ``ordinal`` of all events; None where it cannot be told."""
        if name == "phase":
            return None if self.phases is None else self.phases.phase_index(self.events)
        if not self.keeps_all_calls:
            return None
        from ensembles.structure.ordinals.numbering import compute_ordinals

        return compute_ordinals(self.events)

    @cached_property
    def regions(self) -> RegionTable:
        """The phases and regions that the program named (``ensio.h``, `ensembles.recorder.annotate`)."""
        return self._source.regions()

    @cached_property
    def summary(self) -> CellSummary:
        """What all calls add up to, by call, size class and ordinal class, those included that are not
        among the events."""
        summary = self._source.summary()
        if summary is None:
            summary = self.summarize(_empty_summary)
        return summary

    @cached_property
    def ranks(self) -> RankTable:
        """What the calls of each rank add up to, by function, those included that are not among the events.

        Raises
        ------
        EnsioError
            A file cannot be read any more, or it does not say.
        """
        ranks = self._source.ranks()
        if ranks is None and not self.has_all_events:
            raise EnsioError(
                f"{self.path} does not say what each rank did: if an older ensio made it, collect the run "
                "again; what another tool added up over the ranks cannot be told apart"
            )
        if ranks is None:
            ranks = self.summarize(_empty_ranks)
        return ranks

    def select(self, **filters: Unpack[Filters]) -> Events:
        """The events that filters choose, sorted by (rank, start).

        Parameters
        ----------
        **filters
            ``op``, ``call``, ``layer``, ``file``, ``rank``, ``size``, ``time``, ``region``, ``phase``,
            ``ordinal``, ``per_byte``, as on the command line; see `ensembles.run.selection.Selection.parse`.

        Raises
        ------
        EnsioError
            A filter makes no sense, or a file cannot be read any more.
        """
        return self.chosen_by(Selection.parse(**filters).for_run(self))

    def ensemble(self, per: Literal["call", "MiB"] = "call", **filters: Unpack[Filters]) -> Ensemble:
        """The calls that filters choose as an ensemble, in bounded memory whatever the length of the run;
        where the run keeps no events, or not all, from its summary.

        Parameters
        ----------
        per : {"call", "MiB"}
            Seconds of each call, or seconds per MiB that it moved.
        **filters
            As for `select`.

        Raises
        ------
        EnsioError
            A filter makes no sense, or the run does not tell what it asks for.
        """
        from ensembles.ensemble.from_run import ensemble_from_run

        return ensemble_from_run(self, Selection.parse(**filters).for_run(self, from_summary=True), per)

    def chosen_by(self, selection: Selection) -> Events:
        """The events that a selection for this run chooses, sorted by (rank, start)."""
        if "events" in self.__dict__:
            return selection.apply(self.events)
        parts = list(self.chunks_for(selection))
        chosen = Events.concatenate(parts or [Events.empty(self.calls, self.files)]).sorted()

        def ask(name: str) -> np.ndarray | None:
            if name == "phase":
                return None if self.phases is None else self.phases.phase_index(chosen)
            # It is sorted stably, as these are: equals are in one order.
            return selection.apply(self.events).ordinal if self.keeps_all_calls else None

        return chosen.with_derived(ask)

    def chunks_for(self, selection: Selection, max_events: int | None = None) -> Iterator[Events]:
        """The events that a selection chooses, chunk by chunk, in the order of ranks."""
        chunks = self._chunks_beside(selection, max_events or self.budget.chunk_events)
        return self._choose(selection)(chunks, self.budget, self.path)

    def _chunks_beside(self, selection: Selection, max_events: int) -> Iterator[Events]:
        """Chunks that hold what a selection chooses, and more; where the source has an index, only those
        that lie beside it."""
        # Ordinals count all calls of a rank.
        times_ns = selection.times_ns if selection.ordinals is None else None
        if isinstance(self._source, Indexed) and (selection.ranks or times_ns):
            return self._source.chunks_within(selection.ranks, times_ns, max_events)
        return self.chunks(max_events)


def _empty_summary(run: Run) -> CellSummary:
    return CellSummary(run.calls, run.files)


def _empty_ranks(run: Run) -> RankTable:
    return RankTable(run.calls)
