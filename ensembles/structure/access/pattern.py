"""The access pattern of a run: what its tasks do again and again, and how they share their files."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.model.distinct import distinct_rows
from ensembles.model.events import OPS
from ensembles.passes.summary import ignoring_run
from ensembles.structure.access.streams import MAIN_SHARE, ORDERS, main_order, orders_of_steps
from ensembles.structure.access.summary import AccessSummary
from ensembles.structure.access.task_loops import Shape
from ensembles.structure.access.uses import LoopUse, Step

if TYPE_CHECKING:
    from ensembles.structure.recorded_run import RecordedRun
    from ensembles.summaries.bysite import Selects


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
    # Those with a considerable part of the bytes (`ensembles.structure.access.summary.LEAST_SHARE`)
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


def find_pattern(run: RecordedRun, selection: Selects | None = None, nested: bool = False) -> Pattern:
    """Find the access pattern of a run."""
    made = ignoring_run(partial(AccessSummary, nested))
    return pattern_of(run.summarize(made, selection=selection), run.files)


def pattern_of(summary: AccessSummary, files: Iterable[str]) -> Pattern:
    """Make the pattern of a filled summary; `files` are the paths of the run."""
    table = summary.to_arrays()
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
    orders = np.stack([sums[name] for name in ORDERS], axis=1)
    for row, name in enumerate(names.tolist()):
        file, op = divmod(name, len(OPS))
        known_ranges = not orders[row, ORDERS.index("unknown")] and file not in summary.views
        whole = union.get((file, op)) if known_ranges else None
        known = int(align[row]) if align[row] < 1 << 62 else None
        if known is None and not orders[row, ORDERS.index("unknown")]:
            known = 0
        order = main_order(orders[row])
        if order == "random" and sums["mixed"][row] > (1 - MAIN_SHARE) * sums["n"][row]:
            order = "mixed"
        place = OPS[op], "shared" if users[file] > 1 else "private", order, known
        group = found.setdefault(
            place, {"files": 0, "tasks": 0, "calls": 0, "bytes": 0, "again": 0, "most": -1, "overlap": 0}
        )
        group["files"] += 1
        group["tasks"] = max(group["tasks"], int(tasks[row]))
        group["calls"] += int(sums["n"][row])
        group["bytes"] += int(sums["bytes"][row])
        distinct = int(sums["distinct"][row])
        for key, value in (
            ("again", int(sums["bytes"][row]) - distinct),
            ("overlap", distinct - (whole or 0)),
        ):
            group[key] = None if whole is None or group[key] is None else group[key] + value
        if sums["bytes"][row] > group["most"]:
            group["most"], group["example"] = int(sums["bytes"][row]), paths[file]
    made = [
        FileGroup(
            *place,
            each["files"],
            each["example"],
            each["tasks"],
            each["calls"],
            each["bytes"],
            each["again"],
            each["overlap"],
        )
        for place, each in found.items()
    ]
    return tuple(sorted(made, key=lambda group: (-group.bytes, group.example)))
