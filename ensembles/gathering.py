"""One pass over the events of a run: parts of it are mapped to summaries, which are merged.

Who asks for a summary (`ensembles.run.Run.gather`) does not know who fills it: this process, others on this
machine, or the workers of a Dask cluster. Parts are spans of ranks, so that all calls of a thread, and all
that are counted by ordinals, come to one worker; each opens the run itself. Summaries are merged in the order
of ranks: counts are the same to the last bit, whoever made them, and sums of real numbers to rounding.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from itertools import repeat
from multiprocessing import get_context, parent_process
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

import numpy as np

from ensembles.budget import Budget
from ensembles.errors import EnsioError
from ensembles.readers.flaws import Flaws
from ensembles.summaries.kernels import THREADS

if TYPE_CHECKING:
    from ensembles.events import Events
    from ensembles.run import Run
    from ensembles.selection import Selection
    from ensembles.structure.phases import Phases

_FEW_EVENTS = 1 << 18
"""Threads are not worth while for fewer."""

_CHECKED_EVENTS = 1 << 17
"""After so many events it is looked what memory the process takes: to ask the kernel takes as long as
counting some thousands of them."""

PARTS_EACH = 3
"""Parts for each worker: one that is done early takes another."""


class Summary(Protocol):
    """What can be filled from parts of a run.

    One that has to see its events otherwise than as they come has a method ``prepared(chunks, budget, path)``
    beside these, which is given all chunks of its part and gives those that are added. One that holds events
    back has a method ``finish()``, which is called when all of its part were added.
    """

    def add(self, chunk: Events) -> None:
        """Add events; chunks come in the order of ranks."""

    def merge(self, other: Any) -> None:
        """Add what a summary of higher ranks holds."""


S = TypeVar("S", bound=Summary)


@dataclass(frozen=True)
class Pass:
    """What is to be done with the events of a run.

    Attributes
    ----------
    path : str
        Of the run, absolute.
    opened : str
        Another one each time that a run is opened: a worker opens it again then, for it may have grown.
    sort_of_run : tuple
        What tells whether a worker sees the same run.
    make : callable
        Run → an empty summary. Workers get it pickled: a class or function of a module, or a partial of one.
    columns : tuple of str or None
        Columns that the summary needs; None: all.
    selection : Selection or None
        Which events are added.
    phases : Phases or None
        Those of the run, where the selection asks for them.
    budget : Budget
        Of each process.
    """

    path: str
    opened: str
    sort_of_run: tuple[int, ...]
    make: Callable[[Run], Any]
    columns: tuple[str, ...] | None
    selection: Selection | None
    phases: Phases | None
    budget: Budget

    def filled(self, run: Run, span: tuple[int, int] | None = None) -> tuple[Any, Flaws]:
        """The summary of a span of ranks, or of all."""
        flaws = Flaws()
        summary = self.make(run)
        try:
            chunks = self.chosen(run, self._chunks(run, span, flaws))
            if hasattr(summary, "prepared"):
                chunks = summary.prepared(chunks, self.budget, self.path)
            unchecked = 0
            for chunk in chunks:
                summary.add(chunk)
                unchecked += len(chunk)
                del chunk  # so that the memory of its columns can take the next one
                if unchecked >= _CHECKED_EVENTS:
                    self.budget.check(self.path)
                    unchecked = 0
            if hasattr(summary, "finish"):
                summary.finish()
            self.budget.check(self.path)
        except MemoryError as error:
            raise self.budget.exceeded(self.path) from error
        return summary, flaws

    def chosen(self, run: Run, chunks: Iterator[Events]) -> Iterator[Events]:
        """Of these chunks the events that are chosen."""
        if self.selection is None:
            yield from chunks
            return
        if self.selection.ordinals is not None:
            from ensembles.structure.whole_ranks import with_ordinals

            chunks = with_ordinals(chunks, self.budget.held_events, self.path)
        for chunk in chunks:
            if self.phases is not None:
                chunk.told_by(partial(_told, self.phases.of(chunk), chunk.ordinal))
            yield self.selection.of(chunk)
            del chunk  # so that the memory of its columns can take the next one

    def _chunks(self, run: Run, span: tuple[int, int] | None, flaws: Flaws) -> Iterator[Events]:
        if span is None:
            return run.chunks(self.budget.chunk_events, self.columns)
        return run.chunks_of_ranks(span, self.budget.chunk_events, self.columns, flaws)


def _told(phase: np.ndarray, ordinal: np.ndarray | None, name: str) -> np.ndarray | None:
    # Not asked of the chunk when it is needed: a chunk that refers to itself would be kept for long.
    return phase if name == "phase" else ordinal


class Workers(Protocol):
    """Who makes passes."""

    def gather(self, run: Run, task: Pass) -> Any:
        """The summary of the whole run.

        Raises
        ------
        EnsioError
            The run cannot be read any more, or a worker ended before it was done: there is no summary then.
        """


class Here:
    """This process makes them.

    Parameters
    ----------
    threads : int
    """

    def __init__(self, threads: int = THREADS) -> None:
        self.threads = threads

    def gather(self, run: Run, task: Pass) -> Any:
        """As `Workers` says."""
        spans = run.spans_of_ranks(self.threads) if self.threads > 1 else []
        if len(spans) < 2 or run.most_events < _FEW_EVENTS:
            return task.filled(run)[0]
        with ThreadPoolExecutor(self.threads) as pool:
            parts = list(pool.map(task.filled, repeat(run), spans))
        whole, flaws = parts[0]
        for summary, found in parts[1:]:
            whole.merge(summary)
            flaws.merge(found)
        run.note_flaws(flaws)
        return whole


class Processes:
    """Processes on this machine, started when they are first needed.

    Parameters
    ----------
    count : int
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ProcessPoolExecutor | None = None

    def gather(self, run: Run, task: Pass) -> Any:
        """As `Workers` says."""
        spans = run.spans_of_ranks(self.count * PARTS_EACH)
        task = replace(task, budget=task.budget.shared_by(self.count + 1))
        whole, flaws = task.make(run), Flaws()
        try:
            for summary, found in self._started().map(part_filled, [task] * len(spans), spans):
                whole.merge(summary)
                flaws.merge(found)
                task.budget.check(task.path)
        except BrokenProcessPool as error:
            self._pool = None
            raise EnsioError(
                f"a worker process ended before it was done with {task.path} (killed, or out of memory): "
                "there is no answer; run it again, perhaps with fewer --workers"
            ) from error
        run.note_flaws(flaws)
        return whole

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # Not fork: this process may have threads, and a lock of theirs would never be given back.
            context = get_context("forkserver")
            context.set_forkserver_preload(["ensembles.opening", "ensembles.selection"])
            self._pool = ProcessPoolExecutor(self.count, context, _end_with_parent)
        return self._pool


