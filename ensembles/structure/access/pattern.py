"""The access pattern of a run: what its tasks do again and again, and how they share their files.

`line_of` and others say it in words.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.model.distinct import distinct_rows
from ensembles.model.events import OPS, Call, Events, of_calls
from ensembles.model.levels import LONGER, MOST_KINDS, MOST_RANGES, NEARLY_ALL
from ensembles.model.units import HALF_INT64, bytes_text, count_text, size_text
from ensembles.passes.start_order import order_by_start
from ensembles.passes.summary import BY_RANK, Summary, ignoring_run
from ensembles.structure.access.loops import READ, SEEK, SYNC, WRITE, numbered
from ensembles.structure.access.streams import ORDERS, follow, join_ranges, main_order, orders_of_steps
from ensembles.structure.access.task_loops import Shape, find_task_loops
from ensembles.structure.access.uses import LoopUse, Step
from ensembles.summaries.keyed_sums import KeyedSums

if TYPE_CHECKING:
    from ensembles.structure.recorded_run import RecordedRun


@dataclass
class TaskPattern:
    """The tasks that make the same main loops."""

    ranks: list[int]
    uses: list[LoopUse]  # One for each main loop
    # smaller_loops, smaller_bytes: Most other loops of a task that move bytes, and what these move in all
    # tasks
    smaller_loops: int = 0
    smaller_bytes: int = 0


class AccessSummary(Summary):
    """A mergeable summary: loops of calls by task, and the order and extent of transfers by file.

    It has a row for each file, task and operation.

    `other_tasks`: tasks whose loops are beyond `MOST_KINDS`.
    `table`: by ``file``, ``rank`` and ``op``: ``n``, ``bytes`` (moved), ``distinct`` (bytes of the union of
    the ranges of the task), ``mixed`` (calls of a stream that several steps of a loop make, each in another
    order), a column of each of `ORDERS`, ``low``, ``high``, and ``align``: the largest power of two that
    divides all offsets.
    `unknown`: file and operation of which the union over tasks is not known: it has too many ranges.
    `views`: files with a view of MPI-IO, or with collective calls, whose transfers may have holes in the
    file.
    """

    columns = ("rank", "thread", "start", "call", "depth", "carried", "file", "offset", "requested", "moved")
    requires = BY_RANK

    def __init__(self, nested: bool = False) -> None:
        self._nested = nested
        self.patterns: dict[Shape, TaskPattern] = {}
        self.other_tasks = 0
        values = ("n", "bytes", "distinct", "mixed", *ORDERS)
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
        chunk = chunk[wanted & (chunk.outermost | self._nested)]
        if not len(chunk):
            return
        order = order_by_start(chunk)
        events = chunk if order is None else chunk[order]
        names = ("rank", "thread", "file", "op", "offset", "wanted", "moved")
        rows = {name: getattr(events, name).astype(np.int64) for name in names}
        rows["requested"] = np.minimum(events.requested, np.uint64(HALF_INT64)).astype(np.int64)
        rows["order"], rows["delta"] = _orders(rows)
        rows["mixed"] = np.zeros(len(events), np.int64)
        cuts = np.flatnonzero(np.diff(rows["rank"])) + 1
        for low, high in pairwise([0, *cuts.tolist(), len(events)]):
            in_mixed_order = self._add_task({name: column[low:high] for name, column in rows.items()})
            rows["mixed"][low + in_mixed_order] = 1
        self._add_streams(rows)

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

    def union_bytes(self) -> dict[tuple[int, int], int]:
        """Return the bytes of the union of the ranges of all tasks, by file and operation."""
        self._join()
        (ranges,) = self._ranges
        keys, first = np.unique(ranges[0], return_index=True)
        sums = np.add.reduceat(ranges[2] - ranges[1], first).tolist() if len(keys) else []
        pairs = [(key // len(OPS), key % len(OPS)) for key in keys.tolist()]
        return {pair: total for pair, total in zip(pairs, sums, strict=True) if pair not in self.unknown}

    def _add_streams(self, rows: dict[str, np.ndarray]) -> None:
        data = np.flatnonzero(rows["order"] >= 0)
        if not len(data):
            return
        mine = {name: column[data] for name, column in rows.items()}
        stream, begins = numbered([mine[name] for name in ("rank", "file", "op")])
        rank, file, op = (mine[name][begins] for name in ("rank", "file", "op"))
        moved = np.maximum(mine["moved"], 0)
        placed = (mine["offset"] >= 0) & (moved > 0)
        low, high = mine["offset"][placed], (mine["offset"] + moved)[placed]
        own, begin, end = join_ranges(stream[placed], low, high)
        distinct = np.bincount(own, end - begin, len(rank)).astype(np.int64)
        self._ranges.append(np.stack([file[own] * len(OPS) + op[own], begin, end]))
        self._join_if_many()
        offset = mine["offset"]
        values = {name: (mine["order"] == number).astype(np.int64) for number, name in enumerate(ORDERS)}
        align = np.where(offset > 0, offset & -offset, HALF_INT64)
        extent = {"low": np.where(placed, offset, HALF_INT64), "high": np.where(placed, offset + moved, -1)}
        own_distinct = np.zeros(len(data), np.int64)
        own_distinct[begins] = distinct
        self.table.add(
            {name: mine[name] for name in ("file", "rank", "op")}
            | {"n": np.ones(len(data), np.int64), "bytes": moved, "distinct": own_distinct, "align": align}
            | {"mixed": mine["mixed"]}
            | values
            | extent
        )

    def _add_task(self, rows: dict[str, np.ndarray]) -> np.ndarray:
        """Add the loops of a task; return its rows that are in mixed order."""
        found = find_task_loops(rows)
        small = found.smaller_bytes
        task = TaskPattern([int(rows["rank"][0])], found.uses, len(small), sum(small))
        self._add_pattern(found.shape, task)
        return found.in_mixed_order

    def _add_pattern(self, shape: Shape, found: TaskPattern) -> None:
        mine = self.patterns.get(shape)
        if mine is not None:
            mine.ranks += found.ranks
            mine.smaller_loops = max(mine.smaller_loops, found.smaller_loops)
            mine.smaller_bytes += found.smaller_bytes
            for use, other in zip(mine.uses, found.uses, strict=True):
                use.add(other)
        elif len(self.patterns) < MOST_KINDS:
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


def _orders(rows: dict[str, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Return the order and step of each call as `follow` has them, -1 and 0 for calls that move nothing."""
    data = np.flatnonzero((rows["op"] == READ) | (rows["op"] == WRITE))
    order, delta = np.full(len(rows["op"]), -1), np.zeros(len(rows["op"]), np.int64)
    stream, _ = numbered([rows[name][data] for name in ("rank", "file", "op")])
    order[data], delta[data] = follow(stream, rows["offset"][data], np.maximum(rows["moved"][data], 0))
    return order, delta


