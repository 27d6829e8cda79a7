"""Moments of durations and of log durations, with bootstrap-t intervals on nearly normal scales.

The units of the bootstrap are phases if these are known, otherwise calls (docs/reference/methods/moments.md).
Few of them do not show how slow the slowest are, so that an interval from them alone is too short on that
side. So each unit represents several that are slightly faster or slower (B. W. Silverman and G. A. Young,
"The bootstrap: To smooth or not to smooth?", Biometrika 74, 1987). Skewness and kurtosis have no interval:
the slowest calls decide them, and those of the next run were not seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from ensembles.model.fields import Fields
from ensembles.model.levels import (
    FEWEST_ALONE,
    LEAST_LOG_S,
    MOST_DENSE,
    MOST_SEEN,
    SIGNIFICANT,
    check_level,
)
from ensembles.model.notebook_html import Printed
from ensembles.model.units import count_text, share_text
from ensembles.statistics import special
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.samples.distinct_values import WeightedValues
from ensembles.statistics.samples.estimate import MOST_WIDTH, Estimate, estimates_lines
from ensembles.summaries.moments import LEAST_FOR_KURTOSIS, LEAST_FOR_SKEWNESS

NAMES = ("mean", "sd", "cv")

SIZE = round(30 / SIGNIFICANT) - 1
"""Number of bootstrap samples: 30 lie beyond each end of a 90 % interval."""
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


@dataclass(frozen=True, eq=False)
class ResamplingUnits:
    """Independent units, phases or calls, as sums of powers of their durations."""

    sums: np.ndarray  # Sums of the powers 0 to 2 of (value - middle) / scale, for each unit; shape (k, 3)
    often: np.ndarray  # Multiplicity of each unit; shape (k,)
    middle: float  # middle, scale: Location and scale of the values
    scale: float
    log: bool  # True: values are logarithms

    @cached_property
    def found(self) -> np.ndarray:
        """Estimates on the scales of `original`: shape (3,)."""
        return self._found(self.often @ self.sums)

    @property
    def units(self) -> float:
        """Number of units."""
        return float(self.often.sum())

    @cached_property
    def parts(self) -> np.ndarray:
        """First-order contribution of each unit to the estimates: shape (k, 3)."""
        parts: np.ndarray = self.sums @ self._gradients(self.often @ self.sums).T
        return parts

    def interval(self, level: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Compute the ends of the intervals on the scales of `original`.

        The standard error is that of the jackknife over units, which is biased upwards (Efron and Stein),
        whereas the linearised one is too small if few units dominate. Quantiles of (g* - g) / se* are those
        of the smoothed bootstrap.
        """
        error = self._error()
        if self.units < FEWEST_ALONE:
            end = float(special.stdtrit(max(self.units - 1, 1), 0.5 + level / 2))
            return self.found - end * error, self.found + end * error
        low, high = self._smoothed()._quantiles(level, seed, round(self.units))
        return self.found - high * error, self.found - low * error

    def _error(self) -> np.ndarray:
        """Return standard errors, shape (3,); they are linearised for very many units."""
        units, share = self.units, self.often / self.units
        if units > MOST_SEEN:
            error: np.ndarray = np.sqrt(units**2 / (units - 1) * (share @ self.parts**2))
            return error
        with np.errstate(divide="ignore", invalid="ignore"):
            left = self._found(self.often @ self.sums - self.sums)
            jackknife: np.ndarray = np.sqrt((units - 1) * (share @ (left - share @ left) ** 2))
            return jackknife

    def _smoothed(self) -> ResamplingUnits:
        """Return the smoothed population; its `often` are shares."""
        share = self.often / self.units
        mean = self.middle + self.scale * self.sums[:, 1] / self.sums[:, 0]
        place = mean if self.log else np.log(np.maximum(mean, 1e-12 * abs(self.middle)))
        width = bandwidth(place, self.often)
        if width == 0:
            return ResamplingUnits(self.sums, share, self.middle, self.scale, self.log)
        steps, weights = nodes(self.units)
        moved = np.concatenate([self._moved(width * step) for step in steps])
        return ResamplingUnits(moved, np.outer(weights, share).ravel(), self.middle, self.scale, self.log)

    def _moved(self, step: float) -> np.ndarray:
        """Return the sums of units with all durations longer by the factor exp(step): shape (k, 3)."""
        factor = 1.0 if self.log else float(np.exp(step))
        shift = (step if self.log else (factor - 1) * self.middle) / self.scale
        return np.stack(
            [
                sum(comb(k, j) * factor**j * shift ** (k - j) * self.sums[:, j] for j in range(k + 1))
                for k in range(3)
            ],
            axis=1,
        )

    def _quantiles(self, level: float, seed: int, units: int) -> tuple[np.ndarray, np.ndarray]:
        """Return quantiles of the studentised estimates of `units` drawn units."""
        drawn = np.random.default_rng(seed).multinomial(units, self.often, SIZE).astype(np.float64)
        pair = np.triu_indices(3)
        sums = drawn @ self.sums
        squares = np.empty((SIZE, 3, 3))
        squares[:, pair[0], pair[1]] = drawn @ (self.sums[:, pair[0]] * self.sums[:, pair[1]])
        squares[:, pair[1], pair[0]] = squares[:, pair[0], pair[1]]
        with np.errstate(divide="ignore", invalid="ignore"):
            gradient = self._gradients(sums)
            variance = np.einsum("bei,bij,bej->be", gradient, squares, gradient) * units / (units - 1)
            student = (self._found(sums) - self.found) / np.sqrt(variance)
        ends = np.full((2, 3), np.nan)
        for i in range(3):
            told = student[np.isfinite(student[:, i]), i]
            if len(told) > SIZE / 2:
                ends[:, i] = np.quantile(told, [0.5 - level / 2, 0.5 + level / 2])
        return ends[0], ends[1]

    def _found(self, sums: np.ndarray) -> np.ndarray:
        """Return the estimates, shape (..., 3), on the scales of `original`."""
        total = sums[..., 0]
        first, second = sums[..., 1] / total, sums[..., 2] / total
        mean = self.middle + self.scale * first
        log_sd = np.log(second - first**2) / 2 + np.log(self.scale)
        log_mean = mean if self.log else np.log(mean)
        return np.stack([log_mean, log_sd, log_sd if self.log else log_sd - log_mean], axis=-1)

    def _gradients(self, sums: np.ndarray) -> np.ndarray:
        """Return exact derivatives of `_found`: shape (..., 3 estimates, 3 sums).

        They come from a step along the imaginary axis (W. Squire and G. Trapp, "Using complex variables to
        estimate derivatives of real functions", SIAM Review 40, 1998).
        """
        step = 1e-30
        columns = []
        for i in range(3):
            moved = sums.astype(np.complex128)
            moved[..., i] += 1j * step
            columns.append(self._found(moved).imag / step)
        return np.stack(columns, axis=-1)


