"""How long calls and the time between them take: of a recorded run, and of its replays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from ensembles.workloads.recorded.accesses import Accesses


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
