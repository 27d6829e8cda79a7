"""Ordinals: the index of a call among those of its rank, operation and file.

Here calls are counted in the order in which they start, as a program makes them.
`ensembles.summaries.bins.Ordinals` counts them in the order of completion, as the recorder does. The two
differ only if calls of the same operation on the same file overlap within a rank: a call inside another, or
calls of several threads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial

import numpy as np

from ensembles import _compiled
from ensembles.model.errors import EnsioError
from ensembles.model.events import Events, op_of_calls

Phase = Callable[[Events], np.ndarray]


def compute_ordinals(events: Events, phase: np.ndarray | None = None) -> np.ndarray:
    """Compute the ordinal of each call, in the order of start."""
    n = len(events)
    if phase is not None and len(phase) != n:
        raise ValueError(f"there are {n} events and {len(phase)} phases")
    if not n:
        return np.empty(0, np.int64)
    ordinal = np.empty(n, np.int64)
    rank, start, depth = map(np.ascontiguousarray, (events.rank, events.start, events.depth))
    if not _compiled.number_calls(rank, start, depth, _low_key(events, phase), ordinal):
        order, first = _in_order(events, phase)
        ordinal[order] = np.arange(1, n + 1) - np.repeat(first, np.diff(np.append(first, n)))
    return ordinal


ORDINAL_COLUMNS = ("rank", "call", "depth", "file", "start")
"""Columns of events that `compute_ordinals` reads."""


class OrdinalCounter:
    """A counter of ordinals over the chunks of a run.

    Ordinals equal those of `compute_ordinals` if no call of a chunk starts before a call of the same rank,
    operation and file in an earlier chunk.

    `out_of_order`: number of calls that did; their ordinals are too high.
    """

    def __init__(self) -> None:
        self.out_of_order = 0
        self._keys = np.empty((0, 2), np.uint64)
        self._calls = np.empty(0, np.int64)
        self._last_ns = np.empty(0, np.int64)
        self._forgotten = -1  # the highest rank whose counts are given up

    def count(self, chunk: Events, phase: np.ndarray | None = None) -> np.ndarray:
        """Compute the ordinals of the calls of a chunk."""
        n = len(chunk)
        if not n:
            return np.empty(0, np.int64)
        order, first = _in_order(chunk, phase)
        counts = np.diff(np.append(first, n))
        leaders = order[first]
        keys = np.stack([chunk.rank[leaders].astype(np.uint64), _low_key(chunk, phase)[leaders]], axis=1)
        start = chunk.start[order]
        before, last_ns = self._known(keys)
        late = (start < np.repeat(last_ns, counts)) & (np.repeat(before, counts) > 0)
        self.out_of_order += int(np.count_nonzero(late)) + int(
            np.count_nonzero(chunk.rank <= self._forgotten)
        )
        self._remember(keys, before + counts, np.maximum(last_ns, start[np.append(first[1:], n) - 1]))
        ordinal = np.empty(n, np.int64)
        ordinal[order] = np.arange(1, n + 1) - np.repeat(first - before, counts)
        return ordinal

    def _known(self, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return the number of calls so far, and the last start, of each key (rising)."""
        calls, last_ns = np.zeros(len(keys), np.int64), np.full(len(keys), np.iinfo(np.int64).min)
        # Chunks come by rank: counts of lower ranks are not needed any more.
        mine = self._keys[:, 0] >= keys[:, 0].min()
        self._forgotten = max(
            self._forgotten, int(self._keys[~mine, 0].max(initial=0)) if (~mine).any() else -1
        )
        self._keys, self._calls, self._last_ns = self._keys[mine], self._calls[mine], self._last_ns[mine]
        if len(self._keys):
            _, group = np.unique(np.concatenate([self._keys, keys]), axis=0, return_inverse=True)
            group = group.reshape(-1)
            place = np.full(group.max() + 1, -1)
            place[group[: len(self._keys)]] = np.arange(len(self._keys))
            at = place[group[len(self._keys) :]]
            found = at >= 0
            calls[found], last_ns[found] = self._calls[at[found]], self._last_ns[at[found]]
        return calls, last_ns

    def _remember(self, keys: np.ndarray, calls: np.ndarray, last_ns: np.ndarray) -> None:
        joined = np.concatenate([keys, self._keys])
        _, first = np.unique(joined, axis=0, return_index=True)
        self._keys = joined[first]
        self._calls = np.concatenate([calls, self._calls])[first]
        self._last_ns = np.concatenate([last_ns, self._last_ns])[first]


