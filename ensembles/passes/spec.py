"""What a pass over the events of a run computes, independent of the executor that makes it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from copy import deepcopy
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, Protocol, TypeAlias

from ensembles.model.errors import EnsioError
from ensembles.model.events import Call, Events
from ensembles.passes.damage import DamageReport
from ensembles.passes.group import SummaryGroup, SummaryRequest
from ensembles.passes.memory import Budget
from ensembles.passes.summary import Requirement

PARTS_EACH = 3
"""Parts for each worker process: one that is done early takes another."""

Choose: TypeAlias = Callable[[Iterator[Events], Budget, str], Iterator[Events]]
Partial: TypeAlias = tuple[SummaryGroup, DamageReport]
"""What a part of a run gave."""


class PassRun(Protocol):
    """What a pass needs of a run (`ensembles.run.run.Run`)."""

    path: str

    @property
    def tasks(self) -> int: ...

    @property
    def threads(self) -> int: ...

    @property
    def origin_unix_ns(self) -> int: ...

    @property
    def calls(self) -> tuple[Call, ...]: ...

    @property
    def files(self) -> Sequence[str]: ...

    @property
    def most_events(self) -> int: ...

    def chunks(self, max_events: int, columns: Sequence[str] | None) -> Iterator[Events]: ...

    def parts(
        self, most_parts: int, max_events: int, columns: Sequence[str] | None
    ) -> list[Iterator[Events]]: ...

    def spans_of_ranks(self, most_parts: int) -> list[tuple[int, int]]: ...

    def chunks_of_ranks(
        self, span: tuple[int, int], max_events: int, columns: Sequence[str] | None, flaws: DamageReport
    ) -> Iterator[Events]: ...

    def note_damage(self, flaws: DamageReport) -> None: ...


@dataclass(frozen=True)
class PassSpec:
    """What a pass over the events of a run computes.

    Attributes
    ----------
    path : str
        Absolute path of the run.
    open_token : str
        Changes each time that the run is opened: a worker opens it again then, for it may have grown.
    fingerprint : tuple
        Tells whether a worker sees the same run.
    reopen : callable or None
        Path, bytes of memory → the run, for workers: a function of a module. None: the run cannot be opened
        again by its path.
    requests : mapping of str to SummaryRequest
    columns : tuple of str or None
        Columns that the summaries and the selection need; None: all.
    choose : callable or None
        Chunks, budget, path → the chosen events of these chunks. None: all events are added.
    requires : Requirement
        What the summaries and `choose` require of the chunks.
    budget : Budget
        Memory of each process.
    """

    path: str
    open_token: str
    fingerprint: tuple[int, ...]
    reopen: Callable[[str, int], PassRun] | None
    requests: Mapping[str, SummaryRequest]
    columns: tuple[str, ...] | None
    choose: Choose | None
    requires: Requirement
    budget: Budget

    def new_group(self, run: PassRun) -> SummaryGroup:
        """Empty summaries."""
        return SummaryGroup(self.requests, run)

    def for_processes(self, count: int) -> PassSpec:
        """The same for each of several processes that share the memory."""
        return replace(self, budget=self.budget.shared_by(count))

    def unwatched(self) -> PassSpec:
        """The same for workers that watch over their memory themselves."""
        return replace(self, budget=self.budget.unwatched())

    def summarize(self, run: PassRun, chunks: Iterator[Events] | None = None) -> SummaryGroup:
        """The summaries of some chunks of the run, or of all.

        Raises
        ------
        EnsioError
            A file cannot be read any more, or more memory is needed than there may be.
        """
        group = self.new_group(run)
        try:
            chunks = run.chunks(self.budget.chunk_events, self.columns) if chunks is None else chunks
            if self.choose is not None:
                chunks = self.choose(chunks, self.budget, self.path)
            group.fill(chunks, self.budget, self.path)
            self.budget.check(self.path)
        except MemoryError as error:
            raise self.budget.exceeded(self.path) from error
        return group

    def summarize_ranks(self, run: PassRun, span: tuple[int, int]) -> Partial:
        """The summaries of a span of ranks."""
        damage = DamageReport()
        chunks = run.chunks_of_ranks(span, self.budget.chunk_events, self.columns, damage)
        return self.summarize(run, chunks), damage


def run_partition(spec: PassSpec, span: tuple[int, int]) -> Partial:
    """What a worker process does: open the run, and summarize a span of its ranks.

    Raises
    ------
    EnsioError
        The run cannot be read, has changed since the pass began, or needs too much memory.
    """
    run = _reopened(spec.reopen, spec.path, spec.open_token, spec.budget.memory_bytes)
    if compute_fingerprint(run) != spec.fingerprint:
        raise EnsioError(
            f"{spec.path} has changed while it was read, or is another run on a worker's machine: wait until "
            "the job has ended, and let all workers see the same files"
        )
    return spec.summarize_ranks(run, span)


@lru_cache(maxsize=2)
def _reopened(
    reopen: Callable[[str, int], PassRun] | None, path: str, open_token: str, memory_bytes: int
) -> PassRun:
    if reopen is None:
        raise EnsioError(f"{path} was not opened by its path, and workers cannot open it: use ensembles.open")
    return reopen(path, memory_bytes)


def merge_partials(partials: Sequence[Partial]) -> Partial:
    """Merge what parts of a run gave, in their order.

    The arguments stay as they are: where Dask loses a result and makes it again, it needs its parts again.
    """
    whole, damage = deepcopy(partials[0])
    for group, found in partials[1:]:
        whole.merge(group)
        damage.merge(found)
    return whole, damage


def compute_fingerprint(run: PassRun) -> tuple[int, ...]:
    """What is the same for a run each time that it is opened, and differs from most other runs."""
    return run.tasks, run.threads, run.origin_unix_ns, len(run.calls), len(run.files)


def summarize_chunks(
    requests: Mapping[str, SummaryRequest], chunks: Iterator[Events], run: Any
) -> SummaryGroup:
    """The summaries of events that are not read from a run, in this thread.

    Parameters
    ----------
    requests : mapping of str to SummaryRequest
    chunks : iterator of Events
        In the order of ranks.
    run : object
        Is given to the factories of the requests.
    """
    group = SummaryGroup(requests, run)
    group.fill(chunks, Budget.default().unwatched(), "these events")
    return group
