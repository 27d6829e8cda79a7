"""Checks whether strided reads show a failing read-ahead."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ensembles.diagnosis.finding import Check
from ensembles.diagnosis.limits import FAR, LEAST_RATIO, MARGIN, MOST, MOST_RATIO, NEARLY_ALL
from ensembles.diagnosis.limits import LEVEL as TASK_LEVEL
from ensembles.diagnosis.rules.strided_readahead.profile import (
    HEALTHY_READS,
    MOST_GROUPS,
    StridedRuns,
    by_task,
    p_of_ordinals,
    p_of_tasks,
)
from ensembles.model.units import number_text, share_text

LEVEL = 0.05
"""Significance level of the test by positions, whose only sample is the positions."""


FIRST_SLOW = (HEALTHY_READS + 1, HEALTHY_READS + 2)
"""Reads with which the slow ones may begin: as soon as the stride is recognised, or one later, if the
memory of the client is full only then."""


_HORIZON = 12


@dataclass(frozen=True)
class Verdict:
    """The result of the checks on strided runs with writes between their reads."""

    groups: tuple[int, ...]  # Indices of the runs on their file that are affected; empty: there is no finding
    checks: tuple[Check, ...]  # The checks
    numbers: dict[str, Any] = field(default_factory=dict)  # Numbers for the evidence

    @property
    def holds(self) -> bool:
        """Whether no check fails."""
        return bool(self.groups) and not any(check.holds is False for check in self.checks)


def verdict(mixed: StridedRuns, plain: StridedRuns) -> Verdict:
    """Check strided runs for a failing read-ahead.

    All runs with writes between their reads are checked together. If the checks fail, the first, second ...
    runs on their file are checked separately, with p-values corrected by Bonferroni's rule.
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
    """Find the groups whose rise is at least half of the upper quartile of all rises."""
    rises = np.array([np.median(mixed.rise[mixed.run == number]) for number in numbers])
    affected: np.ndarray = numbers[rises >= 0.5 * np.quantile(rises, 0.75)]
    return affected


def _judged(mixed: StridedRuns, plain: StridedRuns, numbers: object, tests: int) -> Verdict:
    groups = [mixed.some(mixed.run == number) for number in np.asarray(numbers)[:MOST_GROUPS]]
    groups = [group for group in groups if len(group.levels()) > HEALTHY_READS + 1]
    if not groups:
        return Verdict((), ())
    levels_of_groups = [group.levels() for group in groups]
    levels = _mean(levels_of_groups)
    before, after = levels[:HEALTHY_READS], levels[HEALTHY_READS:]
    ratio = float(np.median(after) - before.max())
    begin = _begin(levels, mixed.with_writes)
    if not begin.holds:
        upper = _begin(_mean([group.levels(NEARLY_ALL) for group in groups]), mixed.with_writes)
        begin = replace(upper, tasks="the slowest tenth of the tasks") if upper.holds else begin
    checks = [
        begin.check(),
        _worsens(after, mixed),
        *_tests(levels_of_groups, mixed, plain, tests),
        _in_tasks(mixed),
        _reads_without_writes(mixed, plain),
        _writes(mixed, ratio),
        _stands_out(mixed, plain, ratio),
    ]
    numbers_found = {
        "first_slow_read": begin.first,
        "slowdown": float(np.exp(np.median(after) - np.median(before))),
        "slowdown_by_position": [float(np.exp(level)) for level in levels - np.median(before)],
    }
    return Verdict(tuple(int(number) for number in np.asarray(numbers)), tuple(checks), numbers_found)


@dataclass(frozen=True)
class _Onset:
    """Whether reads become slow with a certain one.

    Logarithms: its time, and the median of the later ones, relative to the slowest before; the range of those
    before.
    """

    first: int
    step: float
    ratio: float
    differ: float
    holds: bool
    tasks: str = ""

    def check(self) -> Check:
        """Return the check of the finding."""
        where = f"in {self.tasks}, " if self.tasks else ""
        sentence = (
            f"{where}from the {self.first}th read of a stride on, reads take "
            f"{number_text(np.exp(self.ratio))} times "
            f"as long as the slowest of the {self.first - 1} before (which differ by "
            f"{share_text(np.expm1(self.differ))}); "
            f"the {self.first}th itself takes {number_text(np.exp(self.step))} times as long"
        )
        return Check("begins-at-fourth", self.holds, sentence)


def _begin(levels: np.ndarray, with_writes: np.ndarray) -> _Onset:
    """Choose the first of the reads that may be the first slow one; the earliest if none is."""
    return max((_onset(levels, with_writes, first) for first in FIRST_SLOW), key=lambda each: each.holds)


