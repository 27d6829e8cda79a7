"""Robust statistics, which few slow calls do not dominate: median, MAD and L-moments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from ensembles.model.notebook_html import Printed
from ensembles.model.units import count_text, share_text
from ensembles.statistics.moments.moments import (
    L_MOMENTS,
    l_moments,
    moment_notes,
    too_wide_text,
    without_wide_interval,
)
from ensembles.statistics.moments.quantiles import compute_quantiles, quantile_s
from ensembles.statistics.resampling.bootstrap_t import SIZE
from ensembles.statistics.resampling.bootstrap_t_l_moments import l_moment_ends
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.samples.distinct_values import WeightedValues
from ensembles.statistics.samples.estimate import Estimate, estimates_lines
from ensembles.statistics.samples.level import check_level

_LEAST_UNITS = 4
_STEPS = 60
_RATIOS = ("l_location_s", "l_scale_s", "l_cv")
"""Estimates above zero, whose intervals are judged by the ratio of their ends."""


@dataclass(frozen=True)
class Robust(Printed):
    """Robust location, scale and shape of an ensemble.

    Attributes
    ----------
    n, phases : int
        Number of calls and of phases; 0: phases are unknown.
    level : float
        Confidence level of the intervals.
    median_s : Estimate
        Seconds.
    mad_s : Estimate
        Median absolute deviation from the median in seconds, not scaled: for normal durations, 1.4826 times
        this is the standard deviation.
    l_location_s, l_scale_s : Estimate
        First L-moment (the mean) and second (half the mean distance of two calls), in seconds.
    l_cv, l_skewness, l_kurtosis : Estimate
        Their ratio; third and fourth L-moment over the second, between -1 and 1.
    method : str
        Units of the bootstrap: ``phases`` or ``calls``.
    notes : tuple of str
        Caveats, one sentence each.
    """

    n: int
    phases: int
    level: float
    median_s: Estimate
    mad_s: Estimate
    l_location_s: Estimate
    l_scale_s: Estimate
    l_cv: Estimate
    l_skewness: Estimate
    l_kurtosis: Estimate
    method: str
    notes: tuple[str, ...] = ()

    def estimates(self) -> dict[str, Estimate]:
        """Return the estimates by name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Estimate)}

    def to_json(self) -> dict[str, object]:
        """Return the object that ``--json`` prints; each estimate has value, low and high."""
        plain = {"n": self.n, "phases": self.phases, "level": self.level, "method": self.method}
        estimates = {name: value.to_json() for name, value in self.estimates().items()}
        return plain | estimates | {"notes": list(self.notes)}

    def __str__(self) -> str:
        if not self.n:
            return "robust: no calls"
        of = f"{self.phases:,} phases" if self.method == "phases" else "calls"
        by = f"{share_text(self.level)} confidence intervals by resampling {of}"
        lines = [f"robust statistics of {count_text(self.n, 'call')}, with {by}"]
        notes = (f"  note: {note}" for note in self.notes)
        return "\n".join([*lines, *estimates_lines(self.estimates()), *notes])


def compute_robust(data: CountedDurations | WeightedValues, level: float = 0.9, seed: int = 0) -> Robust:
    """Compute median, median absolute deviation (MAD) and L-moments.

    Notes
    -----
    The interval of the median is that of `compute_quantiles`; those of L-moments are bootstrap-t intervals
    (`bootstrap_t_l_moments`). The interval of the MAD consists of bootstrap percentiles, corrected for bias
    and acceleration (Efron) and for few phases (Hesterberg).

    References
    ----------
    B. Efron, "Better bootstrap confidence intervals", Journal of the American Statistical Association 82,
    1987.

    T. C. Hesterberg, "What teachers should know about the bootstrap", The American Statistician 69, 2015.

    Examples
    --------
    >>> from ensembles.statistics.samples.counted_durations import CountedDurations
    >>> sample = CountedDurations.from_durations(np.random.default_rng(1).normal(10.0, 1.0, 5000))
    >>> robust = compute_robust(sample)
    >>> bool(robust.mad_s.low < 0.6745 < robust.mad_s.high)
    True
    """
    level = check_level(level)
    atoms = WeightedValues.from_sample(data)
    (median,) = compute_quantiles(atoms, [0.5], level).estimates
    values, (low, high) = np.full(6, np.nan), np.full((2, 6), np.nan)
    if atoms.n:
        values = np.append(l_moments(atoms.value_s, atoms.total), _mad_s(atoms))
    if atoms.n and atoms.units >= _LEAST_UNITS:
        low[5], high[5] = _mad_ends(atoms, level, seed)
        flat = values[1] <= 1e-12 * values[0]
        low[:5], high[:5] = (values[:5], values[:5]) if flat else l_moment_ends(atoms, level, seed)
    # The interval must contain the estimate.
    low, high = np.minimum(low, values), np.maximum(high, values)
    estimates = [Estimate(float(v), float(a), float(b)) for v, a, b in zip(values, low, high, strict=True)]
    named = dict(zip((*L_MOMENTS, "mad_s"), estimates, strict=True))
    too_wide = too_wide_text({_plain(name): named[name] for name in _RATIOS}, atoms)
    named |= {name: without_wide_interval(named[name]) for name in _RATIOS}
    return Robust(
        n=atoms.n,
        phases=atoms.phases,
        level=level,
        median_s=median,
        **named,
        method="phases" if atoms.by_phases else "calls",
        notes=(*moment_notes(atoms), *too_wide),
    )


