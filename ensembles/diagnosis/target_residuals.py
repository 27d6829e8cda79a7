"""The slowest storage target: whether load, slow tasks and chance explain that its calls take longer."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ensembles.diagnosis.case import Case, p_of_chance
from ensembles.diagnosis.finding import NotApplicable
from ensembles.diagnosis.limits import LEVEL, MOST

LEAST_TARGETS = 6
"""Of one file with fewer stripes, targets are the same as call indices: tasks in step use them in turn."""

LEAST_FACTOR = 1.4
OUTLIER = 2.0
_SLOW_USERS = 0.6


class SlowTarget(NamedTuple):
    """A slow target."""

    target: int
    factor: float  # By which its calls take longer than the same calls on others
    p: float  # Of a permutation of targets among pairs of task and target
    shortest: float  # The same factor, of the shortest call of each task
    slow_users: float  # Share of the tasks that are slow there
    # users, pairs, targets: Tasks that use it, and pairs and targets that were compared
    users: int
    pairs: int
    targets: int


def find_slow_target(case: Case) -> SlowTarget | None:
    """Return the slowest target, if it is slower than load, tasks and chance explain."""
    table = case.evidence.targets.columns()
    if not len(table["n"]):
        raise NotApplicable(
            "no call is known to lie on one target: the layout of the files is unknown, or each "
            "call has stripes on many "
            "targets; record file by file on Lustre, or with a small stripe count"
        )
    residual = _residuals(table)
    targets, target = np.unique(table["target"], return_inverse=True)
    if len(targets) < LEAST_TARGETS:
        raise NotApplicable(
            f"calls lie on {len(targets)} targets alone, and {LEAST_TARGETS} are needed to compare"
        )
    # A pair of task and target is one observation: its calls share what happens to them.
    pair, where = np.unique(table["rank"] * (1 << 32) + table["target"], return_inverse=True)
    weight = np.bincount(where, table["time_ns"])
    value = np.bincount(where, residual * table["time_ns"]) / np.maximum(weight, 1)
    of = np.searchsorted(targets, pair % (1 << 32))
    value = value - _of_tasks(value, pair >> 32)
    value = value - _explained_by_load(table, target, np.bincount(of))[of]
    score = _scores(value, of, len(targets))
    worst = int(np.argmax(score))
    p = p_of_chance(score[worst], lambda rng: _scores(rng.permutation(value), of, len(targets)).max())
    # A target that more tasks use at once serves each of them later: that is load, not slowness.
    mine = of == worst
    factor, users = float(np.exp(np.median(value[mine]))), int(mine.sum())
    slow_users = float(np.mean(value[mine] > 0.5 * np.log(factor)))
    medians = np.array([np.median(value[of == number]) for number in range(len(targets))])
    next_worst = float(np.max(np.delete(medians, worst)))
    if p > LEVEL or factor < LEAST_FACTOR or users < 2 or slow_users < _SLOW_USERS:
        return None
    if np.log(factor) < OUTLIER * next_worst:
        return None
    # Tasks in step queue up at the target where all of them begin; the first of a queue shows its own speed.
    shortest = _shortest(table, int(targets[worst]))
    if shortest < MOST * np.log(factor):
        return None
    return SlowTarget(
        int(targets[worst]), factor, p, float(np.exp(shortest)), slow_users, users, len(pair), len(targets)
    )


def share_on_target(case: Case, target: int) -> np.ndarray:
    """Estimate which share of the time of each row was spent on a target."""
    table = case.evidence.targets.columns()
    rank, call, size = (case.rows[name] for name in ("rank", "call", "size"))
    on = table["target"] == target
    width = int(rank.max(initial=0)) + 1
    keys = (table["call"] * 128 + table["size"]) * width + table["rank"]
    names, where = np.unique(keys, return_inverse=True)
    whole = np.bincount(where, table["time_ns"], len(names))
    part = np.bincount(where, table["time_ns"] * on, len(names))
    wanted = (call * 128 + size) * width + rank
    at = np.minimum(np.searchsorted(names, wanted), len(names) - 1)
    found: np.ndarray = np.where(names[at] == wanted, part[at] / np.maximum(whole[at], 1), 0.0)
    return found


def _residuals(table: dict[str, np.ndarray]) -> np.ndarray:
    """Compute how much longer than the median of its function and size class each row takes (logarithm)."""
    key = table["call"] * 128 + table["size"]
    mean = table["log_ns"] / table["n"]
    result = np.zeros(len(mean))
    for name in np.unique(key):
        chosen = key == name
        result[chosen] = mean[chosen] - np.median(mean[chosen])
    return result


def _shortest(table: dict[str, np.ndarray], target: int) -> float:
    """Compute how much longer the shortest calls of the tasks are on a target (logarithm)."""
    key, mine = table["call"] * 128 + table["size"], table["target"] == target
    least = np.log(np.maximum(table["least_ns"], 1))
    total = weight = 0.0
    for name in np.unique(key[mine]):
        there, elsewhere = (key == name) & mine, (key == name) & ~mine
        if elsewhere.any():
            others = [
                np.median(least[elsewhere & (table["target"] == n)]) for n in _targets(table, elsewhere)
            ]
            time_ns = float(table["time_ns"][there].sum())
            total += time_ns * float(np.median(least[there]) - np.median(others))
            weight += time_ns
    return total / weight if weight else 0.0


def _targets(table: dict[str, np.ndarray], rows: np.ndarray) -> list[int]:
    found: list[int] = np.unique(table["target"][rows]).tolist()
    return found


def _of_tasks(value: np.ndarray, rank: np.ndarray) -> np.ndarray:
    """Return the median of each task that uses several targets: a slow task is slow on all of them."""
    ranks, where, count = np.unique(rank, return_inverse=True, return_counts=True)
    typical = np.array([np.median(value[where == number]) for number in range(len(ranks))])
    found: np.ndarray = np.where(count >= LEAST_TARGETS, typical, 0.0)[where]
    return found


def _explained_by_load(table: dict[str, np.ndarray], target: np.ndarray, users: np.ndarray) -> np.ndarray:
    """Compute what more bytes, or more tasks, than usual explain of the time of each target (logarithms)."""
    load = np.bincount(target, table["bytes"]).astype(float)
    more = [np.log(np.maximum(values, 1) / np.median(values)) for values in (load, users.astype(float))]
    # A target that is asked for more than it can serve falls behind by more than in proportion.
    found: np.ndarray = 2 * np.maximum(np.maximum(*more), 0)
    return found


def _scores(value: np.ndarray, target: np.ndarray, targets: int) -> np.ndarray:
    count = np.bincount(target, minlength=targets)
    return np.bincount(target, value, targets) / np.sqrt(np.maximum(count, 1))
