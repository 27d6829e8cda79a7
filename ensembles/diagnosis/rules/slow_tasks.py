"""Rules ``straggler-task`` and ``straggler-node``: one task, or one node, is slower in every phase."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensembles.diagnosis.case import Case, p_of_largest
from ensembles.diagnosis.evidence_rule import EvidenceRule
from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule import NotApplicable
from ensembles.diagnosis.summed.cannot_tell import check_straggler

LEVEL = 0.004
LEAST_FACTOR = 1.08
LEAST_PHASES = 3
LEAST_TASKS = 4
ENOUGH_PHASES = 6
"""With fewer phases, weighted by their length, their quarters are compared."""

_SAME_SIGN = 0.75  # share of the time of the phases
_SAME_SIGN_OF_QUARTERS = 0.6  # with fewer calls, quarters vary more
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
    alone = np.char.find(case.name, "_all") < 0
    slower, present, time_ns = case.residuals(alone), case.present, case.by_cell(case.rows["time_ns"])
    by_quarters = (
        _effective(slower, time_ns) < ENOUGH_PHASES and len(case.evidence.quarters.columns()["n"]) > 0
    )
    if by_quarters:
        slower, time_ns = case.residuals_of_quarters(alone)
        present = time_ns > 0
    windows = np.flatnonzero((present.sum(axis=1) >= LEAST_TASKS) & np.any(slower != 0, axis=1))
    if len(windows) < LEAST_PHASES:
        raise NotApplicable(
            f"tasks can be compared in {len(windows)} phases, and {LEAST_PHASES} are needed: "
            f"record a run with "
            "more steps, and the layer mpisync"
        )
    # A phase counts by how long it is: that of opening files says little.
    weight = np.median(time_ns[windows], axis=1)
    weight = weight / max(float(weight.mean()), 1e-9)
    slower, present = slower[windows] * weight[:, None], present[windows]
    node = case.nodes_of_tasks()
    worst = int(np.argmax(slower.mean(axis=0)))
    nodes = 0 if node is None else int(node.max()) + 1
    if by_node and 2 <= nodes < LEAST_TASKS:
        raise NotApplicable(f"a slow node needs {LEAST_TASKS} nodes to compare with: run on more nodes")
    is_node = node is not None and _mates_are_slow(slower, node)
    if is_node != by_node:
        return None
    if by_node:
        assert node is not None
        counts = np.bincount(node)
        slower = np.stack([np.bincount(node, row) / counts for row in slower])
        present = np.ones(slower.shape, bool)
        worst = int(np.argmax(slower.mean(axis=0)))
    effect = float(slower[:, worst].mean())
    factor, p = float(np.exp(effect)), p_of_largest(slower, present)
    same = float(np.sum(weight * (slower[:, worst] > 0.3 * effect * weight)) / weight.sum())
    if p > LEVEL or factor < LEAST_FACTOR or same < (_SAME_SIGN_OF_QUARTERS if by_quarters else _SAME_SIGN):
        return None
    if not by_node and effect < 1.5 * _load_of(case, int(case.ranks[worst])):
        return None  # its files lie on targets that more tasks use
    members = node == worst if by_node and node is not None else np.arange(len(case.ranks)) == worst
    rows = members[case.task] & (case.op != "seek")
    own = np.zeros(case.present.shape)
    own[:, members] = effect
    saved = np.where(rows, case.rows["time_ns"] * -np.expm1(-case.of_cells(own)), 0.0)
    error = 1.645 * float(slower[:, worst].std(ddof=1)) / len(windows) ** 0.5
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
            f"slower in {same:.0%} of {len(windows)} {'quarters of phases' if by_quarters else 'phases'}",
        ),
        Check(
            "per-size",
            True,
            "calls of the same function and size class are compared, so more bytes do not count",
        ),
    )
    evidence: dict[str, Any] = {"slowdown": factor, "phases_compared": len(windows), "p": p, "host": host}
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


def _effective(slower: np.ndarray, time_ns: np.ndarray) -> float:
    """Return how many phases of equal length would tell as much as those in which tasks can be compared."""
    weight = np.median(time_ns, axis=1)[np.any(slower != 0, axis=1)]
    return float(weight.sum() ** 2 / max((weight**2).sum(), 1e-9)) if len(weight) else 0.0


def _load_of(case: Case, rank: int) -> float:
    """Compute how much more than usual the targets of a task have to do (logarithm); 0: not known."""
    uses, stripes = case.evidence.uses.columns(), case.evidence.stripes
    _, count, first, listed = stripes[np.minimum(uses["file"], len(stripes) - 1)].T
    known = np.flatnonzero((listed > 0) & (count > 0) & (count <= _MOST_STRIPES))
    if not len(known):
        return 0.0
    count, first, listed = count[known], first[known], listed[known]
    number = np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)
    target = (np.repeat(first, count) + number) % np.repeat(listed, count)
    part = np.repeat(uses["bytes"][known] / count, count)
    load = np.bincount(target, part)
    mine = np.repeat(uses["rank"][known], count) == rank
    if not mine.any():
        return 0.0
    return max(float(np.log(load[target[mine]].max() / np.median(load[target]))), 0.0)


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


task_rule = EvidenceRule("straggler-task", lambda case: _find(case, by_node=False), summed=check_straggler)
node_rule = EvidenceRule("straggler-node", lambda case: _find(case, by_node=True), summed=check_straggler)