def _plain(name: str) -> str:
    return name.removesuffix("_s").replace("l_", "L-").replace("_", " ")


def _mad_ends(atoms: WeightedValues, level: float, seed: int) -> tuple[float, float]:
    """Return the ends of the interval of the MAD."""
    from scipy.stats import norm, t

    drawn = _mads_s(atoms, atoms.resampled(SIZE, seed))
    found, acceleration = _mads_s(atoms, atoms.total[None])[0], _acceleration(atoms)
    units = atoms.units
    end = float(t.ppf(0.5 + level / 2, units - 1) * np.sqrt(units / (units - 1)))
    below = (np.sum(drawn < found) + np.sum(drawn <= found)) / (2 * len(drawn))
    shift = norm.ppf(np.clip(below, 1 / SIZE, 1 - 1 / SIZE))
    beyond = shift + np.array([-end, end])
    low, high = np.quantile(drawn, norm.cdf(shift + beyond / (1 - acceleration * beyond)))
    return float(low), float(high)


def _acceleration(atoms: WeightedValues) -> float:
    """Estimate the acceleration of the MAD by the jackknife over phases.

    It is 0 for single calls, which are many.
    """
    if not atoms.by_phases:
        return 0.0
    left = _mads_s(atoms, np.maximum(atoms.total - atoms.table.toarray(), 0))
    beyond = left.mean() - left
    with np.errstate(divide="ignore", invalid="ignore"):
        found = np.sum(beyond**3) / (6 * np.sum(beyond**2) ** 1.5)
    return float(np.clip(np.nan_to_num(found), -0.2, 0.2))


def _mad_s(atoms: WeightedValues) -> float:
    """Return the median distance to the median, in seconds."""
    (median_s,) = quantile_s(atoms, [0.5])
    if (atoms.high_s > atoms.low_s).any():
        return float(_mads_s(atoms, atoms.total[None])[0])
    distance = np.abs(atoms.value_s - median_s)
    order = np.argsort(distance, kind="stable")
    after = np.cumsum(atoms.total[order])
    middle = np.searchsorted(after, [(atoms.n - 1) // 2, atoms.n // 2], side="right")
    return float(distance[order[middle]].mean())


def _mads_s(atoms: WeightedValues, counts: np.ndarray) -> np.ndarray:
    """Return the MAD of several ensembles of these atoms by bisection: counts (b, m), seconds (b,)."""
    before = np.concatenate([np.zeros((len(counts), 1)), np.cumsum(counts, axis=1)], axis=1)
    n, rows = before[:, -1], np.arange(len(counts))
    width = atoms.high_s - atoms.low_s

    def below(time_s: np.ndarray) -> np.ndarray:
        atom = np.maximum(np.searchsorted(atoms.low_s, time_s, side="right") - 1, 0)
        part = (time_s - atoms.low_s[atom]) / np.where(width > 0, width, 1)[atom]
        part = np.where(width[atom] > 0, part, 1.0)
        part = np.where(time_s < atoms.low_s[0], 0.0, np.clip(part, 0, 1))
        calls: np.ndarray = before[rows, atom] + part * counts[rows, atom]
        return calls

    def solve(share_below: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        low, high = np.zeros(len(counts)), np.full(len(counts), atoms.high_s[-1])
        for _ in range(_STEPS):
            middle = (low + high) / 2
            enough = share_below(middle) >= 0.5 * n
            low, high = np.where(enough, low, middle), np.where(enough, middle, high)
        return high

    median_s = solve(below)
    return solve(lambda distance_s: below(median_s + distance_s) - below(median_s - distance_s - 1e-12))
