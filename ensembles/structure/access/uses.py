"""What a loop does to its files: the order of its transfers, as a whole, by step, and from pass to pass."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from ensembles.model.events import Call, Events, is_io_of_calls, op_of_calls
from ensembles.model.levels import FEWEST_ALONE, LITTLE
from ensembles.model.units import MOST_NAMED
from ensembles.passes.summary import Summary
from ensembles.structure.access.loops import READ, SEEK, SYNC, WRITE, Part, numbered
from ensembles.structure.access.streams import (
    FIRST,
    ORDERS,
    STRIDED,
    follow,
    main_order,
    orders_of_steps,
)

Step = tuple[int, int, int, int]
"""Operation, smallest and largest size in bytes, how often in a row."""

_LEAST_ITERATIONS = FEWEST_ALONE
"""Iterations in which passes are sought: of fewer, distances agree by accident."""


@dataclass
class LoopUse:
    """What one loop of all tasks of a pattern does."""

    steps: tuple[Step, ...] = ()  # Its body, with the smallest and largest sizes of all tasks
    # Transfers by order; shape (len(ORDERS),)
    orders: np.ndarray = field(default_factory=lambda: np.zeros(len(ORDERS), np.int64))
    # Strides of tasks in this loop, bytes: of each task the most frequent one. At most 16 are kept.
    strides: Counter[int] = field(default_factory=Counter)
    bytes: int = 0  # Bytes moved
    files: set[int] = field(default_factory=set)  # Files that are used, up to 16
    most_files: int = 0  # Largest number of files of a task
    # The same as `orders`, of each step of the body by itself. Shape (0, len(ORDERS)): not looked at. Shape
    # (len(steps), len(ORDERS)).
    step_orders: np.ndarray = field(default_factory=lambda: np.zeros((0, len(ORDERS)), np.int64))
    # As `strides`, of each step. Empty: not looked at.
    step_strides: list[Counter[int]] = field(default_factory=list)
    # Into how many equal passes the iterations are divided by jumps in the file, each of the same distance
    # from the one before. Orders are those inside passes. 1: there are none.
    passes: int = 1
    # Distances from the start of a pass to that of the next, bytes. At most 16 are kept.
    pass_strides: Counter[int] = field(default_factory=Counter)
    in_sequence: tuple[bool, ...] = ()  # Of each step: its transfers of an iteration continue each other

    def add(self, other: LoopUse) -> None:
        """Add the use by other tasks."""
        self.steps = tuple(
            (op, min(low, low_), max(high, high_), count)
            for (op, low, high, count), (_, low_, high_, _) in zip(self.steps, other.steps, strict=True)
        )
        self.orders = self.orders + other.orders
        self.strides = _most(self.strides, other.strides)
        self.bytes += other.bytes
        self.files = set(sorted(self.files | other.files)[:16])
        self.most_files = max(self.most_files, other.most_files)
        if self.step_orders.shape == other.step_orders.shape:
            self.step_orders = self.step_orders + other.step_orders
            pairs = zip(self.step_strides, other.step_strides, strict=True)
            self.step_strides = [_most(mine, its) for mine, its in pairs]
        else:
            self.step_orders, self.step_strides = LoopUse().step_orders, []
        self.passes = self.passes if self.passes == other.passes else 1
        self.pass_strides = _most(self.pass_strides, other.pass_strides)
        if self.in_sequence != other.in_sequence:
            self.in_sequence = ()


def _most(one: Counter[int], other: Counter[int]) -> Counter[int]:
    return Counter(dict((one + other).most_common(16)))


def use_of(rows: dict[str, np.ndarray], part: Part, steps: tuple[Step, ...]) -> tuple[LoopUse, np.ndarray]:
    """Find what a loop of a task does.

    `rows`: the calls of a task: ``file``, ``op``, ``offset``, ``moved``, and ``order`` and ``delta`` as of
    `ensembles.structure.access.streams.Steps`, -1 and 0 for calls that move nothing.
    """
    at = np.concatenate([np.arange(low, high) for low, high in part.ranges])
    turn = np.repeat(np.arange(len(part.ranges)), [high - low for low, high in part.ranges])
    body = np.repeat(np.arange(len(part.body)), [count for _, count in part.body])
    step = np.resize(body, len(at)) if len(body) else np.zeros(len(at), np.int64)
    order, delta = rows["order"][at], rows["delta"][at]
    data = order >= 0
    if not data.any():
        return LoopUse(steps), np.empty(0, np.int64)
    passes, stride, in_sequence = _passes(rows, at, body, len(part.ranges))
    each_pass = np.arange(len(at)) // (len(at) // passes)
    at, order, delta, turn, step = at[data], order[data].copy(), delta[data], turn[data], step[data]
    file, op = rows["file"][at], rows["op"][at]
    files = file[numbered([file])[1]]
    # Where a loop begins in a file says nothing about its order.
    order[numbered([file, op])[1]] = FIRST
    each, first = numbered([turn, file, op])
    order[first[np.bincount(each) > 2]] = FIRST
    if passes > 1:
        order[numbered([each_pass[data], file, op])[1]] = FIRST
    use = LoopUse(
        steps,
        np.bincount(order, minlength=len(ORDERS)),
        _main_stride(delta[order == STRIDED]),
        int(np.maximum(rows["moved"][at], 0).sum()),
        set(files[:16].tolist()),
        len(files),
        passes=passes,
        pass_strides=Counter({stride: 1}) if passes > 1 else Counter(),
        in_sequence=in_sequence,
    )
    mixed = np.empty(0, np.int64)
    if len(np.unique(step)) > 1:
        _add_steps(use, rows, at, step, each_pass[data] if passes > 1 else None)
        if orders_of_steps(use.step_orders, main_order(use.orders)):
            stream, begins = numbered([file, op])
            pairs = numbered([stream, step])[1]
            mixed = at[np.bincount(stream[pairs], minlength=len(begins))[stream] > 1]
    return use, mixed


def _main_stride(strided: np.ndarray) -> Counter[int]:
    number, first = numbered([strided])
    return Counter({int(strided[first][np.argmax(np.bincount(number))]): 1}) if len(strided) else Counter()


def _add_steps(
    use: LoopUse, rows: dict[str, np.ndarray], at: np.ndarray, step: np.ndarray, each_pass: np.ndarray | None
) -> None:
    """Add the orders of each step of a body: data and a header in turn have an order each."""
    stream, _ = numbered([rows["file"][at], rows["op"][at], step])
    found = follow(stream, rows["offset"][at], np.maximum(rows["moved"][at], 0))
    order, steps = found.order, len(use.steps)
    if each_pass is not None:
        order[numbered([each_pass, stream])[1]] = FIRST
    count = np.bincount(step * len(ORDERS) + order, minlength=steps * len(ORDERS))
    use.step_orders = count.reshape(steps, len(ORDERS))
    use.step_strides = [
        _main_stride(found.delta[(order == STRIDED) & (step == number)]) for number in range(steps)
    ]


def _passes(
    rows: dict[str, np.ndarray], at: np.ndarray, body: np.ndarray, ranges: int
) -> tuple[int, int, tuple[bool, ...]]:
    """Return the number of passes, the distance of their starts, and which steps are in sequence."""
    if not len(body):
        return 1, 0, ()
    names = ("file", "offset", "moved", "order")
    calls = {name: rows[name][at].reshape(-1, len(body)) for name in names}
    begins = np.flatnonzero(np.diff(body, prepend=-1))
    ends = [*begins[1:].tolist(), len(body)]
    in_sequence = []
    distances = []
    contiguous = True
    for low, high in zip(begins.tolist(), ends, strict=True):
        if (calls["order"][:, low] < 0).all():
            in_sequence.append(False)
            continue
        offset, moved = calls["offset"][:, low:high], calls["moved"][:, low:high]
        follows = offset[:, 1:] == offset[:, :-1] + moved[:, :-1]
        in_sequence.append(high - low > 1 and bool(follows.all() and (offset >= 0).all()))
        same = (calls["file"][:, low:high] == calls["file"][0, low]).all()
        distances.append(np.diff(offset[:, 0]) if same and (offset >= 0).all() else None)
        contiguous &= bool((offset[:1, 0] + moved[0].sum() == offset[1:2, 0]).all())
    known = [each for each in distances if each is not None]
    if len(known) < len(distances) or not known:
        return 1, 0, tuple(in_sequence)
    passes, stride = _period(np.stack(known))
    # Transfers that continue each other, from jump to jump, are pieces; a block has a pass each time.
    if passes != ranges if ranges > 1 else contiguous and stride:
        passes, stride = 1, 0
    return passes, stride, tuple(in_sequence)


def _period(distance: np.ndarray) -> tuple[int, int]:
    """Return the number of passes and the distance of their starts; (1, 0): there are none."""
    iterations = distance.shape[1] + 1
    if iterations < _LEAST_ITERATIONS:
        return 1, 0
    jumps = np.flatnonzero((distance != distance[:, :1]).any(axis=0))
    if not len(jumps):
        return 1, 0
    period = int(jumps[0]) + 1
    passes, rest = divmod(iterations, period)
    if period < 2 or rest or len(jumps) != passes - 1 or (jumps + 1 != np.arange(1, passes) * period).any():
        return 1, 0
    strides = distance[:, jumps] + (period - 1) * distance[:, :1]
    return (passes, int(strides[0, 0])) if (strides == strides[0, 0]).all() else (1, 0)


@dataclass(frozen=True)
class OtherCall:
    """A function whose calls are not in the loops of a pattern."""

    layer: str
    call: str
    count: int
    time_s: float


@dataclass(frozen=True)
class Coverage:
    """What the loops of a pattern are of all I/O calls."""

    # calls, all_calls: Calls of the loops, and all I/O calls
    calls: int
    all_calls: int
    time_s: float
    all_time_s: float
    others: tuple[OtherCall, ...]  # The functions that are not in loops, those with most calls first

    @property
    def time_share(self) -> float:
        """Share of the time of all I/O calls that those of loops have; 1 if there is none."""
        return self.time_s / self.all_time_s if self.all_time_s > 0 else 1.0


class IoCalls(Summary):
    """A mergeable summary: number and time of I/O calls by function, in loops of patterns and elsewhere."""

    columns = ("call", "depth", "carried", "file", "duration")
    results = ("sums",)

    def __init__(self, nested: bool = False) -> None:
        self._nested = nested
        self.sums: dict[tuple[Call, bool], tuple[int, int]] = {}

    def add(self, chunk: Events) -> None:
        """Add events."""
        if not len(chunk):
            return
        calls = chunk.calls
        chosen = is_io_of_calls(calls)[chunk.call] & (chunk.outermost | self._nested)
        op = op_of_calls(calls)[chunk.call]
        looped = np.isin(op, (READ, WRITE, SEEK, SYNC)) & (chunk.file > 0)
        key = (chunk.call.astype(np.int64) * 2 + looped)[chosen]
        count = np.bincount(key)
        time_ns = np.bincount(key, chunk.duration[chosen])
        for number in np.flatnonzero(count).tolist():
            self._put((calls[number // 2], bool(number % 2)), int(count[number]), int(time_ns[number]))

    def merge(self, other: IoCalls) -> None:
        """Add other sums."""
        for key, sums in other.sums.items():
            self._put(key, *sums)

    def _put(self, key: tuple[Call, bool], count: int, time_ns: int) -> None:
        known = self.sums.get(key, (0, 0))
        self.sums[key] = known[0] + count, known[1] + time_ns

    def coverage(self) -> Coverage:
        """Return what loops are made of, and the other calls."""
        looped = [sums for (_, is_looped), sums in self.sums.items() if is_looped]
        count, time_ns = (sum(sums[at] for sums in looped) for at in (0, 1))
        others = [
            OtherCall(call.layer, call.name, *(sums[0], sums[1] * 1e-9))
            for (call, is_looped), sums in self.sums.items()
            if not is_looped
        ]
        others.sort(key=lambda one: (-one.count, one.layer, one.call))
        whole, whole_ns = (sum(sums[at] for sums in self.sums.values()) for at in (0, 1))
        return Coverage(count, whole, time_ns * 1e-9, whole_ns * 1e-9, tuple(others))


def coverage_text(found: Coverage) -> str:
    """Say which share of the I/O the loops are, and name the other calls; "": hardly any others."""
    from ensembles.model.units import count_text, share_text

    share = found.time_share
    if min(share, found.calls / max(found.all_calls, 1)) >= 1 - LITTLE:
        return ""
    told = [f"{one.count:,} x {one.call}" for one in found.others[:MOST_NAMED]]
    more = found.others[MOST_NAMED:]
    if more:
        told.append(f"{count_text(sum(one.count for one in more), 'call')} of {len(more):,} other functions")
    return (
        f"Transfers, seeks and syncs are {found.calls:,} of {found.all_calls:,} I/O calls, "
        f"{share_text(share, None)} of their time; besides, of all tasks: {', '.join(told)}."
    )
