"""Quantiles of durations, with intervals that hold for any distribution.

Independent calls give exact intervals between order statistics. If phases are known, the uncertainty of the
share of calls below the quantile is estimated between phases, and converted to durations.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ensembles.model.errors import EnsioError
from ensembles.model.fields import Fields, plain
from ensembles.model.levels import check_level
from ensembles.model.notebook_html import Printed
from ensembles.model.units import count_text, seconds_text, share_text
from ensembles.statistics.moments.moments import moment_notes
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.samples.distinct_values import WeightedValues
from ensembles.statistics.samples.estimate import Estimate, interval_text

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True)
class Quantiles(Printed, Fields):
    """Quantiles of an ensemble.

    Attributes
    ----------
    n, phases : int
        Number of calls and of phases; 0: phases are unknown.
    level : float
        Confidence level of the intervals.
    quantiles : tuple of float
        Probabilities, 0 to 1.
    estimates : tuple of Estimate
        Seconds. A low end of 0 or an infinite high end: too few calls (phases) to bound the quantile.
    method : str
        ``calls`` (independent calls, exact) or ``phases``.
    notes : tuple of str
        Caveats, one sentence each.
    """

    n: int
    phases: int
    level: float
    quantiles: tuple[float, ...]
    estimates: tuple[Estimate, ...]
    method: str
    notes: tuple[str, ...] = ()

    def __getitem__(self, quantile: float) -> Estimate:
        """Return the estimate for one of the probabilities."""
        return self.estimates[self.quantiles.index(quantile)]

    def to_json(self) -> dict[str, object]:
        """Return the object that ``--json`` prints; ``quantiles`` is a list of objects."""
        rows = [
            plain({"quantile": q, "t_s": e.value, "low_s": e.low, "high_s": e.high})
            for q, e in zip(self.quantiles, self.estimates, strict=True)
        ]
        found = super().to_json() | {"quantiles": rows}
        del found["estimates"]
        return found

    def __str__(self) -> str:
        if not self.n:
            return "quantiles: no calls"
        of = f"of {self.phases:,} phases" if self.method == "phases" else "of independent calls"
        lines = [
            f"quantiles of {count_text(self.n, 'call')}, with {share_text(self.level)} confidence "
            f"intervals {of}"
        ]
        for quantile, found in zip(self.quantiles, self.estimates, strict=True):
            ends = interval_text(found.low, found.high, seconds_text, least=0.0)
            lines.append(f"  {100 * quantile:6.4g} %  {seconds_text(found.value)}  ({ends})")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def compute_quantiles(
    data: CountedDurations | WeightedValues, quantiles: float | Sequence[float] = LEVELS, level: float = 0.9
) -> Quantiles:
    """Compute quantiles of an ensemble, with intervals.

    Estimates are those of `numpy.quantile` within the width of a bin. Intervals of independent calls lie
    between order statistics (David and Nagaraja 2003, 7.1), those of phases are Korn and Graubard's (1998),
    by Woodruff's method (1952). Both are wider by half a step of the clock on either side.

    Examples
    --------
    >>> from ensembles.statistics.samples.distinct_values import WeightedValues
    >>> durations_s = np.arange(1.0, 102.0)
    >>> atoms = WeightedValues.from_durations(durations_s, None, CountedDurations.from_durations(durations_s))
    >>> median = compute_quantiles(atoms, [0.5])[0.5]
    >>> median.value, median.low, median.high
    (51.0, 42.0, 60.0)
    """
    level = check_level(level)
    try:
        quantiles = tuple(float(q) for q in np.atleast_1d(quantiles))
    except (TypeError, ValueError):
        raise EnsioError(
            f"the quantiles {quantiles!r} are not numbers: give for example [0.5, 0.99]"
        ) from None
    for q in quantiles:
        if not 0 <= q <= 1:
            raise EnsioError(f"the quantile {q} is not between 0 and 1: give for example 0.5 for the median")
    atoms = WeightedValues.from_sample(data)
    value_s = quantile_s(atoms, quantiles)
    ends = [_ends(atoms, q, level, t) for q, t in zip(quantiles, value_s, strict=True)]
    return Quantiles(
        n=atoms.n,
        phases=atoms.phases,
        level=level,
        quantiles=quantiles,
        estimates=tuple(Estimate(float(t), *end) for t, end in zip(value_s, ends, strict=True)),
        method="phases" if atoms.by_phases else "calls",
        notes=moment_notes(atoms),
    )


def quantile_s(atoms: WeightedValues, quantiles: ArrayLike, total: np.ndarray | None = None) -> np.ndarray:
    """Compute quantiles between order statistics, as `numpy.quantile` does.

    Each atom is spread evenly over its range.
    """
    total = atoms.total if total is None else total
    after = np.cumsum(total)
    n = after[-1] if len(after) else 0
    place = np.asarray(quantiles, dtype=np.float64) * (n - 1)
    if n <= 0:
        return np.full(place.shape, np.nan)
    low, high = (_order_statistic(atoms, total, after, part(place)) for part in (np.floor, np.ceil))
    quantile: np.ndarray = low + (place - np.floor(place)) * (high - low)
    return quantile


def _order_statistic(
    atoms: WeightedValues, total: np.ndarray, after: np.ndarray, place: np.ndarray
) -> np.ndarray:
    """Return the duration of the call at a position, from 0."""
    atom = np.minimum(np.searchsorted(after, place, side="right"), len(after) - 1)
    within = place - (after[atom] - total[atom])
    part = (within + 0.5) / np.maximum(total[atom], 1)
    part = np.where(place <= 0, 0.0, np.where(place >= after[-1] - 1, 1.0, part))
    duration_s: np.ndarray = atoms.low_s[atom] + part * (atoms.high_s[atom] - atoms.low_s[atom])
    return duration_s


def _ends(atoms: WeightedValues, q: float, level: float, value_s: float) -> tuple[float, float]:
    if atoms.n == 0 or not 0 < q < 1:
        return np.nan, np.nan
    least, most = (_between_phases if atoms.by_phases else _between_calls)(atoms, q, level, value_s)
    after = np.cumsum(atoms.total)
    low_s, high_s, half_s = 0.0, np.inf, atoms.step_s / 2
    if least >= 1:
        low_s = max(float(atoms.low_s[np.searchsorted(after, least, side="left")]) - half_s, 0.0)
    if most <= atoms.n:
        high_s = float(atoms.high_s[np.searchsorted(after, most, side="left")]) + half_s
    return low_s, high_s


def _between_calls(atoms: WeightedValues, q: float, level: float, value_s: float) -> tuple[int, int]:
    """Return the order statistics, from 1, that enclose the quantile; 0 and n + 1 stand for none."""
    from scipy.stats import binom

    tail = (1 - level) / 2
    least = int(binom.ppf(tail, atoms.n, q))
    if binom.cdf(least - 1, atoms.n, q) > tail:
        least -= 1
    return max(least, 0), int(binom.isf(tail, atoms.n, q)) + 1


def _between_phases(atoms: WeightedValues, q: float, level: float, value_s: float) -> tuple[float, float]:
    """Return the same for dependent calls, from the variation of the share of calls below the quantile."""
    from scipy.stats import beta, t

    width = atoms.high_s - atoms.low_s
    part = (value_s - atoms.low_s) / np.where(width > 0, width, 1)
    part = np.where(width > 0, part, atoms.low_s <= value_s)
    below, of_group = atoms.table @ np.clip(part, 0, 1), atoms.table.sum(axis=1)
    n, groups, tail = atoms.n, atoms.groups, (1 - level) / 2
    share = below.sum() / n
    variance = np.sum((below - share * of_group) ** 2) * groups / (groups - 1) / n**2
    simple = q * (1 - q) / n
    effective = n * min(1.0, simple / variance) if variance > 0 else n
    effective *= (t.ppf(tail, n - 1) / t.ppf(tail, groups - 1)) ** 2
    least = beta.ppf(tail, q * effective, (1 - q) * effective + 1)
    most = beta.ppf(1 - tail, q * effective + 1, (1 - q) * effective)
    none_below, none_above = effective * np.log1p(-q) > np.log(tail), effective * np.log(q) > np.log(tail)
    return (0 if none_below else np.floor(least * n), n + 1 if none_above else min(np.floor(most * n) + 1, n))
