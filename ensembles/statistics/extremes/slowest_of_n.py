"""Predict the slowest of N calls by the method that the data allow."""

from __future__ import annotations

import math
import numbers
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.levels import FEWEST, FEWEST_SLOW, MOST_DENSE, check_level
from ensembles.model.units import count_text, seconds_text
from ensembles.statistics.extremes.exchangeability import (
    SLOW_CALLS,
    CallAttributes,
    Exchangeability,
    check_exchangeability,
)
from ensembles.statistics.extremes.next_phase import NextPhase, predict_next
from ensembles.statistics.extremes.order_statistics import (
    UpperOrderStatistics,
    compute_equation1,
    max_tasks,
)
from ensembles.statistics.extremes.pareto_tail import ParetoTail, fit_pareto_tail
from ensembles.statistics.extremes.phase_maxima import drawn_maxima, phase_maxima
from ensembles.statistics.extremes.stationarity import BLOCKS, time_blocks, unsettled
from ensembles.statistics.extremes.tail import UNSEEN_LEVEL, Tail
from ensembles.statistics.moments.quantiles import quantile_s
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.samples.distinct_values import WeightedValues
from ensembles.statistics.samples.estimate import MOST_WIDTH
from ensembles.statistics.special import ndtri
from ensembles.summaries.bins import bin_edges_s

LARGEST = MOST_DENSE
"""Number of longest calls whose exact durations are used, if they are known."""

FEWEST_PHASES = FEWEST
"""From this number on, phases are the sample, whatever the tests of exchangeability say: of few calls in
each, the tests have little power.
"""

MOST_STEP = 1024
"""Largest ratio of N to the calls of a phase to which the tail of a phase is extrapolated."""


def predict_slowest(
    sample: CountedDurations,
    tasks: int,
    level: float = 0.9,
    *,
    calls: CallAttributes | None = None,
    seed: int = 0,
) -> Tail:
    """Predict the slowest of ``tasks`` new calls.

    Parameters
    ----------
    sample : CountedDurations
        Calls by phase and bin. Calls of phase -1 are in no phase, and are left out if there are phases.
    tasks : int
        Number N of new calls: all those of a phase, one for each task.
    level : float
        Probability of the prediction interval; the probabilities below and above it are equal.
    calls : CallAttributes, optional
        Attributes of each call. With them, exchangeability is also tested for ranks, nodes, ordinals and
        time, and the exact durations of the longest calls are used.

    docs/reference/methods/tail.md has the rules.

    Examples
    --------
    >>> sample = CountedDurations.from_durations(np.random.default_rng(1).lognormal(0.0, 0.1, 20_000))
    >>> predict_slowest(sample, tasks=100).method, predict_slowest(sample, tasks=100_000).method
    ('within-reach', 'beyond')
    >>> bool(predict_slowest(sample, tasks=100_000).median_s > sample.max_s.max())
    True
    """
    tasks = check_tasks(tasks)
    level = check_level(level)
    model = SlowestOfN.fit(sample, calls=calls, seed=seed)
    return replace(model.tail(tasks, level), next_phase=model.next_phase(tasks, level))


def predict_curve(
    sample: CountedDurations, tasks: int, level: float = 0.9, *, calls: CallAttributes | None = None
) -> tuple[Tail, np.ndarray, np.ndarray]:
    """Return the prediction, and durations (s) with the chances that the slowest call is faster."""
    tasks, level = check_tasks(tasks), check_level(level)
    model = SlowestOfN.fit(sample, calls=calls)
    found = model.tail(tasks, level)
    if found.refused:
        return found, np.empty(0), np.empty(0)
    chance = np.unique([0.01, 0.025, *np.arange(1, 20) / 20, 0.975, 0.99, (1 - level) / 2, (1 + level) / 2])
    return found, np.asarray(model.at(tasks, chance, level).quantiles_s), chance


def check_tasks(tasks: int) -> int:
    """Return a number of tasks, or raise an `EnsioError`."""
    if isinstance(tasks, bool) or not isinstance(tasks, numbers.Real) or not 1 <= tasks <= 2**53:
        raise EnsioError(f"{tasks!r} tasks have no slowest one: give a whole number from 1 on")
    if tasks != int(tasks):
        raise EnsioError(f"{tasks!r} tasks have no slowest one: give a whole number from 1 on")
    return int(tasks)


