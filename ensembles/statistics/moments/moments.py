"""Moments of durations and of log durations, with confidence intervals.

The units of the bootstrap are phases if these are known, otherwise calls (`bootstrap_t`,
docs/reference/methods/moments.md). Skewness and kurtosis have none: the slowest calls decide them, and those
of the next run were not seen.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.model.fields import Fields
from ensembles.model.levels import LEAST_LOG_S, check_level
from ensembles.model.notebook_html import Printed
from ensembles.model.units import count_text, share_text
from ensembles.statistics.moments.bootstrap_t import NAMES, ResamplingUnits, original
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.samples.distinct_values import WeightedValues
from ensembles.statistics.samples.estimate import MOST_WIDTH, Estimate, estimates_lines
from ensembles.summaries.moments import LEAST_FOR_KURTOSIS, LEAST_FOR_SKEWNESS

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
        ``m3 / m2**1.5`` and ``m4 / m2**2 - 3`` with divisor n, without an interval; NaN of fewer than 3 and 4
        calls, which always have the same ones.
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
    linear = _estimates(atoms, atoms.value_s, level, seed)
    logs = np.log(np.maximum(atoms.value_s, LEAST_LOG_S))
    logarithmic = _estimates(atoms, logs, level, seed, log=True)
    too_wide = too_wide_text(
        {name: linear[name] for name in ("mean", "sd", "cv")} | {"log mean": logarithmic["mean"]}, atoms
    )
    for found, names in ((linear, ("mean", "sd", "cv")), (logarithmic, ("mean",))):
        for name in names:
            found[name] = without_wide_interval(found[name], log=found is logarithmic)
    return Moments(
        n=atoms.n,
        phases=atoms.phases,
        level=level,
        **{name + "_s" * (name in ("mean", "sd")): value for name, value in linear.items()},
        **{f"log_{name}": value for name, value in logarithmic.items() if name != "cv"},
        min_s=float(atoms.low_s[0]) if atoms.n else np.nan,
        max_s=float(atoms.high_s[-1]) if atoms.n else np.nan,
        method="phases" if atoms.by_phases else "calls",
        notes=(*moment_notes(atoms), *too_wide),
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


def moment_notes(atoms: WeightedValues) -> tuple[str, ...]:
    """Return what the intervals do not take into account, one sentence each."""
    if atoms.n < 2 or atoms.phases > 1:
        return ()
    return (ONE_PHASE,) if atoms.phases else (CALLS_ALONE,)


def _estimates(
    atoms: WeightedValues, value: np.ndarray, level: float, seed: int, log: bool = False
) -> dict[str, Estimate]:
    """Return the moments of the values."""
    n = atoms.n
    unknown = dict.fromkeys((*NAMES, "skewness", "excess_kurtosis"), Estimate(np.nan))
    if n == 0:
        return unknown
    middle = float(atoms.total @ value / n)
    scale = float(np.sqrt(atoms.total @ (value - middle) ** 2 / n))
    if n == 1 or scale <= 1e-12 * abs(middle) or scale == 0:
        spread = Estimate(np.nan) if n == 1 else Estimate(0.0, 0.0, 0.0)
        mean = Estimate(middle) if n == 1 else Estimate(middle, middle, middle)
        return unknown | {"mean": mean, "sd": spread, "cv": spread}
    powers = ((value - middle) / scale)[:, None] ** np.arange(5)
    sums = atoms.table @ powers[:, :3] if atoms.by_phases else powers[:, :3]
    often = np.ones(len(sums)) if atoms.by_phases else atoms.total
    units = ResamplingUnits(sums, often, middle, scale, log)
    values, low, high = units.found, *units.interval(level, seed)
    with np.errstate(over="ignore", invalid="ignore"):
        values, low, high = (original(found, log) for found in (values, low, high))
    # The interval must contain the estimate.
    low, high = np.minimum(low, values), np.maximum(high, values)
    for array in (values, low, high):
        array[1:] *= np.sqrt(n / (n - 1))
    rows = zip(NAMES, values, low, high, strict=True)
    found = {name: Estimate(float(v), float(a), float(b)) for name, v, a, b in rows}
    third, fourth = (atoms.total @ powers[:, 3:] / n).tolist()
    return (
        unknown
        | found
        | {
            "skewness": Estimate(third if n >= LEAST_FOR_SKEWNESS else np.nan),
            "excess_kurtosis": Estimate(fourth - 3 if n >= LEAST_FOR_KURTOSIS else np.nan),
        }
    )
