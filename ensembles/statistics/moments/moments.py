"""Moments of durations and of log durations, with confidence intervals.

The units of the bootstrap are phases if these are known, otherwise calls (`bootstrap_t`,
docs/reference/methods/moments.md). If one unit dominates the third or fourth moment, the interval is
unbounded on that side.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.model.fields import Fields
from ensembles.model.notebook_html import Printed
from ensembles.model.units import count_text, share_text
from ensembles.statistics.moments.bootstrap_t import NAMES, ResamplingUnits, original
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.samples.distinct_values import WeightedValues
from ensembles.statistics.samples.estimate import MOST_WIDTH, Estimate, estimates_lines
from ensembles.statistics.samples.level import check_level
from ensembles.summaries.moments import LEAST_FOR_KURTOSIS, LEAST_FOR_SKEWNESS

LARGEST_PART = 0.2
"""If one unit contributes a larger part of the variance of skewness or kurtosis, the units do not show what
other units may contribute: the interval is unbounded on that side.
"""

LEAST_LOG_S = 0.5e-9
"""Value of durations of zero where logarithms are taken, in seconds."""

CALLS_ALONE = (
    "phases are unknown: intervals assume independent calls, and are too narrow if calls of a phase are "
    "correlated"
)
ONE_PHASE = "there is one phase: intervals hold for calls of this phase, but not of others"


@dataclass(frozen=True)
class Moments(Printed, Fields):
    """Moments of an ensemble.

    Attributes
    ----------
    n, phases : int
        Number of calls and of phases; 0: phases are unknown.
    level : float
        Confidence level of the intervals.
    mean_s, sd_s, cv : Estimate
        Mean and standard deviation (divisor n - 1) in seconds, and their ratio, the coefficient of variation.
    skewness, excess_kurtosis : Estimate
        ``m3 / m2**1.5`` and ``m4 / m2**2 - 3`` with divisor n; NaN of fewer than 3 and 4 calls, of which they
        do not depend. An infinite end: one unit dominates, so that
        the data give no bound on that side.
    log_mean, log_sd, log_skewness, log_excess_kurtosis : Estimate
        The same of the natural logarithm of the durations in seconds.
    min_s, max_s : float
        Shortest and longest call, in seconds.
    method : str
        Units of the bootstrap: ``phases`` or ``calls``.
    notes : tuple of str
        Caveats, one sentence each.
    """

    n: int
    phases: int
    level: float
    mean_s: Estimate
    sd_s: Estimate
    cv: Estimate
    skewness: Estimate
    excess_kurtosis: Estimate
    log_mean: Estimate
    log_sd: Estimate
    log_skewness: Estimate
    log_excess_kurtosis: Estimate
    min_s: float
    max_s: float
    method: str
    notes: tuple[str, ...] = ()

    def estimates(self) -> dict[str, Estimate]:
        """Return the estimates by name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Estimate)}

    def __str__(self) -> str:
        if not self.n:
            return "moments: no calls"
        of = f"{self.phases:,} phases" if self.method == "phases" else "calls"
        lines = [
            f"moments of {count_text(self.n, 'call')}, with {share_text(self.level)} confidence intervals by "
            f"resampling {of}"
        ]
        notes = (f"  note: {note}" for note in self.notes)
        return "\n".join([*lines, *estimates_lines(self.estimates()), *notes])


def compute_moments(data: CountedDurations | WeightedValues, level: float = 0.9, seed: int = 0) -> Moments:
    """Compute the moments of an ensemble.

    Examples
    --------
    >>> from ensembles.statistics.samples.counted_durations import CountedDurations
    >>> sample = CountedDurations.from_durations(np.random.default_rng(1).normal(10.0, 1.0, 5000))
    >>> moments = compute_moments(sample)
    >>> bool(moments.mean_s.low < 10.0 < moments.mean_s.high)
    True
    """
    level = check_level(level)
    atoms = WeightedValues.from_sample(data)
    linear, of_linear = _estimates(atoms, atoms.value_s, level, seed)
    logs = np.log(np.maximum(atoms.value_s, LEAST_LOG_S))
    logarithmic, of_logs = _estimates(atoms, logs, level, seed, log=True)
    too_wide = too_wide_text(
        {name: linear[name] for name in ("mean", "sd", "cv")} | {"log mean": logarithmic["mean"]}, atoms
    )
    for found, names in ((linear, ("mean", "sd", "cv")), (logarithmic, ("mean",))):
        for name in names:
            found[name] = without_wide_interval(found[name], log=found is logarithmic)
    one_sided = [*of_linear, *(f"log_{name}" for name in of_logs)]
    return Moments(
        n=atoms.n,
        phases=atoms.phases,
        level=level,
        **{name + "_s" * (name in ("mean", "sd")): linear[name] for name in NAMES},
        **{f"log_{name}": logarithmic[name] for name in NAMES if name != "cv"},
        min_s=float(atoms.low_s[0]) if atoms.n else np.nan,
        max_s=float(atoms.high_s[-1]) if atoms.n else np.nan,
        method="phases" if atoms.by_phases else "calls",
        notes=(*moment_notes(atoms), *too_wide, *_note_of_one_sided(one_sided, atoms)),
    )


