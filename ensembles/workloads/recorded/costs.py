"""What calls cost, as a run has measured it, and what a remedy gains by these costs."""

from __future__ import annotations

import itertools
from collections.abc import Mapping

import numpy as np

from ensembles.workloads.recorded.accesses import Accesses
from ensembles.workloads.recorded.time_of_calls import epochs, time_s

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


def gain_s(before: Accesses, after: Accesses, costs: Costs, margin: float) -> tuple[float, float] | str:
    """Compute what a remedy gains, s, or name a call whose cost is not known.

    Calls that the run does not have take what others cost. Other runs differ by `margin` at least.
    """
    unknown = after.duration < 0
    ends = []
    for factor, end in itertools.product(spread_of(before, margin), (1, 2)):
        durations = factor * after.duration
        for number in np.unique(after.call[unknown]).tolist():
            known = costs.get(after.ops[number])
            mine = unknown & (after.call == number)
            if known is None or after.bytes[mine].max() > known[-1, 0]:
                return str(after.names[number])
            durations[mine] = np.interp(after.bytes[mine], known[:, 0], known[:, end])
        ends.append(time_s(before, factor * before.duration) - time_s(after, durations))
    return min(ends), min(max(ends), time_s(before, before.duration))  # at most what the run takes