@of_calls
def _may_leave_holes(calls: Sequence[Call]) -> np.ndarray:
    """Whether the bytes of a call, or of those after it, need not follow each other in the file."""
    collective = ("_all", "_all_begin")
    names = [call.name if call.layer == "mpiio" else "" for call in calls]
    return np.array([name == "MPI_File_set_view" or name.endswith(collective) for name in names])


@dataclass(frozen=True)
class LoopPattern:
    """A loop that tasks make."""

    times: int  # How often its body comes, each time; 1 and no `steps`: calls without repetition
    # Operation, smallest and largest size in bytes, and how often in a row
    steps: tuple[tuple[str, int, int, int], ...]
    # ``sequential``, ``strided``, ``repeated``, ``random``, ``unknown``, ``single`` (one transfer in each
    # file) or ``mixed``
    order: str
    strides_bytes: tuple[int, ...]  # Strides, the most frequent first
    # Transfers that continue each other, on average, where the pieces that they form are strided
    piece_calls: float | None
    bytes: int  # Moved by all tasks
    # ``shared`` (files that several tasks use), ``private``, ``mixed``, or ``""`` without transfers
    access: str
    most_files: int  # Largest number of files of a task
    # block, block_times: Number of the block of loops that it belongs to, and how often that comes
    block: int = 0
    block_times: int = 1
    # As `order`, of each step of the body by itself, where these are clear and differ; ``""``: no transfers.
    # Empty: `order` says it.
    step_orders: tuple[str, ...] = ()
    # As `strides_bytes`, of each step. Empty where `step_orders` is.
    step_strides_bytes: tuple[tuple[int, ...], ...] = ()
    # Into how many equal parts of the iterations jumps in the file divide the loop; `order` is that inside of
    # them. In a block, each time is a pass.
    passes: int = 1
    pass_strides_bytes: tuple[int, ...] = ()  # Distances from the start of a pass to that of the next
    in_sequence: tuple[bool, ...] = ()  # Of each step: its transfers of an iteration continue each other


