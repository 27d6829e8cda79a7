"""A mergeable summary of how tasks go through their files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from ensembles.model.events import OPS, Call, Events, of_calls
from ensembles.model.units import bytes_text
from ensembles.passes.start_order import order_by_start
from ensembles.passes.summary import BY_RANK, Summary
from ensembles.structure.access.segments import Part, find_parts
from ensembles.structure.access.streams import FIRST, ORDERS, STRIDED, follow, join_ranges
from ensembles.summaries.keyed_sums import KeyedSums, groups_of_rows

READ, WRITE, SEEK, SYNC = (OPS.index(op) for op in ("read", "write", "seek", "sync"))
"""Operations of which patterns are made."""

MOST_SIZES = 16
"""Sizes of an operation of a task that are distinguished; of more, octaves are."""

MOST_PATTERNS = 64
"""Sequences of loops that are kept; tasks with others are counted."""

MOST_RANGES = 1 << 18
"""Byte ranges that are held at the same time; of more, those of the files with most are dropped."""

_UNALIGNED = 1 << 62
_MOST_BYTES = 1 << 62
"""Programs that ask for all there is ask for more."""

Step = tuple[int, int, int, int]
"""Operation, smallest and largest size in bytes, how often in a row."""

LEAST_SHARE = 0.02
"""Loops with less of the bytes of their task are counted only."""

Shape = tuple[tuple[int, tuple[tuple[int, str, str, int], ...], int, int], ...]
"""The main loops of a task: how often, their bodies with sizes as they are printed, number of their block and
how often it comes."""


@dataclass
class LoopUse:
    """What one loop of all tasks of a pattern does.

    Attributes
    ----------
    steps : tuple of Step
        Its body, with the smallest and largest sizes of all tasks.
    orders : ndarray of int64, shape (len(ORDERS),)
        Transfers by order.
    strides : Counter of int
        Strides of tasks in this loop, bytes: of each task the most frequent one. At most 16 are kept.
    bytes : int
        Bytes moved.
    files : set of int
        Files that are used, up to 16.
    most_files : int
        Largest number of files of a task.
    step_orders : ndarray of int64, shape (len(steps), len(ORDERS))
        The same as `orders`, of each step of the body by itself. Shape (0, len(ORDERS)): not looked at.
    """

    steps: tuple[Step, ...] = ()
    orders: np.ndarray = field(default_factory=lambda: np.zeros(len(ORDERS), np.int64))
    strides: Counter[int] = field(default_factory=Counter)
    bytes: int = 0
    files: set[int] = field(default_factory=set)
    most_files: int = 0
    step_orders: np.ndarray = field(default_factory=lambda: np.zeros((0, len(ORDERS)), np.int64))

    def add(self, other: LoopUse) -> None:
        """Add the use by other tasks."""
        self.steps = tuple(
            (op, min(low, low_), max(high, high_), count)
            for (op, low, high, count), (_, low_, high_, _) in zip(self.steps, other.steps, strict=True)
        )
        self.orders = self.orders + other.orders
        self.strides = Counter(dict((self.strides + other.strides).most_common(16)))
        self.bytes += other.bytes
        self.files = set(sorted(self.files | other.files)[:16])
        self.most_files = max(self.most_files, other.most_files)
        alike = self.step_orders.shape == other.step_orders.shape
        self.step_orders = self.step_orders + other.step_orders if alike else LoopUse().step_orders


@dataclass
class TaskPattern:
    """The tasks that make the same main loops.

    Attributes
    ----------
    ranks : list of int
    uses : list of LoopUse
        One for each main loop.
    smaller_loops, smaller_bytes : int
        Most other loops of a task that move bytes, and what these move in all tasks.
    """

    ranks: list[int]
    uses: list[LoopUse]
    smaller_loops: int = 0
    smaller_bytes: int = 0


class AccessSummary(Summary):
    """A mergeable summary: loops of calls by task, and the order and extent of transfers by file.

    It has a row for each file, task and operation.

    Parameters
    ----------
    nested : bool
        Count calls inside others too.

    Attributes
    ----------
    patterns : dict of Shape to TaskPattern
    other_tasks : int
        Tasks whose loops are beyond `MOST_PATTERNS`.
    table : KeyedSums
        By ``file``, ``rank`` and ``op``: ``n``, ``bytes`` (moved), ``distinct`` (bytes of the union of the
        ranges of the task), a column of each of `ORDERS`, ``low``, ``high``, and ``align``: the largest power
        of two that divides all offsets.
    unknown : set of (int, int)
        File and operation of which the union over tasks is not known: it has too many ranges.
    views : set of int
        Files with a view of MPI-IO, or with collective calls, whose transfers may have holes in the file.
    """

    columns = ("rank", "thread", "start", "call", "depth", "file", "offset", "requested", "moved")
    requires = BY_RANK

    def __init__(self, nested: bool = False) -> None:
        self._nested = nested
        self.patterns: dict[Shape, TaskPattern] = {}
        self.other_tasks = 0
        values = ("n", "bytes", "distinct", *ORDERS)
        self.table = KeyedSums(("file", "rank", "op"), values, ("low", "align"), ("high",))
        self.unknown: set[tuple[int, int]] = set()
        self.views: set[int] = set()
        self._ranges = [np.empty((3, 0), np.int64)]
        self._joined = 0

    def add(self, chunk: Events) -> None:
        """Add all calls of some tasks."""
        views = _may_leave_holes(chunk.calls)[chunk.call]
        self.views |= set(np.unique(chunk.file[views]).tolist())
        wanted = np.isin(chunk.op, (READ, WRITE, SEEK, SYNC)) & (chunk.file > 0)
        chunk = chunk[wanted & ((chunk.depth == 0) | self._nested)]
        if not len(chunk):
            return
        order = order_by_start(chunk)
        events = chunk if order is None else chunk[order]
        rows = {
            name: getattr(events, name).astype(np.int64) for name in ("rank", "file", "op", "offset", "moved")
        }
        rows["requested"] = np.minimum(events.requested, np.uint64(_MOST_BYTES)).astype(np.int64)
        rows["order"], rows["delta"] = self._add_streams(rows)
        cuts = np.flatnonzero(np.diff(rows["rank"])) + 1
        for low, high in zip([0, *cuts.tolist()], [*cuts.tolist(), len(events)], strict=True):
            self._add_task({name: column[low:high] for name, column in rows.items()})

    def merge(self, other: AccessSummary) -> None:
        """Add the patterns of other tasks."""
        for shape, found in other.patterns.items():
            self._add_pattern(shape, found)
        self.other_tasks += other.other_tasks
        self.table.merge(other.table)
        self.unknown |= other.unknown
        self.views |= other.views
        self._ranges += other._ranges
        self._join()

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the columns of `table`."""
        return self.table.columns()

    def union_bytes(self) -> dict[tuple[int, int], int]:
        """Return the bytes of the union of the ranges of all tasks, by file and operation."""
        self._join()
        (ranges,) = self._ranges
        keys, first = np.unique(ranges[0], return_index=True)
        sums = np.add.reduceat(ranges[2] - ranges[1], first).tolist() if len(keys) else []
        pairs = [(key // len(OPS), key % len(OPS)) for key in keys.tolist()]
        return {pair: total for pair, total in zip(pairs, sums, strict=True) if pair not in self.unknown}

    def _add_streams(self, rows: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """Add the transfers to `table`; return the order and step of each call, -1 and 0 for other calls."""
        data = np.flatnonzero((rows["op"] == READ) | (rows["op"] == WRITE))
        order, delta = np.full(len(rows["op"]), -1), np.zeros(len(rows["op"]), np.int64)
        if not len(data):
            return order, delta
        mine = {name: column[data] for name, column in rows.items()}
        stream, begins = _numbered([mine[name] for name in ("rank", "file", "op")])
        rank, file, op = (mine[name][begins] for name in ("rank", "file", "op"))
        moved = np.maximum(mine["moved"], 0)
        steps = follow(stream, mine["offset"], moved)
        order[data], delta[data] = steps.order, steps.delta
        placed = (mine["offset"] >= 0) & (moved > 0)
        low, high = mine["offset"][placed], (mine["offset"] + moved)[placed]
        own, begin, end = join_ranges(stream[placed], low, high)
        distinct = np.bincount(own, end - begin, len(rank)).astype(np.int64)
        self._ranges.append(np.stack([file[own] * len(OPS) + op[own], begin, end]))
        self._join_if_many()
        offset = mine["offset"]
        values = {name: (steps.order == number).astype(np.int64) for number, name in enumerate(ORDERS)}
        align = np.where(offset > 0, offset & -offset, _UNALIGNED)
        extent = {"low": np.where(placed, offset, _UNALIGNED), "high": np.where(placed, offset + moved, -1)}
        own_distinct = np.zeros(len(data), np.int64)
        own_distinct[begins] = distinct
        self.table.add(
            {name: mine[name] for name in ("file", "rank", "op")}
            | {"n": np.ones(len(data), np.int64), "bytes": moved, "distinct": own_distinct, "align": align}
            | values
            | extent
        )
        return order, delta

    def _add_task(self, rows: dict[str, np.ndarray]) -> None:
        token, steps = _tokens(rows["op"], rows["requested"])
        moves = np.array([step[0] in (READ, WRITE) for step in steps])
        parts = find_parts(token, rows["file"], rows["order"], moves)
        uses = [_use(rows, part, tuple((*steps[each], count) for each, count in part.body)) for part in parts]
        least = LEAST_SHARE * sum(use.bytes for use in uses)
        main = [number for number, use in enumerate(uses) if use.bytes and use.bytes >= least]
        small = [use.bytes for use in uses if 0 < use.bytes < least]
        # Numbered without smaller loops, of which tasks with the same main loops may have others.
        block = {number: at for at, number in enumerate(dict.fromkeys(parts[each].block for each in main))}
        shape = tuple(
            (
                parts[number].times,
                tuple(
                    (op, bytes_text(low), bytes_text(high), count)
                    for op, low, high, count in uses[number].steps
                ),
                block[parts[number].block],
                parts[number].block_times,
            )
            for number in main
        )
        found = [uses[number] for number in main]
        self._add_pattern(shape, TaskPattern([int(rows["rank"][0])], found, len(small), sum(small)))

    def _add_pattern(self, shape: Shape, found: TaskPattern) -> None:
        mine = self.patterns.get(shape)
        if mine is not None:
            mine.ranks += found.ranks
            mine.smaller_loops = max(mine.smaller_loops, found.smaller_loops)
            mine.smaller_bytes += found.smaller_bytes
            for use, other in zip(mine.uses, found.uses, strict=True):
                use.add(other)
        elif len(self.patterns) < MOST_PATTERNS:
            self.patterns[shape] = found
        else:
            self.other_tasks += len(found.ranks)

    def _join_if_many(self) -> None:
        if sum(part.shape[1] for part in self._ranges) > 2 * self._joined + 4096:
            self._join()

    def _join(self) -> None:
        ranges = np.concatenate(self._ranges, axis=1)
        ranges = np.stack(join_ranges(*ranges))
        while ranges.shape[1] > MOST_RANGES:
            keys, counts = np.unique(ranges[0], return_counts=True)
            worst = int(keys[np.argmax(counts)])
            self.unknown.add((worst // len(OPS), worst % len(OPS)))
            ranges = ranges[:, ranges[0] != worst]
        self._ranges, self._joined = [ranges], ranges.shape[1]


def _numbered(keys: list[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Number rows by their keys, in the order of the keys; return the first row of each number too."""
    if not len(keys[0]):
        return np.empty(0, np.int64), np.empty(0, np.int64)
    group, first = groups_of_rows([np.asarray(key, np.int64) for key in keys])
    order = np.lexsort([key[first] for key in reversed(keys)])
    return np.argsort(order)[group], first[order]


@of_calls
def _may_leave_holes(calls: Sequence[Call]) -> np.ndarray:
    """Whether the bytes of a call, or of those after it, need not follow each other in the file."""
    collective = ("_all", "_all_begin")
    names = [call.name if call.layer == "mpiio" else "" for call in calls]
    return np.array([name == "MPI_File_set_view" or name.endswith(collective) for name in names])


def _tokens(op: np.ndarray, size: np.ndarray) -> tuple[np.ndarray, list[tuple[int, int, int]]]:
    """Number the calls of a task by operation and size; seeks and syncs have no size."""
    low = np.where((op == READ) | (op == WRITE), size, 0)
    high = low.copy()
    for each in (READ, WRITE):
        mine = op == each
        if mine.any() and len(_numbered([low[mine]])[1]) > MOST_SIZES:
            octave = np.frexp(low[mine].astype(np.float64))[1]
            low[mine], high[mine] = np.where(octave, 1 << np.maximum(octave - 1, 0), 0), (1 << octave) - 1
    token, first = _numbered([op, low, high])
    return token, list(zip(op[first].tolist(), low[first].tolist(), high[first].tolist(), strict=True))


def _use(rows: dict[str, np.ndarray], part: Part, steps: tuple[Step, ...]) -> LoopUse:
    at = np.concatenate([np.arange(low, high) for low, high in part.ranges])
    turn = np.repeat(np.arange(len(part.ranges)), [high - low for low, high in part.ranges])
    step = np.repeat(np.arange(len(part.body)), [count for _, count in part.body])
    order, delta = rows["order"][at], rows["delta"][at]
    data = order >= 0
    if not data.any():
        return LoopUse(steps)
    at, order, delta, turn = at[data], order[data].copy(), delta[data], turn[data]
    file, op = rows["file"][at], rows["op"][at]
    files = file[_numbered([file])[1]]
    # Where a loop begins in a file says nothing about its order.
    order[_numbered([file, op])[1]] = FIRST
    each, first = _numbered([turn, file, op])
    order[first[np.bincount(each) > 2]] = FIRST
    strided = delta[order == STRIDED]
    number, first = _numbered([strided])
    strides, counts = strided[first], np.bincount(number)
    return LoopUse(
        steps,
        np.bincount(order, minlength=len(ORDERS)),
        Counter({int(strides[np.argmax(counts)]): 1} if len(strides) else {}),
        int(np.maximum(rows["moved"][at], 0).sum()),
        set(files[:16].tolist()),
        len(files),
        _step_orders(rows, at, np.resize(step, len(data))[data], len(steps)),
    )


def _step_orders(rows: dict[str, np.ndarray], at: np.ndarray, step: np.ndarray, steps: int) -> np.ndarray:
    """Count the orders of each step of a body: data and a header in turn have an order each."""
    if len(np.unique(step)) < 2:
        return LoopUse().step_orders
    stream, _ = _numbered([rows["file"][at], rows["op"][at], step])
    order = follow(stream, rows["offset"][at], np.maximum(rows["moved"][at], 0)).order
    return np.bincount(step * len(ORDERS) + order, minlength=steps * len(ORDERS)).reshape(steps, len(ORDERS))
