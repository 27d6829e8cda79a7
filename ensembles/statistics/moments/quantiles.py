"""Quantiles of durations, each with an interval that takes no distribution for granted.

Calls that are independent: exact intervals between order statistics. Phases that are known: the uncertainty
of the share of calls below the quantile is measured between phases, and carried over to durations."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from ensembles.model.errors import EnsioError
from ensembles.model.units import seconds_text
from ensembles.statistics.moments.moments import moment_notes
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.samples.distinct_values import WeightedValues
from ensembles.statistics.samples.estimate import Estimate, finite

LEVELS = (0.05, 0.25, 0.5, 0.75, 0.95, 0.99)


@dataclass(frozen=True)
class Quantiles:
    """Quantiles of an ensemble.

    Attributes
    ----------
    n, phases : int
        Calls, and phases; 0: phases are not known.
    level : float
        Of the intervals.
    quantiles : tuple of float
        Which quantiles, 0 to 1.
    estimates : tuple of Estimate
        Seconds. A low end of 0 or an infinite high end: there are too few calls (phases) to bound it.
    method : str
        ``calls`` (independent calls, exact) or ``phases``.
    notes : tuple of str
    """

    n: int
    phases: int
    level: float
    quantiles: tuple[float, ...]
    estimates: tuple[Estimate, ...]
    method: str
    notes: tuple[str, ...] = ()

    def __getitem__(self, quantile: float) -> Estimate:
        """The estimate of one of the quantiles."""
        return self.estimates[self.quantiles.index(quantile)]

    def to_json(self) -> dict[str, object]:
        """Numbers and texts under the names of the attributes; ``quantiles`` is a list of objects."""
        rows = [
            {"quantile": q, "t_s": finite(e.value), "low_s": finite(e.low), "high_s": finite(e.high)}
            for q, e in zip(self.quantiles, self.estimates, strict=True)
        ]
        plain = {"n": self.n, "phases": self.phases, "level": self.level, "method": self.method}
        return plain | {"quantiles": rows, "notes": list(self.notes)}

    def __str__(self) -> str:
        if not self.n:
            return "quantiles: no calls"
        of = f"of {self.phases:,} phases" if self.method == "phases" else "of independent calls"
        lines = [f"quantiles of {self.n:,} calls, with {self.level:.0%} intervals as {of}"]
        for quantile, found in zip(self.quantiles, self.estimates, strict=True):
            high = f"to {seconds_text(found.high)}" if np.isfinite(found.high) else "or more"
            text = f"{seconds_text(found.value)}  ({seconds_text(found.low)} {high})"
            lines.append(f"  {100 * quantile:6.4g} %  {text}")
        return "\n".join([*lines, *(f"  note: {note}" for note in self.notes)])


def compute_quantiles(
    data: CountedDurations | WeightedValues, quantiles: Sequence[float] = LEVELS, level: float = 0.9
) -> Quantiles:
    """Quantiles of an ensemble, with intervals.

    Parameters
    ----------
    data : Sample or Atoms
    quantiles : sequence of float
        0 to 1.
    level : float
        Of the intervals, above 0 and below 1.

    Raises
    ------
    EnsioError
        A quantile is not from 0 to 1.

    Notes
    -----
    Estimates are those of `numpy.quantile` (type 7 of R. J. Hyndman and Y. Fan, 1996), within the width of
    a bin. Independent calls: the l-th and the u-th call enclose the quantile q with the probability that l
    to u - 1 of n calls lie below it, which is binomial whatever the distribution (H. A. David and
    H. N. Nagaraja, Order Statistics, 2003, section 7.1). Phases: the interval of the share of calls below
    the quantile is that of E. L. Korn and B. I. Graubard (1998), and R. S. Woodruff's (1952) way leads back
    to durations.
    """
    quantiles = tuple(float(q) for q in quantiles)
    for q in quantiles:
        if not 0 <= q <= 1:
            raise EnsioError(f"there is no quantile {q}: quantiles are from 0 to 1")
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
    """Quantiles, between order statistics as `numpy.quantile` does it; calls of an atom are spread evenly.

    Parameters
    ----------
    atoms : Atoms
    quantiles : array of float, shape (k,)
    total : ndarray of float64, shape (m,), optional
        Calls of each atom, default those of all phases.

    Returns
    -------
    ndarray of float64, shape (k,)
        Seconds; NaN without calls.
    """
    total = atoms.total if total is None else total
    after = np.cumsum(total)
    n = after[-1] if len(after) else 0
    place = np.asarray(quantiles, dtype=np.float64) * (n - 1)
    if n <= 0:
        return np.full(place.shape, np.nan)
    low, high = (_order_statistic(atoms, total, after, part(place)) for part in (np.floor, np.ceil))
    return low + (place - np.floor(place)) * (high - low)


def _order_statistic(
    atoms: WeightedValues, total: np.ndarray, after: np.ndarray, place: np.ndarray
) -> np.ndarray:
    """The duration of the call at a place, from 0. The first and the last are the ends of their atoms."""
    atom = np.minimum(np.searchsorted(after, place, side="right"), len(after) - 1)
    within = place - (after[atom] - total[atom])
    part = (within + 0.5) / np.maximum(total[atom], 1)
    part = np.where(place <= 0, 0.0, np.where(place >= after[-1] - 1, 1.0, part))
    return atoms.low_s[atom] + part * (atoms.high_s[atom] - atoms.low_s[atom])


def _ends(atoms: WeightedValues, q: float, level: float, value_s: float) -> tuple[float, float]:
    if atoms.n == 0 or not 0 < q < 1:
        return np.nan, np.nan
    least, most = (_between_phases if atoms.by_phases else _between_calls)(atoms, q, level, value_s)
    after = np.cumsum(atoms.total)
    low = high = None
    if least >= 1:
        low = atoms.low_s[np.searchsorted(after, least, side="left")]
    if most <= atoms.n:
        high = atoms.high_s[np.searchsorted(after, most, side="left")]
    return 0.0 if low is None else float(low), np.inf if high is None else float(high)


def _between_calls(atoms: WeightedValues, q: float, level: float, value_s: float) -> tuple[int, int]:
    """Which order statistics, from 1, enclose the quantile; 0 and n + 1 stand for none."""
    from scipy.stats import binom

    tail = (1 - level) / 2
    least = int(binom.ppf(tail, atoms.n, q))
    if binom.cdf(least - 1, atoms.n, q) > tail:
        least -= 1
    return max(least, 0), int(binom.isf(tail, atoms.n, q)) + 1


def _between_phases(atoms: WeightedValues, q: float, level: float, value_s: float) -> tuple[float, float]:
    """The same for phases that differ, by how much the share of calls below the quantile varies."""
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
