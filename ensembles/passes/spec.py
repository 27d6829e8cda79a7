"""Specification of a pass over the events of a run, for any executor."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

from ensembles.model.errors import EnsioError
from ensembles.model.events import Call, Events
from ensembles.model.run_info import RunInfo
from ensembles.passes.damage import DamageReport
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.memory import Budget
from ensembles.passes.progress import counted
from ensembles.passes.reading import ANYTHING, ChunkSource, Contents, Ranges, ReadRequest, divide
from ensembles.passes.summary import ANY_ORDER, Requirement

PARTS_EACH = 3
"""Parts of a run for each worker: a worker that finishes early takes another part."""

Choose: TypeAlias = Callable[[Iterator[Events], Budget, str], Iterator[Events]]
ReadAhead: TypeAlias = Callable[[Iterator[Events]], Iterator[Events]]
Partial: TypeAlias = tuple[SummaryGroup, DamageReport]
"""Result of a part of a run."""


class PassRunReading(Protocol):
    """What passes need of `ensembles.run.reading.RunReading`."""

    @property
    def source(self) -> ChunkSource: ...

    def note_damage(self, damage: DamageReport) -> None: ...


class PassRun(Protocol):
    """The interface of a run that passes need; `ensembles.run.run.Run` documents it."""

    path: str

    @property
    def tasks(self) -> int: ...

    @property
    def calls(self) -> tuple[Call, ...]: ...

    @property
    def files(self) -> Sequence[str]: ...

    @property
    def info(self) -> RunInfo: ...

    @property
    def reading(self) -> PassRunReading: ...


@dataclass(frozen=True)
class PassSpec:
    """The specification of a pass.

    It can be pickled, so that workers of any executor can make their part.
    """

    path: str  # Absolute path of the run
    # Differs each time that the run is opened. A worker that sees a new token opens the run again, as it may
    # have grown.
    open_token: str
    # `compute_fingerprint` of the run, by which a worker checks that it sees the same run.
    fingerprint: tuple[int, ...]
    # Opens the run in a worker, given its path and its memory in bytes: a function of a module. None: the run
    # cannot be opened by its path.
    reopen: Callable[[str, int], PassRun] | None
    requests: Mapping[str, SummaryRequest]  # The summaries to fill
    columns: tuple[str, ...] | None  # Columns that the summaries and the selection need; None: all
    # Reduces chunks to the selected events, given chunks, budget and path. None: all events are added.
    choose: Choose | None
    requires: Requirement  # Requirement of the summaries and of `choose` on the chunks
    budget: Budget  # Memory of each process
    # ranks, times_ns, contents: As of `ReadRequest`, of the events that `choose` selects: others need not be
    # read.
    ranks: Ranges | None = None
    times_ns: Ranges | None = None
    contents: Contents = ANYTHING

    def new_group(self, run: PassRun) -> SummaryGroup:
        """Make the empty summaries."""
        return SummaryGroup(self.requests, run)

    def for_processes(self, count: int) -> PassSpec:
        """Return the specification for each of several processes that share the memory."""
        return replace(self, budget=self.budget.shared_by(count))

    def unwatched(self) -> PassSpec:
        """Return the specification for workers whose memory is limited by other means."""
        return replace(self, budget=self.budget.unwatched())

    @property
    def request(self) -> ReadRequest:
        """The events to read for the whole pass."""
        is_ordered = self.requires is not ANY_ORDER
        return ReadRequest(
            self.budget.chunk_events,
            self.columns,
            is_ordered,
            self.ranks,
            times_ns=self.times_ns,
            contents=self.contents,
        )

    def parts_for_workers(self, run: PassRun, workers: int) -> list[ReadRequest]:
        """Divide the pass into parts for workers that open the run themselves.

        There is one part if opening the run is most of the work, and none if it has no events.
        """
        if not run.reading.source.is_quick_to_open:
            return [self.request] if run.reading.source.capacity else []
        return divide(run.reading.source, self.request, PARTS_EACH * workers)

    def summarize(self, run: PassRun, request: ReadRequest, ahead: ReadAhead = iter) -> Partial:
        """Summarize a part of the run in this thread.

        `request`: the part: `request` of the whole pass, or a part of it by `divide`.
        `ahead`: reads chunks in another thread, given an iterator of them.
        """
        group, damage = self.new_group(run), DamageReport()
        try:
            chunks = counted(ahead(run.reading.source.chunks(request, damage)))
            if self.choose is not None:
                chunks = self.choose(chunks, self.budget, self.path)
            group.fill(chunks, self.budget, self.path)
            self.budget.check(self.path)
        except MemoryError as error:
            raise self.budget.exceeded(self.path) from error
        return group, damage


def run_partition(spec: PassSpec, request: ReadRequest) -> Partial:
    """Open the run in a worker process, and summarize a part of it."""
    run = _reopened(spec.reopen, spec.path, spec.open_token, spec.budget.memory_bytes)
    if compute_fingerprint(run) != spec.fingerprint:
        raise EnsioError(
            f"{spec.path} has changed while it was read, or differs on a worker's machine: wait until the "
            "job has ended, and let all workers see the same files"
        )
    return spec.summarize(run, request)


@lru_cache(maxsize=2)
def _reopened(
    reopen: Callable[[str, int], PassRun] | None, path: str, open_token: str, memory_bytes: int
) -> PassRun:
    if reopen is None:
        raise EnsioError(f"{path} cannot be opened by workers, as it has no path: use ensembles.open")
    return reopen(path, memory_bytes)


def merge_partials(partials: Sequence[Partial]) -> Partial:
    """Merge the results of parts of a run, in their order.

    The arguments are not changed: if Dask loses the result, it needs them again.
    """
    whole, damage = deepcopy(partials[0])
    for group, found in partials[1:]:
        whole.merge(group)
        damage.merge(found)
    return whole, damage


def compute_fingerprint(run: PassRun) -> tuple[int, ...]:
    """Compute numbers that identify a run each time it is opened.

    They differ between most runs.
    """
    return run.tasks, run.info.threads, run.info.origin_unix_ns, len(run.calls), len(run.files)


def summarize_chunks(
    requests: Mapping[str, SummaryRequest], chunks: Iterator[Events], run: Any
) -> SummaryGroup:
    """Summarize events that are not read from a run, in this thread.

    Examples
    --------
    >>> from ensembles.passes.group import SummaryRequest
    >>> from ensembles.passes.spec import summarize_chunks
    >>> from ensembles.passes.summary import ignoring_run
    >>> from ensembles.summaries.runtotals import EventCount
    >>> events = en.open("ensio-ior").events
    >>> requests = {"count": SummaryRequest(ignoring_run(EventCount))}
    >>> summarize_chunks(requests, iter([events[:100], events[100:]]), None)["count"].events
    336
    """
    group = SummaryGroup(requests, run)
    group.fill(chunks, Budget.default().unwatched(), "these events")
    return group