def in_phases(sample: CountedDurations) -> CountedDurations:
    """Return the calls that are in a phase; if none is, all calls as one phase."""
    inside = sample.phase >= 0
    if not sample.phases_known or inside.all():
        return sample
    return sample.chosen(inside) if inside.any() else sample.pooled()


@dataclass(frozen=True, eq=False)
class SlowestOfN:
    """The model behind `Tail` and `Split`: the slowest of N calls for every N."""

    sample: CountedDurations  # Calls by phase and bin, from `in_phases`
    tested: Exchangeability  # Of the same calls
    calls: CallAttributes | None = None  # Attributes of each call

    @classmethod
    def fit(
        cls, sample: CountedDurations, *, calls: CallAttributes | None = None, seed: int = 0
    ) -> SlowestOfN:
        """Test exchangeability, and choose what the predictions are based on."""
        sample = in_phases(sample)
        if calls is not None and len(calls.durations_s) > sample.total and calls.phase is not None:
            calls = calls.chosen(calls.phase >= 0)
        return cls(sample, check_exchangeability(sample, calls, seed), calls)

    def tail(self, tasks: int, level: float = 0.9) -> Tail:
        """Predict the slowest of `tasks` calls."""
        side = (1.0 - level) / 2.0
        found = self.at(tasks, np.array([side, 0.5, 1.0 - side]), level)
        low, median, high = (None if value is None else float(value) for value in found.quantiles_s)
        sample, tested = self.sample, self.tested
        fitted = self._tail if found.method == "beyond" else None
        return Tail(
            n=sample.total,
            tasks=tasks,
            median_s=median,
            mean_s=found.mean_s,
            low_s=low,
            high_s=high,
            level=level,
            method=found.method,
            observed_max_s=float(sample.max_s.max()) if sample.total else None,
            exchangeable=tested.exchangeable,
            broken_by=tested.broken_by,
            phases=len(sample.n) if sample.phases_known else None,
            effective_phases=found.effective,
            effective_n=tested.effective_n,
            equation1=compute_equation1(sample, tasks, level) if sample.total else None,
            refused=found.refused,
            unsettled=None if found.refused else found.unsettled,
            reach=self.reach(level),
            unseen_share=float(-np.expm1(np.log(1 - UNSEEN_LEVEL) / sample.total)) if sample.total else 1.0,
            threshold_s=fitted.threshold_s if fitted else None,
            shape=fitted.shape if fitted else None,
            exceedances=fitted.above if fitted else None,
        )

    def grouped(self, tasks: int) -> CountedDurations:
        """Return the calls by what is one observation: by phase, or by block of time."""
        if not self._blocks or self.calls is None:
            return self.sample
        return time_blocks(self.calls, tasks, self.sample.resolution_s) or self.sample

    def next_phase(self, tasks: int, level: float = 0.9) -> NextPhase | None:
        """Predict the slowest of `tasks` calls of the next phase; None: phases are unknown or too few."""
        if not self._by_phase or tasks > 1.1 * self._phase_calls or _no_answer(self.sample):
            return None
        return predict_next(drawn_maxima(self.sample, tasks, np.random.default_rng(0))[1], level)

    def reach(self, level: float) -> int:
        """Return the largest N that the data answer without extrapolation."""
        if self.sample.total == 0:
            return 0
        if self._blocks:
            return self.sample.total // BLOCKS
        return self._phase_calls if self._by_phase else max_tasks(self.sample.total, level)

    def at(self, tasks: int, levels: np.ndarray, level: float = 0.9) -> Prediction:
        """Return quantiles, at increasing levels, of the slowest call that never fall as `tasks` grows."""
        refused = _no_answer(self.sample) or self._too_far(tasks, level)
        if refused is not None:
            return Prediction(refused=refused)
        ends = np.array([(1 - level) / 2, (1 + level) / 2])
        asked = np.unique(np.concatenate([levels, ends, [0.5]]))
        least_s = self._any_s(asked)
        reach = max(self.reach(level), 1)
        rows: dict[int, np.ndarray] = {}
        found: dict[int, Prediction] = {}
        # The prediction at the reach is the best known one: others are made monotone from it on.
        bound, mean_s = None, None
        for knot in _knots(tasks, reach):
            one = self._alone(knot, asked, level)
            if one.refused is not None:
                return one
            row = np.maximum.accumulate(np.maximum(np.asarray(one.quantiles_s), least_s))
            if knot == 1:
                row, one = quantile_s(self._atoms, asked), replace(one, mean_s=self._mean_s)
            if bound is not None:
                row = np.maximum(row, bound) if knot > reach else np.minimum(row, bound)
                one = replace(one, mean_s=_bounded(one.mean_s, mean_s, knot > reach))
            rows[knot], found[knot], bound, mean_s = row, one, row, one.mean_s
        below, above = (
            max(knot for knot in rows if knot <= tasks),
            min(knot for knot in rows if knot >= tasks),
        )
        last, row = found[below], _between(rows, below, above, tasks, asked)
        if (refused := self._too_wide(tasks, *row[np.searchsorted(asked, ends)])) is not None:
            return Prediction(effective=last.effective, refused=refused)
        quantiles_s = row[np.searchsorted(asked, levels)]
        half = 0.5 * self.sample.resolution_s  # the error of a duration
        if half > 0:
            middle = row[np.searchsorted(asked, 0.5)]
            quantiles_s = np.where(
                levels < 0.5, np.minimum(quantiles_s, max(middle - half, 0.0)), quantiles_s
            )
            quantiles_s = np.where(levels > 0.5, np.maximum(quantiles_s, middle + half), quantiles_s)
        mean_s = _mean_between(last.mean_s, found[above].mean_s, below, above, tasks)
        mean_s = None if mean_s is None else max(mean_s, self._mean_s)
        return replace(last, quantiles_s=quantiles_s, mean_s=mean_s)

    def _any_s(self, levels: np.ndarray) -> np.ndarray:
        """Return quantiles of any call of a phase, each phase weighing the same."""
        sample = self.sample
        if not self._by_phase or np.ptp(sample.n) == 0:
            return quantile_s(self._atoms, levels)
        atoms = WeightedValues.from_sample(sample)
        phase = sample.group
        atom = np.searchsorted(np.unique(sample.bin), sample.bin)
        share = np.bincount(atom, sample.count / sample.n[phase])
        return quantile_s(atoms, levels, share * sample.total / len(sample.n))

    def _too_wide(self, tasks: int, low_s: float, high_s: float) -> str | None:
        """Return why phases do not answer N: they differ by more than `MOST_WIDTH`; None: they do."""
        if not (self._by_phase or self._blocks) or tasks == 1 or high_s <= MOST_WIDTH * low_s:
            return None
        seen = count_text(len(self.sample.n), "phase") if self.sample.phases_known else "no phases"
        by = f"a factor of {high_s / low_s:,.0f}" if low_s > 0 else f"more than a factor of {MOST_WIDTH:g}"
        more = "" if tasks <= self._phase_calls else f", or phases of {count_text(tasks, 'call')}"
        return (
            f"the slowest of {count_text(tasks, 'call')} is known within {by} only from {seen}: record more "
            f"phases{more}; if these calls are of several kinds, choose one, for example by --call and --size"
        )

    def _too_far(self, tasks: int, level: float) -> str | None:
        """Return why exchangeable calls do not answer N; None: they do.

        The slowest of N calls is extrapolated from m calls of the tail by log(m N / n) times a shape that is
        known with the error shape / sqrt(m). Of the heaviest tail with a finite variance, whose shape is 1/2,
        the ends must be less than `MOST_WIDTH` apart.
        """
        calls, fitted = self.sample.total, self._tail
        if self._by_phase or self._blocks or tasks <= max_tasks(calls, level):
            return None
        if fitted is None:
            return (
                f"the slowest of the {calls:,} calls are too few, or too similar, for a fit of their tail: "
                "record more calls"
            )
        farthest = math.exp(math.log(MOST_WIDTH) * math.sqrt(fitted.above) / ndtri((1 + level) / 2))
        if fitted.above * tasks <= farthest * calls:
            return None
        above = count_text(fitted.above, "call")
        return (
            f"{above} in the tail of {calls:,} show the slowest of {int(farthest * calls / fitted.above):,} "
            f"calls at most: record more to predict that of {tasks:,}"
        )

    @cached_property
    def _differ(self) -> bool:
        """Whether calls depend on their phase, or (without phases) on time."""
        if self.sample.phases_known and len(self.sample.n) > 1:
            return self.tested.breaks("phase", SLOW_CALLS)
        return self.tested.breaks("time")

    @cached_property
    def _blocks(self) -> bool:
        """Whether blocks of time take the place of phases."""
        several = self.sample.phases_known and len(self.sample.n) > 1
        if self.calls is None or self.calls.start_ns is None:
            return False
        return bool(np.median(self.sample.n) < 2) if several else self._differ

    @cached_property
    def _by_phase(self) -> bool:
        """Whether each phase is one observation."""
        if not self.sample.phases_known or len(self.sample.n) < 2 or self._blocks:
            return False
        return len(self.sample.n) >= FEWEST_PHASES or self._differ

    @cached_property
    def _phase_calls(self) -> int:
        """Number of calls of a typical phase."""
        return max(int(np.median(self.sample.n)), 1)

    @cached_property
    def _mean_s(self) -> float:
        edges = bin_edges_s()
        middle = 0.5 * (edges[:-1] + edges[1:])
        return min(float(self.sample.counts @ middle) / self.sample.total, float(self.sample.max_s.max()))

    @cached_property
    def _atoms(self) -> WeightedValues:
        if self.calls is None or len(self.calls.durations_s) != self.sample.total:
            return WeightedValues.from_sample(self.sample)
        return WeightedValues.from_durations(self.calls.durations_s, None, self.sample)

    @cached_property
    def _largest_s(self) -> np.ndarray | None:
        if self.calls is None or len(self.calls.durations_s) != self.sample.total:
            return None
        return _largest(self.sample, self.calls.durations_s)

    @cached_property
    def _tail(self) -> ParetoTail | None:
        return fit_pareto_tail(self.sample, self._largest_s)

    @cached_property
    def _curve(self) -> UpperOrderStatistics:
        return UpperOrderStatistics.from_sample(self.sample, self._largest_s)

    def _alone(self, tasks: int, levels: np.ndarray, level: float) -> Prediction:
        """Predict for one N, without regard to the answers for fewer calls."""
        if self._blocks:
            assert self.calls is not None
            blocks = time_blocks(self.calls, tasks, self.sample.resolution_s)
            if blocks is None:
                known = "there is one phase" if self.sample.phases_known else "phases are unknown"
                return Prediction(
                    refused=f"{known}, and calls change with time: record several phases in which tasks act "
                    f"together, or more than {self.sample.total:,} calls"
                )
            found = _of_phases(blocks, tasks, levels)
            return found if found.refused else replace(found, method="blocks")
        if self._by_phase:
            return _of_phases(self.sample, tasks, levels)
        return self._of_exchangeable(tasks, levels, level)

    def _of_exchangeable(self, tasks: int, levels: np.ndarray, level: float) -> Prediction:
        within = tasks <= max_tasks(self.sample.total, level)
        fitted = self._tail
        quantiles_s = (
            fitted.quantiles_s(tasks, levels) if fitted is not None else np.full(len(levels), np.nan)
        )
        if within:
            known_s = self._curve.quantiles_s(tasks, levels)
            longest_s = float(self.sample.max_s.max())
            beyond_s = np.where(np.isnan(quantiles_s), longest_s, np.maximum(quantiles_s, longest_s))
            quantiles_s = np.where(np.isnan(known_s), beyond_s, known_s)
        mean_s = fitted.mean_s(tasks) if fitted is not None else None
        return Prediction(quantiles_s, mean_s, "within-reach" if within else "beyond")


