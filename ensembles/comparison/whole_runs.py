"""What whole runs say: times that differ between groups, and how two single runs differ."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ensembles.comparison.report import Comparison, QuantileRatio
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import number_text, ratio_text, seconds_text, share_text
from ensembles.statistics.samples.counted_durations import CountedDurations

if TYPE_CHECKING:
    from ensembles.comparison.times import TimeChange

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles of which the ratio of two runs is given."""

RUN_LABELS = {
    "io_time_s": "time in I/O, all tasks",
    "critical_path_s": "I/O of critical path",
    "slowest_task_s": "I/O of slowest task",
    "wait_time_s": "waiting, all tasks",
    "span_s": "span",
    "run_time_s": "run time",
}


def quantile_ratios(before: CountedDurations, after: CountedDurations) -> list[QuantileRatio]:
    """Compute the ratios of the quantiles of two runs.

    Returns
    -------
    list of QuantileRatio
        One for each of `LEVELS`; empty if a run has no calls.
    """
    if not (before.total and after.total):
        return []
    pairs = zip(LEVELS, before.quantile_s(LEVELS).tolist(), after.quantile_s(LEVELS).tolist(), strict=True)
    return [QuantileRatio(level, a, b, b / a if a else None) for level, a, b in pairs]


@dataclass(frozen=True)
class FewerTasks:
    """A group in which fewer tasks do the I/O, and its critical path is not shorter.

    Sums over tasks fall then although nothing became faster.

    Attributes
    ----------
    group : str
        Name of the group.
    before, after : float
        Tasks with I/O calls: mean of the runs of the first group and of this one.
    ratios : dict of str to float
        Of the median of the runs to that of the first group: ``critical_path_s``, ``wait_time_s`` and
        ``span_s``, as far as they are known.
    """

    group: str
    before: float
    after: float
    ratios: dict[str, float]

    def is_slower(self, factor: float) -> bool:
        """Whether the critical path is longer by this factor, and neither waiting nor span is shorter."""
        critical = self.ratios["critical_path_s"]
        others = [ratio for what, ratio in self.ratios.items() if what != "critical_path_s"]
        return critical > 1 and critical >= factor and all(ratio >= 1 for ratio in others)


def groups_of_fewer_tasks(found: Comparison) -> list[FewerTasks]:
    """Find the groups in which fewer tasks do the I/O than in the first, without a shorter critical path.

    Returns
    -------
    list of FewerTasks
        Groups all of whose runs have fewer tasks with I/O than any run of the first.
    """
    totals = {total.what: total for total in found.run_totals}
    if "io_tasks" not in totals or "critical_path_s" not in totals:
        return []
    tasks = totals["io_tasks"]
    tests = {test.what: test for test in found.run_tests if test.scope == "run"}
    groups = []
    for at in range(1, len(tasks.typical)):
        ratios = {}
        for what in ("critical_path_s", "wait_time_s", "span_s"):
            if what in tests:
                medians_s = [group.median_s for group in tests[what].groups]
            else:
                medians_s = totals[what].typical if what in totals else [0.0] * (at + 1)
            if medians_s[0]:
                ratios[what] = medians_s[at] / medians_s[0]
        if tasks.high[at] < tasks.low[0] and ratios.get("critical_path_s", 0.0) >= 1:
            name = found.groups[at].name
            groups.append(FewerTasks(name, tasks.typical[0], tasks.typical[at], ratios))
    return groups


def fewer_tasks_headline(found: Comparison) -> str:
    """Return that fewer tasks do the I/O, by group; "": in none. What became longer is in the next line."""
    lines = []
    for one in groups_of_fewer_tasks(found):
        of = f" in {sanitize_text(one.group)}" if len(found.groups) > 2 else ""
        lines.append(
            f"fewer tasks do I/O{of}, {number_text(one.after)} instead of "
            f"{number_text(one.before)}: less time in I/O, summed over tasks, is not faster here"
        )
    return "\n".join(lines)


