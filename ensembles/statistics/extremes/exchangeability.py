"""Are calls exchangeable: does it matter which phase, task, node or moment a call belongs to?

Statements about new calls that take the old ones as draws of one distribution hold only if it does not. For
each of these a rank test says whether it matters, and a variance component how much: the share of the
variance of log duration that lies between the groups."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import bin_edges_s

SIGNIFICANT = 0.01
"""Chance of a false alarm of each test."""

MATTERS = 0.005
"""Share of the variance below which a difference makes none, however sure it is."""

_MOST_CALLS = 50_000
_MOST_IN_TIME = 500_000
_TIME_BLOCKS = 32
_PERMUTATIONS = 99
_TAIL_SHARE = 0.05


@dataclass(frozen=True, eq=False)
class CallAttributes:
    """What is known of each call besides its duration; arrays of shape (n,), or None."""

    durations_s: np.ndarray
    phase: np.ndarray | None = None
    rank: np.ndarray | None = None
    ordinal: np.ndarray | None = None
    node: np.ndarray | None = None
    start_ns: np.ndarray | None = None

    def chosen(self, which: np.ndarray) -> CallAttributes:
        """Some of the calls."""
        columns = (self.phase, self.rank, self.ordinal, self.node, self.start_ns)
        return CallAttributes(
            self.durations_s[which], *(None if column is None else column[which] for column in columns)
        )


@dataclass(frozen=True)
class Factor:
    """Whether durations depend on what a call belongs to.

    Attributes
    ----------
    name : str
        ``phase``, ``slow calls of a phase``, ``rank``, ``node``, ``ordinal`` or ``time``.
    groups : int
    p_value : float
        Chance of differences as large as these among groups that do not differ.
    share : float
        Share of the variance of log duration that lies between groups (intraclass correlation).
    """

    name: str
    groups: int
    p_value: float
    share: float

    @property
    def breaks(self) -> bool:
        """It matters."""
        return self.p_value < SIGNIFICANT and self.share > MATTERS


@dataclass(frozen=True)
class Exchangeability:
    """What the calls of an ensemble depend on.

    Attributes
    ----------
    factors : tuple of Factor
        All that could be tested.
    effective_n : float
        How many independent calls they are worth for an average: ``n / (1 + (m - 1) share)`` with m calls in
        a phase.
    extremal_index : float or None
        One over the mean size of the clusters, in time, in which slow calls come; None: no times are known.
    """

    factors: tuple[Factor, ...]
    effective_n: float
    extremal_index: float | None

    @property
    def broken_by(self) -> tuple[Factor, ...]:
        """What matters, the most first."""
        return tuple(sorted((one for one in self.factors if one.breaks), key=lambda one: -one.share))

    @property
    def exchangeable(self) -> bool | None:
        """False: something matters; None: there was nothing to test."""
        return not self.broken_by if self.factors else None

    def breaks(self, *names: str) -> bool:
        """One of these matters."""
        return any(one.name in names for one in self.broken_by)

    def to_json(self) -> list[dict[str, Any]]:
        """The factors that matter."""
        return [
            {"by": one.name, "p_value": one.p_value, "share": one.share, "groups": one.groups}
            for one in self.broken_by
        ]


def check_exchangeability(
    sample: CountedDurations, calls: CallAttributes | None = None, seed: int = 0
) -> Exchangeability:
    """Test a sample along its phases, and calls along all that is known of them.

    Parameters
    ----------
    sample : Sample
    calls : Calls, optional
        Of more than 50,000 calls, so many that are drawn at random are looked at; for the extremal index,
        of more than 500,000 those in the middle of the time.
    """
    rng = np.random.default_rng(seed)
    factors: list[Factor] = []
    share = 0.0
    if sample.phases_known and 1 < len(sample.n) < sample.total:
        factors += [by_phase(sample, rng), slow_calls_by_phase(sample, rng)]
        share = max(factors[0].share, 0.0)
    index = None
    if calls is not None and len(calls.durations_s) > 2:
        if calls.start_ns is not None:
            some = _in_the_middle(calls.start_ns, rng)
            order = np.argsort(calls.start_ns[some], kind="stable")
            index = extremal_index(calls.durations_s[some][order])
        factors += _along_columns(calls, sample.resolution_s, rng)
    mean_size = float((sample.n**2).sum() / sample.total) if sample.total else 1.0
    effective = sample.total / (1.0 + (mean_size - 1.0) * share)
    return Exchangeability(tuple(factors), effective, index)


def _in_the_middle(start_ns: np.ndarray, rng: np.random.Generator) -> np.ndarray | slice:
    """Calls that follow one another in time: all of them, or of very many some in the middle."""
    if len(start_ns) <= _MOST_IN_TIME:
        return slice(None)
    part = np.sort(start_ns[rng.integers(0, len(start_ns), 10_000)])
    half = int(5_000 * _MOST_IN_TIME / len(start_ns))
    return np.flatnonzero((start_ns >= part[5_000 - half]) & (start_ns <= part[5_000 + half - 1]))


def _along_columns(calls: CallAttributes, resolution_s: float, rng: np.random.Generator) -> list[Factor]:
    n = len(calls.durations_s)
    if n > _MOST_CALLS:
        calls = calls.chosen(np.sort(rng.choice(n, _MOST_CALLS, replace=False)))
    _, place, count = np.unique(calls.durations_s, return_inverse=True, return_counts=True)
    scores = (np.cumsum(count) - 0.5 * (count - 1))[place.reshape(-1)]
    log_s = np.log(np.maximum(calls.durations_s, max(0.5 * resolution_s, 1e-9)))
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
        p_value = _rank_test(scores, group, rng)
        factors.append(Factor(name, len(size), p_value, _share(log_s, group)))
    return factors


def _rank_test(scores: np.ndarray, group: np.ndarray, rng: np.random.Generator) -> float:
    """Chance of the spread of mean ranks under exchangeability (Kruskal and Wallis 1952): by their law for
    large groups, by permutation for small ones."""
    size = np.bincount(group)
    centred = scores - scores.mean()
    variance = float((centred**2).sum()) / (len(scores) - 1)
    if variance == 0:
        return 1.0

    def spread(values: np.ndarray) -> float:
        return float((np.bincount(group, values) ** 2 / size).sum()) / variance

    found = spread(centred)
    if size.mean() >= 5:
        return _chi_square_exceeds(found, len(size) - 1)
    shuffled = np.array([spread(rng.permutation(centred)) for _ in range(_PERMUTATIONS)])
    return float((1 + np.sum(shuffled >= found)) / (_PERMUTATIONS + 1))


def _chi_square_exceeds(value: float, freedom: float) -> float:
    from scipy.special import chdtrc

    return float(chdtrc(freedom, value))


def _share(log_s: np.ndarray, group: np.ndarray) -> float:
    size = np.bincount(group).astype(np.float64)
    total = np.bincount(group, log_s - log_s.mean())
    squares = float(((log_s - log_s.mean()) ** 2).sum())
    return _component(size, float((total**2 / size).sum()), squares)


def _component(size: np.ndarray, between: float, squares: float) -> float:
    """Intraclass correlation of a one-way layout (Fisher 1925) from sums of squares."""
    groups, n = len(size), size.sum()
    if groups < 2 or n <= groups or squares <= 0:
        return 0.0
    mean_size = (n - (size**2).sum() / n) / (groups - 1)
    between_mean, within_mean = between / (groups - 1), max(squares - between, 0.0) / (n - groups)
    if between_mean <= within_mean:
        return 0.0
    return float((between_mean - within_mean) / (between_mean + (mean_size - 1) * within_mean))


def by_phase(sample: CountedDurations, rng: np.random.Generator) -> Factor:
    """Whether calls of different phases differ, from their bins."""
    counts = sample.counts
    group = np.repeat(np.arange(len(sample.n)), np.diff(sample.begin))
    midrank = np.cumsum(counts) - 0.5 * (counts - 1)
    centre = 0.5 * (sample.total + 1)
    scores = midrank[sample.bin] - centre
    variance = float(sample.count @ scores**2) / max(sample.total - 1, 1)
    edges = bin_edges_s()
    log_s = np.log(np.maximum(0.5 * (edges[:-1] + edges[1:]), 1e-9))[sample.bin]
    log_s = log_s - np.average(log_s, weights=sample.count)
    size = sample.n.astype(np.float64)
    p_value = 1.0
    if variance > 0:
        if size.mean() >= 5:
            spread = float((np.bincount(group, sample.count * scores) ** 2 / size).sum()) / variance
            p_value = _chi_square_exceeds(spread, len(size) - 1)
        else:
            part = slice(None, None, max(1, sample.total // _MOST_CALLS))
            p_value = _rank_test(
                np.repeat(scores, sample.count)[part],
                np.unique(np.repeat(group, sample.count)[part], return_inverse=True)[1],
                rng,
            )
    between = float((np.bincount(group, sample.count * log_s) ** 2 / size).sum())
    share = _component(size, between, float(sample.count @ log_s**2))
    return Factor("phase", len(size), p_value, share)


def slow_calls_by_phase(sample: CountedDurations, rng: np.random.Generator) -> Factor:
    """Whether the slowest twentieth of the calls gathers in some phases: the spread of their number over
    phases, against draws without replacement. The share is that of the variance of "is one of them"."""
    longer = np.cumsum(sample.counts[::-1])[::-1]
    wanted = max(_TAIL_SHARE * sample.total, 1.0)
    first = int(np.argmin(np.abs(longer - wanted)))
    group = np.repeat(np.arange(len(sample.n)), np.diff(sample.begin))
    slow = np.bincount(group, sample.count * (sample.bin >= first), minlength=len(sample.n))
    total = int(slow.sum())
    size = sample.n.astype(np.float64)
    if not 0 < total < sample.total:
        return Factor("slow calls of a phase", len(size), 1.0, 0.0)
    most = 500
    part = np.arange(len(size)) if len(size) <= most else np.sort(rng.choice(len(size), most, replace=False))
    expected = size[part] * slow[part].sum() / size[part].sum()
    expected = np.maximum(expected, 1e-12)
    found = float(((slow[part] - expected) ** 2 / expected).sum())
    drawn = rng.multivariate_hypergeometric(
        sample.n[part], int(slow[part].sum()), size=_PERMUTATIONS, method="marginals"
    )
    chance = ((drawn - expected) ** 2 / expected).sum(1)
    # The tail of the permutations is continued by a scaled chi-square with their mean and variance.
    scale = chance.var() / (2 * chance.mean())
    p_value = _chi_square_exceeds(found / scale, chance.mean() / scale) if scale > 0 else 1.0
    rate = total / sample.total
    squares = sample.total * rate * (1 - rate)
    share = _component(size, float(((slow - size * rate) ** 2 / size).sum()), squares)
    return Factor("slow calls of a phase", len(size), p_value, share)


def extremal_index(durations_s: np.ndarray, share: float = 0.05) -> float | None:
    """The extremal index by the times between slow calls (Ferro and Segers 2003).

    Parameters
    ----------
    durations_s : ndarray of float64, shape (n,)
        In the order of time.
    share : float
        What share of the calls is taken as slow.

    Returns
    -------
    float or None
        1: slow calls come one by one; 0.1: in clusters of ten. None: fewer than 20 slow calls.
    """
    longest = np.quantile(durations_s, 1.0 - share)
    place = np.flatnonzero(durations_s > longest)
    if len(place) < 20:
        return None
    gap = np.diff(place).astype(np.float64)
    if gap.max() > 2:
        top, bottom = 2 * (gap - 1).sum() ** 2, len(gap) * ((gap - 1) * (gap - 2)).sum()
    else:
        top, bottom = 2 * gap.sum() ** 2, len(gap) * (gap**2).sum()
    return float(min(top / bottom, 1.0)) if bottom > 0 else 1.0
