"""Reading events for a pass: the request to a source, and its division into independent parts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from ensembles.model.distinct import distinct
from ensembles.model.events import Events
from ensembles.model.filters import within_ranges
from ensembles.passes.damage import DamageReport

Ranges: TypeAlias = Sequence[tuple[int, int]]
"""First and last value of each range."""


def set_of(numbers: Iterable[int]) -> int:
    """Describe a set of numbers by 64 bits: bit n % 64 is set for each number n.

    Two sets have a number in common only if their descriptions have a bit in common.
    """
    bits = 0
    for number in numbers:
        bits |= 1 << (number & 63)
    return bits


@dataclass(frozen=True)
class Contents:
    """What requested events may be, for readers that know what chunks hold."""

    # calls, files: `set_of` the numbers of their functions and files. None: any.
    calls: int | None = None
    files: int | None = None
    sizes: Ranges | None = None  # Ranges of requested bytes, first and last. None: any
    # The events end after the first moment, and begin before the second, ns. None: whenever.
    under_way_ns: tuple[int, int] | None = None
    least_ns: int | None = None  # The events take at least so long, ns. None: however short

    @property
    def are_any(self) -> bool:
        """Whether there is no condition."""
        return self == Contents()


ANYTHING = Contents()


@dataclass(frozen=True)
class ReadRequest:
    """The events that a source shall read, and how.

    It can be pickled, so that a worker of any executor reads its part. There are two kinds of conditions. A
    source keeps to the exact ones. The others let it skip what cannot match, and it may yield other events
    too.
    """

    max_events: int = 1 << 20  # Largest number of events in a chunk
    columns: tuple[str, ...] | None = None  # Columns that are needed; a source may read more. None: all
    # Whether the order matters: all calls of a rank are in one part, and those of a thread come in the order
    # of completion, if the columns determine it (`CompletionOrder`). False: any order, which is quicker.
    is_ordered: bool = True
    # Exact: ranges of ranks, first and last, ascending and disjoint (`ascending_ranges`). None: all.
    ranks: Ranges | None = None
    # Exact: first row and end of the rows of a source with rows, as `divide` gives them. None: all.
    rows: tuple[int, int] | None = None
    times_ns: Ranges | None = None  # Not exact: ranges of starts, first and last, in ns. None: all
    contents: Contents = ANYTHING  # Not exact: what the events may be

    def of_ranks(self, first: int, last: int) -> ReadRequest:
        """Return the request for those of its ranks that are in a range."""
        ranks = ((first, last),) if self.ranks is None else self.ranks
        both = ((max(first, low), min(last, high)) for low, high in ranks)
        return replace(self, ranks=tuple((low, high) for low, high in both if low <= high))


def ascending_ranges(ranges: Ranges) -> Ranges:
    """Join ranges that overlap, and sort them.

    Examples
    --------
    >>> from ensembles.passes.reading import ascending_ranges
    >>> ascending_ranges([(8, 9), (0, 3), (2, 5)])
    ((0, 5), (8, 9))
    """
    joined: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if joined and low <= joined[-1][1]:
            joined[-1] = joined[-1][0], max(high, joined[-1][1])
        elif low <= high:
            joined.append((low, high))
    return tuple(joined)


class RankSizes(NamedTuple):
    """Upper bounds of the numbers of events of all ranks that have any."""

    rank: np.ndarray  # Ascending
    events: np.ndarray


def sample_size(ranks: int, events: int, most_events: int, least_ranks: int) -> int:
    """Return how many ranks have at most about the wanted events: all, a half, a fourth, … of them."""
    return max(least_ranks, ranks >> (max(-(-events // max(most_events, 1)), 1) - 1).bit_length())


class ChunkSource(Protocol):
    """An object that reads events in chunks.

    `capacity`: upper bound of the number of events.
    `row_unit`: its events have rows, sorted by rank and start, that can be divided at multiples of this
    number. None: they have no rows.
    `is_quick_to_open`: whether each of several processes may open it. False: opening is most of the work.
    """

    @property
    def capacity(self) -> int: ...

    @property
    def row_unit(self) -> int | None: ...

    @property
    def is_quick_to_open(self) -> bool: ...

    def rank_sizes(self) -> RankSizes:
        """Return the ranks with events, and bounds of their numbers of events."""
        ...

    def chunks(self, request: ReadRequest, damage: DamageReport) -> Iterator[Events]:
        """Yield the requested events in chunks, in the order of ranks.

        The receiver lets go of a chunk before the next one, so that its memory can be reused.
        """
        ...


def divide(source: ChunkSource, request: ReadRequest, most_parts: int) -> list[ReadRequest]:
    """Divide a request into independent parts with about equally many events.

    The parts are whole ranks if the order matters or the source has no rows, else spans of rows.

    Together they give every event once, in the order of ranks. Empty: there are no events.
    """
    if source.row_unit is not None and not request.is_ordered and request.ranks is None:
        units = -(-source.capacity // source.row_unit)
        edges = distinct(np.linspace(0, units, max(most_parts, 1) + 1).astype(int)) * source.row_unit
        return [replace(request, rows=rows) for rows in pairwise(edges.tolist())]
    rank, events = source.rank_sizes()
    if request.ranks is not None:
        wanted = within_ranges(rank, request.ranks)
        rank, events = rank[wanted], events[wanted]
    return [request.of_ranks(*span) for span in even_spans(rank, events, most_parts)]


def even_spans(
    ranks: Sequence[int] | np.ndarray, events: Sequence[int] | np.ndarray, most_parts: int
) -> list[tuple[int, int]]:
    """Divide ranks into contiguous spans with about equal numbers of events.

    First and last rank of each span, ascending and disjoint.
    """
    if not len(ranks):
        return []
    behind = np.cumsum(np.asarray(events, np.float64))
    middle = behind - np.asarray(events) / 2
    part = np.minimum(middle * most_parts / max(behind[-1], 1), most_parts - 1).astype(int)
    first = np.flatnonzero(np.diff(part, prepend=-1))
    last = np.append(first[1:], len(ranks)) - 1
    return [
        (int(ranks[low]), int(ranks[high])) for low, high in zip(first.tolist(), last.tolist(), strict=True)
    ]
