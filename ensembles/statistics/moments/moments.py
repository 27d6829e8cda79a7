"""Moments of durations and of log durations, each with an interval.

Phases are the units of the intervals where they are known, else calls (`studentised.py`,
docs/reference/methods/moments.md). Where one unit governs the third or the fourth moment, the interval is
open on that side."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.statistics.resampling.bootstrap_t import NAMES, ResamplingUnits, original
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.statistics.samples.distinct_values import WeightedValues
from ensembles.statistics.samples.estimate import Estimate, estimates_lines, finite

L_MOMENTS = ("l_location_s", "l_scale_s", "l_cv", "l_skewness", "l_kurtosis")


def l_moments(value: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Sample L-moments and their ratios.

    Parameters
    ----------
    value : ndarray of float64, shape (m,)
        Rising.
    count : ndarray of float64, shape (..., m)
        How often each value occurs, in one ensemble or in several.

    Returns
    -------
    ndarray of float64, shape (..., 5)
        First and second L-moment, their ratio (L-CV), L-skewness and L-kurtosis; NaN where there are too few
        values, or all are equal.

    Notes
    -----
    With the unbiased probability-weighted moments ``b_r = mean of x_(j) (j-1)...(j-r) / ((n-1)...(n-r))``
    (Hosking 1990, section 3), in which the terms of equal values are added up in closed form: the sum of
    ``(j-1)...(j-r)`` from j = 1 to k is ``k (k-1) ... (k-r) / (r+1)``.
    """
    after = np.cumsum(count, axis=-1)
    n = after[..., -1:]
    with np.errstate(divide="ignore", invalid="ignore"):
        share = np.ones_like(after)
        b = []
        for order in range(4):
            share = share * (after - order) / (n - order)
            weight = np.diff(share, axis=-1, prepend=0.0) / (order + 1)
            b.append(weight @ value)
        first, second = b[0], 2 * b[1] - b[0]
        third = 6 * b[2] - 6 * b[1] + b[0]
        fourth = 20 * b[3] - 30 * b[2] + 12 * b[1] - b[0]
        n = n[..., 0]
        second = np.where(n >= 2, second, np.nan)
        flat = second <= 1e-14 * np.abs(first)
        return np.stack(
            [
                first,
                np.where(flat, np.where(n >= 2, 0.0, np.nan), second),
                np.where(flat, np.where(n >= 2, 0.0, np.nan), second / first),
                np.where(flat | (n < 3), np.nan, third / second),
                np.where(flat | (n < 4), np.nan, fourth / second),
            ],
            axis=-1,
        )


LARGEST_PART = 0.2
"""Where one unit makes a larger part of the variance of skewness or kurtosis, what other units may do
cannot be said from those that were seen: the interval has no end on that side."""

LEAST_LOG_S = 0.5e-9
"""What calls of no duration count as, where logarithms are taken."""

CALLS_ALONE = (
    "which calls belong to one phase is not known: intervals take calls as independent, and are too narrow "
    "where those of one phase are alike"
)
ONE_PHASE = "there is one phase: intervals hold for calls of this phase, and not for another one"


@dataclass(frozen=True)
class Moments:
    """Moments of an ensemble.

    Attributes
    ----------
    n, phases : int
        Calls, and phases; 0: phases are not known.
    level : float
        Of the intervals.
    mean_s, sd_s, cv : Estimate
        Mean and standard deviation (divisor n - 1), seconds; the deviation over the mean.
    skewness, excess_kurtosis : Estimate
        ``m3 / m2**1.5`` and ``m4 / m2**2 - 3`` with divisor n. An infinite end: one unit governs it, so
        that the data do not bound it on that side.
    log_mean, log_sd, log_skewness, log_excess_kurtosis : Estimate
        Those of the natural logarithm of the durations in seconds.
    min_s, max_s : float
        Shortest and longest call.
    method : str
        What was resampled: ``phases`` or ``calls``.
    notes : tuple of str
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
        """The estimates by name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, Estimate)}

    def to_json(self) -> dict[str, object]:
        """Numbers and texts under the names of the attributes; each estimate as value, low and high."""
        plain = {"n": self.n, "phases": self.phases, "level": self.level, "method": self.method}
        ends = {"min_s": finite(self.min_s), "max_s": finite(self.max_s)}
        estimates = {name: value.to_json() for name, value in self.estimates().items()}
        return plain | ends | estimates | {"notes": list(self.notes)}

    def __str__(self) -> str:
        if not self.n:
            return "moments: no calls"
        of = f"{self.phases:,} phases" if self.method == "phases" else "calls"
        lines = [f"moments of {self.n:,} calls, with {self.level:.0%} intervals by resampling {of}"]
        notes = (f"  note: {note}" for note in self.notes)
        return "\n".join([*lines, *estimates_lines(self.estimates()), *notes])


def compute_moments(data: CountedDurations | WeightedValues, level: float = 0.9, seed: int = 0) -> Moments:
    """The moments of an ensemble.

    Parameters
    ----------
    data : Sample or Atoms
    level : float
        Of the intervals, above 0 and below 1.
    seed : int
        Of the random numbers by which is resampled.

    Returns
    -------
    Moments
        NaN where there are too few calls.
    """
    atoms = WeightedValues.from_sample(data)
    linear, of_linear = _estimates(atoms, atoms.value_s, level, seed)
    logs = np.log(np.maximum(atoms.value_s, LEAST_LOG_S))
    logarithmic, of_logs = _estimates(atoms, logs, level, seed, log=True)
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
        notes=(*moment_notes(atoms), *_note_of_one_sided(one_sided, atoms)),
    )


def _note_of_one_sided(names: list[str], atoms: WeightedValues) -> tuple[str, ...]:
    if not names:
        return ()
    plain = ", ".join(name.replace("_", " ") for name in names)
    unit = "phase" if atoms.by_phases else "call"
    them = "them" if len(names) > 1 else "it"
    return (f"{plain}: so much hangs on one {unit} that the data bound {them} on one side only",)


def moment_notes(atoms: WeightedValues) -> tuple[str, ...]:
    """What the intervals do not take into account."""
    if atoms.n < 2 or atoms.phases > 1:
        return ()
    return (ONE_PHASE,) if atoms.phases else (CALLS_ALONE,)


def _estimates(
    atoms: WeightedValues, value: np.ndarray, level: float, seed: int, log: bool = False
) -> tuple[dict[str, Estimate], list[str]]:
    """The moments of values that atoms have, and which of them are bounded on one side only."""
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
    # An end beyond the estimate itself would contradict it.
    low, high = np.minimum(low, values), np.maximum(high, values)
    one_sided = []
    for i in (3, 4):
        if units.is_governed(i, LARGEST_PART):
            one_sided.append(NAMES[i])
            if i == 4 or units.longer_side > 0:
                high[i] = np.inf
            else:
                low[i] = -np.inf
    for array in (values, low, high):
        array[1:3] *= np.sqrt(n / (n - 1))
    rows = zip(NAMES, values, low, high, strict=True)
    return {name: Estimate(float(v), float(a), float(b)) for name, v, a, b in rows}, one_sided
