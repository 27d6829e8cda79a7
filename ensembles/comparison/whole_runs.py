"""What whole runs say beside their times: fewer tasks with I/O, and the quantiles of two single runs."""

from __future__ import annotations

from dataclasses import dataclass

from ensembles.comparison.report import Comparison, QuantileRatio
from ensembles.statistics.samples.counted_durations import CountedDurations

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles of which the ratio of two runs is given."""


def quantile_ratios(before: CountedDurations, after: CountedDurations) -> list[QuantileRatio]:
    """Compute the ratios of the quantiles of two runs."""
    if not (before.total and after.total):
        return []
    pairs = zip(LEVELS, before.quantile_s(LEVELS).tolist(), after.quantile_s(LEVELS).tolist(), strict=True)
    return [QuantileRatio(level, a, b, b / a if a else None) for level, a, b in pairs]


@dataclass(frozen=True)
class FewerTasks:
    """A group in which fewer tasks do the I/O, and its critical path is not shorter.

    Sums over tasks fall then although nothing became faster.
    """

    group: str  # Name of the group
    # before, after: Tasks with I/O calls: mean of the runs of the first group and of this one
    before: float
    after: float
    # Of the median of the runs to that of the first group: ``critical_path_s``, ``wait_time_s`` and
    # ``span_s``, as far as they are known
    ratios: dict[str, float]

    def is_slower(self, factor: float) -> bool:
        """Whether the critical path is longer by this factor, and neither waiting nor span is shorter."""
        critical = self.ratios["critical_path_s"]
        others = [ratio for what, ratio in self.ratios.items() if what != "critical_path_s"]
        return critical > 1 and critical >= factor and all(ratio >= 1 for ratio in others)


def groups_of_fewer_tasks(found: Comparison) -> list[FewerTasks]:
    """Find the groups in which fewer tasks do the I/O than in the first, without a shorter critical path."""
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