def original(found: np.ndarray, log: bool) -> np.ndarray:
    """Convert estimates from nearly normal scales, which are logarithms: shape (..., 3)."""
    out: np.ndarray = np.exp(found)
    if log:
        out[..., 0] = found[..., 0]
    return out


MOST_SMOOTHED = 4 * MOST_DENSE
"""More units than these represent their distribution without smoothing."""


def bandwidth(place: np.ndarray, often: np.ndarray) -> float:
    """Choose the bandwidth of a normal kernel by the rule of thumb.

    It is 1.06 n^(-1/5) times the smaller of the standard deviation and the interquartile range over 1.349,
    as of a normal density.
    """
    units = often.sum()
    if units > MOST_SMOOTHED:
        return 0.0
    order = np.argsort(place, kind="stable")
    after = np.cumsum(often[order])
    lower, upper = place[order][np.searchsorted(after, [0.25 * units, 0.75 * units])]
    middle = often @ place / units
    deviation = np.sqrt(often @ (place - middle) ** 2 / units)
    return float(1.06 * min(deviation, (upper - lower) / 1.349) * units**-0.2)


def nodes(units: float) -> tuple[np.ndarray, np.ndarray]:
    """Return nodes and weights of a standard normal kernel, by Gauss quadrature.

    Moments are exact up to the ninth, for many units up to the fifth.
    """
    steps, weights = np.polynomial.hermite_e.hermegauss(5 if units <= MOST_DENSE / 2 else 3)
    return steps, weights / weights.sum()
