"""What the calls of a slow task or node would save: the remedy of two rules."""

from __future__ import annotations

from typing import Any

import numpy as np

from ensembles.diagnosis.bytes_to_flush import flushes_alike
from ensembles.diagnosis.case import Case
from ensembles.diagnosis.file_uses import FileUses
from ensembles.diagnosis.finding import FROM_SHARE, Check
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.rule import NotApplicable
from ensembles.diagnosis.slow_units import (
    FEW_NODES,
    LEAST_FACTOR,
    LEAST_PHASES,
    LEAST_TASKS,
    Outlier,
    View,
    find_among_few_nodes,
    find_outlier,
    one_for_each_node,
    views_of,
)
from ensembles.model.units import seconds_text, share_text
from ensembles.summaries.keyed_sums import groups_of_rows

_MOST_Z = 100


def find_slow(case: Case, uses: FileUses, by_node: bool) -> Remedy | None:
    """Find a task, or a node, that is slower than the others, and what its calls save at their speed.

    Raises
    ------
    NotApplicable
        There are too few tasks, nodes or phases to compare.
    """
    if len(case.ranks) < LEAST_TASKS:
        raise NotApplicable(f"a slow task needs {LEAST_TASKS} tasks to compare with: run more tasks")
    views = views_of(case, uses)
    alike = flushes_alike(case, uses)
    if not views:
        raise NotApplicable(
            f"tasks can be compared in less than {LEAST_PHASES} phases: record a run with more steps, and "
            "the layer mpisync"
        )
    node = case.nodes_of_tasks()
    nodes = 0 if node is None else int(node.max()) + 1
    few = node is not None and nodes < FEW_NODES
    found = [each for view in views if (each := _find_in(case, view, node, by_node, few)) is not None]
    if not found and by_node and few:
        raise NotApplicable(f"a slow node needs {FEW_NODES} nodes to compare with: run on more nodes")
    if not found:
        _refuse_if_undecided(case, views, alike, node, by_node)
        return None
    best = max(found, key=lambda each: each.z)
    # What a task loses is the time of its calls, whichever statistic shows it best.
    best = next((each for each in found if each.by_time and each.worst == best.worst), best)
    worst, effect, p, same = best.worst, best.effect, best.p, best.same
    by_quarters, windows, factor = best.by_quarters, len(best.slower), float(np.exp(effect))
    members = _members(case, node if by_node else None, worst)
    rows = _made_by_others(case, members) & (case.op != "seek") & alike
    own = np.zeros(case.present.shape)
    own[:, members] = effect
    saved = np.where(rows, case.rows["time_ns"] * -np.expm1(-case.of_cells(own)), 0.0)
    low, high = (
        np.where(rows, case.rows["time_ns"] * -np.expm1(-max(effect + s * best.error, 0)), 0.0)
        for s in (-1, 1)
    )
    host = _host_of(case, members)
    who = f"node {host}" if by_node else f"task {int(case.ranks[worst])}" + (f" (on {host})" if host else "")
    checks: tuple[Check, ...] = (
        Check(
            "not-by-chance",
            True,
            f"{best.z:.1f} standard deviations above the others: p = {p:.2g}"
            if best.z < _MOST_Z
            else f"more than {_MOST_Z} standard deviations above the others",
        ),
        Check(
            "in-most-phases",
            True,
            f"slower in {share_text(same)} of {windows} {'quarters of phases' if by_quarters else 'phases'}",
        ),
        Check(
            "per-size",
            True,
            "calls of the same function and size class are compared, and syncs after the same bytes, so more "
            "bytes do not count",
        ),
    )
    if by_node and few:
        checks += (Check("enough-nodes", None, f"{nodes} nodes: whether nodes usually differ is not known"),)
    if by_node and node is not None and one_for_each_node(case, node):
        text = "one task of each node makes the calls that are compared: it may be slow itself"
        checks += (Check("not-the-task", None, text),)
    evidence: dict[str, Any] = {"slowdown": factor, "phases_compared": windows, "p": p, "host": host}
    title = f"calls of {who} take {factor:.2f} times as long as the same calls of others, phase by phase"
    time_s, others_s = _times_s(case, members, alike)
    if time_s >= LEAST_FACTOR * others_s > 0:
        evidence |= {"time_s": time_s, "others_s": others_s, "time_ratio": time_s / others_s}
        title = (
            f"calls of {who} take {seconds_text(time_s)}, {time_s / others_s:.2f} times the "
            f"{seconds_text(others_s)} of as many calls of others (median of the tasks' means, by phase, "
            "function and size class)"
        )
    return Remedy(
        rows,
        saved,
        title,
        checks,
        evidence,
        low,
        high,
    )


