"""What whole runs say: times that differ between groups by rank tests, and how two single runs differ."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import seconds_text
from ensembles.statistics.samples.counted_durations import CountedDurations

if TYPE_CHECKING:
    from ensembles.comparison.report import Comparison
    from ensembles.comparison.run_tests import RunTest

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95)
"""Quantiles of which the ratio of two runs is given."""

_WIDTH = 96

RUN_LABELS = {"io_time_s": "time in I/O, all tasks", "wait_time_s": "waiting, all tasks", "span_s": "span"}


@dataclass(frozen=True)
class QuantileRatio:
    """A quantile of the durations of two runs. It has no test.

    Attributes
    ----------
    level : float
        Probability.
    before_s, after_s : float
        The quantile in the first run and in the second, in seconds.
    ratio : float or None
        Second over first; None: the first is 0.
    """

    level: float
    before_s: float
    after_s: float
    ratio: float | None


@dataclass(frozen=True)
class RunChange:
    """A time of whole runs that differs significantly between a group and the first.

    Attributes
    ----------
    what : str
        As in `RunTest`.
    group : str
        Name of the other group.
    before_s, after_s : float
        Medians of the runs.
    holm_p : float
        p-value with Holm's correction: of the test or, of three or more groups, the larger of those of the
        test and of the pair.
    """

    what: str
    group: str
    before_s: float
    after_s: float
    holm_p: float

    @property
    def ratio(self) -> float:
        """Median of the group over that of the first."""
        return self.after_s / self.before_s if self.before_s else math.inf


def quantile_ratios(before: CountedDurations, after: CountedDurations) -> list[QuantileRatio]:
    """Compute the ratios of the quantiles of two runs.

    Parameters
    ----------
    before, after : CountedDurations

    Returns
    -------
    list of QuantileRatio
        One for each of `LEVELS`; empty if a run has no calls.
    """
    if not (before.total and after.total):
        return []
    pairs = zip(LEVELS, before.quantile_s(LEVELS).tolist(), after.quantile_s(LEVELS).tolist(), strict=True)
    return [QuantileRatio(level, a, b, b / a if a else None) for level, a, b in pairs]


def changes_of_runs(tests: Sequence[RunTest], level: float) -> list[RunChange]:
    """Find the times of whole runs that differ significantly between a group and the first.

    Parameters
    ----------
    tests : sequence of RunTest
    level : float
        Largest p-value, after Holm's correction.

    Returns
    -------
    list of RunChange
    """
    found = []
    for test in tests:
        if test.scope != "run" or test.holm_p > level:
            continue
        first = test.groups[0]
        for group in test.groups[1:]:
            pair = next(each for each in test.pairs if each.groups == [first.name, group.name])
            p = max(test.holm_p, pair.holm_p if pair.holm_p is not None else 0.0)
            if p <= level:
                found.append(RunChange(test.what, group.name, first.median_s, group.median_s, p))
    return found


def whole_runs_headline(found: Comparison) -> str:
    """Return the times of whole runs that differ significantly, by group; "": none do."""
    changes = changes_of_runs(found.run_tests, found.level)
    lines = []
    for group in dict.fromkeys(change.group for change in changes):
        told = [
            f"{RUN_LABELS[change.what].removesuffix(', all tasks')} × {change.ratio:.3g} "
            f"(Holm p {change.holm_p:.2g})"
            for change in changes
            if change.group == group
        ]
        of = f" of {sanitize_text(group)}" if len(found.groups) > 2 else ""
        text = f"whole runs{of} differ in the median: {', '.join(told)}"
        lines += textwrap.wrap(text, _WIDTH, subsequent_indent="  ", break_long_words=False)
    return "\n".join(lines)


def pair_headline(found: Comparison) -> str:
    """Return how far the I/O time and the quantiles of two single runs are apart.

    Returns
    -------
    str
        Empty unless the verdict is ``inconclusive`` and one of them is beyond the margin.
    """
    if found.verdict != "inconclusive" or not found.quantiles:
        return ""
    ratios = [ratio for total in found.run_totals if total.what == "io_time_s" for ratio in total.ratios]
    most = max(found.quantiles, key=_octaves)
    parts = []
    if ratios and ratios[0]:
        parts.append(f"time in I/O × {ratios[0]:.3g}")
    what = " ".join(name for name in (found.layer, found.op) if name)
    if _octaves(most) > 0:
        parts.append(
            f"the durations of {what} differ most at their {100 * most.level:.0f} % quantile, "
            f"{seconds_text(most.before_s)} → {seconds_text(most.after_s)}"
        )
    limit = -math.log2(1 - found.margin)
    beyond = _octaves(most) > limit or any(ratio and abs(math.log2(ratio)) > limit for ratio in ratios)
    if not (parts and beyond):
        return ""
    text = f"one run each, without a test: {'; '.join(parts)}"
    return "\n".join(textwrap.wrap(text, _WIDTH, subsequent_indent="  "))


def _octaves(quantile: QuantileRatio) -> float:
    return abs(math.log2(quantile.ratio)) if quantile.ratio else 0.0