@dataclass(frozen=True, eq=False)
class Prediction:
    """Quantiles of the slowest of N calls, or the reason of a refusal."""

    quantiles_s: Any = (None, None, None)
    mean_s: float | None = None
    method: str = "refused"
    effective: float | None = None
    refused: str | None = None
    unsettled: str | None = None


def _largest(sample: CountedDurations, durations_s: np.ndarray) -> np.ndarray:
    """Return the longest calls, without sorting all calls."""
    longer = sample.counts[::-1].cumsum()[::-1]
    enough = np.flatnonzero(longer >= min(LARGEST, sample.total))[-1]
    some = durations_s[durations_s >= bin_edges_s()[enough] * (1 - 1e-9)]
    return np.sort(some)[-LARGEST:]


def _no_answer(sample: CountedDurations) -> str | None:
    """Return why a sample cannot support any prediction; None: it can."""
    if sample.total == 0:
        return "there are no calls"
    if sample.total < FEWEST_SLOW:
        some = count_text(sample.total, "call")
        return f"{some}: too few for a tail, which needs at least {FEWEST_SLOW}"
    low_s, high_s = float(sample.min_s.min()), float(sample.max_s.max())
    if low_s == high_s:
        return f"all {sample.total:,} calls took {seconds_text(high_s)}, so that there is no tail"
    if sample.resolution_s > 0 and high_s - low_s < 2.5 * sample.resolution_s:
        return (
            f"the step of the clock ({seconds_text(sample.resolution_s)}) is nearly the range of the "
            f"durations ({seconds_text(high_s - low_s)})"
        )
    return None


