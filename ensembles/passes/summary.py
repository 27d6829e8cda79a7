"""The protocol of summaries: what a pass over the events of a run computes.

A run may have more events than fit into memory, and its parts may be read by several workers. A *summary* is
an object of bounded size that is filled chunk by chunk; summaries of parts of a run merge to that of the
whole. A pass runs through these steps:

1. The engine makes an empty summary in each worker. `Summary.columns` gives the columns to read, and
   `Summary.requires` how the events must be divided into parts and chunks.
2. In each worker, `Summary.prepare_chunks` may transform the chunks of the part. `Summary.add` gets the
   resulting chunks, one after the other.
3. After the last chunk of the part, `Summary.finalize` completes the summary.
4. The engine merges the parts in the order of their ranks (`Summary.merge`).
5. Callers read the result by the attributes of the class.

A summary class defines `add`, and `merge` or what adds up (`Summary.added_up`). It overrides the rest only
where the defaults do not fit. Summaries are pickled between processes.

Examples
--------
A summary of the longest write of each rank. It needs three columns, and its chunks may come in any order:

>>> from ensembles.model.events import OPS
>>> from ensembles.passes.summary import ANY_ORDER, Summary, ignoring_run
>>> class LongestWrite(Summary):
...     columns = ("rank", "call", "duration")
...     requires = ANY_ORDER
...
...     def __init__(self):
...         self.longest_ns = {}
...
...     def add(self, chunk):
...         writes = chunk[chunk.op == OPS.index("write")]
...         for rank in np.unique(writes.rank).tolist():
...             self._add(rank, int(writes.duration[writes.rank == rank].max()))
...
...     def merge(self, other):
...         for rank, duration_ns in other.longest_ns.items():
...             self._add(rank, duration_ns)
...
...     def _add(self, rank, duration_ns):
...         self.longest_ns[rank] = max(self.longest_ns.get(rank, 0), duration_ns)

Threads of this process fill it; ``ensembles.open(path, workers=4)`` would start four processes, for which the
class must be in a module:

>>> run = en.open("ensio-ior")
>>> summary = run.summarize(ignoring_run(LongestWrite))
>>> sorted(summary.longest_ns)
[0, 1, 2, 3, 4, 5, 6, 7]

Summaries of parts merge to the summary of the whole:

>>> parts = LongestWrite(), LongestWrite()
>>> parts[0].add(run.events[:100])
>>> parts[1].add(run.events[100:])
>>> parts[0].merge(parts[1])
>>> parts[0].longest_ns == summary.longest_ns
True
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from copy import copy
from enum import IntEnum
from functools import partial
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

if TYPE_CHECKING:
    from ensembles.model.events import Events
    from ensembles.passes.memory import Budget


class Requirement(IntEnum):
    """Requirement of a summary on its chunks; each level includes those before it."""

    ANY_ORDER = 0
    """None: chunks come in any order, and the calls of one rank may be in several parts, merged later."""
    RANK_ORDER = 1
    """One part holds all calls of a rank. Its chunks come in the order of ranks, and the calls of a thread in
    the order of completion, so that an inner call precedes the call around it."""
    BY_RANK = 2
    """A chunk holds all calls of each of its ranks. Ranks with more events than fit into memory are left out
    (`ensembles.passes.group.SummaryGroup.left_out_ranks`)."""


ANY_ORDER, RANK_ORDER, BY_RANK = Requirement


class Summary(Protocol):
    """A mergeable summary of events.

    Classes derive from this protocol and inherit the defaults of what they do not define. Merging is
    associative: ``merge`` of summaries of parts gives the summary of the whole, counts to the last bit.
    """

    # Columns of events that the summary reads. None, the default: all. Others may be absent in the chunks.
    columns: tuple[str, ...] | None = None
    requires: Requirement = RANK_ORDER  # Requirement on the chunks. Default: `RANK_ORDER`
    # Attributes that a pass fills and from which the results are read: plain values, arrays, and parts that
    # name their ``results``. They are kept for later commands (`ensembles.passes.kept`). Default: none, and
    # the summary is not kept.
    results: tuple[str, ...] = ()
    added_up: tuple[str, ...] = ()  # Attributes that add up when parts merge; flags and sets are joined
    # Raised when results get another meaning: kept ones of a smaller number are computed again. Default: 0.
    meaning: int = 0
    result_types: tuple[type, ...] = ()  # Named tuples and data classes among their values
    # Its numbers are those of all calls. Of a record that lacks events, they come from the sums of the
    # recorder (`ensembles.summaries.from_cells.from_sums`); what sums do not know is None. Default: False,
    # and the numbers are of the calls with events.
    of_all_calls: bool = False
    empty_if_unknown: bool = False  # What sums do not know is an empty summary instead. Default: False

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        if cls.merge is Summary.merge and not cls.added_up:
            raise TypeError(f"{cls.__name__} defines neither `merge` nor `added_up`")

    @abstractmethod
    def add(self, chunk: Events) -> None:
        """Add events.

        `chunk`: events as `requires` and `prepare_chunks` determine them; it may be empty. A summary that
        keeps a column must copy it, as the memory is reused for the next chunk.
        """

    def merge(self, other: Self) -> None:
        """Add the contents of another summary of the same class and arguments: by default, its `added_up`.

        `other`: filled from another part of the run; with `RANK_ORDER` and `BY_RANK`, from higher ranks. It
        must stay unchanged, so that arrays which this summary may change later have to be copied.
        """
        for name in self.added_up:
            setattr(self, name, _added(getattr(self, name), getattr(other, name)))

    def prepare_chunks(self, chunks: Iterator[Events], budget: Budget, path: str) -> Iterator[Events]:
        """Transform the chunks of a part before they are added. Default: no change.

        `chunks`: chunks of the part, to be read lazily.
        `budget`: memory that the pass may take.
        `path`: path of the run, for messages.

        Arguments of `add`: for example chunks with ordinals (`ensembles.structure.ordinals`).
        """
        return chunks

    def finalize(self) -> None:
        """Complete the summary after the last event of a part. Default: no change."""
        return

    def without_events(self) -> Self | None:
        """Return what an empty summary of all calls is of a record whose sums do not know it."""
        return self if self.empty_if_unknown else None

    def condense(self) -> None:
        """Shorten what the summary holds, with the same results, before it is kept. Default: no change."""
        return


def _added(mine: Any, others: Any) -> Any:
    """Add up two numbers, arrays, lists, amounts by key, or parts that merge; join flags and sets."""
    if hasattr(mine, "merge"):
        mine.merge(others)
        return mine
    if isinstance(mine, dict):
        for key, amount in others.items():
            mine[key] = _added(mine[key], amount) if key in mine else copy(amount)
        return mine
    is_joined = isinstance(mine, (bool, set)) or getattr(getattr(mine, "dtype", None), "kind", "") == "b"
    return mine | others if is_joined else mine + others


S = TypeVar("S", bound=Summary)


def ignoring_run(make: Callable[[], S]) -> Callable[[Any], S]:
    """Make a factory for `Run.summarize` of a summary that ignores the run.

    `make`: makes an empty summary, without arguments: a class or function of a module, or a partial of one.

    Makes an empty summary, given a run. It can be pickled if `make` can.
    """
    return partial(_make_ignoring_run, make)


def _make_ignoring_run(make: Callable[[], S], _: object) -> S:
    return make()
