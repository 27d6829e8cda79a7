"""Run: everything that is known about one job."""

from __future__ import annotations

import datetime
import html
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Literal
from uuid import uuid4

import numpy as np

from ensembles.budget import Budget
from ensembles.errors import EnsioError
from ensembles.events import COLUMNS, Call, Events
from ensembles.gathering import Here, Pass, S, Workers, sort_of
from ensembles.metadata import Mount, Process
from ensembles.readers.flaws import Flaws
from ensembles.readers.lustre import Striping, decode_layout
from ensembles.regiontable import KINDS, RegionTable
from ensembles.selection import Selection, Text
from ensembles.source import Indexed, Source
from ensembles.summaries.cells import CellSummary
from ensembles.summaries.ranktable import RankTable

if TYPE_CHECKING:
    from ensembles.ensemble import Ensemble
    from ensembles.structure.long_runs import Beside
    from ensembles.structure.phases import Phases

__all__ = ["Process", "Run"]

_SIMULATED = "ENSIO_SIMULATED_"


class Run:
    """One job: its metadata, and its events on demand.

    Attributes
    ----------
    path : str
        Where it was read from.
    workers : Workers
        Who goes through its events (`ensembles.gathering`).
    budget : Budget
        How much memory that may take.
    """

    def __init__(self, path: str, source: Source) -> None:
        self.path = path
        self.workers: Workers = Here()
        self.budget = Budget.default()
        self._opened = uuid4().hex
        self._source = source
        self._metadata = source.metadata

    @property
    def source(self) -> Source:
        """What it is read from, for those who write all of it."""
        return self._source

    @property
    def tasks(self) -> int:
        """Number of tasks (ranks); ranks in events are below it."""
        return self._metadata.tasks

    @property
    def threads(self) -> int:
        """Number of threads that recorded, of all tasks together."""
        return self._metadata.threads

    @property
    def origin_unix_ns(self) -> int:
        """The run's time 0: ns since 1970-01-01 UTC."""
        return self._metadata.origin_unix_ns

    @property
    def start(self) -> datetime.datetime:
        """The run's time 0, in UTC."""
        epoch = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
        return epoch + datetime.timedelta(microseconds=self.origin_unix_ns // 1000)

    @property
    def calls(self) -> tuple[Call, ...]:
        """Traced functions; the events' ``call`` column indexes it. The first is ``unknown``."""
        return self._metadata.calls

    @property
    def files(self) -> list[str]:
        """Absolute paths, which the events' ``file`` column indexes. The first is ``""``: none or unknown."""
        return self._metadata.files

    @property
    def processes(self) -> list[Process]:
        """All processes that were recorded, by rank."""
        return self._metadata.processes

    @property
    def dropped_events(self) -> int:
        """Completed calls that are not among the events, for want of space or of budget."""
        return sum(process.dropped_events for process in self.processes)

    @property
    def lost_calls(self) -> int:
        """Those of the dropped events that are not in the summary either."""
        return sum(process.lost_calls for process in self.processes)

    @property
    def has_all_events(self) -> bool:
        """Whether every call that the summary counts is among the events."""
        return self._metadata.has_all_events

    @cached_property
    def phases(self) -> Phases | None:
        """The phases of the run (`ensembles.structure.phases`); None: the events are not all calls, and the
        program named no phases, so that they cannot be told."""
        from ensembles.structure.phases import find_phases, phases_of_run

        if self.keeps_all_calls:
            return phases_of_run(self)
        if not self.tells_phases:
            return None
        return find_phases(Events.empty(self.calls, self.files), self.regions, self.clock_error_ns)

    @property
    def knows_phases(self) -> bool:
        """Whether the phases have been looked for, so that `phases` costs nothing."""
        return "phases" in self.__dict__

    def find_phases(self, some: Events | None = None, beside: Beside | None = None) -> Phases:
        """`phases`, of a run that keeps all calls; the arguments are those of
        `ensembles.structure.phases.phases_of_run`."""
        from ensembles.structure.phases import phases_of_run

        self.__dict__["phases"] = phases_of_run(self, some=some, beside=beside)
        return self.phases

    @property
    def tells_phases(self) -> bool:
        """Whether every call is among the events, or the program named phases."""
        return self.keeps_all_calls or bool((self.regions.kind == KINDS.index("phase")).any())

    @property
    def clock_error_ns(self) -> int:
        """`clock_error_s` in ns; 0 where it is not known."""
        return round((self.clock_error_s or 0.0) * 1e9)

    @property
    def keeps_all_calls(self) -> bool:
        """Whether every completed call is among the events: phases and ordinals can be told."""
        return self.mode not in ("profile", "tail") and self.dropped_events == 0

    @property
    def excluded_calls(self) -> int:
        """Calls on files that are left out, as far as they were counted."""
        return sum(process.excluded_calls for process in self.processes)

    @property
    def notes(self) -> list[str]:
        """What is partial or doubtful about this run, in plain sentences."""
        return self._metadata.notes

    @property
    def hosts(self) -> list[str]:
        """Names of the nodes."""
        return self._metadata.hosts

    @property
    def clock_error_s(self) -> float | None:
        """How much times of a node may be off against those of rank 0's, between MPI_Init and MPI_Finalize.

        0.0: there is one node, hence one clock. None: the clocks are not aligned, or it is not known.
        """
        return self._metadata.clock_error_s

    @property
    def mode(self) -> str:
        """How it was recorded: ``trace`` (every call), ``profile`` (the summary alone), ``tail`` (the
        summary, and the slowest calls), or ``""`` where that is not known."""
        return self._metadata.mode

    @property
    def job(self) -> str:
        """The batch system's name for the job, or ``""``."""
        return self._metadata.job

    @property
    def user(self) -> str:
        """Who ran it: a name, or where it has none the number of the user; ``""`` where that is not known."""
        return self._metadata.user

    @property
    def mpi_version(self) -> str:
        """The version of the MPI library, as it tells it itself; ``""``: no MPI, or not known."""
        return self._metadata.mpi

    @property
    def libc_version(self) -> str:
        """The version of the C library, or ``""``."""
        return self._metadata.libc

    @property
    def environment(self) -> dict[str, str]:
        """Environment variables of the first task, as far as they bear on I/O (docs/trace-format.md)."""
        return self._metadata.environment

    @property
    def simulated(self) -> str:
        """On which model, with which faults and seed, if no call was really made; else ``""``."""
        said = {name: self.environment.get(_SIMULATED + name, "") for name in ("MODEL", "FAULTS", "SEED")}
        if not said["MODEL"]:
            return ""
        faults = f"with the faults {said['FAULTS']}" if said["FAULTS"] else "without a fault"
        return f"on the model {said['MODEL']} {faults}, seed {said['SEED']}: no call was really made"

    @property
    def mounts(self) -> dict[str, tuple[Mount, ...]]:
        """File systems of each node, by its name."""
        return self._metadata.mounts

    @property
    def file_facts(self) -> dict[str, dict[str, str]]:
        """What is known about files beside their paths, such as MPI's hints (``hint.*``), by path."""
        return self._metadata.file_facts

    def filesystem_of(self, path: str) -> Mount | None:
        """The file system on which a file lies; None: not known.

        Nodes may have different mounts at one path: the first node that recorded its mounts answers.
        """
        point = self.file_facts.get(path, {}).get("mount")
        for table in self.mounts.values():
            # Of those at one point the last hides the others.
            found = [mount for mount in table if (mount.point == point if point else mount.holds(path))]
            if found:
                return max(reversed(found), key=lambda mount: len(mount.point))
        return None

    def striping_of(self, path: str) -> Striping | None:
        """How Lustre stripes a file; None: it does not lie on Lustre, or its layout cannot be read."""
        layout = self.file_facts.get(path, {}).get("lustre.lov")
        return decode_layout(layout) if layout else None

    @property
    def program(self) -> str:
        """The program of the first task, an absolute path, or ``""``."""
        return next((process.program for process in self._by_weight() if process.program), "")

    @property
    def command(self) -> tuple[str, ...]:
        """The arguments of the first task's program."""
        return next((process.command for process in self._by_weight() if process.command), ())

    def _by_weight(self) -> list[Process]:
        """Processes, those with a rank and with recorded calls first."""
        return sorted(self.processes, key=lambda process: (process.rank < 0, process.threads == 0))

    @property
    def most_events(self) -> int:
        """How many events there are at most, without a look at them."""
        return self._source.slots

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
        self, span: tuple[int, int], max_events: int, columns: Sequence[str] | None, flaws: Flaws
    ) -> Iterator[Events]:
        """As `chunks`, of the ranks of a span; what is wrong with them is added to `flaws`, not noted."""
        return self._source.chunks_of_ranks(span, max_events, columns, flaws)

    def note_flaws(self, flaws: Flaws) -> None:
        """Say in the notes what a pass over all events found."""
        self._source.note_flaws(flaws)

    def gather(
        self,
        make: Callable[[Run], S],
        columns: Iterable[str] | None = None,
        selection: Selection | None = None,
    ) -> S:
        """A summary of the events, made in one pass and in bounded memory, by whoever works for this run.

        Parameters
        ----------
        make : callable
            Run → an empty summary. A class or function of a module, or a partial of one.
        columns : iterable of str, optional
            Those that it needs; default: all.
        selection : Selection, optional
            For this run: which events are added. Phases and ordinals are known to them where it asks for any.

        Raises
        ------
        EnsioError
            A file cannot be read any more, a worker ended, or more memory is needed than there may be.
        """
        return self.workers.gather(self, self._pass(make, columns, selection))

    def _pass(
        self, make: Callable[[Run], S], columns: Iterable[str] | None, selection: Selection | None
    ) -> Pass:
        in_phases = selection is not None and selection.phases is not None
        if selection is not None and columns is not None:
            # All columns of whole ranks are put together where ordinals are counted.
            whole = selection.ordinals is not None
            columns = None if whole else {*columns, *selection.columns, "rank", "start"}
        return Pass(
            path=os.path.abspath(self.path),
            opened=self._opened,
            sort_of_run=sort_of(self),
            make=make,
            columns=None if columns is None else tuple(name for name in COLUMNS if name in set(columns)),
            selection=selection,
            phases=self.phases if in_phases else None,
            budget=self.budget,
        )

    @cached_property
    def events(self) -> Events:
        """All events, sorted by (rank, start). Takes 55 bytes of memory an event."""
        return self._source.events().told_by(self._derived)

    def _derived(self, name: str) -> np.ndarray | None:
        """``phase`` or ``ordinal`` of all events; None where it cannot be told."""
        if name == "phase":
            return None if self.phases is None else self.phases.of(self.events)
        if not self.keeps_all_calls:
            return None
        from ensembles.structure.ordinals import ordinal_of

        return ordinal_of(self.events)

    @cached_property
    def regions(self) -> RegionTable:
        """The phases and regions that the program named (``ensio.h``, `ensembles.regions`)."""
        return self._source.regions()

    @cached_property
    def summary(self) -> CellSummary:
        """What all calls add up to, by call, size class and ordinal class, those included that are not
        among the events."""
        summary = self._source.summary()
        if summary is None:
            summary = self.gather(_empty_summary)
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
            ranks = self.gather(_empty_ranks)
        return ranks

    def select(self, **filters: Text) -> Events:
        """The events that filters choose, sorted by (rank, start).

        Parameters
        ----------
        **filters
            ``op``, ``call``, ``layer``, ``file``, ``rank``, ``size``, ``time``, ``region``, ``phase``,
            ``ordinal``, ``per_byte``, as on the command line; see `ensembles.selection.Selection.parse`.

        Raises
        ------
        EnsioError
            A filter makes no sense, or a file cannot be read any more.
        """
        return self.chosen_by(Selection.parse(**filters).for_run(self))

    def ensemble(self, per: Literal["call", "MiB"] = "call", **filters: Text) -> Ensemble:
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
        from ensembles.ensemble_of_run import ensemble_of

        return ensemble_of(self, Selection.parse(**filters).for_run(self, from_summary=True), per)

    def chosen_by(self, selection: Selection) -> Events:
        """The events that a selection for this run chooses, sorted by (rank, start)."""
        if "events" in self.__dict__:
            return selection.of(self.events)
        parts = list(self.chunks_for(selection))
        chosen = Events.concatenate(parts or [Events.empty(self.calls, self.files)]).sorted()

        def ask(name: str) -> np.ndarray | None:
            if name == "phase":
                return None if self.phases is None else self.phases.of(chosen)
            # It is sorted stably, as these are: equals are in one order.
            return selection.of(self.events).ordinal if self.keeps_all_calls else None

        return chosen.told_by(ask)

    def chunks_for(self, selection: Selection, max_events: int | None = None) -> Iterator[Events]:
        """The events that a selection chooses, chunk by chunk, in the order of ranks."""
        task = self._pass(_empty_summary, None, selection)
        return task.chosen(self, self._chunks_beside(selection, max_events or self.budget.chunk_events))

    def _chunks_beside(self, selection: Selection, max_events: int) -> Iterator[Events]:
        """Chunks that hold what a selection chooses, and more; where the source has an index, only those
        that lie beside it."""
        # Ordinals count all calls of a rank.
        times_ns = selection.times_ns if selection.ordinals is None else None
        if isinstance(self._source, Indexed) and (selection.ranks or times_ns):
            return self._source.chunks_within(selection.ranks, times_ns, max_events)
        return self.chunks(max_events)

    def __repr__(self) -> str:
        return f"Run {self.path}: {self._summary()}" + "".join(f"\n  note: {note}" for note in self.notes)

    def _repr_html_(self) -> str:
        notes = "".join(f"<li>{html.escape(note)}</li>" for note in self.notes)
        return (
            f"<p><b>{html.escape(os.path.basename(self.program) or self.path)}</b>: "
            f"{html.escape(self._summary())}<br><code>{html.escape(self.path)}</code></p>"
            + (f"<ul>{notes}</ul>" if notes else "")
        )

    def _summary(self) -> str:
        command = " ".join(self.command) or self.program or "unknown program"
        if len(command) > 80:
            command = command[:77] + "..."
        on = self.hosts[0] if len(self.hosts) == 1 else f"{len(self.hosts) or 'unknown'} nodes"
        tasks = f"{self.tasks} task{'s' * (self.tasks != 1)}"
        return f"{command}, {tasks} on {on}, {self.start:%Y-%m-%d %H:%M:%S} UTC"


def _empty_summary(run: Run) -> CellSummary:
    return CellSummary(run.calls, run.files)


def _empty_ranks(run: Run) -> RankTable:
    return RankTable(run.calls)