def _of_phases(sample: CountedDurations, tasks: int, levels: np.ndarray) -> Prediction:
    most = int(sample.n.max())
    if np.median(sample.n) < 2:
        return Prediction(
            refused=f"most of the {len(sample.n):,} phases have a single call, so that they have no maximum "
            "of several: give the phases in which tasks act together"
        )
    if tasks > most * MOST_STEP:
        return Prediction(
            refused=f"phases differ, and none has more than {count_text(most, 'call')}, too few to "
            f"extrapolate to {tasks:,}: record phases of more calls"
        )
    maxima = phase_maxima(sample, tasks)
    mean_s = maxima.mean_s()
    return Prediction(
        maxima.quantiles_s(levels),
        mean_s if math.isfinite(mean_s) else None,
        "phases-carried" if maxima.carried else "phases",
        maxima.effective,
        unsettled=unsettled(np.median(maxima.log_s, axis=1), maxima.log_median_s),
    )


def _knots(tasks: int, anchor: int) -> list[int]:
    """Return the numbers of calls to predict for: halves or doublings of `anchor` as far as `tasks`."""
    knots = [anchor]
    while knots[-1] < tasks:
        knots.append(2 * knots[-1])
    while knots[-1] > tasks:
        if len(knots) > 1 and knots[-1] > anchor:
            break
        knots.append(knots[-1] // 2)
    return knots


def _bounded(mean_s: float | None, bound: float | None, upward: bool) -> float | None:
    """Return a mean that is not below that of fewer calls, or not above that of more."""
    if upward:
        return None if mean_s is None or bound is None else max(mean_s, bound)
    return mean_s if mean_s is None or bound is None else min(mean_s, bound)


def _between(
    rows: dict[int, np.ndarray], below: int, above: int, tasks: int, levels: np.ndarray
) -> np.ndarray:
    """Interpolate between the predictions for two numbers of calls.

    Where they are more than a factor of two apart there may be no call between them: then the lower half of
    the distribution is that of fewer calls, and the upper half that of more.
    """
    low_s, high_s = rows[below], rows[above]
    if below == above:
        return low_s
    share = np.log(tasks / below) / np.log(above / below)
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = high_s / low_s
        near = low_s * ratio**share
    apart = np.where(levels > 0.5, high_s, low_s)
    return np.where(ratio <= 2.0, near, apart)


def _mean_between(
    mean_s: float | None, farther_s: float | None, below: int, above: int, tasks: int
) -> float | None:
    if mean_s is None or farther_s is None or below == above:
        return farther_s if below == above else None
    return float(mean_s * (farther_s / mean_s) ** (np.log(tasks / below) / np.log(above / below)))
