"""Moments of durations and of log durations, each with an interval.

Intervals are bootstrap-t intervals: the estimate is studentised by its linearised standard error, on a
scale on which it is nearly normal. Phases are resampled where they are known, else calls. See
docs/statistics.md."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.statistics.atoms import Atoms
from ensembles.statistics.estimate import Estimate, estimates_lines, finite
from ensembles.statistics.sample import Sample

SIZE = 599
"""Resampled ensembles."""

LEAST_UNITS = 8
"""Of fewer phases (or calls), the distribution of the studentised estimate is taken to be Student's t."""

LEAST_LOG_S = 0.5e-9
"""What calls of no duration count as, where logarithms are taken."""

NAMES = ("mean", "sd", "cv", "skewness", "excess_kurtosis")

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
        ``m3 / m2**1.5`` and ``m4 / m2**2 - 3`` with divisor n.
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


def moments_of(data: Sample | Atoms, level: float = 0.9, seed: int = 0) -> Moments:
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
    atoms = Atoms.of(data)
    linear = _estimates(atoms, atoms.value_s, level, seed)
    logarithmic = _estimates(atoms, np.log(np.maximum(atoms.value_s, LEAST_LOG_S)), level, seed, log=True)
    return Moments(
        n=atoms.n,
        phases=atoms.phases,
        level=level,
        **{name + "_s" * (name in ("mean", "sd")): linear[name] for name in NAMES},
        **{f"log_{name}": logarithmic[name] for name in NAMES if name != "cv"},
        min_s=float(atoms.low_s[0]) if atoms.n else np.nan,
        max_s=float(atoms.high_s[-1]) if atoms.n else np.nan,
        method="phases" if atoms.by_phases else "calls",
        notes=notes_of(atoms),
    )


def notes_of(atoms: Atoms) -> tuple[str, ...]:
    """What the intervals do not take into account."""
    if atoms.n < 2 or atoms.phases > 1:
        return ()
    return (ONE_PHASE,) if atoms.phases else (CALLS_ALONE,)


def _estimates(
    atoms: Atoms, value: np.ndarray, level: float, seed: int, log: bool = False
) -> dict[str, Estimate]:
    """The moments of values that atoms have."""
    n = atoms.n
    if n == 0:
        return dict.fromkeys(NAMES, Estimate(np.nan))
    middle = float(atoms.total @ value / n)
    scale = float(np.sqrt(atoms.total @ (value - middle) ** 2 / n))
    if n == 1 or scale <= 1e-12 * abs(middle) or scale == 0:
        spread = Estimate(np.nan) if n == 1 else Estimate(0.0, 0.0, 0.0)
        mean = Estimate(middle) if n == 1 else Estimate(middle, middle, middle)
        return dict.fromkeys(NAMES, Estimate(np.nan)) | {"mean": mean, "sd": spread, "cv": spread}
    powers = ((value - middle) / scale)[:, None] ** np.arange(5)
    sums = atoms.table @ powers if atoms.by_phases else powers
    often = np.ones(len(sums)) if atoms.by_phases else atoms.total
    found = _found(often @ sums, middle, scale, log)
    units = atoms.units
    gradient = _gradients(often @ sums, middle, scale, log)
    error = np.sqrt(units / (units - 1) * (often @ (sums @ gradient.T) ** 2))
    low_t, high_t = _student_ends(level, units)
    if units >= LEAST_UNITS:
        low_t, high_t = _bootstrap_ends(atoms, sums, found, level, seed, (middle, scale, log))
    with np.errstate(over="ignore", invalid="ignore"):
        ends = _original(np.array([found - high_t * error, found - low_t * error]), log)
        values = _original(found, log)
    values[1:3] *= np.sqrt(n / (n - 1))
    ends[:, 1:3] *= np.sqrt(n / (n - 1))
    return {
        name: Estimate(float(values[i]), float(ends[0, i]), float(ends[1, i])) for i, name in enumerate(NAMES)
    }


def _found(sums: np.ndarray, middle: float, scale: float, log: bool) -> np.ndarray:
    """Mean, deviation, coefficient of variation, skewness and kurtosis on the scales of `_original`, from
    sums of powers of (value - middle) / scale: shape (..., 5) both. Of logarithms there is no variation."""
    total = sums[..., 0]
    first, second, third, fourth = (sums[..., i] / total for i in range(1, 5))
    m2 = second - first**2
    m3 = third - 3 * first * second + 2 * first**3
    m4 = fourth - 4 * first * third + 6 * first**2 * second - 3 * first**4
    mean = middle + scale * first
    log_sd = np.log(m2) / 2 + np.log(scale)
    log_mean = mean if log else np.log(mean)
    log_cv = log_sd if log else log_sd - log_mean
    return np.stack([log_mean, log_sd, log_cv, np.arcsinh(m3 / m2**1.5), np.log(m4 / m2**2)], axis=-1)


def _original(found: np.ndarray, log: bool) -> np.ndarray:
    """From the scales on which the estimates are nearly normal to their own: shape (..., 5)."""
    out = np.exp(found)
    if log:
        out[..., 0] = found[..., 0]
    out[..., 3] = np.sinh(found[..., 3])
    out[..., 4] = np.maximum(out[..., 4] - 3, -2)  # m4 is at least m2**2
    return out


def _gradients(sums: np.ndarray, middle: float, scale: float, log: bool) -> np.ndarray:
    """Derivatives of `_found` by the sums, exactly, by a step along the imaginary axis (W. Squire and
    G. Trapp, SIAM Review 40, 1998): shape (..., 5 estimates, 5 sums)."""
    step = 1e-30
    columns = []
    for i in range(5):
        moved = sums.astype(np.complex128)
        moved[..., i] += 1j * step
        columns.append(_found(moved, middle, scale, log).imag / step)
    return np.stack(columns, axis=-1)


def _student_ends(level: float, units: int) -> tuple[np.ndarray, np.ndarray]:
    from scipy.stats import t

    end = float(t.ppf(0.5 + level / 2, max(units - 1, 1)))
    return np.full(5, -end), np.full(5, end)


def _bootstrap_ends(
    atoms: Atoms, sums: np.ndarray, found: np.ndarray, level: float, seed: int, scales: tuple
) -> tuple[np.ndarray, np.ndarray]:
    """Quantiles of the studentised estimates of resampled ensembles."""
    weights = atoms.weights(SIZE, seed)
    pair = np.triu_indices(5)
    drawn = weights @ sums
    squares = np.empty((SIZE, 5, 5))
    squares[:, pair[0], pair[1]] = weights @ (sums[:, pair[0]] * sums[:, pair[1]])
    squares[:, pair[1], pair[0]] = squares[:, pair[0], pair[1]]
    units = atoms.units
    with np.errstate(divide="ignore", invalid="ignore"):
        gradient = _gradients(drawn, *scales)
        variance = np.einsum("bei,bij,bej->be", gradient, squares, gradient) * units / (units - 1)
        student = (_found(drawn, *scales) - found) / np.sqrt(variance)
    ends = np.full((2, 5), np.nan)
    for i in range(5):
        told = student[np.isfinite(student[:, i]), i]
        if len(told) > SIZE / 2:
            ends[:, i] = np.quantile(told, [0.5 - level / 2, 0.5 + level / 2])
    return ends[0], ends[1]
