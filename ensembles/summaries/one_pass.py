"""All events of a run in one pass, which several threads share, or whoever else works for the run."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

from ensembles.events import Events
from ensembles.gathering import Here
from ensembles.summaries.kernels import THREADS

if TYPE_CHECKING:
    from ensembles.run import Run


class Mergeable(Protocol):
    """A summary that several threads fill, each its own."""

    def add(self, chunk: Events) -> None: ...

    def merge(self, other: Self) -> None: ...


Summary = TypeVar("Summary", bound=Mergeable)

CHUNK = 1 << 15
"""Events that are in memory at a time, for each thread: their columns stay in its processor's cache."""


def filled(run: Run, columns: Sequence[str], make: Callable[[], Summary]) -> Summary:
    """A summary of all events of a run.

    Parameters
    ----------
    run : Run
    columns : sequence of str
        Those that the summary needs.
    make : callable
        Makes an empty summary: a class or function of a module, or a partial of one, for other processes.

    Raises
    ------
    EnsioError
        A file cannot be read any more, a worker ended, or more memory is needed than there may be.
    """
    if not isinstance(run.workers, Here):
        return run.gather(partial(made, make), columns)
    threads = min(run.workers.threads, THREADS)
    parts = run.parts(threads, CHUNK, columns)
    summaries = [make() for _ in range(max(len(parts), 1))]
    if len(parts) > 1:
        with ThreadPoolExecutor(len(parts)) as pool:
            for _ in pool.map(_fill, parts, summaries):
                pass
    elif parts:
        summaries.append(make())
        _fill_by_turns(parts[0], summaries)
    for other in summaries[1:]:
        summaries[0].merge(other)
    run.budget.check(run.path)
    return summaries[0]


def made(make: Callable[[], Summary], _: Run) -> Summary:
    """An empty summary that does not depend on the run, for `Run.gather`."""
    return make()


def _fill(chunks: Iterator[Events], summary: Any) -> None:
    for chunk in chunks:
        summary.add(chunk)
        del chunk  # so that the memory of its columns can take the next one


def _fill_by_turns(chunks: Iterator[Events], summaries: Sequence[Any]) -> None:
    """Chunks are added while the next ones are read."""
    pending: list[Future | None] = [None] * len(summaries)
    with ThreadPoolExecutor(len(summaries)) as pool:
        for turn, chunk in enumerate(chunks):
            place = turn % len(summaries)
            if (busy := pending[place]) is not None:
                busy.result()
            pending[place] = pool.submit(summaries[place].add, chunk)
        for busy in pending:
            if busy is not None:
                busy.result()
