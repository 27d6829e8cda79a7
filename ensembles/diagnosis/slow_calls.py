"""Rules ``straggler-task`` and ``straggler-node``: a task, or those of a node, are slow in every phase."""

from __future__ import annotations

from functools import partial
from math import erfc
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case, p_of_largest
from ensembles.diagnosis.evidence_rule import FILE_USES, EvidenceRule
from ensembles.diagnosis.file_uses import FileUses
from ensembles.diagnosis.finding import Check, Finding, NotApplicable, matters
from ensembles.diagnosis.limits import LEAST_UNITS, NORMAL_90
from ensembles.diagnosis.remedy import Remedy
from ensembles.diagnosis.storage_load import flushes_alike, load_of_targets
from ensembles.diagnosis.without_calls import OTHERS_WAIT, check_straggler, counted_case, counted_finding
from ensembles.model.levels import ALIKE, FEW, MOST, NEARLY_ALL, SEVERAL
from ensembles.model.units import number_text, seconds_text, share_text
from ensembles.summaries.keyed_sums import groups_of_rows

if TYPE_CHECKING:
    from ensembles.run.run import Run

LEVEL = 0.004
LEAST_FACTOR = 1.08

_LEAST_EFFECT = 0.02
LEAST_Z = {False: 4.0, True: 3.5}
"""Of tasks, and of nodes, which are means over their tasks."""

SUSPECT_Z = 2.5
"""The same from which one run does not decide."""

_FAR = 6.0
"""Standard deviations of the others beyond which a task is slower, whatever the distribution."""

_ENOUGH = 10
"""Tasks, or nodes, from which their standard deviation is known well enough for that."""

_SAME_SIGN = 0.75  # share of the time of the phases
_SAME_SIGN_OF_QUARTERS = {False: 0.6, True: 0.5}
"""With fewer calls, quarters vary more; half of them are enough where the task is far from the others."""


_LEAST_P = 1e-9  # no distribution is normal so far out


class View(NamedTuple):
    """Residuals of tasks in phases, or quarters of phases (windows, tasks), weighted by their length.

    `by_time`: of mean durations instead of mean logarithms.
    """

    slower: np.ndarray
    present: np.ndarray
    weight: np.ndarray
    by_quarters: bool
    by_time: bool = False


class Outlier(NamedTuple):
    """A slow task or node: `worst` is its column of `slower`, `effect` the mean logarithm of its slowness.

    `error` is half the 90 % interval of the effect, over the phases and over the others it is compared with.
    """

    slower: np.ndarray
    worst: int
    effect: float
    p: float
    z: float
    same: float
    by_quarters: bool
    error: float
    by_time: bool = False


def views_of(case: Case, uses: FileUses) -> list[View]:
    """Return the residuals of tasks by phases, by their quarters, and by time; none: too few compare."""
    if views_of not in case.shared:
        kinds = ((False, False), (True, False), (False, True))
        case.shared[views_of] = [view for kind in kinds if (view := _view(case, uses, *kind)) is not None]
    found: list[View] = case.shared[views_of]
    return found


def _view(case: Case, uses: FileUses, by_quarters: bool, by_time: bool) -> View | None:
    alone = (np.char.find(case.name, "_all") < 0) & flushes_alike(case, uses)
    if by_quarters:
        # A slow task begins its later calls when others have left the servers: only quarters show it then.
        if not len(case.evidence.quarters.columns()["n"]):
            return None
        slower, time_ns = case.residuals_of_quarters(alone)
        present = time_ns > 0
    else:
        slower, present = case.residuals(alone, by_time=by_time), case.present
        time_ns = case.by_cell(case.rows["time_ns"])
    windows = np.flatnonzero((present.sum(axis=1) >= LEAST_UNITS) & np.any(slower != 0, axis=1))
    if len(windows) < SEVERAL:
        return None
    # A phase counts by how long it is: that of opening files says little.
    weight = np.median(time_ns[windows], axis=1)
    weight = weight / max(float(weight.mean()), 1e-9)
    return View(slower[windows] * weight[:, None], present[windows], weight, by_quarters, by_time)


