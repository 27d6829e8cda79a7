"""Executors make passes: threads of this process, other processes, or a Dask cluster (`.dask`).

A run is divided into spans of ranks, so that all calls of a thread, and all that are counted by ordinals,
come to one worker. Groups of summaries are merged in the order of ranks: counts are equal to the last bit,
whatever the executor, and sums of real numbers to rounding.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from itertools import repeat
from multiprocessing import get_context, parent_process
from typing import Protocol

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.passes.damage import DamageReport
from ensembles.passes.group import SummaryGroup
from ensembles.passes.spec import PARTS_EACH, Partial, PassRun, PassSpec, run_partition
from ensembles.passes.summary import ANY_ORDER

THREADS = min(4, len(os.sched_getaffinity(0)))

_FEW_EVENTS = 1 << 18
"""Threads are not worthwhile for fewer."""


class Executor(Protocol):
    """Makes passes."""

    def summarize(self, run: PassRun, spec: PassSpec) -> SummaryGroup:
        """The summaries of the whole run.

        Raises
        ------
        EnsioError
            The run cannot be read any more, or a worker ended before it was done: there is no summary then.
        """


class ThreadExecutor:
    """Threads of this process make passes.

    Parameters
    ----------
    threads : int
    """

    def __init__(self, threads: int = THREADS) -> None:
        self.threads = threads

    def summarize(self, run: PassRun, spec: PassSpec) -> SummaryGroup:
        """As `Executor` says."""
        if self.threads < 2 or run.most_events < _FEW_EVENTS:
            return spec.summarize(run)
        if spec.requires is ANY_ORDER:
            parts = run.parts(self.threads, spec.budget.chunk_events, spec.columns)
            return self._merged_parts(run, spec, parts)
        spans = run.spans_of_ranks(self.threads)
        if len(spans) < 2:
            return spec.summarize(run)
        with ThreadPoolExecutor(self.threads) as pool:
            return _merged(run, spec, pool.map(spec.summarize_ranks, repeat(run), spans))

    def _merged_parts(self, run: PassRun, spec: PassSpec, parts: list[Iterator[Events]]) -> SummaryGroup:
        """The summaries of parts that need not be whole ranks, which are quicker to read."""
        if len(parts) == 1:
            return spec.summarize(run, _read_ahead(parts[0]))
        with ThreadPoolExecutor(self.threads) as pool:
            groups = pool.map(spec.summarize, repeat(run), parts)
            # Reading a part to its end notes what was found damaged.
            return _merged(run, spec, ((group, DamageReport()) for group in groups))


def _read_ahead(chunks: Iterator[Events]) -> Iterator[Events]:
    """The same chunks, each of which is read by another thread while the one before it is worked on."""
    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = pool.submit(next, chunks, None)
            yield chunk
            del chunk  # so that the memory of its columns can take a later one


class ProcessExecutor:
    """Processes on this machine make passes; they are started when they are first needed.

    Parameters
    ----------
    count : int
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ProcessPoolExecutor | None = None

    def summarize(self, run: PassRun, spec: PassSpec) -> SummaryGroup:
        """As `Executor` says."""
        spans = run.spans_of_ranks(self.count * PARTS_EACH)
        spec = spec.for_processes(self.count + 1)
        try:
            return _merged(run, spec, self._started().map(partial(run_partition, spec), spans))
        except BrokenProcessPool as error:
            self._pool = None
            raise EnsioError(
                f"a worker process ended before it was done with {spec.path} (killed, or out of memory): "
                "there is no answer; run it again, perhaps with fewer --workers"
            ) from error

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            # Not fork: this process may have threads, and a lock of theirs would never be given back.
            context = get_context("forkserver")
            context.set_forkserver_preload(["ensembles.run.open", "ensembles.run.selection"])
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


def _merged(run: PassRun, spec: PassSpec, partials: Iterable[Partial]) -> SummaryGroup:
    """Merge what spans of ranks gave, in their order, and note what was found damaged."""
    rest = iter(partials)
    whole, damage = next(rest, None) or (spec.new_group(run), DamageReport())
    for group, found in rest:
        whole.merge(group)
        damage.merge(found)
        spec.budget.check(spec.path)
    run.note_damage(damage)
    return whole


def executor_for(wanted: int | str | Executor | None) -> Executor:
    """The executor that is meant: a number of processes, the address of a Dask scheduler, or None for the
    threads of this process."""
    if wanted is None:
        return ThreadExecutor()
    if wanted == 1:
        return ThreadExecutor(threads=1)
    if isinstance(wanted, int):
        return ProcessExecutor(wanted)
    if isinstance(wanted, str):
        from ensembles.passes.dask import DaskExecutor

        return DaskExecutor(wanted)
    return wanted