def _end_with_parent() -> None:
    """A worker whose parent was killed would wait for work for ever."""

    def wait() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def part_filled(task: Pass, span: tuple[int, int]) -> tuple[Any, Flaws]:
    """What a worker does."""
    run = _opened(task.path, task.opened, task.budget.memory_bytes)
    if sort_of(run) != task.sort_of_run:
        raise EnsioError(
            f"{task.path} has changed while it was read, or is another run on a worker's machine: wait until "
            "the job has ended, and let all workers see the same files"
        )
    return task.filled(run, span)


@lru_cache(maxsize=2)
def _opened(path: str, _: str, memory_bytes: int) -> Run:
    from ensembles.opening import open as open_run

    return open_run(path, memory_bytes=memory_bytes)


def workers_of(wanted: int | str | Workers | None) -> Workers:
    """Who is meant: a number of processes, the address of a Dask scheduler, or None for the threads of this
    process."""
    if wanted is None:
        return Here()
    if wanted == 1:
        return Here(threads=1)
    if isinstance(wanted, int):
        return Processes(wanted)
    if isinstance(wanted, str):
        from ensembles.dask_workers import DaskWorkers

        return DaskWorkers(wanted)
    return wanted


def sort_of(run: Run) -> tuple[int, ...]:
    """What is the same for a run whoever opens it, and another for most others."""
    return run.tasks, run.threads, run.origin_unix_ns, len(run.calls), len(run.files)


def merged(summaries: Sequence[tuple[Any, Flaws]]) -> tuple[Any, Flaws]:
    """Summaries of parts put together, in their order; what is given stays as it is."""
    from copy import deepcopy

    # Where a result is lost and made again, its parts are needed again, as they were.
    whole, flaws = deepcopy(summaries[0])
    for summary, found in summaries[1:]:
        whole.merge(summary)
        flaws.merge(found)
    return whole, flaws
