"""Test exchangeability: whether phase, task, node or time of a call matter.

A prediction that takes past and future calls as draws from one distribution is valid only if they do not. For
each factor a rank test gives a p-value, and a variance component the size of the effect: the share of the
variance of log duration between groups.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensembles.model.fields import Fields
from ensembles.model.levels import CERTAIN, FEWEST, FEWEST_IN_TIME, FEWEST_SLOW, MOST_SEEN
from ensembles.statistics import special
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_edges_s

MATTERS = 0.005
"""Share of the variance below which a dependence is irrelevant, however significant."""

_TIME_BLOCKS = 2 * FEWEST_IN_TIME
_PERMUTATIONS = round(1 / CERTAIN) - 1
"""As many as a p-value of `CERTAIN` needs."""

DEPTHS = (0.05, 0.01, 0.003, 0.001)
"""Shares of the slowest calls whose concentration in phases is tested, if they are 20 calls or more."""

SLOW_CALLS = "slow calls of a phase"


@dataclass(frozen=True, eq=False)
class CallAttributes:
    """Attributes of each call besides its duration."""

    durations_s: np.ndarray  # Seconds; shape (n,)
    phase: np.ndarray | None = None  # phase, rank, ordinal, node, start_ns: None: unknown; shape (n,)
    rank: np.ndarray | None = None  # shape (n,)
    ordinal: np.ndarray | None = None  # shape (n,)
    node: np.ndarray | None = None  # shape (n,)
    start_ns: np.ndarray | None = None  # shape (n,)

    def chosen(self, which: np.ndarray) -> CallAttributes:
        """Return the calls of a mask or of an array of positions."""
        columns = (self.phase, self.rank, self.ordinal, self.node, self.start_ns)
        return CallAttributes(
            self.durations_s[which], *(None if column is None else column[which] for column in columns)
        )


@dataclass(frozen=True)
class Factor(Fields):
    """Test of the dependence of durations on one attribute.

    Attributes
    ----------
    name : str
        ``phase``, ``slow calls of a phase``, ``rank``, ``node``, ``ordinal`` or ``time``.
    groups : int
        Number of groups.
    p_value : float
        Probability of differences of this size if groups do not differ.
    share : float
        Share of the variance of log duration between groups (intraclass correlation).
    """

    name: str
    groups: int
    p_value: float
    share: float

    def to_json(self) -> dict[str, Any]:
        """Return the fields, with the name of the attribute as ``by``."""
        return {"by" if name == "name" else name: value for name, value in super().to_json().items()}

    @property
    def breaks(self) -> bool:
        """Whether the dependence is significant and large enough to matter."""
        return self.p_value < CERTAIN and (self.share > MATTERS or self.name == SLOW_CALLS)


@dataclass(frozen=True)
class Exchangeability:
    """Factors on which the calls of an ensemble depend.

    Attributes
    ----------
    factors : tuple of Factor
        All factors that could be tested.
    effective_n : float
        Effective sample size for a mean: ``n / (1 + (m - 1) share)`` with m calls in a phase.
    """

    factors: tuple[Factor, ...]
    effective_n: float

    @property
    def broken_by(self) -> tuple[Factor, ...]:
        """Factors that matter, the strongest first."""
        return tuple(sorted((one for one in self.factors if one.breaks), key=lambda one: -one.share))

    @property
    def exchangeable(self) -> bool | None:
        """Whether no factor matters; None: there was nothing to test."""
        return not self.broken_by if self.factors else None

    def breaks(self, *names: str) -> bool:
        """Return whether one of the named factors matters."""
        return any(one.name in names for one in self.broken_by)


def check_exchangeability(
    sample: CountedDurations, calls: CallAttributes | None = None, seed: int = 0
) -> Exchangeability:
    """Test a sample for its phases, and calls for all known attributes."""
    rng = np.random.default_rng(seed)
    factors: list[Factor] = []
    share = 0.0
    if sample.phases_known and 1 < len(sample.n) < sample.total:
        factors += [by_phase(sample, rng), slow_calls_by_phase(sample, rng)]
        share = max(factors[0].share, 0.0)
    if calls is not None and len(calls.durations_s) > 2:
        factors += _along_columns(calls, sample.resolution_s, rng)
    mean_size = float((sample.n**2).sum() / sample.total) if sample.total else 1.0
    effective = sample.total / (1.0 + (mean_size - 1.0) * share)
    return Exchangeability(tuple(factors), effective)


def _along_columns(calls: CallAttributes, resolution_s: float, rng: np.random.Generator) -> list[Factor]:
    n = len(calls.durations_s)
    if n > MOST_SEEN:
        calls = calls.chosen(np.sort(rng.choice(n, MOST_SEEN, replace=False)))
    durations_s, place = np.unique(calls.durations_s, return_inverse=True)
    log_s = np.log(np.maximum(durations_s, max(0.5 * resolution_s, 1e-9)))
    once = np.ones(len(place), np.int64)
    groups = {name: getattr(calls, name) for name in ("rank", "node", "ordinal")}
    if calls.start_ns is not None:
        in_time = np.argsort(np.argsort(calls.start_ns, kind="stable"))
        groups["time"] = in_time * min(_TIME_BLOCKS, max(len(in_time) // 8, 1)) // len(in_time)
    factors = []
    for name, column in groups.items():
        if column is None:
            continue
        group = np.unique(column, return_inverse=True)[1].reshape(-1)
        size = np.bincount(group)
        if not 1 < len(size) < len(group):
            continue
        factors.append(_factor(name, group, place.reshape(-1), once, log_s, rng))
    return factors


def _factor(
    name: str,
    group: np.ndarray,
    value: np.ndarray,
    count: np.ndarray,
    log_s: np.ndarray,
    rng: np.random.Generator,
) -> Factor:
    """Test whether groups of calls differ, by the rank test of Kruskal and Wallis (1952).

    It is asymptotic, or by permutation for small groups. `value`, `count`: index of each entry in `log_s`,
    which increases, and its number of calls.
    """
    counts = np.bincount(value, count, len(log_s))
    n = float(counts.sum())
    scores = (np.cumsum(counts) - 0.5 * (counts - 1) - 0.5 * (n + 1))[value]
    size = np.bincount(group, count)
    variance, p_value = float(count @ scores**2) / max(n - 1, 1), 1.0

    def spread(of_calls: np.ndarray, group: np.ndarray, size: np.ndarray) -> float:
        return float((np.bincount(group, of_calls) ** 2 / size).sum()) / variance

    if variance > 0 and size.mean() >= FEWEST:
        p_value = float(special.chdtrc(len(size) - 1, spread(count * scores, group, size)))
    elif variance > 0:
        part = slice(None, None, max(1, int(n) // MOST_SEEN))
        calls = np.repeat(scores, count)[part]
        mine = np.unique(np.repeat(group, count)[part], return_inverse=True)[1].reshape(-1)
        found = spread(calls, mine, np.bincount(mine))
        shuffled = [spread(rng.permutation(calls), mine, np.bincount(mine)) for _ in range(_PERMUTATIONS)]
        p_value = float((1 + np.sum(np.array(shuffled) >= found)) / (_PERMUTATIONS + 1))
    beyond = (log_s - counts @ log_s / n)[value]
    between = float((np.bincount(group, count * beyond) ** 2 / size).sum())
    return Factor(name, len(size), p_value, _component(size, between, float(count @ beyond**2)))


def _component(size: np.ndarray, between: float, squares: float) -> float:
    """Return the intraclass correlation of a one-way layout (Fisher 1925) from sums of squares."""
    groups, n = len(size), size.sum()
    if groups < 2 or n <= groups or squares <= 0:
        return 0.0
    mean_size = (n - (size**2).sum() / n) / (groups - 1)
    between_mean, within_mean = between / (groups - 1), max(squares - between, 0.0) / (n - groups)
    if between_mean <= within_mean:
        return 0.0
    return float((between_mean - within_mean) / (between_mean + (mean_size - 1) * within_mean))


def by_phase(sample: CountedDurations, rng: np.random.Generator) -> Factor:
    """Test whether calls of different phases differ, from their bins."""
    group = sample.group
    edges = bin_edges_s()
    log_s = np.log(np.maximum(0.5 * (edges[:-1] + edges[1:]), 1e-9))
    return _factor("phase", group, sample.bin, sample.count, log_s, rng)


def slow_calls_by_phase(sample: CountedDurations, rng: np.random.Generator) -> Factor:
    """Test whether the slowest calls concentrate in some phases, at several depths.

    At each depth, the statistic is the variation of the number of slow calls over phases, compared with draws
    without replacement. The p-value is the least one times the number of depths (Bonferroni), and the share
    is that of the variance of the indicator of a slow call. At 5 % it must matter; the rare calls beyond are
    what the slowest of N is made of, however small their share of the variance.
    """
    tested = []
    for depth in DEPTHS:
        if depth == DEPTHS[0] or depth * sample.total >= FEWEST_SLOW:
            p_value, share = _concentration(sample, depth, rng)
            tested.append((1.0 if depth == DEPTHS[0] and share <= MATTERS else p_value, share))
    p_value, share = min(tested, key=lambda one: (one[0], -one[1]))
    return Factor(SLOW_CALLS, len(sample.n), min(p_value * len(tested), 1.0), share)


def _concentration(sample: CountedDurations, depth: float, rng: np.random.Generator) -> tuple[float, float]:
    """Return the p-value, and the share of the variance, of the slowest calls by phase."""
    longer = np.cumsum(sample.counts[::-1])[::-1]
    first = int(np.argmin(np.abs(longer - max(depth * sample.total, 1.0))))
    group = sample.group
    slow = np.bincount(group, sample.count * (sample.bin >= first), minlength=len(sample.n))
    total = int(slow.sum())
    size = sample.n.astype(np.float64)
    if not 0 < total < sample.total:
        return 1.0, 0.0
    most = 500
    part = np.arange(len(size)) if len(size) <= most else np.sort(rng.choice(len(size), most, replace=False))
    expected = size[part] * slow[part].sum() / size[part].sum()
    expected = np.maximum(expected, 1e-12)
    found = float(((slow[part] - expected) ** 2 / expected).sum())
    drawn = rng.multivariate_hypergeometric(
        sample.n[part], int(slow[part].sum()), size=_PERMUTATIONS, method="marginals"
    )
    chance = ((drawn - expected) ** 2 / expected).sum(1)
    # A scaled chi-square with the mean and variance of the permutations extrapolates their tail.
    scale = chance.var() / (2 * chance.mean())
    p_value = float(special.chdtrc(chance.mean() / scale, found / scale)) if scale > 0 else 1.0
    rate = total / sample.total
    squares = sample.total * rate * (1 - rate)
    return p_value, _component(size, float(((slow - size * rate) ** 2 / size).sum()), squares)