@dataclass(frozen=True)
class TaskGroup:
    """Tasks that make the same loops: sizes that are printed in the same way are the same."""

    ranks: tuple[int, ...]
    # Those with a considerable part of the bytes (`ensembles.structure.access.pattern.LEAST_SHARE`)
    loops: tuple[LoopPattern, ...]
    # smaller_loops, smaller_bytes: Most other loops of a task that move bytes, and what these move in all
    # tasks
    smaller_loops: int = 0
    smaller_bytes: int = 0
    in_other_files: bool = False  # Each loop uses other files than the loops before it


@dataclass(frozen=True)
class FileGroup:
    """Files that are used in the same way."""

    op: str  # ``read`` or ``write``
    access: str  # ``shared`` or ``private``
    order: str  # As in `LoopPattern`
    # Largest power of two that divides all offsets; 0: all are 0. None: offsets are not known.
    alignment_bytes: int | None
    files: int  # Number of files
    example: str  # Path of the one with most bytes
    tasks: int  # Most tasks that use one of them
    # calls, bytes: Transfers, and bytes that they moved
    calls: int
    bytes: int
    # Bytes beyond the first time that a task moved them. None: not known, as offsets are not, or as a view of
    # MPI-IO leaves holes.
    repeated_by_task_bytes: int | None
    overlap_bytes: int | None  # Bytes that several tasks moved, beyond the first of them. None: as before.


@dataclass(frozen=True)
class Pattern:
    """The access pattern of a run."""

    groups: tuple[TaskGroup, ...]  # Those with most tasks first
    other_tasks: int  # Tasks with loops that are in no group
    files: tuple[FileGroup, ...]  # Those with most bytes first


def find_pattern(run: RecordedRun) -> Pattern:
    """Find the access pattern of a run."""
    return pattern_of(run.summarize(ignoring_run(AccessSummary)), run.files)


def pattern_of(summary: AccessSummary, files: Iterable[str]) -> Pattern:
    """Make the pattern of a filled summary; `files` are the paths of the run."""
    table = summary.table.columns()
    paths = list(files)
    pairs, _ = distinct_rows(table["file"], table["rank"])
    users = np.bincount(pairs[0], minlength=len(paths)) if pairs.size else np.zeros(len(paths), np.int64)
    groups = sorted(
        (
            TaskGroup(
                tuple(sorted(found.ranks)),
                tuple(_loops(shape, found.uses, users)),
                found.smaller_loops,
                found.smaller_bytes,
                _in_other_files(found.uses),
            )
            for shape, found in summary.patterns.items()
        ),
        key=lambda group: (-len(group.ranks), group.ranks),
    )
    return Pattern(tuple(groups), summary.other_tasks, _file_groups(table, summary, users, paths))