def _onset(levels: np.ndarray, with_writes: np.ndarray, first: int) -> _Onset:
    """Judge whether a read is the first slow one.

    Reads may take longer after writes, whatever their position. The reads before it are therefore compared
    separately: those with writes before them, and the others.
    """
    before, after, with_writes = levels[: first - 1], levels[first - 1 :], with_writes[: first - 1]
    if not len(after):
        return _Onset(first, 0.0, 0.0, 0.0, False)
    step, ratio = float(after[0] - before.max()), float(np.median(after) - before.max())
    alike = [before[with_writes], before[~with_writes]]
    pressure = float(alike[0].mean() - alike[1].mean()) if all(map(len, alike)) else 0.0
    steps = max(float(np.diff(part).max(initial=0.0)) for part in alike)
    scatter = max(float(np.ptp(part)) for part in alike if len(part))
    is_step = step >= max(np.log(MOST_RATIO), 2 * steps, 0.75 * pressure)
    steady = scatter <= MOST * ratio and pressure <= ratio
    holds = bool(is_step and steady and ratio >= np.log(LEAST_RATIO))
    return _Onset(first, step, ratio, float(np.ptp(before)), holds)


def _worsens(after: np.ndarray, runs: StridedRuns) -> Check:
    near = after[:_HORIZON]
    rise = float(np.max(near) - near[0])
    pairs = np.sign(near[None, :] - near[:, None])[np.triu_indices(len(near), 1)]
    tau = float(pairs.mean())
    times = runs.time[:, HEALTHY_READS : HEALTHY_READS + len(near)]
    later = by_task(runs.rank, np.nanmean(times[:, 1:], axis=1) - times[:, 0])
    share = float(np.mean(later > 0)) if len(later) else 0.0
    holds = rise >= np.log(1 + MARGIN) and tau > 0.2 and share > 0.5
    sentence = (
        f"reads become slower from read to read, up to {number_text(np.exp(rise))} times the first slow one"
    )
    return Check("worsens", bool(holds), f"{sentence}, in {share_text(share)} of the tasks")


def _tests(groups: list[np.ndarray], mixed: StridedRuns, plain: StridedRuns, tests: int) -> list[Check]:
    without = plain.levels() if len(plain) else np.empty(0)
    p, p_tasks = min(1.0, tests * p_of_ordinals(groups, without)), min(1.0, tests * p_of_tasks(mixed))
    return [
        Check(
            "not-by-chance",
            p <= LEVEL,
            f"permutation test of the order of reads: p {_p_text(p)}",
        ),
        Check("tasks-agree", p_tasks <= TASK_LEVEL, f"the same test within tasks: p {_p_text(p_tasks)}"),
    ]


def _in_tasks(mixed: StridedRuns) -> Check:
    rises = by_task(mixed.rank, mixed.rise)
    share = float(np.mean(rises > np.log(MOST_RATIO)))
    return Check(
        "in-most-tasks", share > MOST, f"{share_text(share)} of the tasks with such reads are affected"
    )


def _reads_without_writes(mixed: StridedRuns, plain: StridedRuns) -> Check:
    name = "only-with-writes-between"
    if not len(plain):
        sentence = "for comparison, the run has no strided reads without writes between them"
        return Check(name, None, sentence)
    here, there = float(np.nanmedian(mixed.rise)), float(np.nanmedian(plain.rise))
    holds = there <= 0.5 * here and here - there >= np.log(MOST_RATIO)
    sentence = (
        f"reads with writes between them become {number_text(np.exp(here))} times as long, reads without "
        f"{number_text(np.exp(there))} times"
    )
    return Check(name, bool(holds), sentence)


def _writes(mixed: StridedRuns, ratio: float) -> Check:
    rise = mixed.writing_rise()
    if rise is None:
        return Check("not-the-writes", None, "there are too few writes between the reads to compare with")
    sentence = f"the writes between the reads become {number_text(np.exp(rise))} times as long"
    return Check("not-the-writes", bool(rise <= MOST * ratio), sentence)


def _stands_out(mixed: StridedRuns, plain: StridedRuns, ratio: float) -> Check:
    """Check the rise against disturbances of all tasks, as seen in other calls."""
    scatter = max(plain.scatter()[0] if len(plain) else 0.0, mixed.scatter()[1])
    sentence = (
        "the writes between the reads, and reads without writes between them, vary from one to the next by a "
        f"factor of {number_text(np.exp(scatter))} (standard deviation)"
    )
    return Check("stands-out", bool(ratio >= FAR * scatter), sentence)


def _mean(groups: list[np.ndarray]) -> np.ndarray:
    """Compute the mean of each position that at least half of the groups reach."""
    longest = max(map(len, groups))
    table = np.full((len(groups), longest), np.nan)
    for row, levels in enumerate(groups):
        table[row, : len(levels)] = levels
    many = np.count_nonzero(~np.isnan(table), axis=0) * 2 >= len(groups)
    mean: np.ndarray = np.nanmean(table[:, many], axis=0)
    return mean


def _p_text(p: float) -> str:
    return "< 0.0001" if p < 1e-4 else f"= {p:.2g}"
