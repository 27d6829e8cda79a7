"""What bounds savings: bytes of storage targets, by the layouts of files, and processors that tasks share."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case
from ensembles.diagnosis.fixed_cost import OUTLIER
from ensembles.diagnosis.limits import LEAST_CALLS, NEARLY_ALL

if TYPE_CHECKING:
    from ensembles.summaries.keyed_sums import KeyedSums

TARGET_BYTES_PER_NS = (0.2, 1.0)
"""Rates of a storage target, for the least and the likely gain: its bytes take time whatever the requests."""

MOST_STRIPES = 512
"""Files with more stripes are taken to be on all targets."""


class TargetLoad(NamedTuple):
    """Parts of files on targets: a row for each use of a file by a task, and each target of the file."""

    # rank, target: int64, shape (n,)
    rank: np.ndarray
    target: np.ndarray
    # float64, shape (n,): Bytes of the task on the target, if it uses all stripes of the file alike
    bytes: np.ndarray

    @property
    def of_targets(self) -> np.ndarray:
        """Bytes of each target: shape (targets,)."""
        return np.bincount(self.target, self.bytes)


def targets_of(stripes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the numbers of layouts (rows of `Evidence.stripes`), one for each target, and the targets."""
    _, count, first, listed = stripes.T
    row = np.repeat(np.arange(len(count)), count)
    number = np.arange(len(row)) - np.repeat(np.cumsum(count) - count, count)
    return row, (first[row] + number) % np.maximum(listed[row], 1)


def load_of_targets(case: Case) -> TargetLoad:
    """Divide the bytes of files with a known layout among their targets."""
    uses, stripes = case.evidence.uses.columns(), case.evidence.stripes
    stripes = stripes[np.minimum(uses["file"], len(stripes) - 1)]
    _, count, _, listed = stripes.T
    known = np.flatnonzero((listed > 0) & (count > 0) & (count <= MOST_STRIPES))
    row, target = targets_of(stripes[known])
    at = known[row]
    return TargetLoad(uses["rank"][at], target, uses["bytes"][at] / count[at])


def busiest_share(case: Case) -> float | None:
    """Return the share of all bytes that is on the target with most of them; None: it is not known."""
    load, moved = load_of_targets(case), float(case.evidence.uses.columns()["bytes"].sum())
    known = float(load.bytes.sum())
    return float(load.of_targets.max()) / known if known > NEARLY_ALL * moved > 0 else None


def within_targets(case: Case, saved_ns: np.ndarray, rate: float) -> np.ndarray:
    """Limit savings: no phase is shorter than the time in which its busiest target moves its bytes."""
    busiest = busiest_share(case)
    if busiest is None:
        return saved_ns
    data = case.on_files & np.isin(case.op, ("read", "write"))
    needed = case.by_cell(np.where(data, case.rows["bytes"], 0)).sum(axis=1) * busiest / rate
    room = np.maximum(case.length_s * 1e9 - needed, 0)
    most = case.by_cell(saved_ns).max(axis=1)
    part = np.minimum(np.divide(room, most, out=np.ones_like(most), where=most > 0), 1.0)
    limited: np.ndarray = saved_ns * case.of_cells(np.repeat(part[:, None], len(case.ranks), axis=1))
    return limited


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


def usual_where_shared_ns(
    case: Case, rows: np.ndarray, usual_ns: np.ndarray, of: KeyedSums | None = None
) -> np.ndarray:
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
    found: np.ndarray = np.where(shared, case.usual_ns(of, np.inf), usual_ns)
    return found