def _in_other_files(uses: list[LoopUse]) -> bool:
    files = [use.files for use in uses if use.bytes]
    return len(files) > 1 and sum(map(len, files)) == len(set[int]().union(*files))


def _loops(shape: Shape, uses: list[LoopUse], users: np.ndarray) -> Iterable[LoopPattern]:
    for (times, _, block, block_times), use in zip(shape, uses, strict=True):
        kinds = {"shared" if users[file] > 1 else "private" for file in use.files}
        heads = int(use.orders.sum() - use.orders[ORDERS.index("sequential")])
        order = main_order(use.orders)
        strided = order == "strided" and use.orders[0] > 0 and heads > 0
        by_step = orders_of_steps(use.step_orders, order)
        step_strides = [tuple(stride for stride, _ in each.most_common()) for each in use.step_strides]
        yield LoopPattern(
            times,
            tuple(_named(step) for step in use.steps),
            order,
            tuple(stride for stride, _ in use.strides.most_common()) if order == "strided" else (),
            float(use.orders.sum()) / heads if strided else None,
            use.bytes,
            "mixed" if len(kinds) > 1 else next(iter(kinds), ""),
            use.most_files,
            block,
            block_times,
            by_step,
            tuple(step_strides) if by_step else (),
            use.passes,
            tuple(stride for stride, _ in use.pass_strides.most_common()) if use.passes > 1 else (),
            use.in_sequence,
        )


def _named(step: Step) -> tuple[str, int, int, int]:
    op, low, high, count = step
    return OPS[op], low, high, count


def _file_groups(
    table: dict[str, np.ndarray], summary: AccessSummary, users: np.ndarray, paths: list[str]
) -> tuple[FileGroup, ...]:
    if not len(table["file"]):
        return ()
    union = summary.union_bytes()
    key = table["file"] * len(OPS) + table["op"]
    names, where = np.unique(key, return_inverse=True)
    sums = {
        name: np.bincount(where, table[name], len(names)).astype(np.int64)
        for name in ("n", "bytes", "distinct", "mixed", *ORDERS)
    }
    tasks = np.bincount(where, minlength=len(names))
    align = np.full(len(names), np.iinfo(np.int64).max)
    np.minimum.at(align, where, table["align"])
    found: dict[tuple[str, str, str, int | None], dict[str, Any]] = {}
    most: dict[tuple[str, str, str, int | None], int] = {}
    orders = np.stack([sums[name] for name in ORDERS], axis=1)
    for row, name in enumerate(names.tolist()):
        file, op = divmod(name, len(OPS))
        known_ranges = not orders[row, ORDERS.index("unknown")] and file not in summary.views
        whole = union.get((file, op)) if known_ranges else None
        known = int(align[row]) if align[row] < 1 << 62 else None
        if known is None and not orders[row, ORDERS.index("unknown")]:
            known = 0
        order = main_order(orders[row])
        if order == "random" and sums["mixed"][row] > (1 - NEARLY_ALL) * sums["n"][row]:
            order = "mixed"
        place = OPS[op], "shared" if users[file] > 1 else "private", order, known
        group = found.setdefault(
            place,
            {"files": 0, "tasks": 0, "calls": 0, "bytes": 0, "repeated_by_task_bytes": 0, "overlap_bytes": 0},
        )
        group["files"] += 1
        group["tasks"] = max(group["tasks"], int(tasks[row]))
        group["calls"] += int(sums["n"][row])
        group["bytes"] += int(sums["bytes"][row])
        distinct = int(sums["distinct"][row])
        for key, value in (
            ("repeated_by_task_bytes", int(sums["bytes"][row]) - distinct),
            ("overlap_bytes", distinct - (whole or 0)),
        ):
            group[key] = None if whole is None or group[key] is None else group[key] + value
        if sums["bytes"][row] > most.get(place, -1):
            most[place], group["example"] = int(sums["bytes"][row]), paths[file]
    made = [FileGroup(*place, **each) for place, each in found.items()]
    return tuple(sorted(made, key=lambda group: (-group.bytes, group.example)))


