"""Tasks that share processors: what calls cost there, in time of the run."""

from __future__ import annotations

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.fixed_cost import OUTLIER
from ensembles.diagnosis.limits import LEAST_CALLS


def on_crowded_nodes(case: Case) -> np.ndarray:
    """Return the number of the node of each task that shares processors; -1: others. Shape (tasks,)."""
    names = sorted(case.run.info.oversubscribed)
    hosts = {process.rank: process.host for process in case.run.info.processes}
    numbers = {name: number for number, name in enumerate(names)}
    return np.array([numbers.get(hosts.get(int(rank), ""), -1) for rank in case.ranks], np.int64)


def with_shared_processors(case: Case, saved_ns: np.ndarray) -> np.ndarray:
    """Let the tasks of a node save its processor time: what they save in all, over its processors.

    A saving is time of a processor. Tasks that take turns on fewer processors wait for each other's calls, in
    calls and between them. No row saves more than its time.
    """
    node = on_crowded_nodes(case)
    if not (node >= 0).any():
        return saved_ns
    saved = case.by_cell(saved_ns)
    factor = np.ones_like(saved)
    processors = case.run.info.processors
    for number, name in enumerate(sorted(case.run.info.oversubscribed)):
        mine = node == number
        shared = saved[:, mine].sum(axis=1, keepdims=True) / processors[name]
        own = saved[:, mine]
        factor[:, mine] = np.maximum(np.divide(shared, own, out=np.ones_like(own), where=own > 0), 1.0)
    found: np.ndarray = np.minimum(saved_ns * case.of_cells(factor), case.rows["time_ns"])
    return found


def usual_where_shared_ns(case: Case, rows: np.ndarray, usual_ns: np.ndarray) -> np.ndarray:
    """Take means in place of usual durations where tasks lose their processor in calls, again and again.

    Which call loses it is random, so that the mean is that of all tasks on crowded nodes, by function and
    size.
    """
    shared = rows & (on_crowded_nodes(case) >= 0)[case.task]
    if not shared.any():
        return usual_ns
    duration_ns, weight = case.durations_of(shared)
    if weight[duration_ns > OUTLIER * case.median_ns(shared)].sum() < LEAST_CALLS:
        return usual_ns
    if case.effective_count(shared) < LEAST_CALLS:
        return usual_ns
    _, kind = np.unique(case.rows["call"] * 128 + case.rows["size"], return_inverse=True)
    time_ns, count = (np.bincount(kind, np.where(shared, case.rows[name], 0)) for name in ("time_ns", "n"))
    found: np.ndarray = np.where(shared, (time_ns / np.maximum(count, 1))[kind], usual_ns)
    return found
