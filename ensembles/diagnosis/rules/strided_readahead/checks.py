"""Whether reads with a constant stride look like a read-ahead that fails: the checks, and what they stand "
"on."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.rules.strided_readahead.profile import (
    HEALTHY_READS,
    StridedRuns,
    by_task,
    p_of_ordinals,
    p_of_tasks,
)

LEVEL = 0.05
"""Of the test by ordinals, which knows no other sample than them."""

TASK_LEVEL = 0.01
"""Of the test by tasks."""

LEAST_RATIO = 1.5
"""Reads after the stride is recognised are slow if they take so many times as long."""

LEAST_STEP = 1.2
"""So many times longer than all before it takes the first of them."""

STEADY = 0.6
"""The reads before differ by less than this share of what the slow ones add (logarithms)."""

MOST_GROUPS = 64
"""Groups whose positions are permuted."""

_SHARE = 0.5
_GETS_WORSE = 1.1
_HORIZON = 12
_WRITES = 0.5
_SCATTERS = 3.0


@dataclass(frozen=True)
class Verdict:
    """What is said of strided runs with writes between their reads.

    Attributes
    ----------
    groups : tuple of int
        The runs (first, second ... on their file) that are meant; none: there is no finding.
    checks : tuple of Check
    numbers : dict of str to value
        For the evidence.
    """

    groups: tuple[int, ...]
    checks: tuple[Check, ...]
    numbers: dict[str, object] = field(default_factory=dict)

    @property
    def holds(self) -> bool:
        """No check fails."""
        return bool(self.groups) and not any(check.holds is False for check in self.checks)


def verdict(mixed: StridedRuns, plain: StridedRuns) -> Verdict:
    """Judge strided runs.

    All runs with writes between are judged together. Where they do not look like it, those that were first,
    second ... on their file are judged by themselves, and tests are asked for more, by Bonferroni's rule.

    Parameters
    ----------
    mixed, plain : StridedRuns
        With and without writes between the reads.
    """
    numbers = np.unique(mixed.run)
    if not len(numbers):
        return Verdict((), ())
    together = _judged(mixed, plain, numbers, 1)
    if len(numbers) == 1 or len(numbers) > MOST_GROUPS:
        return together
    if together.holds:
        seen = _that_see_it(mixed, numbers)
        some = mixed.some(np.isin(mixed.run, seen))
        return together if len(seen) == len(numbers) else _judged(some, plain, seen, len(numbers))
    alone = [_judged(mixed.some(mixed.run == number), plain, [number], len(numbers)) for number in numbers]
    found = [int(number) for number, one in zip(numbers, alone, strict=True) if one.holds]
    if not found:
        return together
    return _judged(mixed.some(np.isin(mixed.run, found)), plain, found, len(numbers))


def _that_see_it(mixed: StridedRuns, numbers: np.ndarray) -> np.ndarray:
    """Those groups that rise at least half as much as half of them do."""
    rises = np.array([np.median(mixed.rise[mixed.run == number]) for number in numbers])
    return numbers[rises >= 0.5 * np.quantile(rises, 0.75)]


def _judged(mixed: StridedRuns, plain: StridedRuns, numbers: object, tests: int) -> Verdict:
    groups = [mixed.some(mixed.run == number) for number in np.asarray(numbers)[:MOST_GROUPS]]
    levels_of_groups = [group.levels() for group in groups]
    levels_of_groups = [levels for levels in levels_of_groups if len(levels) > HEALTHY_READS + 1]
    if not levels_of_groups:
        return Verdict((), ())
    levels = _mean(levels_of_groups)
    before, after = levels[:HEALTHY_READS], levels[HEALTHY_READS:]
    ratio = float(np.median(after) - before.max())
    checks = [
        _begins(levels, mixed.with_writes[:HEALTHY_READS]),
        _worsens(after, mixed),
        *_tests(levels_of_groups, mixed, plain, tests),
        _in_tasks(mixed),
        _reads_without_writes(mixed, plain),
        _writes(mixed, ratio),
        _stands_out(mixed, plain, ratio),
    ]
    numbers_found = {
        "slowdown": float(np.exp(np.median(after) - np.median(before))),
        "slowdown_by_position": [float(np.exp(level)) for level in levels - np.median(before)],
    }
    return Verdict(tuple(int(number) for number in np.asarray(numbers)), tuple(checks), numbers_found)


def _begins(levels: np.ndarray, with_writes: np.ndarray) -> Check:
    """Whether the fourth is the first slow one. Reads may take longer where writes come before them, whatever
    their position, so the reads before are compared among those with writes before them, and among the
    others."""
    before, after = levels[:HEALTHY_READS], levels[HEALTHY_READS:]
    step, ratio = float(after[0] - before.max()), float(np.median(after) - before.max())
    alike = [before[with_writes], before[~with_writes]]
    pressure = float(alike[0].mean() - alike[1].mean()) if all(map(len, alike)) else 0.0
    steps = max(float(np.diff(part).max(initial=0.0)) for part in alike)
    scatter = max(float(np.ptp(part)) for part in alike if len(part))
    is_step = step >= max(np.log(LEAST_STEP), 2 * steps, 0.75 * pressure)
    steady = scatter <= STEADY * ratio and pressure <= ratio
    holds = bool(is_step and steady and ratio >= np.log(LEAST_RATIO))
    sentence = (
        f"from the {HEALTHY_READS + 1}th read of a stride on reads take {np.exp(ratio):.3g} times as long "
        "as the "
        f"slowest of the {HEALTHY_READS} before it (which differ by {np.expm1(np.ptp(before)):.0%}), the "
        f"{HEALTHY_READS + 1}th itself {np.exp(step):.3g} times"
    )
    return Check("begins-at-fourth", holds, sentence)


def _worsens(after: np.ndarray, runs: StridedRuns) -> Check:
    near = after[:_HORIZON]
    rise = float(np.max(near) - near[0])
    pairs = np.sign(near[None, :] - near[:, None])[np.triu_indices(len(near), 1)]
    tau = float(pairs.mean())
    times = runs.time[:, HEALTHY_READS : HEALTHY_READS + len(near)]
    later = by_task(runs.rank, np.nanmean(times[:, 1:], axis=1) - times[:, 0])
    share = float(np.mean(later > 0)) if len(later) else 0.0
    holds = rise >= np.log(_GETS_WORSE) and tau > 0.2 and share > 0.5
    sentence = f"they get worse from read to read: up to {np.exp(rise):.3g} times the first slow one"
    return Check("worsens", bool(holds), f"{sentence}, in {share:.0%} of the tasks")


def _tests(groups: list[np.ndarray], mixed: StridedRuns, plain: StridedRuns, tests: int) -> list[Check]:
    without = plain.levels() if len(plain) else np.empty(0)
    p, p_tasks = min(1.0, tests * p_of_ordinals(groups, without)), min(1.0, tests * p_of_tasks(mixed))
    return [
        Check(
            "not-by-chance",
            p <= LEVEL,
            f"an order of the reads by chance would look like it with p {_chance_text(p)}",
        ),
        Check("tasks-agree", p_tasks <= TASK_LEVEL, f"and within the tasks with p {_chance_text(p_tasks)}"),
    ]


def _in_tasks(mixed: StridedRuns) -> Check:
    rises = by_task(mixed.rank, mixed.rise)
    share = float(np.mean(rises > np.log(LEAST_STEP)))
    return Check("in-most-tasks", share > _SHARE, f"{share:.0%} of the tasks that read so see it")


def _reads_without_writes(mixed: StridedRuns, plain: StridedRuns) -> Check:
    name = "only-with-writes-between"
    if not len(plain):
        sentence = "this run has no reads of such a stride without writes between them to compare with"
        return Check(name, None, sentence)
    here, there = float(np.nanmedian(mixed.rise)), float(np.nanmedian(plain.rise))
    holds = there <= 0.5 * here and here - there >= np.log(LEAST_STEP)
    sentence = (
        f"with writes between the reads they become {np.exp(here):.3g} times as long, without writes between "
        f"{np.exp(there):.3g} times"
    )
    return Check(name, bool(holds), sentence)


def _writes(mixed: StridedRuns, ratio: float) -> Check:
    rise = mixed.writing_rise()
    if rise is None:
        return Check("not-the-writes", None, "the writes between the reads are too few to compare with")
    sentence = f"the writes between the reads meanwhile take {np.exp(rise):.3g} times as long"
    return Check("not-the-writes", bool(rise <= _WRITES * ratio), sentence)


def _stands_out(mixed: StridedRuns, plain: StridedRuns, ratio: float) -> Check:
    """Against what befalls all tasks from one call to the next, seen in calls that are not suspected."""
    scatter = max(plain.scatter()[0] if len(plain) else 0.0, mixed.scatter()[1])
    sentence = (
        "the writes between, and reads without writes between, scatter from one to the next by a factor of "
        f"{np.exp(scatter):.3g} (standard deviation)"
    )
    return Check("stands-out", bool(ratio >= _SCATTERS * scatter), sentence)


def _mean(groups: list[np.ndarray]) -> np.ndarray:
    """Mean of each position over the groups, as far as half of them go."""
    longest = max(map(len, groups))
    table = np.full((len(groups), longest), np.nan)
    for row, levels in enumerate(groups):
        table[row, : len(levels)] = levels
    many = np.count_nonzero(~np.isnan(table), axis=0) * 2 >= len(groups)
    return np.nanmean(table[:, many], axis=0)


def _chance_text(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"= {p:.2g}"