def _width(estimate: Estimate, log: bool) -> float:
    """Return the ratio of the ends of an interval; of log values, that of the values. Unknown ends: 1."""
    low, high = estimate.low, estimate.high
    if not (np.isfinite(low) and np.isfinite(high)):
        return 1.0
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        width = np.exp(high - low) if log else np.float64(high) / low
    return 1.0 if np.isnan(width) else float(width)


def without_wide_interval(estimate: Estimate, log: bool = False) -> Estimate:
    """Return an estimate whose interval is not determined if its ends differ by more than `MOST_WIDTH`."""
    return Estimate(estimate.value) if _width(estimate, log) > MOST_WIDTH else estimate


def too_wide_text(estimates: dict[str, Estimate], atoms: WeightedValues) -> tuple[str, ...]:
    """Say which estimates have too wide an interval, and what to record to have a narrower one."""
    width = {name: _width(each, name.startswith("log ")) for name, each in estimates.items()}
    wide = {name: ratio for name, ratio in width.items() if ratio > MOST_WIDTH}
    if not wide:
        return ()
    least = min(wide.values())
    unit = "phase" if atoms.by_phases else "call"
    return (
        f"{', '.join(wide)}: known only within a factor of {least:,.0f}{' or more' * (len(wide) > 1)}, from "
        f"{count_text(round(atoms.units), unit)}: record more {unit}s, or choose one kind of calls",
    )


def _note_of_one_sided(names: list[str], atoms: WeightedValues) -> tuple[str, ...]:
    if not names:
        return ()
    plain = ", ".join(name.replace("_", " ") for name in names)
    unit = "phase" if atoms.by_phases else "call"
    them = "them" if len(names) > 1 else "it"
    return (f"{plain}: one {unit} dominates, so that the data bound {them} on one side only",)


def moment_notes(atoms: WeightedValues) -> tuple[str, ...]:
    """Return what the intervals do not take into account, one sentence each."""
    if atoms.n < 2 or atoms.phases > 1:
        return ()
    return (ONE_PHASE,) if atoms.phases else (CALLS_ALONE,)


def _estimates(
    atoms: WeightedValues, value: np.ndarray, level: float, seed: int, log: bool = False
) -> tuple[dict[str, Estimate], list[str]]:
    """Return the moments of the values, and the names of those bounded on one side only."""
    n = atoms.n
    if n == 0:
        return dict.fromkeys(NAMES, Estimate(np.nan)), []
    middle = float(atoms.total @ value / n)
    scale = float(np.sqrt(atoms.total @ (value - middle) ** 2 / n))
    if n == 1 or scale <= 1e-12 * abs(middle) or scale == 0:
        spread = Estimate(np.nan) if n == 1 else Estimate(0.0, 0.0, 0.0)
        mean = Estimate(middle) if n == 1 else Estimate(middle, middle, middle)
        return dict.fromkeys(NAMES, Estimate(np.nan)) | {"mean": mean, "sd": spread, "cv": spread}, []
    powers = ((value - middle) / scale)[:, None] ** np.arange(5)
    sums = atoms.table @ powers if atoms.by_phases else powers
    often = np.ones(len(sums)) if atoms.by_phases else atoms.total
    units = ResamplingUnits(sums, often, middle, scale, log)
    values, low, high = units.found, *units.interval(level, seed)
    with np.errstate(over="ignore", invalid="ignore"):
        values, low, high = (original(found, log) for found in (values, low, high))
    # The interval must contain the estimate.
    low, high = np.minimum(low, values), np.maximum(high, values)
    one_sided = []
    for i in (3, 4):
        upward = i == 4 or units.longer_side > 0
        if not np.isnan(low[i] if upward else high[i]) and units.is_governed(i, LARGEST_PART):
            one_sided.append(NAMES[i])
            if upward:
                high[i] = np.inf
            else:
                low[i] = -np.inf
    for array in (values, low, high):
        array[1:3] *= np.sqrt(n / (n - 1))
    rows = zip(NAMES, values, low, high, strict=True)
    found = {name: Estimate(float(v), float(a), float(b)) for name, v, a, b in rows}
    for name, least in (("skewness", LEAST_FOR_SKEWNESS), ("excess_kurtosis", LEAST_FOR_KURTOSIS)):
        if n < least:
            found[name] = Estimate(np.nan)
            one_sided = [each for each in one_sided if each != name]
    return found, one_sided
