"""How long calls and the time between them take, as a run has measured it, and what a remedy gains."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

import numpy as np

from ensembles.workloads.recorded.accesses import Accesses

_PARTS = 20
_ENDS = (0.05, 0.95)
"""Quantiles of the mean times of calls in parts of a run, between which further means are expected."""

Costs = Mapping[int, np.ndarray]
"""Rows of bytes, and low and high time of a call, ns, of each operation."""


def costs_of(found: Accesses) -> Costs:
    """Compute the mean times of calls of each operation and size, over the tasks and parts of a run."""
    rows = np.column_stack([found.op, found.bytes, found.task, epochs(found)])[found.duration >= 0]
    cells, at = np.unique(rows, axis=0, return_inverse=True)
    counts = np.bincount(at.reshape(-1))
    means = np.bincount(at.reshape(-1), found.duration[found.duration >= 0]) / counts
    costs = {}
    for op in np.unique(cells[:, 0]).tolist():
        mine = cells[:, 0] == op
        sizes = np.unique(cells[mine, 1])
        ends = [np.quantile(means[mine & (cells[:, 1] == size)], _ENDS) for size in sizes]
        costs[op] = np.column_stack([sizes, np.array(ends)])
    return costs


def spread_of(found: Accesses, margin: float) -> tuple[float, float]:
    """Compute how much longer than usual the calls of a part of a run take: a twentieth of a task's.

    Another run differs by `margin` at least.
    """
    known = found.duration >= 0
    task, duration = found.task[known], found.duration[known]
    _, kind = np.unique(np.column_stack([found.op, found.bytes])[known], axis=0, return_inverse=True)
    mean = np.bincount(kind.reshape(-1), duration) / np.bincount(kind.reshape(-1))
    first = np.searchsorted(task, task)
    part = task * _PARTS + (np.arange(len(task)) - first) * _PARTS // np.bincount(task)[task]
    usual = np.bincount(part, mean[kind.reshape(-1)])
    ratio = np.bincount(part, duration)[usual > 0] / usual[usual > 0]
    low, high = np.quantile(ratio, _ENDS)
    return min(float(low), 1 - margin), max(float(high), 1 + margin)


def gain_s(
    before: Accesses, after: Accesses, costs: Costs, margin: float
) -> tuple[float, float, float] | str:
    """Compute what a remedy gains, s (low, high, best estimate), or name a call whose cost is not known.

    Calls that the run does not have take what others cost. Other runs differ by `margin` at least.
    """
    unknown = after.duration < 0
    ends = []
    whole_s = time_s(before, before.duration)  # no remedy gains more than the run takes
    for factor, part in (*itertools.product(spread_of(before, margin), (0.0, 1.0)), (1.0, 0.5)):
        durations = factor * after.duration
        for number in np.unique(after.call[unknown]).tolist():
            known = costs.get(after.ops[number])
            mine = unknown & (after.call == number)
            if known is None or after.bytes[mine].max() > known[-1, 0]:
                return str(after.names[number])
            each = known[:, 1] + part * (known[:, 2] - known[:, 1])
            durations[mine] = np.interp(after.bytes[mine], known[:, 0], each)
        ends.append(time_s(before, factor * before.duration) - time_s(after, durations))
    return min(ends), min(max(ends), whole_s), min(ends[-1], whole_s)


def time_s(found: Accesses, durations_ns: np.ndarray, of: Accesses | None = None) -> float:
    """Add up the longest task between barriers: its calls, and the time between them.

    `of`: the time between calls is of these. Default: of `found`.
    """
    of = found if of is None else of
    parts = int(max(epochs(found).max(), epochs(of).max())) + 1
    total = np.zeros(found.tasks * parts)
    for which, ns in ((found, np.where(found.is_call("mpi.barrier"), 0, durations_ns)), (of, of.gap)):
        total += np.bincount(which.task * parts + epochs(which), ns, len(total))
    return float(total.reshape(found.tasks, parts).max(axis=0).sum()) * 1e-9


def times_s(
    found: Accesses, durations_ns: np.ndarray, names: Sequence[str], of: Accesses | None = None
) -> tuple[float, float]:
    """Compute the time of a run (`time_s`), and by how much calls of these names make it longer."""
    whole_s = time_s(found, durations_ns, of)
    return whole_s, whole_s - time_s(found, np.where(found.is_call(*names), 0, durations_ns), of)


def epochs(found: Accesses) -> np.ndarray:
    """Number the parts of each task between barriers; a barrier is the end of its part."""
    meets = found.is_call("mpi.barrier")
    passed = np.cumsum(meets) - meets
    first = np.searchsorted(found.task, np.arange(found.tasks))
    part: np.ndarray = passed - passed[np.minimum(first, len(found) - 1)][found.task]
    return part


def without_waits(made: Accesses, waits: Mapping[int, np.ndarray]) -> np.ndarray:
    """Return the durations of calls less what they waited for a processor, ns.

    `waits`: number of the call and ns, of each task (testbed/replay/as_recorded.c).
    """
    durations = made.duration.copy()
    first = np.searchsorted(made.task, np.arange(made.tasks + 1))
    for task, (number, wait) in ((task, pairs.T) for task, pairs in waits.items()):
        at = first[task] + number[number < first[task + 1] - first[task]]
        durations[at] = np.maximum(durations[at] - wait[: len(at)], 0)
    return durations