def find_outlier(
    case: Case, view: View, node: np.ndarray | None, by_node: bool, certain: bool = True
) -> Outlier | None:
    """Return the slowest task, or node, of a view, if it is slower than chance explains."""
    slower, present, weight = view.slower, view.present, view.weight
    slower = slower - _explained_by_load(case, slower.mean(axis=0)) * weight[:, None] / weight.mean()
    one_each = node is not None and one_for_each_node(case, node)
    is_node = node is not None and (one_each or _mates_are_slow(slower, node))
    if is_node != by_node:
        return None
    if by_node:
        assert node is not None
        counts = np.bincount(node)
        if one_each:
            moves = _moves_data(case)
            counts, slower = np.bincount(node, moves), np.where(moves, slower, 0.0)
        slower = np.stack([np.bincount(node, row) / np.maximum(counts, 1) for row in slower])
        full = counts >= NEARLY_ALL * counts.max()
        if full.sum() < 2 or not full[int(np.argmax(slower.mean(axis=0)))]:
            return None
        slower = np.where(full, slower, np.median(slower[:, full], axis=1, keepdims=True))
        present = np.ones(slower.shape, bool) & full
    mean = slower.mean(axis=0)
    worst = int(np.argmax(mean))
    effect, z = float(mean[worst]), z_of_largest(mean)
    far = z >= _FAR and len(mean) >= _ENOUGH
    if z < (LEAST_Z[by_node] if certain else SUSPECT_Z) or effect < (
        _LEAST_EFFECT if far else np.log(LEAST_FACTOR)
    ):
        return None
    same = float(np.sum(weight * (slower[:, worst] > 0.3 * effect * weight)) / weight.sum())
    if same < (_SAME_SIGN_OF_QUARTERS[far] if view.by_quarters else _SAME_SIGN):
        return None
    error = _error_of(slower[:, worst], weight, np.delete(mean, worst))
    found = Outlier(slower, worst, effect, 1.0, z, same, view.by_quarters, error, view.by_time)
    if not certain:
        return found
    # Calls that begin late are short, so the quarters of a phase are not independent: a task that is far from
    # all others needs no permutation.
    p = _p_of_z(z, len(mean)) if far else p_of_largest(slower, present)
    return None if p > LEVEL else found._replace(p=p)


def find_among_few_nodes(case: Case, view: View, node: np.ndarray) -> Outlier | None:
    """Return the slowest of two or three nodes, if its tasks are slower than all others in every phase.

    Nodes are exchanged within phases. Their tasks give the spread that so few nodes do not.
    """
    slower, weight = view.slower, view.weight
    slower = slower - _explained_by_load(case, slower.mean(axis=0))[None, :] * weight[:, None]
    counts = np.bincount(node)
    full = np.flatnonzero((counts >= NEARLY_ALL * counts.max()) & (counts >= FEW))
    if len(full) < 2:
        return None
    by_node = np.stack([np.bincount(node, row) / counts for row in slower])
    worst = int(full[np.argmax(by_node.mean(axis=0)[full])])
    others = full[full != worst]
    beyond = by_node - by_node[:, others].mean(axis=1, keepdims=True)
    effect = float(beyond[:, worst].mean())
    if effect < np.log(ALIKE):
        return None
    mean = slower.mean(axis=0)
    left = mean - by_node.mean(axis=0)[node]
    inside = left[np.isin(node, full)]
    spread = float(np.sqrt((inside**2).sum() / max(len(inside) - len(full), 1)))
    z = effect / max(spread * (1 / counts[worst] + 1 / counts[others].sum()) ** 0.5, 1e-9)
    same = float(np.sum(weight * (beyond[:, worst] > 0.3 * effect * weight)) / weight.sum())
    p = p_of_largest(by_node[:, full], np.ones((len(slower), len(full)), bool))
    if z < LEAST_Z[False] or same < _SAME_SIGN or p > LEVEL:
        return None
    error = _error_of(beyond[:, worst], weight, inside)
    return Outlier(beyond, worst, effect, p, z, same, view.by_quarters, error, view.by_time)


def _error_of(slower: np.ndarray, weight: np.ndarray, others: np.ndarray) -> float:
    """Compute half the 90 % interval of an effect: phases count by their length, and others differ too."""
    number = len(slower)
    left = slower - float(slower.mean()) * weight / float(weight.mean())
    phases = float((left**2).sum() * number / max(number - 1, 1)) ** 0.5 / number
    spread = others - np.median(others)
    return float(np.hypot(NORMAL_90 * phases, np.quantile(np.abs(spread), 0.9)))


def z_of_largest(mean: np.ndarray) -> float:
    """Return how many standard deviations of the others the largest value is above their median.

    Their upper half gives the standard deviation, as some tasks may be fast: by the upper decile of them
    and by the largest of them, which of n normal values is expected at the quantile 1 - 1 / (n + 1).
    """
    others = np.sort(np.delete(mean, int(np.argmax(mean))))
    middle = float(np.median(others))
    decile = (float(np.quantile(others, 0.9)) - middle) / NormalDist().inv_cdf(0.9)
    largest = (float(others[-1]) - middle) / NormalDist().inv_cdf(max(1 - 1 / (len(others) + 1), 0.75))
    return (float(mean.max()) - middle) / max(decile, largest, 1e-9)


def _p_of_z(z: float, number: int) -> float:
    """Return the probability that the largest of `number` normal values is so far above their median."""
    return min(max(number * erfc(z / 2**0.5) / 2, _LEAST_P), 1.0)


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
    parts = load_of_targets(case)
    if not len(parts.target):
        return found
    load = parts.of_targets
    task = np.searchsorted(case.ranks, parts.rank)
    np.maximum.at(found, task, np.log(load[parts.target] / np.median(load[parts.target])))
    return found


