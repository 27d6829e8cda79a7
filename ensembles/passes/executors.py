"""Executors of passes: threads, processes, or a Dask cluster (`.dask`).

If the order of calls matters, a run is divided into spans of ranks, so that one worker gets all calls of a
thread, and all calls that are counted by ordinals. Groups of summaries are merged in the order of ranks.
Results do not depend on the executor: counts are equal to the last bit, and sums of real numbers to rounding.

Most runs are read by one thread: what starts others is imported when they are needed.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Protocol

from ensembles.model.errors import EnsioError
from ensembles.model.events import Events
from ensembles.passes.damage import DamageReport
from ensembles.passes.group import SummaryGroup
from ensembles.passes.progress import advance, announced
from ensembles.passes.reading import divide
from ensembles.passes.spec import Partial, PassRun, PassSpec, run_partition

if TYPE_CHECKING:
    from concurrent.futures import ProcessPoolExecutor

THREADS = min(2, len(os.sched_getaffinity(0)))
"""More threads wait for the lock of Python as long as they work."""

_FEW_EVENTS = 1 << 18
"""Runs with fewer events are read by one thread, as starting others would take longer."""


class Executor(Protocol):
    """An object that makes passes over runs."""

    def summarize(self, run: PassRun, spec: PassSpec) -> SummaryGroup:
        """Make a pass over a run.

        The summaries of the whole run; there are no partial results.
        """


class ThreadExecutor:
    """An executor that makes passes by threads of this process.

    `threads`: largest number of threads. Default: one for each processor that this process may use, at most
    `THREADS`. A small memory budget allows one.
    """

    def __init__(self, threads: int = THREADS) -> None:
        self.threads = threads

    def summarize(self, run: PassRun, spec: PassSpec) -> SummaryGroup:
        """Make a pass over a run (`Executor.summarize`)."""
        with announced("reading", spec.path, run.reading.source.capacity):
            return self._summarize(run, spec)

    def _summarize(self, run: PassRun, spec: PassSpec) -> SummaryGroup:
        threads = min(self.threads, spec.budget.threads)
        if threads < 2 or run.reading.source.capacity < _FEW_EVENTS:
            return _merged(run, spec, [spec.summarize(run, spec.request)])
        parts = divide(run.reading.source, spec.request, threads)
        if len(parts) < 2:
            return _merged(run, spec, [spec.summarize(run, spec.request, _read_ahead)])
        from concurrent.futures import ThreadPoolExecutor

        with ThreadPoolExecutor(threads) as pool:
            return _merged(run, spec, pool.map(spec.summarize, repeat(run), parts))


def _read_ahead(chunks: Iterator[Events]) -> Iterator[Events]:
    """Read each chunk in another thread, while the chunk before it is processed."""
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(1) as pool:
        coming = pool.submit(next, chunks, None)
        while (chunk := coming.result()) is not None:
            coming = pool.submit(next, chunks, None)
            yield chunk
            del chunk  # so that its memory can be reused for a later one


class ProcessExecutor:
    """An executor that makes passes by processes on this machine.

    The processes are started for the first pass, and serve later ones.
    """

    def __init__(self, count: int) -> None:
        self.count = count
        self._pool: ProcessPoolExecutor | None = None

    def summarize(self, run: PassRun, spec: PassSpec) -> SummaryGroup:
        """Make a pass over a run (`Executor.summarize`)."""
        from concurrent.futures.process import BrokenProcessPool

        spec = spec.for_processes(self.count + 1)
        parts = spec.parts_for_workers(run, self.count)
        try:
            with announced("reading", spec.path, len(parts), "parts"):
                found = self._started().map(partial(run_partition, spec), parts)
                return _merged(run, spec, _each_told(found))
        except BrokenProcessPool as error:
            # A program that ends while the pool still closes its pipes prints a traceback of Python.
            self._started().shutdown()
            self._pool = None
            raise EnsioError(
                f"a worker process ended before it had read its part of {spec.path} (killed, or out of "
                "memory): run the command again with fewer --workers or more memory"
            ) from error

    def _started(self) -> ProcessPoolExecutor:
        if self._pool is None:
            from concurrent.futures import ProcessPoolExecutor
            from multiprocessing import get_context

            # Not fork: this process may have threads, whose locks would stay locked in a forked child.
            context = get_context("forkserver")
            context.set_forkserver_preload(["ensembles.run.open", "ensembles.run.selection"])
            self._pool = ProcessPoolExecutor(self.count, context, _end_with_parent)
        return self._pool


def _end_with_parent() -> None:
    """End this worker when its parent ends, even if the parent was killed."""
    from multiprocessing import parent_process

    def wait() -> None:
        parent = parent_process()
        if parent is not None:
            parent.join()
            os._exit(1)

    threading.Thread(target=wait, daemon=True).start()


def _each_told(partials: Iterable[Partial]) -> Iterator[Partial]:
    for partial_result in partials:
        advance(1)
        yield partial_result


def _merged(run: PassRun, spec: PassSpec, partials: Iterable[Partial]) -> SummaryGroup:
    """Merge the results of parts of a run, in their order, and note the damage."""
    rest = iter(partials)
    whole, damage = next(rest, None) or (spec.new_group(run), DamageReport())
    for group, found in rest:
        whole.merge(group)
        damage.merge(found)
        spec.budget.check(spec.path)
    run.reading.note_damage(damage)
    return whole


LEAST_EVENTS = 1 << 26
"""In shorter runs, worker processes take longer to start than they save (docs/reference/scaling.md)."""


def suited_to(executor: Executor, run: PassRun) -> Executor:
    """Return threads in place of processes for a run that these read more slowly, and say so."""
    capacity = run.reading.source.capacity
    if not isinstance(executor, ProcessExecutor) or capacity >= LEAST_EVENTS:
        return executor
    import logging

    sentence = f"{capacity:,} calls are read by threads, which are faster than worker processes"
    logging.getLogger("ensembles").warning("ensio: %s", sentence)
    return ThreadExecutor()


def executor_for(wanted: int | str | Executor | None) -> Executor:
    """Choose an executor.

    `wanted`: a number of processes (1: one thread of this process), the address of a Dask scheduler, an
    executor, or None for threads of this process.
    """
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