def _find_in(case: Case, view: View, node: np.ndarray | None, by_node: bool, few: bool) -> Outlier | None:
    """Find the slow task or node of a view."""
    if few and by_node and node is not None:
        return find_among_few_nodes(case, view, node)
    return find_outlier(case, view, node, by_node)


def _times_s(case: Case, members: np.ndarray, alike: np.ndarray) -> tuple[float, float]:
    """Compute how long calls of some tasks take, and as many calls of the other tasks.

    Calls of a phase, function and size class take the others the median of their tasks' mean durations. Those
    of fewer than `LEAST_TASKS` tasks are left out, and so are collective calls, calls inside others, and
    syncs after other bytes.

    Parameters
    ----------
    case : Case
    members : ndarray of bool, shape (tasks,)
    alike : ndarray of bool, shape (n,)
        Rows that compare (`flushes_alike`).
    """
    alone = (np.char.find(case.name, "_all") < 0) & (case.op != "seek") & alike
    outermost = alone & (case.rows["depth"] == 0)
    chosen = np.flatnonzero(outermost if (outermost & members[case.task]).any() else alone)
    if not len(chosen):
        return 0.0, 0.0
    rows = {name: case.rows[name][chosen].astype(np.int64) for name in ("phase", "call", "size", "depth")}
    group, first = groups_of_rows([*rows.values(), case.task[chosen].astype(np.int64)])
    key = groups_of_rows([column[first] for column in rows.values()])[0]
    task = case.task[chosen][first]
    count = np.bincount(group, case.rows["n"][chosen])
    time_ns = np.bincount(group, case.rows["time_ns"][chosen])
    mine_ns = others_ns = 0.0
    order = np.argsort(key, kind="stable")
    for cell in np.split(order, np.flatnonzero(np.diff(key[order])) + 1):
        mine = members[task[cell]]
        if len(cell) >= LEAST_TASKS and mine.any() and not mine.all():
            usual_ns = np.median(time_ns[cell][~mine] / count[cell][~mine])
            mine_ns += float(time_ns[cell][mine].sum())
            others_ns += float(count[cell][mine].sum() * usual_ns)
    return 1e-9 * mine_ns, 1e-9 * others_ns


def _members(case: Case, node: np.ndarray | None, worst: int) -> np.ndarray:
    """Find the tasks of a node; without nodes, the task itself."""
    units = np.arange(len(case.ranks)) if node is None else node
    members: np.ndarray = units == worst
    return members


def _made_by_others(case: Case, members: np.ndarray) -> np.ndarray:
    """Find the rows of some tasks whose function other tasks call in the same phase: bool, shape (n,).

    What these tasks alone do, such as writing the bytes of all, compares with nothing.
    """
    mine = members[case.task]
    kind = groups_of_rows([case.rows[name].astype(np.int64) for name in ("phase", "call")])[0]
    others = np.bincount(kind[~mine], minlength=int(kind.max(initial=-1)) + 1)
    rows: np.ndarray = mine & (others[kind] > 0)
    return rows


def _refuse_if_undecided(
    case: Case, views: list[View], alike: np.ndarray, node: np.ndarray | None, by_node: bool
) -> None:
    """Refuse a run in which a task or node looks slow, would cost a notable part, but is not significant."""
    for view in views:
        found = find_outlier(case, view, node, by_node, certain=False)
        if found is None:
            continue
        mine = _made_by_others(case, _members(case, node if by_node else None, found.worst))
        mine &= (case.op != "seek") & alike
        gain_s = case.gain_s(np.where(mine, case.rows["time_ns"] * -np.expm1(-found.effect), 0.0))
        if gain_s >= FROM_SHARE["warning"] * case.run_s:
            unit = "a node" if by_node else "a task"
            raise NotApplicable(
                f"{unit} looks slower ({np.exp(found.effect):.2f} times, {found.z:.1f} standard deviations "
                f"of the others), which is not significant, and could cost {seconds_text(gain_s)}: record a "
                "run with more steps",
                gain_s,
            )


def _host_of(case: Case, members: np.ndarray) -> str:
    rank = int(case.ranks[np.flatnonzero(members)[0]])
    return next((process.host for process in case.run.info.processes if process.rank == rank), "")