def one_for_each_node(case: Case, node: np.ndarray) -> bool:
    """Whether nodes have several tasks, but one of them moves the data of all: an aggregator.

    Its node has no other task that shows which of the two is slow.
    """
    moving = np.bincount(node, _moves_data(case))
    return bool(moving.max() == 1 and np.bincount(node).max() > 1)


def _moves_data(case: Case) -> np.ndarray:
    """Find the tasks that read or write in storage calls: bool, shape (tasks,)."""
    if _moves_data not in case.shared:
        rows = case.on_files & np.isin(case.op, ("read", "write")) & (case.rows["bytes"] > 0)
        case.shared[_moves_data] = np.isin(np.arange(len(case.ranks)), case.task[rows])
    moves: np.ndarray = case.shared[_moves_data]
    return moves


def _mates_are_slow(slower: np.ndarray, node: np.ndarray) -> bool:
    """Whether the slowness of the slowest node is that of most of its tasks."""
    mean = slower.mean(axis=0)
    counts = np.bincount(node)
    worst = int(np.argmax(np.bincount(node, mean) / counts))
    if node[int(np.argmax(mean))] != worst:
        return False
    mine = np.sort(mean[node == worst])
    return len(mine) > 1 and len(counts) > 1 and bool(np.median(mine[:-1]) > MOST * mine[-1] > 0)


def find_slow(case: Case, uses: FileUses, by_node: bool) -> Remedy | None:
    """Find a task, or a node, that is slower than the others, and what its calls save at their speed."""
    if len(case.ranks) < LEAST_UNITS:
        raise NotApplicable(f"a slow task needs {LEAST_UNITS} tasks to compare with: run more tasks")
    views = views_of(case, uses)
    alike = flushes_alike(case, uses)
    if not views:
        raise NotApplicable(
            f"tasks can be compared in less than {SEVERAL} phases: record a run with more steps, and "
            "the layer mpisync"
        )
    node = case.nodes_of_tasks()
    nodes = 0 if node is None else int(node.max()) + 1
    few = node is not None and nodes < LEAST_UNITS
    found = [each for view in views if (each := _find_in(case, view, node, by_node, few)) is not None]
    if not found and by_node and few:
        raise NotApplicable(f"a slow node needs {LEAST_UNITS} nodes to compare with: run on more nodes")
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
        Check("not-by-chance", f"{number_text(best.z)} standard deviations above the others: p = {p:.2g}"),
        Check(
            "in-most-phases",
            f"slower in {share_text(same)} of {windows} {'quarters of phases' if by_quarters else 'phases'}",
        ),
        Check(
            "per-size",
            "calls of the same function and size class are compared, and syncs after the same bytes, so more "
            "bytes do not count",
        ),
    )
    if by_node and few:
        checks += (Check("enough-nodes", f"{nodes} nodes: whether nodes usually differ is not known", None),)
    if by_node and node is not None and one_for_each_node(case, node):
        text = "one task of each node makes the calls that are compared: it may be slow itself"
        checks += (Check("not-the-task", text, None),)
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
    """Compute how long calls of some tasks take, and as many calls of the other tasks."""
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
        if len(cell) >= LEAST_UNITS and mine.any() and not mine.all():
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
    """Find the rows of some tasks whose function other tasks call in the same phase: bool, shape (n,)."""
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
        if matters(gain_s, case.run_s):
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


def find_counted(run: Run) -> Finding | None:
    """Compare the slowest task of a shared file with all of its tasks, by the time for each byte."""
    case = counted_case(run)
    files, moved = case.files, case.files["bytes_read"] + case.files["bytes_written"]
    part = np.where(files["is_shared"], files["slowest_bytes"].clip(0) / np.maximum(moved, 1), 0.0)
    usual_s = part * (files["read_s"] + files["write_s"] + files["meta_s"])
    lost_s = np.where((part > 0) & (case.time_s >= FEW * usual_s), case.time_s - usual_s, 0.0)
    worst = int(np.argmax(lost_s))
    rank, ratio = int(files["slowest_rank"][worst]), number_text(case.time_s[worst] / (usual_s[worst] or 1))
    title = f"rank {rank} takes {ratio} times as long for each byte as the tasks of a file on average"
    parts = (title, (OTHERS_WAIT,), {"rank": rank}, (0.0, 0.0, float(lost_s[worst])))
    return counted_finding(case, "straggler-task", *parts, np.arange(len(moved)) == worst)


task, node = (
    EvidenceRule(name, partial(find_slow, by_node=by_node), FILE_USES, summed=check_straggler, counted=of_log)
    for name, by_node, of_log in (("straggler-task", False, find_counted), ("straggler-node", True, None))
)
