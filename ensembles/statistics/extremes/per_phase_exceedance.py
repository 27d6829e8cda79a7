"""The slowest of N calls if some calls are of a slow kind whose share varies by phase.

A tail must not be extrapolated from one kind of calls to another. If durations relative to the median of
their phase show a second kind, a phase is described by the share of its calls of that kind. All phases
together determine the distribution of this share (a beta distribution), and that of the slow calls, with one
tail.
"""

from __future__ import annotations

import numpy as np

from ensembles.model.levels import FEWEST_SLOW, MOST_DENSE
from ensembles.statistics import special
from ensembles.statistics.extremes.last_mode import last_shoulder_s
from ensembles.statistics.extremes.order_statistics import UpperOrderStatistics
from ensembles.statistics.extremes.pareto_tail import ParetoTail, fit_pareto_tail
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import BIN_COUNT, bin_edges_s, bin_index

_SURE = 5.0
"""Significance of a second kind of calls here. All phases together have many calls, and a false one would
hide that the variances of phases differ.
"""

CASES = 24
"""Equally probable cases of a phase, each with one tail."""
_UNIT_S = 1e-3
"""Durations relative to a median are counted in bins as if the median were a millisecond."""


def maximum_by_share(sample: CountedDurations, log_median: np.ndarray, tasks: int) -> np.ndarray | None:
    """Predict the slowest of ``tasks`` calls in each phase, as equally probable cases."""
    edges = bin_edges_s()
    middle = np.log(np.maximum(0.5 * (edges[:-1] + edges[1:]), 1e-10))[sample.bin]
    group = sample.group
    over = middle - log_median[group]
    begin_s = last_shoulder_s(_counted(over, sample.count), _SURE)
    if begin_s == 0.0:
        return None
    slow = over > np.log(begin_s / _UNIT_S)
    number = np.bincount(group, sample.count * slow, minlength=len(sample.n))
    if number.sum() < FEWEST_SLOW:
        return None
    # Slow calls take a fixed time (a timeout), or one in proportion to the phase: whichever varies less.
    weight = sample.count[slow].astype(np.float64)
    own = _variance(middle[slow], weight) < _variance(over[slow], weight)
    location = np.full(len(sample.n), np.log(_UNIT_S)) if own else log_median
    mode = _counted(middle[slow] - location[group[slow]], sample.count[slow])
    tail = fit_pareto_tail(mode)
    if tail is None:
        return None
    rng = np.random.default_rng(0)
    shape = (len(sample.n), CASES)
    strata = (rng.permuted(np.tile(np.arange(CASES), (shape[0], 1)), axis=1) + rng.random(shape)) / CASES
    chance = -np.expm1(np.log(strata) / tasks)
    share = _shares(number, sample.n, rng)
    log_s = location[:, None] + _log_quantile(mode, tail, np.minimum(chance / share, 1.0)) - np.log(_UNIT_S)
    rest = _counted(over[~slow], sample.count[~slow])
    curve = UpperOrderStatistics.from_sample(rest)
    rank = np.clip((chance - share) / (1 - share), 0.0, 1.0) * rest.total + 0.5
    fast = log_median[:, None] - np.log(_UNIT_S) + np.log(np.interp(rank, curve.rank, curve.duration_s))
    maximum_log_s: np.ndarray = np.where(chance < share, log_s, fast)
    return maximum_log_s


def _counted(log_value: np.ndarray, count: np.ndarray) -> CountedDurations:
    """Return a sample of values over a unit, counted in bins."""
    value_s = _UNIT_S * np.exp(np.clip(log_value, -13.0, 20.0))
    counts = np.zeros(BIN_COUNT, np.int64)
    np.add.at(counts, bin_index(np.rint(value_s * 1e9).astype(np.int64)), count)
    return CountedDurations.from_counts(counts, float(value_s.min()), float(value_s.max()))


def _variance(value: np.ndarray, weight: np.ndarray) -> float:
    centre = np.average(value, weights=weight)
    return float(np.average((value - centre) ** 2, weights=weight))


def _shares(number: np.ndarray, calls: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw each phase's share of slow calls, shape (p, parts), from its posterior.

    It is a beta distribution, with one draw of its mean and weight for each part (Gelman et al. 2013, 5.3).
    """
    n = calls.astype(np.float64)
    mean = float(number.sum() / n.sum()) * np.exp(_MEANS)[:, None]
    mean = np.minimum(mean, 0.9)
    slow, fast = np.ravel(mean * _WEIGHTS), np.ravel((1 - mean) * _WEIGHTS)
    chance = _likelihood(number, n, slow, fast) * slow / (slow + fast) ** 1.5
    place = rng.choice(len(chance), CASES, p=chance / chance.sum())
    a, b = slow[place] + number[:, None], fast[place] + (n - number)[:, None]
    shares: np.ndarray = np.clip(rng.beta(a, b), 1e-12, 1.0 - 1e-9)
    return shares


_MEANS = np.linspace(-1.2, 1.2, 17)
_WEIGHTS = np.exp(np.linspace(np.log(0.2), np.log(1e5), 33))
"""Phases of which the likelihood is computed."""


def _likelihood(number: np.ndarray, n: np.ndarray, slow: np.ndarray, fast: np.ndarray) -> np.ndarray:
    """Return likelihoods of beta-binomial distributions, relative to the largest: shape (k,)."""
    some = np.linspace(0, len(n) - 1, min(len(n), MOST_DENSE // 8)).astype(np.int64)
    pairs, often = np.unique(np.column_stack([number[some], n[some]]), axis=0, return_counts=True)
    x, m = pairs.T[:, :, None]
    log = often @ (special.betaln(slow + x, fast + m - x) - special.betaln(slow, fast))
    found: np.ndarray = np.exp(log - log.max())
    return found


def _log_quantile(mode: CountedDurations, tail: ParetoTail, chance: np.ndarray) -> np.ndarray:
    """Return the log of what a slow call exceeds with a probability.

    Below the threshold it follows from the calls, above it from the tails, one for each column.
    """
    curve = UpperOrderStatistics.from_sample(mode)
    found: np.ndarray = np.log(np.interp(chance * mode.total + 0.5, curve.rank, curve.duration_s))
    nodes = tail.nodes.thinned(chance.shape[1])
    edge = tail.above / tail.calls
    for place in range(chance.shape[1]):
        far = np.log(np.minimum(chance[:, place] / edge, 1.0))
        beyond_it = np.log(tail.threshold_s * nodes.only(place).exceeded_with(far)[:, 0])
        found[:, place] = np.where(far < 0, beyond_it, found[:, place])
    return found
