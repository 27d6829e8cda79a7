"""Bootstrap-t intervals of L-moments, with phases as units if these are known, otherwise calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from ensembles.statistics.resampling.bootstrap_t import LEAST_UNITS, SIZE
from ensembles.statistics.resampling.smoothed_bootstrap import bandwidth, nodes
from ensembles.statistics.samples.distinct_values import WeightedValues

if TYPE_CHECKING:
    from scipy.sparse import csr_array

_CELLS = 256
"""Values are merged to this number for the bootstrap, which needs only the variance of estimates."""
_GROUPS = 100
"""More phases are put into this number of random groups."""
_CHUNK = 64


def l_moment_ends(atoms: WeightedValues, level: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Compute the ends of the intervals of the L-moments.

    As `ResamplingUnits.interval`: estimates on the scales of `_on_scale`, quantiles of (g* - g) / se* from
    the smoothed bootstrap, and standard errors from the jackknife over phases. Those of calls, which are
    many, are linearised.
    """
    drawn_from = _Population.from_values(atoms)
    with np.errstate(divide="ignore", invalid="ignore"):
        found, error = drawn_from.found(), drawn_from.error()
        if drawn_from.units < LEAST_UNITS:
            from scipy.stats import t

            high = float(t.ppf(0.5 + level / 2, max(drawn_from.units - 1, 1))) * np.ones(5)
            low = -high
        else:
            low, high = drawn_from.smoothed().quantiles(level, seed)
        return _original(found - high * error), _original(found - low * error)


