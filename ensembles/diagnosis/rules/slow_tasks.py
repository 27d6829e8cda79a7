"""Rules ``straggler-task`` and ``straggler-node``: one task, or one node, is slower in every phase."""

from __future__ import annotations

from statistics import NormalDist
from typing import Any, NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case, p_of_largest
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule import NotApplicable

LEVEL = 0.004
LEAST_FACTOR = 1.08
LEAST_PHASES = 3
LEAST_TASKS = 4

_LEAST_EFFECT = 0.02
_LEAST_Z = {False: 4.0, True: 3.5}
"""Of tasks, and of nodes, which are means over their tasks."""

_FAR = 6.0
"""Standard deviations of the other tasks beyond which a task is no chance, whatever the distribution."""

_SAME_SIGN = 0.75  # share of the time of the phases
_SAME_SIGN_OF_QUARTERS = {False: 0.6, True: 0.5}
"""With fewer calls, quarters vary more; half of them are enough where the task is far from the others."""

_MATES = 0.4
_MOST_STRIPES = 16

ADVICE = {
    "straggler-task": "look at what else runs on the core, and at what only this task does (logging, a "
    "different "
    "path or file system); pin tasks; ask the administrator to check its node",
    "straggler-node": "run without this node (--exclude in Slurm), and tell the administrator: its link, "
    "its client "
    "or its memory is slow",
}


def _find(case: Case, by_node: bool) -> Remedy | None:
    if len(case.ranks) < LEAST_TASKS:
        raise NotApplicable(f"a slow task needs {LEAST_TASKS} tasks to compare with: run more tasks")
    views = [view for by_quarters in (False, True) if (view := _view(case, by_quarters)) is not None]
    if not views:
        raise NotApplicable(
            f"tasks can be compared in less than {LEAST_PHASES} phases: record a run with more steps, and "
            "the layer mpisync"
        )
    node = case.nodes_of_tasks()
    nodes = 0 if node is None else int(node.max()) + 1
    if by_node and 2 <= nodes < LEAST_TASKS:
        raise NotApplicable(f"a slow node needs {LEAST_TASKS} nodes to compare with: run on more nodes")
    found = [each for view in views if (each := _outlier(case, view, node, by_node)) is not None]
    if not found:
        return None
    best = max(found, key=lambda each: each.z)
    slower, worst, effect, p, same = best.slower, best.worst, best.effect, best.p, best.same
    by_quarters, windows, factor = best.by_quarters, len(slower), float(np.exp(effect))
    members = node == worst if by_node and node is not None else np.arange(len(case.ranks)) == worst
    rows = members[case.task] & (case.op != "seek")
    own = np.zeros(case.present.shape)
    own[:, members] = effect
    saved = np.where(rows, case.rows["time_ns"] * -np.expm1(-case.of_cells(own)), 0.0)
    error = 1.645 * float(slower[:, worst].std(ddof=1)) / windows**0.5
    low, high = (
        np.where(rows, case.rows["time_ns"] * -np.expm1(-max(effect + s * error, 0)), 0.0) for s in (-1, 1)
    )
    host = _host_of(case, members)
    who = f"node {host}" if by_node else f"task {int(case.ranks[worst])}" + (f" (on {host})" if host else "")
    checks = (
        Check(
            "not-by-chance",
            True,
            f"permutation of {'nodes' if by_node else 'tasks'} within phases: p = {p:.2g}",
        ),
        Check(
            "in-most-phases",
            True,
            f"slower in {same:.0%} of {windows} {'quarters of phases' if by_quarters else 'phases'}",
        ),
        Check(
            "per-size",
            True,
            "calls of the same function and size class are compared, so more bytes do not count",
        ),
    )
    evidence: dict[str, Any] = {"slowdown": factor, "phases_compared": windows, "p": p, "host": host}
    what = "straggler-node" if by_node else "straggler-task"
    return Remedy(
        rows,
        saved,
        f"calls of {who} take {factor:.2f} times as long as the same calls of others",
        ADVICE[what],
        checks,
        evidence,
        low,
        high,
    )


class _View(NamedTuple):
    """Residuals of tasks in phases, or quarters of phases: shape (windows, tasks), weighted by their length."""

    slower: np.ndarray
    present: np.ndarray
    weight: np.ndarray
    by_quarters: bool


class _Outlier(NamedTuple):
    slower: np.ndarray
    worst: int
    effect: float
    p: float
    z: float
    same: float
    by_quarters: bool


def _view(case: Case, by_quarters: bool) -> _View | None:
    alone = np.char.find(case.name, "_all") < 0
    if by_quarters:
        # A slow task begins its later calls when others have left the servers: only quarters show it then.
        if not len(case.evidence.quarters.columns()["n"]):
            return None
        slower, time_ns = case.residuals_of_quarters(alone)
        present = time_ns > 0
    else:
        slower, present, time_ns = case.residuals(alone), case.present, case.by_cell(case.rows["time_ns"])
    windows = np.flatnonzero((present.sum(axis=1) >= LEAST_TASKS) & np.any(slower != 0, axis=1))
    if len(windows) < LEAST_PHASES:
        return None
    # A phase counts by how long it is: that of opening files says little.
    weight = np.median(time_ns[windows], axis=1)
    weight = weight / max(float(weight.mean()), 1e-9)
    return _View(slower[windows] * weight[:, None], present[windows], weight, by_quarters)