_MOST_IN_LINE = 4


def line_of(pattern: Pattern) -> str:
    """Return the pattern in one sentence, without an end.

    The main loops of the group of tasks that moves most bytes; and, if these only read or only write, what is
    done of the other kind.
    """
    moving = [group for group in pattern.groups if group.loops]
    if not moving:
        return "no reads or writes"
    group = max(moving, key=lambda each: sum(loop.bytes for loop in each.loops))
    loops, users = group.loops, len(group.ranks)
    whole = sum(len(each.ranks) for each in pattern.groups) + pattern.other_tasks
    places = {files_text(loop, whole, users) for loop in loops if loop.bytes}
    shown = min(_MOST_IN_LINE, len(loops))
    while shown < min(2 * _MOST_IN_LINE, len(loops)) and loops[shown].block == loops[shown - 1].block:
        shown += 1  # blocks are whole
    parts = _block_texts(loops[:shown], whole, users, len(places) > 1)
    if len(loops) > shown:
        parts.append(f"and {count_text(len(loops) - shown, 'more loop')}")
    if len(places) == 1:
        place = places.pop()
        each = " and loop" if place.endswith("each task") else " for each loop"
        parts.append(f"{place}{each if group.in_other_files else ''}")
    parts += _besides(pattern, loops)
    head = f"{users:,} of {whole:,} tasks: " if users < whole else ""
    return head + "; ".join(parts)


def group_texts(group: TaskGroup, tasks: int) -> list[str]:
    """Return the loops of a group with the files that they use, a text for each block of loops."""
    return _block_texts(group.loops, tasks, len(group.ranks), True)


def _block_texts(loops: Sequence[LoopPattern], tasks: int, users: int, with_files: bool) -> list[str]:
    texts = []
    for (_, times), block in groupby(loops, key=lambda loop: (loop.block, loop.block_times)):
        each = []
        for loop in block:
            again = _each_pass(loop, "each time ") if times > 1 else ""
            place = f", {files_text(loop, tasks, users)}" if with_files and loop.bytes else ""
            each.append(f"{loop_text(loop)}{again}{place}")
        texts += [f"{times:,} x ({'; '.join(each)})"] if times > 1 else each
    return texts


def _besides(pattern: Pattern, loops: Sequence[LoopPattern]) -> list[str]:
    """Name the reads or the writes of a pattern if main loops have none of them."""
    if not all(loop.steps for loop in loops):
        return []
    named = {op for loop in loops for op, *_ in loop.steps}
    found = []
    for op in ("read", "write"):
        files = [group for group in pattern.files if group.op == op]
        if files and op not in named:
            calls, moved = (sum(getattr(group, name) for group in files) for name in ("calls", "bytes"))
            found.append(f"besides {count_text(calls, op)} of {bytes_text(moved)} in all")
    return found


def loop_text(loop: LoopPattern) -> str:
    """Return a loop in words, such as ``8 x (seek, read 300 MiB), strided by 301 MiB``.

    A loop that jumps to another place at regular intervals is a loop in a loop:
    ``8 x (64 x write 8 KiB, strided by 64 KiB), each 8 KiB further``.
    """
    passes = loop.passes if loop.block_times == 1 else 1
    times = loop.times // passes
    parts = [_step(*step) for step in loop.steps]
    ends: list[str] = [""] * len(parts)
    whole = _order(loop)
    if loop.step_orders:
        pairs = zip(loop.step_orders, loop.step_strides_bytes, strict=True)
        ends, whole = [_STEPS.get(order, f", {order}") + _stride(strides) for order, strides in pairs], ""
    elif loop.order == "repeated":
        ends = [", sequential" if sequential else "" for sequential in loop.in_sequence] or ends
    if not parts:
        return f"{bytes_text(loop.bytes)} in calls without repetition{whole}"
    joint = "; " if any(ends) else ", "
    body = joint.join(part + end for part, end in zip(parts, ends, strict=True))
    if len(parts) > 1 or (loop.steps[0][3] > 1 and times > 1):
        body = f"({body})"
    text = f"{times:,} x {body}{whole}" if times > 1 else f"{body}{whole}"
    return f"{passes:,} x ({text}){_each_pass(loop, 'each ')}" if passes > 1 else text