def with_ordinals(
    chunks: Iterator[Events], most_events: int, path: str, phase: Phase | None = None
) -> Iterator[Events]:
    """Add ordinals to the events of chunks."""
    return chunks_by_rank(chunks, most_events, partial(_numbered, phase), partial(_counting, path, phase))


def _numbered(phase: Phase | None, events: Events) -> Events:
    """Add ordinals to all events of some ranks."""
    return _knowing(events, compute_ordinals(events, None if phase is None else phase(events)))


def _counting(path: str, phase: Phase | None) -> Compute:
    """Make a function that adds ordinals to the events of one rank, chunk by chunk."""
    counter = OrdinalCounter()

    def counted(events: Events) -> Events:
        ordinal = counter.count(events, None if phase is None else phase(events))
        if counter.out_of_order:
            raise EnsioError(
                f"{path}: rank {events.rank[0]} made more calls than fit into memory, and some of them "
                "overlap, so that ordinals cannot be counted chunk by chunk: give more memory (--memory)"
            )
        return _knowing(events, ordinal)

    return counted


def _knowing(events: Events, ordinal: np.ndarray) -> Events:
    return events.with_derived(lambda name: ordinal if name == "ordinal" else None)


def _low_key(events: Events, phase: np.ndarray | None) -> np.ndarray:
    """Encode operation and file (or phase) as one number: uint64, shape (n,)."""
    key = events.file.astype(np.uint64) if phase is None else (np.asarray(phase) + 1).astype(np.uint64)
    key <<= np.uint64(3)
    key |= op_of_calls(events.calls)[events.call]
    return key


def _in_order(events: Events, phase: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Sort calls by rank, key and start: positions, and firsts of each key."""
    low = _low_key(events, phase)
    order = np.lexsort((events.depth, events.start, low, events.rank))
    rank, low = events.rank[order], low[order]
    new = np.concatenate([[True], (rank[1:] != rank[:-1]) | (low[1:] != low[:-1])])
    return order, np.flatnonzero(new)


_COLUMNS = 64
"""Classes of which the durations of all ranks are looked at together."""


class RankLevels:
    """Number of calls and sum of the logarithms of their durations, by rank and class; mergeable."""

    results = ("_blocks",)

    def __init__(self) -> None:
        # Ranks, numbers of calls and sums of logarithms. The number of classes differs between blocks.
        self._blocks: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []

    def __len__(self) -> int:
        return len(self._blocks)

    def rows_for(self, rank: np.ndarray, classes: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Make room for calls; `close` ends it."""
        row: np.ndarray
        change = np.flatnonzero(rank[1:] != rank[:-1]) + 1
        first = np.concatenate([[0], change])
        if np.all(rank[change] > rank[change - 1]):
            ranks = rank[first]
            row = np.repeat(np.arange(len(ranks), dtype=np.int32), np.diff(np.append(first, len(rank))))
        else:
            ranks, row = np.unique(rank, return_inverse=True)
            row = row.reshape(-1).astype(np.int32)
        calls = np.zeros((len(ranks), classes), np.uint32)
        levels = np.zeros((len(ranks), classes), np.float64)
        self._blocks.append((ranks.astype(np.int64), calls, levels))
        return row, calls, levels

    def close(self) -> None:
        """Store the last block in the least memory, and join it with the one before if they share a rank."""
        ranks, calls, levels = self._blocks.pop()
        if self._blocks and len(self._blocks[-1][0]) and self._blocks[-1][0][-1] == ranks[0]:
            _add_row(self._blocks, calls[0], levels[0])
            ranks, calls, levels = ranks[1:], calls[1:], levels[1:]
        if len(ranks):
            self._blocks.append((ranks, _narrow(calls), levels))

    def merge(self, other: RankLevels) -> None:
        """Add the calls of another table."""
        self._blocks += other._blocks

    def tasks(self, classes: int) -> np.ndarray:
        """Return the number of ranks with calls of each class."""
        found = np.zeros(classes, np.int64)
        for _, calls, _ in self._distinct():
            found[: calls.shape[1]] += np.count_nonzero(calls, axis=0)
        return found

    def medians(self, classes: np.ndarray) -> np.ndarray:
        """Return the median over ranks of their mean logarithm, for each of some classes with calls."""
        parts = [
            np.nanmedian(self.columns(classes[low : low + _COLUMNS]), axis=0)
            for low in range(0, len(classes), _COLUMNS)
        ]
        return np.concatenate([np.empty(0), *parts])

    def columns(self, classes: np.ndarray) -> np.ndarray:
        """Return the mean logarithms of the ranks, NaN without calls: float64, shape (ranks, classes)."""
        parts = [np.empty((0, len(classes)))]
        for _, calls, levels in self._distinct():
            part = np.full((len(calls), len(classes)), np.nan)
            known = np.flatnonzero(classes < calls.shape[1])
            count = calls[:, classes[known]]
            np.divide(
                levels[:, classes[known]], count, out=(mean := np.full(count.shape, np.nan)), where=count > 0
            )
            part[:, known] = mean
            parts.append(part)
        return np.concatenate(parts)

    def _distinct(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray]]:
        """Yield the blocks, each rank in one of them, ascending."""
        ranks = np.concatenate([np.empty(0, np.int64), *(block[0] for block in self._blocks)])
        if np.all(ranks[1:] > ranks[:-1]):
            yield from self._blocks
            return
        known, row = np.unique(ranks, return_inverse=True)
        classes = max(block[1].shape[1] for block in self._blocks)
        calls, levels = np.zeros((len(known), classes), np.int64), np.zeros((len(known), classes))
        done = 0
        for mine, of_calls, of_levels in self._blocks:
            rows = row.reshape(-1)[done : done + len(mine)]
            done += len(mine)
            np.add.at(calls[:, : of_calls.shape[1]], rows, of_calls)
            np.add.at(levels[:, : of_levels.shape[1]], rows, of_levels)
        self._blocks = [(known, _narrow(calls), levels)]
        yield from self._blocks