def _outlier(case: Case, view: _View, node: np.ndarray | None, by_node: bool) -> _Outlier | None:
    """Return the slowest task, or node, of a view, if it is slower than chance explains."""
    slower, present, weight = view.slower, view.present, view.weight
    slower = slower - _explained_by_load(case, slower.mean(axis=0)) * weight[:, None] / weight.mean()
    is_node = node is not None and _mates_are_slow(slower, node)
    if is_node != by_node:
        return None
    if by_node:
        assert node is not None
        counts = np.bincount(node)
        slower = np.stack([np.bincount(node, row) / counts for row in slower])
        present = np.ones(slower.shape, bool)
    mean = slower.mean(axis=0)
    worst = int(np.argmax(mean))
    effect, z = float(mean[worst]), _z_of_largest(mean)
    if z < _LEAST_Z[by_node] or effect < (_LEAST_EFFECT if z >= _FAR else np.log(LEAST_FACTOR)):
        return None
    same = float(np.sum(weight * (slower[:, worst] > 0.3 * effect * weight)) / weight.sum())
    if same < (_SAME_SIGN_OF_QUARTERS[z >= _FAR] if view.by_quarters else _SAME_SIGN):
        return None
    # Calls that begin late are short, so the quarters of a phase are not independent: a task that is far from
    # all others needs no permutation.
    p = _p_of_z(z, len(mean)) if z >= _FAR else p_of_largest(slower, present)
    return None if p > LEVEL else _Outlier(slower, worst, effect, p, z, same, view.by_quarters)


def _z_of_largest(mean: np.ndarray) -> float:
    """Return how many standard deviations of the others the largest value is above their median.

    Their upper half gives the standard deviation, as few tasks may be fast: by the upper decile of the others,
    and by the largest of them, which of n normal values is expected at the quantile 1 - 1 / (n + 1).
    """
    others = np.sort(np.delete(mean, int(np.argmax(mean))))
    normal, middle = NormalDist(), float(np.median(others))
    decile = (float(np.quantile(others, 0.9)) - middle) / normal.inv_cdf(0.9)
    largest = (float(others[-1]) - middle) / normal.inv_cdf(max(1 - 1 / (len(others) + 1), 0.75))
    return (float(mean.max()) - middle) / max(decile, largest, 1e-9)


def _p_of_z(z: float, number: int) -> float:
    """Return the probability that the largest of `number` normal values is so far above their median."""
    return min(number * NormalDist().cdf(-z), 1.0)


def _explained_by_load(case: Case, mean: np.ndarray) -> np.ndarray:
    """Compute what the load of the targets of its files explains of the slowness of each task."""
    load = _loads(case)
    others = np.delete(np.arange(len(mean)), int(np.argmax(mean)))
    spread = load[others] - load[others].mean()
    if not (spread**2).sum() > 0:
        return np.zeros(len(mean))
    slope = max(float((spread * mean[others]).sum() / (spread**2).sum()), 0.0)
    found: np.ndarray = slope * (load - np.median(load))
    return found


def _loads(case: Case) -> np.ndarray:
    """Compute how much more than usual the targets of each task have to do (logarithm); 0: not known."""
    found = np.zeros(len(case.ranks))
    uses, stripes = case.evidence.uses.columns(), case.evidence.stripes
    _, count, first, listed = stripes[np.minimum(uses["file"], len(stripes) - 1)].T
    known = np.flatnonzero((listed > 0) & (count > 0) & (count <= _MOST_STRIPES))
    if not len(known):
        return found
    count, first, listed = count[known], first[known], listed[known]
    number = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    target = (np.repeat(first, count) + number) % np.repeat(listed, count)
    load = np.bincount(target, np.repeat(uses["bytes"][known] / count, count))
    task = np.searchsorted(case.ranks, np.repeat(uses["rank"][known], count))
    np.maximum.at(found, task, np.log(load[target] / np.median(load[target])))
    return found


def _mates_are_slow(slower: np.ndarray, node: np.ndarray) -> bool:
    """Whether the slowness of the slowest node is that of most of its tasks."""
    mean = slower.mean(axis=0)
    counts = np.bincount(node)
    worst = int(np.argmax(np.bincount(node, mean) / counts))
    if node[int(np.argmax(mean))] != worst:
        return False
    mine = np.sort(mean[node == worst])
    return len(mine) > 1 and len(counts) > 1 and bool(np.median(mine[:-1]) > _MATES * mine[-1] > 0)


def _host_of(case: Case, members: np.ndarray) -> str:
    rank = int(case.ranks[np.flatnonzero(members)[0]])
    return next((process.host for process in case.run.processes if process.rank == rank), "")


task_rule = EvidenceRule("straggler-task", lambda case: _find(case, by_node=False))
node_rule = EvidenceRule("straggler-node", lambda case: _find(case, by_node=True))