@dataclass(frozen=True, eq=False)
class _Population:
    """Units that share values."""

    value: np.ndarray  # Increasing; shape (m,)
    table: csr_array  # Multiplicity of each value in each unit; shape (k, m)
    often: np.ndarray  # Multiplicity of each unit; adds up to `units`; shape (k,)
    units: int  # Number of units

    @classmethod
    def from_values(cls, atoms: WeightedValues) -> _Population:
        """Make the units of an ensemble, with values merged to cells of equal numbers of calls."""
        from scipy.sparse import coo_array, csr_array

        m = len(atoms.value_s)
        below = np.cumsum(atoms.total) - atoms.total
        cell = np.arange(m) if m <= _CELLS else np.minimum(_CELLS * below // atoms.n, _CELLS - 1).astype(int)
        used, cell = np.unique(cell, return_inverse=True)
        total = np.bincount(cell, atoms.total)
        value = np.bincount(cell, atoms.total * atoms.value_s) / total
        if not atoms.by_phases:
            return cls(value, csr_array(np.diag(np.ones(len(used)))), total, atoms.n)
        group = np.arange(atoms.groups)
        if atoms.groups > _GROUPS:
            group = np.random.default_rng(0).permutation(atoms.groups) % _GROUPS
        groups = min(atoms.groups, _GROUPS)
        place = (group[atoms.group], cell[atoms.atom])
        table = coo_array((atoms.count.astype(np.float64), place), shape=(groups, len(used))).tocsr()
        return cls(value, table, np.ones(groups), groups)

    def found(self) -> np.ndarray:
        """Return the estimates on their scales: shape (5,)."""
        scales: np.ndarray = _on_scale(self.value, (self.often @ self.table)[None])[0][0]
        return scales

    def error(self) -> np.ndarray:
        """Return standard errors: shape (5,)."""
        if self.units == len(self.often):
            left = _on_scale(self.value, self.often @ self.table - self.table.toarray())[0]
            jackknife: np.ndarray = np.sqrt(
                (self.units - 1) * np.mean((left - left.mean(axis=0)) ** 2, axis=0)
            )
            return jackknife
        error: np.ndarray = self._linearised(self.often[None])[1][0]
        return error

    def smoothed(self) -> _Population:
        """Return the smoothed population."""
        from scipy.sparse import vstack

        mean = (self.table @ self.value) / self.table.sum(axis=1)
        width = bandwidth(np.log(np.maximum(mean, 1e-12 * mean.max())), self.often)
        if width == 0:
            return self
        steps, weights = nodes(np.inf)
        value = np.outer(np.exp(width * steps), self.value).ravel()
        order = np.argsort(value, kind="stable")
        place = np.empty(len(order), np.int64)
        place[order] = np.arange(len(order))
        m, tables = len(self.value), []
        for number in range(len(steps)):
            rows = self.table.tocoo()
            at = (rows.coords[0], place[rows.coords[1] + number * m])
            tables.append(type(rows)((rows.data, at), shape=(len(self.often), len(order))))
        return _Population(
            value[order], vstack(tables).tocsr(), np.outer(weights, self.often).ravel(), self.units
        )

    def quantiles(self, level: float, seed: int) -> tuple[np.ndarray, np.ndarray]:
        """Return quantiles of the studentised estimates of drawn ensembles: shape (5,) both."""
        share = self.often / self.often.sum()
        drawn = np.random.default_rng(seed).multinomial(self.units, share, SIZE).astype(np.float64)
        truth = self.found()
        rows = []
        for begin in range(0, SIZE, _CHUNK):
            found, error = self._linearised(drawn[begin : begin + _CHUNK])
            rows.append((found - truth) / error)
        student, ends = np.concatenate(rows), np.full((2, 5), np.nan)
        for i in range(5):
            told = student[np.isfinite(student[:, i]), i]
            if len(told) > SIZE / 2:
                ends[:, i] = np.quantile(told, [0.5 - level / 2, 0.5 + level / 2])
        return ends[0], ends[1]

    def _linearised(self, often: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Return estimates and linearised standard errors, shape (b, 5), of multiplicities, shape (b, k)."""
        counts = often @ self.table
        found, influence = _on_scale(self.value, counts)
        b, m = counts.shape
        added = (self.table @ influence.reshape(b * 5, m).T).T.reshape(b, 5, -1) / counts.sum(axis=1)[
            :, None, None
        ]
        variance = np.einsum("bek,bk->be", added**2, often) * self.units / (self.units - 1)
        return found, np.sqrt(variance)


def _on_scale(value: np.ndarray, counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Compute L-moments on nearly normal scales, and influences of values.

    The scales are the logarithm for location and scale, and the inverse hyperbolic tangent for ratios. With p
    the shares of the calls and F the shares below, b_r = Σ p x F^r; the influence of a call at x on b_r is x
    F^r + r Σ_{y > x} p y F^(r-1) - (r + 1) b_r. F^r of equal calls is its mean over their ranks, as with few
    values (a coarse clock) the power of the mean rank is another number.
    """
    share = counts / counts.sum(axis=1, keepdims=True)
    after = np.cumsum(share, axis=1)
    below = after - share / 2
    b, added = [], []
    before = np.ones_like(below)
    for r in range(4):
        ranks = np.diff(after ** (r + 1), axis=1, prepend=0.0) / (r + 1)
        b.append(ranks @ value)
        with np.errstate(divide="ignore", invalid="ignore"):
            call = value * np.where(share > 0, ranks / share, below**r)
        if r:
            term = value * before * share
            call += r * (np.cumsum(term[:, ::-1], axis=1)[:, ::-1] - term / 2)
            before = before * below
        added.append(call - (r + 1) * b[r][:, None])
    moments, influences = _l_moments_of(b), _l_moments_of(added)
    found = [np.log(moments[0]), np.log(moments[1])]
    influence = [influences[i] / moments[i][:, None] for i in range(2)]
    for i, j in ((1, 0), (2, 1), (3, 1)):
        ratio = moments[i] / moments[j]
        found.append(np.arctanh(ratio))
        slope = (influences[i] - ratio[:, None] * influences[j]) / moments[j][:, None]
        influence.append(slope / (1 - ratio**2)[:, None])
    return np.stack(found, axis=1), np.stack(influence, axis=1)


def _l_moments_of(b: list[np.ndarray]) -> list[np.ndarray]:
    """Compute L-moments from b_0 to b_3, or influences from influences (Hosking 1990, section 3)."""
    return [
        b[0],
        2 * b[1] - b[0],
        6 * b[2] - 6 * b[1] + b[0],
        20 * b[3] - 30 * b[2] + 12 * b[1] - b[0],
    ]


def _original(found: np.ndarray) -> np.ndarray:
    return np.concatenate([np.exp(found[:2]), np.tanh(found[2:])])