def _add_row(
    blocks: list[tuple[np.ndarray, np.ndarray, np.ndarray]], calls: np.ndarray, levels: np.ndarray
) -> None:
    """Add to the last row of the last block, a copy of it, which gets more classes if need be."""
    ranks, before, sums = blocks.pop()
    if len(ranks) > 1:
        blocks.append((ranks[:-1], before[:-1], sums[:-1]))
    wide = max(before.shape[1], len(calls))
    count, level = np.zeros((1, wide), np.int64), np.zeros((1, wide))
    count[0, : before.shape[1]] += before[-1]
    level[0, : before.shape[1]] += sums[-1]
    count[0, : len(calls)] += calls
    level[0, : len(calls)] += levels
    blocks.append((ranks[-1:], _narrow(count), level))


def _narrow(calls: np.ndarray) -> np.ndarray:
    """Return numbers of calls in the least bytes."""
    return calls.astype(np.min_scalar_type(int(calls.max(initial=0))))


Compute = Callable[[Events], Events]


def chunks_by_rank(
    chunks: Iterator[Events], most_events: int, whole: Compute, partial: Callable[[], Compute]
) -> Iterator[Events]:
    """Apply functions to all calls of one or more ranks at a time."""
    current = -1
    held: list[Events] = []
    compute: Compute | None = None
    for chunk in chunks:
        if not len(chunk):
            continue
        rank = chunk.rank
        begin = 0
        if held or compute is not None:
            begin = int(np.searchsorted(rank, current, side="right")) if rank[0] == current else 0
            more = chunk[:begin]
            if compute is None:
                held.append(more)
                if begin == len(chunk) and sum(map(len, held)) > most_events:
                    compute = partial()
                    yield from map(compute, held)
                    held = []
            elif begin:
                yield compute(more)
            if begin == len(chunk):
                continue
            if held:
                yield whole(Events.concatenate(held))
            held, compute = [], None
        current = int(rank[-1])
        last = int(np.searchsorted(rank, current))
        if last > begin:
            yield whole(chunk[begin:last])
        held = [chunk[max(last, begin) :]]
    if held:
        yield whole(Events.concatenate(held))