def _each_pass(loop: LoopPattern, each: str) -> str:
    """Say where the passes of a loop begin; "": there are none."""
    strides = loop.pass_strides_bytes
    if not any(strides):
        return ", the same bytes again" if strides else ""
    if min(strides) < 0 < max(strides):
        return f", {each}elsewhere"
    return f", {each}{_strides(strides).lstrip('-')} {'further' if max(strides) > 0 else 'back'}"


def files_text(loop: LoopPattern, tasks: int, users: int) -> str:
    """Return which files a loop of some of all tasks uses, such as ``one shared file``."""
    many = loop.most_files
    if tasks == 1 or (loop.access == "private" and users == 1):
        return "one file" if many == 1 else f"{many:,} files"
    if loop.access == "mixed":
        return "shared and private files"
    if loop.access == "private":
        return "a file for each task" if many == 1 else f"{many:,} files for each task"
    return "one shared file" if many == 1 else f"{many:,} shared files"


_STEPS = {"": "", "single": "", "repeated": ", the same bytes again"}


def _step(op: str, low: int, high: int, count: int) -> str:
    size = "" if op not in ("read", "write") else f" {_range(low, high)}"
    return f"{count:,} x {op}{size}" if count > 1 else f"{op}{size}"


def _size(size: int) -> str:
    exact = size_text(size)
    return exact if int(exact.split()[0].replace(",", "")) < 1024 else bytes_text(size)


def _range(low: int, high: int) -> str:
    if _size(low) == _size(high) or bytes_text(low) == bytes_text(high):
        return bytes_text(low) if low < high else _size(low)
    is_octave = not (high & high + 1 or low & low - 1)  # of which the end is excluded
    return f"{_size(low)} to {_size(high + is_octave)}"


def _stride(strides: Sequence[int]) -> str:
    return f" by {_strides(strides)}" if strides else ""


def _order(loop: LoopPattern) -> str:
    if loop.order in ("", "single"):
        return ""
    if loop.order == "unknown":
        return ", at unknown offsets"
    if loop.order == "repeated":
        return ", the same bytes again"
    if loop.order != "strided":
        return f", {loop.order}" if loop.order != "mixed" else ", in mixed order"
    if _is_backwards(loop):
        return ", backwards"
    strides = _strides(loop.strides_bytes)
    pieces = loop.piece_calls
    if pieces is not None and pieces > LONGER and loop.most_files > 1 and len(loop.steps) > 1:
        return f", in part strided by {strides}"  # pieces differ from file to file
    # Where steps differ, so do their pieces: the steps say how many calls follow each other.
    counts = {count for op, _, _, count in loop.steps if op in ("read", "write")}
    if pieces is None or pieces < LONGER or len(counts) > 1:
        return f", strided by {strides}"
    about = "" if abs(pieces - round(pieces)) < 1 / 8 else "about "
    return f", in pieces of {about}{round(pieces):,} calls strided by {strides}"


def _is_backwards(loop: LoopPattern) -> bool:
    """Whether each transfer of a loop ends where the one before it began."""
    sizes = {size for op, *ends, _ in loop.steps if op in ("read", "write") for size in ends}
    return (
        sizes == {-stride for stride in loop.strides_bytes} and len(sizes) == 1 and loop.piece_calls is None
    )


def _strides(strides: Sequence[int]) -> str:
    low, high = min(map(abs, strides)), max(map(abs, strides))
    back = "-" if all(stride < 0 for stride in strides) else ""
    return f"{back}{_size(low)}" if low == high else f"{_size(low)} to {_size(high)}"