def whole_runs_headline(found: Comparison) -> str:
    """Return whether whole runs take longer in I/O, with their times, by group; "": nothing is known."""
    is_sum = has_several_tasks(found)
    lines = []
    for group in dict.fromkeys(change.group for change in found.run_times):
        changes = [each for each in found.run_times if each.group == group]
        first = changes[0]
        shown = [
            each
            for each in changes
            if each is first or each.what in ("io_time_s", "span_s") or each.is_certain(found.level)
        ]
        told = [
            f"{run_label(each.what, is_sum)} {each.text}{_p_text(each, found.level, each is first)}"
            for each in shown
        ]
        of = f" of {sanitize_text(group)}" if len(found.groups) > 2 else ""
        said = _compared(first, found.level, found.margin)
        more = more_bytes_text(found, group) if first.is_longer(found.level) else ""
        lines.append(f"whole runs{of} {said}: {'; '.join(told)}{more}")
    return "\n".join(lines)


def _compared(change: TimeChange, level: float, margin: float) -> str:
    """Say whether a time of whole runs is another one: ``are slower``, ``are not certainly faster``."""
    if change.is_longer(level) or change.is_shorter(level):
        return "are slower" if change.is_longer(level) else "are faster"
    within = 1 - margin, 1 / (1 - margin)
    ends = change.low, change.high
    if all(end is not None and within[0] <= end <= within[1] for end in ends):
        return f"are as fast, within {share_text(margin)}"
    if change.ratio is None or within[0] <= change.ratio <= within[1]:
        return "do not certainly differ"
    return f"are not certainly {'slower' if change.ratio > 1 else 'faster'}"


def _p_text(change: TimeChange, level: float, is_first: bool) -> str:
    """Return the p-value in brackets, with what it assumes once; "" of later times that are not certain."""
    if is_first:
        return f" ({change.evidence})" if change.p is not None else ""
    return f" (p {change.adjusted_p:.2g})" if change.is_certain(level) else ""


def more_bytes_text(found: Comparison, group: str) -> str:
    """Return by how much more bytes the runs of a group move, if it is beyond the margin; else ""."""
    ratio = bytes_ratios(found)[[each.name for each in found.groups].index(group)]
    if ratio is None or ratio <= 1 / (1 - found.margin):
        return ""
    return f"; they move {ratio_text(ratio)} the bytes"


def bytes_ratios(found: Comparison) -> list[float | None]:
    """Return the bytes of the runs of each group over those of the first; None: there are none."""
    moved = [
        sum(total.typical[at] for total in found.run_totals if total.what.startswith("bytes"))
        for at in range(len(found.groups))
    ]
    return [each / moved[0] if moved[0] and each else None for each in moved]


def has_several_tasks(found: Comparison) -> bool:
    """Whether some run has several tasks, so that times are sums over these."""
    return any(total.what == "tasks" and max(total.high) > 1 for total in found.run_totals)


def run_label(what: str, is_sum: bool) -> str:
    """Name a time of runs; sums over tasks are called so where there are several."""
    label = RUN_LABELS[what]
    return label.replace(", all", " of all") if is_sum else label.removesuffix(", all tasks")


def pair_headline(found: Comparison) -> str:
    """Return where the durations of two single runs are farthest apart.

    Returns
    -------
    str
        Empty unless the verdict is ``inconclusive`` and a quantile is beyond the margin.
    """
    if found.verdict != "inconclusive" or not found.quantiles:
        return ""
    most = max(found.quantiles, key=_octaves)
    if _octaves(most) <= -math.log2(1 - found.margin):
        return ""
    what = " ".join(name for name in (found.layer, found.op) if name)
    return (
        f"without a test: the durations of {what} differ most at their {100 * most.level:.0f} % quantile, "
        f"{seconds_text(most.before_s)} → {seconds_text(most.after_s)}"
    )


def _octaves(quantile: QuantileRatio) -> float:
    return abs(math.log2(quantile.ratio)) if quantile.ratio else 0.0
