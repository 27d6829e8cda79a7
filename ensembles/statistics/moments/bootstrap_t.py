"""Bootstrap-t intervals of moments on scales on which they are nearly normal.

Few phases do not show how slow the slowest phases are, so that an interval from them alone is too short on
that side. So each unit represents several that are slightly faster or slower (B. W. Silverman and G. A.
Young, "The bootstrap: To smooth or not to smooth?", Biometrika 74, 1987).
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import comb

import numpy as np

from ensembles.model.levels import FEWEST_ALONE, MOST_DENSE, MOST_SEEN

NAMES = ("mean", "sd", "cv")

SIZE = 599
"""Number of bootstrap samples."""


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
            from scipy.stats import t

            end = float(t.ppf(0.5 + level / 2, max(self.units - 1, 1)))
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
