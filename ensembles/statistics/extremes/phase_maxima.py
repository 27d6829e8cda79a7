"""The slowest of N calls in a new phase, from the slowest calls of past phases.

Calls of a phase are dependent, so that a phase is one observation, however many calls it has. Its slowest
call is a draw from ``F_phase(t)**n``, and draws of different phases are exchangeable. If N is the number of
calls of a phase, nothing else is needed. For greater N, the slowest call of each phase is extrapolated along
the tail of the phase: from the exceedance probability q to q n / N. For smaller N, it is replaced by the
slowest of N calls drawn from the phase without replacement. The result is a sample of the slowest of N calls
in phases; a new phase is one more observation of it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from ensembles.model.levels import (
    CERTAIN,
    ENOUGH,
    FEWEST_ALONE,
    LEAST_LOG_S,
    MOST_DENSE,
    MOST_SEEN,
    SIGNIFICANT,
)
from ensembles.statistics import special
from ensembles.statistics.extremes.pareto_posterior import Excesses, Nodes, kinds_posterior
from ensembles.statistics.extremes.per_phase_exceedance import CASES, maximum_by_share
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_edges_s

MOST_PHASES = 2 * MOST_DENSE
"""Most phases that are used; of more, evenly spaced ones."""

_MOST_OUTLIERS = 1 / 3
"""Part of the phases that may be left out."""

_MORE = 0.05
"""Log ratio of N to the calls of a phase up to which the slowest call is used without extrapolation."""

_PARTS = 16
_TAIL_SHARE, _TAIL_LEAST, _TAIL_MOST = 0.15, 4, 64
_CLASSES = 160


@dataclass(frozen=True, eq=False)
class PhaseMaxima:
    """The slowest of N calls in each past phase."""

    # float64, shape (p, a): Log durations of the slowest of N calls in each phase, in ``a`` equally probable
    # cases
    log_s: np.ndarray
    effective: float  # Effective number of phases: fewer than p if neighbours in time resemble each other
    # Whether some were extrapolated along the tails of their phases, by at least a tenth of their calls
    carried: bool
    log_median_s: np.ndarray  # float64, shape (p,): Logarithms of the medians of phases
    # Share of the variance of cases that the variance of phases does not contain: a phase of r times N calls
    # averages over r maxima
    within_share: float = 1.0
    # float64, shape (p,) or None: Means of the slowest of N calls of each phase, in seconds; None: those of
    # the cases. Cases are too few for a mean where phases have many more calls than N, of which few are very
    # long.
    means_s: np.ndarray | None = None

    def quantiles_s(self, levels: np.ndarray) -> np.ndarray:
        """Return quantiles for a new phase, in seconds.

        They are those of Student's t for one more value of log maxima, or of order statistics where these
        contradict a normal distribution (docs/reference/methods/tail.md, Phases are the sample).
        """
        levels = np.asarray(levels, dtype=np.float64)
        student = self._student(levels)
        usual = self._without_slow_phases
        if usual is not None:
            student = np.where(levels <= 0.5, np.maximum(student, usual._student(levels)), student)
        if self.normal:
            quantiles_s: np.ndarray = np.exp(student)
            return quantiles_s
        values = np.sort(self.log_s, axis=None)
        # For fewer effective phases it misses a fortieth instead of a twentieth on each side at most.
        p = max(self._count, min(len(self.log_s), ENOUGH))
        places = (np.arange(len(values)) + 0.5) / len(values)
        found = np.interp((levels * (p + 1) - 0.5) / p, places, values)
        outside = np.minimum(levels, 1 - levels) * (p + 1) < 1 - 1e-9
        wider = np.where(levels < 0.5, np.minimum(found, student), np.maximum(found, student))
        ordered: np.ndarray = np.exp(np.where(outside, wider, found))
        return ordered

    def _student(self, levels: np.ndarray) -> np.ndarray:
        """Return quantiles of one more log maximum, if these are normal."""
        between, within, effective = self._variances
        if between + within <= 0:
            return np.full(len(levels), self.log_s.mean())
        error = np.sqrt(between + within + between / effective)
        found: np.ndarray = self.log_s.mean() + error * special.stdtrit(self._freedom, levels)
        return found

    @property
    def _without_slow_phases(self) -> PhaseMaxima | None:
        """The same without slow outliers, by the test of Grubbs, for the lower end; None: there are none."""
        mean = self.log_s.mean(1)
        order = np.argsort(mean)
        kept = len(mean)
        while kept > 3 and len(mean) - kept < int(_MOST_OUTLIERS * len(mean)):
            values = mean[order[:kept]]
            sd = float(values.std(ddof=1))
            t = float(special.stdtrit(kept - 2.0, np.array([1 - CERTAIN / kept]))[0])
            limit = (kept - 1) / np.sqrt(kept) * np.sqrt(t * t / (kept - 2 + t * t))
            if sd <= 0 or values[-1] - values.mean() <= limit * sd:
                break
            kept -= 1
        if kept == len(mean):
            return None
        usual = np.sort(order[:kept])
        return replace(self, log_s=self.log_s[usual], effective=min(self.effective, float(kept)))

    @property
    def _variances(self) -> tuple[float, float, float]:
        """Variance between and within phases of log maxima, and the effective number of phases used."""
        p = len(self.log_s)
        effective = min(max(self.effective, p / 3, 2.0), p)
        between = float(self.log_s.mean(1).var(ddof=1)) * (1 - 1 / p) / (1 - 1 / effective)
        return between, self.within_share * float(self.log_s.var(1).mean()), effective

    @property
    def _freedom(self) -> float:
        """Degrees of freedom of the variance: p - 1 between phases, and many within (Satterthwaite 1946)."""
        between, within, effective = self._variances
        ratio = (between + within) / between if between > 1e-12 * within else 1e12
        return float(min((effective - 1) * ratio**2, 1e9))

    @property
    def _count(self) -> float:
        """Effective number of independent maxima: of phases that are larger than N, more than phases."""
        return min(self._freedom + 1, self.log_s.size) if self.within_share < 1 else self.effective

    @property
    def normal(self) -> bool:
        """Whether the log maxima do not contradict a normal distribution."""
        if self._count <= ENOUGH:
            return True
        cases = np.arange(len(self.log_s))
        one_each = self.log_s[cases, 7 * cases % self.log_s.shape[1]]
        values = self.log_s.ravel() if self._count > 2 * len(cases) else one_each
        if np.ptp(values) <= 0:
            return True
        if len(values) > 4 * MOST_DENSE:  # beyond 5,000 the p-value is not calibrated
            values = np.random.default_rng(0).choice(values, 4 * MOST_DENSE, replace=False)
        return shapiro_francia_p(values) >= SIGNIFICANT

    def mean_s(self) -> float:
        """Return the mean over phases, in seconds."""
        return float((np.exp(self.log_s) if self.means_s is None else self.means_s).mean())


def phase_maxima(sample: CountedDurations, tasks: int) -> PhaseMaxima:
    """Compute the slowest of ``tasks`` calls in each phase."""
    sample = of_similar_size(sample, tasks)
    parts, means_s = [], None
    fewer = sample.n > tasks
    if fewer.any():
        larger = sample.chosen(fewer)
        parts.append(_of_fewer(larger, tasks))
        means_s = np.empty(len(sample.n))
        means_s[fewer] = mean_of_maxima_s(larger, tasks)
    if not fewer.all():
        parts.append(_of_more(sample.chosen(~fewer), tasks))
    width = max(part.shape[1] for part in parts)
    log_s = np.empty((len(sample.n), width))
    for part, mine in zip(parts, [fewer, ~fewer] if fewer.any() else [~fewer], strict=False):
        log_s[mine] = part[:, np.arange(width) * part.shape[1] // width]
    if means_s is not None:
        means_s[~fewer] = np.exp(log_s[~fewer]).mean(1)
    return PhaseMaxima(
        log_s,
        effective_number(np.median(log_s, axis=1)),
        bool((sample.n * 1.1 < tasks).any()),
        _log_median_s(sample),
        1.0 - min(tasks / float(np.median(sample.n)), 1.0) if fewer.any() else 1.0,
        means_s,
    )


def of_similar_size(sample: CountedDurations, tasks: int) -> CountedDurations:
    """Return at most ``MOST_PHASES`` phases, without very small ones.

    Phases with less than a sixteenth of the calls asked for are dropped, if enough others remain.
    """
    large = sample.n * 16 >= min(tasks, int(sample.n.max()))
    if not large.all() and large.sum() >= max(min(20, len(large) // 2), 2):
        sample = sample.chosen(large)
    if len(sample.n) > MOST_PHASES:
        sample = sample.chosen(np.linspace(0, len(sample.n) - 1, MOST_PHASES).astype(np.int64))
    return sample


def drawn_maxima(
    sample: CountedDurations, tasks: int | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray]:
    """Draw the slowest of `tasks` calls from each phase of a usual number of calls, or take that of all.

    The numbers of calls, and the logarithms in seconds of the slowest of them, are in the order of phases.
    """
    typical = float(np.median(sample.n))
    if tasks is None or tasks >= typical:
        usual = sample.chosen(sample.n >= 0.5 * typical)
        return usual.n, np.log(np.maximum(usual.max_s, LEAST_LOG_S))
    large = sample.chosen(sample.n >= tasks)
    if not len(large.n):
        return large.n, np.zeros(0)
    rank = _longest_drawn(large.n[:, None], tasks, rng.random((len(large.n), 1)))
    return np.full(len(large.n), tasks), longest_log_s(large, rank)[:, 0]


def shapiro_francia_p(values: np.ndarray) -> float:
    """Compute the p-value of the test that 5 to 5,000 values are from a normal distribution.

    The logarithm of 1 minus the squared correlation is nearly normal (P. Royston, "A toolkit for testing for
    non-normality", The Statistician 42, 1993). The import of `scipy.stats` takes longer than most reports.
    """
    n = len(values)
    scores = special.ndtri((np.arange(1, n + 1) - 0.375) / (n + 0.25))
    squared = np.corrcoef(np.sort(values), scores)[0, 1] ** 2
    u, v = np.log(n), np.log(np.log(n))
    location, scale = 1.0521 * (v - u) - 1.2725, 1.0308 - 0.26758 * (v + 2 / u)
    return float(special.ndtr((location - np.log(max(1 - squared, 1e-300))) / scale))


def effective_number(values: np.ndarray) -> float:
    """Return the effective number of independent values of a series.

    It is ``p / (1 + 2 sum of autocorrelations)`` of normal scores, which are summed while pairs are positive
    (Geyer 1992). Series whose first autocorrelation is not significant count as independent.

    Examples
    --------
    >>> values = np.random.default_rng(1).normal(size=200)
    >>> effective_number(values), effective_number(np.cumsum(values)) < 20
    (200.0, True)
    """
    p = len(values)
    if p < FEWEST_ALONE or np.ptp(values) == 0:
        return float(p)
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    scores = special.ndtri((np.cumsum(count) - 0.5 * count) / p)[place.reshape(-1)]
    scores -= scores.mean()
    spectrum = np.abs(np.fft.rfft(scores, 2 * p)) ** 2
    correlation = np.fft.irfft(spectrum)[:p]
    correlation /= correlation[0]
    if correlation[1] * np.sqrt(p) < 2.0:
        return float(p)
    pairs = correlation[: p - p % 2].reshape(-1, 2).sum(1)
    end = int(np.argmax(pairs <= 0)) if (pairs <= 0).any() else len(pairs)
    pairs = np.minimum.accumulate(pairs[:end])
    return float(p / max(2 * pairs.sum() - 1, 1.0))


def _of_fewer(sample: CountedDurations, tasks: int) -> np.ndarray:
    """Return the slowest of ``tasks`` calls drawn from each phase: log seconds, shape (p, parts)."""
    levels = (np.arange(_PARTS) + 0.5) / _PARTS
    return longest_log_s(sample, _longest_drawn(sample.n[:, None], tasks, levels[None]))


def _longest_drawn(calls: np.ndarray, tasks: int, level: np.ndarray) -> np.ndarray:
    """Return the rank, among n calls, of the longest of N drawn without replacement: a quantile of it.

    The rank is one more than the largest r of which the r longest calls are all left out with a probability
    of at least the level.
    """
    n = np.broadcast_to(np.asarray(calls, dtype=np.float64), np.broadcast_shapes(calls.shape, level.shape))
    low, high = np.zeros(n.shape), n - tasks + 1
    while (high - low > 1).any():
        r = np.floor(0.5 * (low + high))
        left_out = log_left_out(n, tasks, r) >= np.log(level)
        low, high = np.where(left_out, r, low), np.where(left_out, high, r)
    rank: np.ndarray = low + 1.0
    return rank


def longest_log_s(sample: CountedDurations, rank: np.ndarray) -> np.ndarray:
    """Return the log of the rank-th longest call of each phase, shape (p, a), with bins spread evenly."""
    edges_s = np.maximum(bin_edges_s(), LEAST_LOG_S)
    phase = sample.group
    total = np.cumsum(sample.count)
    above = (total[sample.begin[1:] - 1][phase] - total).astype(np.float64)
    # One rising key for all phases: how many calls are longer, phase by phase from the last entry to the
    # first.
    stride = float(sample.n.max() + 1)
    key = (phase * stride + above)[::-1]
    order = np.argsort(key, kind="stable")
    by_phase = np.arange(len(rank))[:, None] * stride + rank - 0.5
    entry = (len(key) - 1 - order)[np.searchsorted(key[order], by_phase, side="right") - 1]
    inside = (rank - 0.5 - above[entry]) / sample.count[entry]
    low_s, high_s = edges_s[sample.bin[entry]], edges_s[sample.bin[entry] + 1]
    # A tick of the clock stands for all durations that are nearest to it.
    beside_s = 0.5 * np.maximum(sample.resolution_s - (high_s - low_s), 0.0)
    low, high = np.log(np.maximum(low_s - beside_s, LEAST_LOG_S)), np.log(high_s + beside_s)
    value = high - np.clip(inside, 0.0, 1.0) * (high - low)
    longest = np.log(np.maximum(sample.max_s, LEAST_LOG_S))[:, None]
    shortest = np.log(np.maximum(sample.min_s, LEAST_LOG_S))[:, None]
    log_s: np.ndarray = np.where(rank <= 1.0, longest, np.clip(value, shortest, longest))
    return log_s


def _log_median_s(sample: CountedDurations) -> np.ndarray:
    return longest_log_s(sample, 0.5 * (sample.n[:, None] + 1.0))[:, 0]


def _of_more(sample: CountedDurations, tasks: int) -> np.ndarray:
    """Return the slowest call of each phase, extrapolated along its tail: log seconds, shape (p, nodes)."""
    longest: np.ndarray = np.log(np.maximum(sample.max_s, LEAST_LOG_S))
    log_more = np.log(tasks / sample.n.astype(np.float64))
    if not (log_more > _MORE).any():
        return longest[:, None]
    carried = maximum_by_share(sample, _log_median_s(sample), tasks)
    if carried is None:
        tails = PhaseTails.from_sample(sample)
        carried = longest[:, None] if tails is None else tails.carried(longest, log_more)
    # A phase that has nearly as many calls needs no model.
    return np.where(log_more[:, None] > _MORE, carried, longest[:, None])


@dataclass(frozen=True, eq=False)
class PhaseTails:
    """Tails of phases, which have different thresholds and scales, and one shape."""

    log_threshold: np.ndarray  # float64, shape (p,): Logarithms of seconds
    # float64, shape (p,): Mean excess of log duration of each phase, relative to that of all phases
    scale: np.ndarray
    doubt: np.ndarray  # float64, shape (p,): Standard deviation of its logarithm
    nodes: Nodes  # Tails of the scaled excesses

    @classmethod
    def from_sample(cls, sample: CountedDurations) -> PhaseTails | None:
        """Fit the tails of phases; None: the longest calls of phases do not differ."""
        above = np.minimum(np.clip(np.rint(_TAIL_SHARE * sample.n), _TAIL_LEAST, _TAIL_MOST), sample.n - 1)
        some = above >= 2
        if not some.any():
            return None
        most = int(above.max())
        # The longest calls of each phase, (p, most + 1); those beyond the tail of a phase are not used.
        ranks = np.minimum(np.arange(1.0, most + 2)[None], above[:, None] + 1)
        log_s = longest_log_s(sample, ranks)
        log_threshold = log_s[np.arange(len(above)), np.maximum(above, 0).astype(int)]
        excess = log_s[:, :-1] - log_threshold[:, None]
        mine = (np.arange(most)[None] < above[:, None]) & some[:, None]
        mean = np.where(some, (excess * mine).sum(1) / np.maximum(above, 1), 0.0)
        if not (mean > 0).any():
            return None
        square = np.where(some, (mine * (excess - mean[:, None]) ** 2).sum(1) / np.maximum(above - 1, 1), 0.0)
        scale, doubt = _pooled_scale(mean, above, float(square.sum() / (mean**2).sum()))
        values = (excess / scale[:, None])[mine]
        return cls(log_threshold, scale, doubt, _shape_of(values[values > 0]))

    def carried(self, log_s: np.ndarray, log_more: np.ndarray) -> np.ndarray:
        """Return log durations whose exceedance probability is lower by exp(log_more), shape (p, nodes)."""
        # Posterior means vary less among phases than the scales that they estimate; draws do not.
        draws = np.random.default_rng(0).standard_normal((len(log_s), len(self.nodes.weight)))
        out = np.empty(draws.shape)
        for place in range(len(self.nodes.weight)):
            one = self.nodes.only(place)
            scale = self.scale * np.exp(self.doubt * draws[:, place])
            start = np.maximum(log_s - self.log_threshold, 0.0) / scale
            # A bounded tail may end below the slowest call; then hardly anything is added.
            log_chance = np.maximum(one.log_survival(np.exp(np.minimum(start, 600.0)))[:, 0], -30.0)
            end = np.log(one.exceeded_with(log_chance - log_more)[:, 0])
            out[:, place] = log_s + np.maximum(end - start, 0.0) * scale
        return out


def _pooled_scale(mean: np.ndarray, above: np.ndarray, variation: float) -> tuple[np.ndarray, np.ndarray]:
    """Shrink the scales of phases towards the common one, with their uncertainty.

    Empirical Bayes on the logarithm, whose variance is about the squared coefficient of variation of the
    excesses over their number. The scales are relative to the common one.
    """
    least = mean[mean > 0].min()
    log_mean = np.log(np.maximum(mean, 0.1 * least))
    noise = max(variation, 1e-6) / np.maximum(above, 1)
    centre = np.average(log_mean, weights=above + 1e-9)
    between = max(float(np.average((log_mean - centre) ** 2 - noise, weights=above + 1e-9)), 0.0)
    weight = between / (between + noise)
    return np.exp(weight * (log_mean - centre)), np.sqrt(weight * noise)


def _shape_of(log_excess: np.ndarray) -> Nodes:
    """Compute the posterior of the common tail from scaled excesses of all phases, counted in classes."""
    places = np.unique(np.quantile(log_excess, np.linspace(0, 1, _CLASSES)))
    places[0], places[-1] = 0.0, places[-1] * (1 + 1e-9)
    count = np.histogram(log_excess, places)[0]
    used = count > 0
    empty = np.zeros(0)
    low, high, count = places[:-1][used], places[1:][used], count[used]
    raw = Excesses(empty, np.expm1(low), np.expm1(high), count)
    return kinds_posterior(raw, Excesses(empty, low, high, count), 0.0).thinned(CASES)


_LARGE = 2 * MOST_SEEN
"""From this number of calls on, Stirling's formula is exact enough, and differences of log Γ are not."""


def mean_of_maxima_s(sample: CountedDurations, tasks: int) -> np.ndarray:
    """Compute the mean of the slowest of N calls drawn without replacement, for each phase.

    Few very long calls decide it, whose chance of being drawn is far smaller than the step of any set of
    equally probable cases. So it is a sum over all calls of a phase.
    """
    phase = sample.group
    n = sample.n[phase].astype(np.float64)
    before = np.cumsum(sample.count) - sample.count
    first = sample.begin[:-1]
    above = n - (before - before[first][phase]) - sample.count
    edges = bin_edges_s()
    longest_s, shortest_s = sample.max_s[phase], sample.min_s[phase]
    middle_s = 0.5 * (
        np.clip(edges[sample.bin], shortest_s, longest_s)
        + np.clip(edges[sample.bin + 1], shortest_s, longest_s)
    )
    # The longest call of a phase is one of its last bin, and is known.
    least = np.maximum(above, 1.0)
    left_out = np.exp(log_left_out(n, tasks, least)) - np.exp(log_left_out(n, tasks, above + sample.count))
    top_s = sample.max_s * -np.expm1(log_left_out(sample.n.astype(np.float64), tasks, np.ones(len(sample.n))))
    found: np.ndarray = top_s + np.bincount(phase, left_out * middle_s, len(sample.n))
    return found


def log_left_out(n: np.ndarray, tasks: int, longest: np.ndarray) -> np.ndarray:
    """Return the logarithm of ``(n - r)! (n - N)! / ((n - r - N)! n!)``; -inf: some must be drawn."""
    rest, left = n - tasks, n - tasks - longest
    possible = left >= 0
    with np.errstate(divide="ignore", invalid="ignore"):
        exact = (
            special.gammaln(n - longest + 1)
            - special.gammaln(n + 1)
            + special.gammaln(rest + 1)
            - special.gammaln(np.maximum(left, 0.0) + 1)
        )
        # Log Γ of large numbers has no digits left for the chance of a single call.
        stirling = (
            longest * np.log1p(-tasks / n)
            + (n - longest + 0.5) * np.log1p(-longest / n)
            - (left + 0.5) * np.log1p(-longest / rest)
        )
    found = np.where((n >= _LARGE) & (left >= 0.01 * n), stirling, exact)
    return np.where(possible, np.minimum(found, 0.0), -np.inf)
