"""Modes of all groups together, and the parts of a distribution that can move: modes and the tail.

The modes divide log duration, and are made of all calls regardless of their group. A permutation of groups
does not change them, so that permutation tests remain exact. Durations of a run may all be longer or shorter
than those of the next one: runs are aligned by this factor first.

Each part is a score of single calls. Scores add up over calls, blocks and runs: the value of a group is the
sum of its scores over the number of calls that count (a ratio estimate), for blocks of any size.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from ensembles.model.levels import LITTLE, WORTH_NAMING
from ensembles.summaries.bins import BIN_BITS, BIN_COUNT, RELATIVE_WIDTH, bin_edges_s, bin_index, bin_low_ns

DEEPEST_SADDLE = 0.6
"""Between two modes the density falls below this part of the lower mode's height."""
LEAST_Z = 4.0
"""Least depth of this minimum in standard errors."""

_LEAST_BANDWIDTH = 0.05  # octaves: 3.5 %, about a bin
_STEPS = 1 << BIN_BITS  # an octave: about a bin
_MOST_MODES = 8


@dataclass(frozen=True)
class Partition:
    """Modes as intervals of bins."""

    # int64, shape (k + 1,): Mode `i` has the bins from ``first_bin[i]`` up to, but not including,
    # ``first_bin[i + 1]``
    first_bin: np.ndarray

    def __len__(self) -> int:
        return len(self.first_bin) - 1

    def mode_index(self, bins: np.ndarray) -> np.ndarray:
        """Return the mode of each bin: int64, shape (n,)."""
        return np.clip(np.searchsorted(self.first_bin, bins, side="right") - 1, 0, len(self) - 1)

    def number_at(self, t_s: float, pooled: np.ndarray) -> int:
        """Return the number, from 1, of the mode to which a duration belongs.

        Only modes with calls are numbered.
        """
        mode = self.mode_index(np.arange(BIN_COUNT))
        kept = [k for k in range(len(self)) if pooled[mode == k].any()]
        here = int(self.mode_index(bin_index(np.rint([t_s * 1e9]).astype(np.int64)))[0])
        return 1 + min(range(len(kept)), key=lambda i: abs(kept[i] - here))


def bin_octaves() -> np.ndarray:
    """Return log2 of the middle of each bin in ns: float64, shape (BIN_COUNT,).

    Durations are whole ns: the middle is that of the smallest and the largest duration of a bin. A duration
    of 0 ns counts as 0.5 ns.
    """
    return _bin_octaves().copy()


@lru_cache(maxsize=1)
def _bin_octaves() -> np.ndarray:
    low = np.append(bin_low_ns().astype(np.float64), 2.0**64)
    octaves: np.ndarray = np.log2(np.maximum((low[:-1] + low[1:] - 1) / 2, 0.5))
    return octaves


def fit_partition(weight: np.ndarray, calls: float, resolution_s: float = 0.0) -> Partition:
    """Find the modes of a histogram as intervals of bins.

    Notes
    -----
    The density of log duration is estimated by a kernel at least as wide as a bin, and wider where
    neighbouring durations are farther apart. A minimum separates two modes if the density falls below
    `DEEPEST_SADDLE` there, by `LEAST_Z` standard errors, and if both have `WORTH_NAMING` of the calls.
    """
    used = np.flatnonzero(weight > 0)
    everything = Partition(np.array([0, BIN_COUNT]))
    if len(used) < 3 or calls < 30:
        return everything
    place, share = bin_octaves()[used], weight[used] / weight[used].sum()
    width = _kernel_widths(place, share, resolution_s)
    grid = np.arange(place[0] - 0.5, place[-1] + 0.5, 0.5 / _STEPS)
    kernel = np.exp(-0.5 * ((grid[:, None] - place) / width) ** 2) / (width * np.sqrt(2 * np.pi))
    density = kernel @ share
    error = np.sqrt(kernel**2 @ share / calls)
    cuts = _cuts(density, error, np.interp(grid, place, np.cumsum(share)))
    if not cuts:
        return everything
    inner = np.searchsorted(bin_octaves(), grid[cuts])
    return Partition(np.unique(np.concatenate([[0], inner, [BIN_COUNT]])))


def _kernel_widths(place: np.ndarray, share: np.ndarray, resolution_s: float) -> np.ndarray:
    """Return the width of the kernel at each bin with calls, in octaves."""
    gap = np.diff(place)
    around = np.concatenate([gap[:1], np.maximum(gap[1:], gap[:-1]), gap[-1:]])
    padded = np.pad(around, 3, mode="edge")
    typical = np.median(np.lib.stride_tricks.sliding_window_view(padded, 7), axis=1)
    # The foot of a mode has gaps that its body has not; a wide kernel there does not blur the body.
    width: np.ndarray = np.maximum(_LEAST_BANDWIDTH, np.minimum(typical, 1.0))
    if resolution_s > 0:
        width = np.maximum(width, np.log2(1 + resolution_s * 1e9 / 2.0**place))
    return width


def _cuts(density: np.ndarray, error: np.ndarray, below: np.ndarray) -> list[int]:
    """Return the grid positions that separate modes, in increasing order."""
    inner = np.arange(1, len(density) - 1)
    tops = inner[(density[inner] >= density[inner - 1]) & (density[inner] > density[inner + 1])].tolist()
    saddles = [a + int(np.argmin(density[a:b])) for a, b in pairwise(tops)]
    while saddles:
        edges = [0.0, *below[saddles], 1.0]
        worst, where = np.inf, -1
        for i, saddle in enumerate(saddles):
            lower = min(tops[i], tops[i + 1], key=lambda top: density[top])
            drop = density[lower] - density[saddle]
            depth = drop / np.hypot(error[lower], error[saddle]) / LEAST_Z
            deep = (1 - density[saddle] / density[lower]) / (1 - DEEPEST_SADDLE)
            heavy = min(edges[i + 1] - edges[i], edges[i + 2] - edges[i + 1]) / WORTH_NAMING
            merit = min(depth, deep, heavy)
            if merit < worst:
                worst, where = merit, i
        if worst >= 1 and len(saddles) < _MOST_MODES:
            break
        del tops[where if density[tops[where]] < density[tops[where + 1]] else where + 1]
        saddles = [a + int(np.argmin(density[a:b])) for a, b in pairwise(tops)]
    return saddles


_WIDTH = 3.0  # of the smoothing, in steps
_ROUNDS = 3
_NEARLY = 0.98
"""Of factors that fit nearly as well as the best, the one next to 1 is taken."""


def find_shifts(counts: np.ndarray) -> np.ndarray:
    """Find the factor of each run by which its distribution of log duration fits that of the others.

    Notes
    -----
    The cross-correlation of the smoothed histograms is largest at the shift. The reference is the run that
    correlates most with all others, then the mean of all shifted runs.

    Examples
    --------
    >>> from ensembles.comparison.components import find_shifts
    >>> from ensembles.statistics.samples.counted_durations import CountedDurations
    >>> durations_s = np.random.default_rng(1).lognormal(-7, 0.3, 1000)
    >>> runs = [CountedDurations.from_durations(factor * durations_s).counts for factor in (1, 4)]
    >>> np.diff(find_shifts(np.array(runs, float))).tolist()
    [2.0]
    """
    used = np.flatnonzero(counts.any(axis=0))
    counts = counts[:, used]
    step = np.rint(bin_octaves()[used] * _STEPS).astype(np.int64)
    step -= step.min()
    # Two octaves: the smoothing of the first bin does not reach the last.
    size = int(2 ** np.ceil(np.log2(2 * (step.max() + 1 + _STEPS))))
    density = np.zeros((len(counts), size))
    for row, mine in zip(density, counts, strict=True):
        row += np.bincount(step, mine / max(mine.sum(), 1e-300), minlength=size)
    kernel = np.exp(-0.5 * (np.fft.fftfreq(size, 1 / size) / _WIDTH) ** 2)
    waves = np.fft.rfft(density) * np.fft.rfft(kernel)
    overlap = np.fft.irfft(waves, size)
    reference = waves[int((overlap @ overlap.T).sum(axis=1).argmax())]
    turn = 2j * np.pi * np.arange(waves.shape[1]) / size
    steps = np.zeros(len(counts), np.int64)
    away = np.abs(np.fft.fftfreq(size, 1 / size))
    for _ in range(_ROUNDS):
        fit = np.fft.irfft(waves * np.conj(reference), size)
        good = fit >= _NEARLY * fit.max(axis=1, keepdims=True)
        steps = np.array(
            [_top(*row) for row in zip(fit, np.where(good, away, np.inf).argmin(axis=1), strict=True)]
        )
        reference = (waves * np.exp(turn * steps[:, None])).mean(axis=0)
    shift: np.ndarray = np.where(steps > size // 2, steps - size, steps) / _STEPS
    return shift


def _top(fit: np.ndarray, step: int) -> int:
    """Climb from a step to the top of its hill."""
    around = [(step + by) % len(fit) for by in (-1, 0, 1)]
    best = int(around[int(np.argmax(fit[around]))])
    return step if fit[best] <= fit[step] else _top(fit, best)


def shifted(counts: np.ndarray, shift: np.ndarray) -> np.ndarray:
    """Divide the durations of histograms by factors, to the nearest bin."""
    octaves = bin_octaves()
    between = (octaves[1:] + octaves[:-1]) / 2
    moved = counts.copy()
    for number in np.flatnonzero(shift):
        target = np.searchsorted(between, octaves - shift[number])
        moved[number] = np.bincount(target, counts[number], minlength=BIN_COUNT)
    return moved


PLACE, WIDTH, WEIGHT = "mode place", "mode width", "mode weight"
TAIL, TAIL_PLACE = "tail", "tail place"
"""Share and location of the calls that are far slower than the last mode."""
RATIO = "mode ratio"
"""Location of a mode relative to that of the heaviest mode."""

_CLIP = 2.0
"""The location of a mode is a mean of log durations, clipped at this many robust standard deviations."""
_FENCE = 1.5
"""Beyond the upper quartile by so many interquartile ranges begins the tail (Tukey's fence)."""
_ROUNDING = 1e-12
"""Sums of weights that differ by no more than this are equal."""


@dataclass(frozen=True)
class Component:
    """A part of the distribution that can move."""

    what: str  # `PLACE`, `WIDTH`, `WEIGHT`, `RATIO`, `TAIL` or `TAIL_PLACE`
    mode: int | None  # Number of the mode, from 1, the fastest; None: the tail
    # Location in all groups together, in seconds: the median of the mode, or the lower end of the tail
    t_s: float
    # Largest error of the mean of log2 duration by bins and the step of the clock. It is negligible unless
    # nearly all calls of the mode are in one bin.
    grain_octaves: float = 0.0
    weight: float = 0.0  # Share of all calls in the mode, or of the tail
    width_octaves: float = 0.0  # Of a width: its mean over the units
    mean_s: float = 0.0  # Of the tail: mean duration of its calls; of other parts 0

    @property
    def name(self) -> str:
        """Name of the part: ``mode 1 place``, ``mode 1 width``, ``mode 2 weight``, ``tail``."""
        return self.what if self.mode is None else f"mode {self.mode} {self.what.split()[1]}"

    @property
    def is_ratio(self) -> bool:
        """Whether the value is log2 of a duration or width; otherwise it is a share."""
        return self.what not in (WEIGHT, TAIL)


@dataclass(frozen=True)
class Scores:
    """Contribution of each unit (run, or block of a run) to each part."""

    parts: list[Component]  # m parts
    total: np.ndarray  # float64, shape (u, m): Sum of the scores: octaves, or calls
    size: np.ndarray  # float64, shape (u, m): Number of calls that count


def compute_scores(
    counts: np.ndarray, partition: Partition, resolution_s: float = 0.0, shift: np.ndarray | None = None
) -> Scores:
    """Compute the scores of units.

    Notes
    -----
    Location: the mean of log2 duration in the mode, clipped at two robust standard deviations around the
    median of all units, divided by the share of calls that are not clipped. This is one step of an
    M-estimate; it grows by δ if log2 durations do. Width: log2 of half the distance between the mean log2
    durations of the slower and the faster half, without the twentieth at either end. Weight: the share of the
    calls. Tail: the share of the calls that are beyond Tukey's fence, of all units together, of the last
    mode, and the mean of log2 duration beyond it. Width and tail do not change if the mode moves as a whole.

    References
    ----------
    P. J. Huber, "Robust estimation of a location parameter", Annals of Mathematical Statistics 35, 1964;
    J. W. Tukey, Exploratory Data Analysis, 1977.
    """
    pooled = counts.sum(axis=0)
    mode = partition.mode_index(np.arange(counts.shape[1]))
    kept = [k for k in range(len(partition)) if pooled[mode == k].sum() > 0]
    rows: list[tuple[Component, np.ndarray, np.ndarray]] = []
    for number, k in enumerate(kept, 1):
        mine = mode == k
        score, t_s, spread = _place_score(pooled, mine)
        weight = float(pooled[mine].sum() / pooled.sum())
        grain = _grain_octaves(t_s, spread, resolution_s)
        rows.append((Component(PLACE, number, t_s, grain, weight), score, mine))
    share = np.array([pooled[mode == k].sum() for k in kept]) / pooled.sum()
    steadiest = 1 + int(np.argmin(component_shares(counts, partition).std(axis=0)))
    for number, k in enumerate(kept, 1):
        # The shares add up to one: that of the mode with the least variation is redundant.
        if number != steadiest:
            part = Component(WEIGHT, number, rows[number - 1][0].t_s, weight=rows[number - 1][0].weight)
            rows.append((part, (mode == k) * 1.0, np.ones_like(mode)))
    from_top = np.cumsum(share[::-1])[::-1]
    last = mode >= kept[int(np.flatnonzero(from_top >= min(LITTLE, from_top[0]))[-1])]
    used = np.flatnonzero(pooled)
    few = np.ascontiguousarray(counts[:, used])
    values = few @ np.column_stack([score * mine for _, score, mine in rows])[used]
    sizes = few @ np.column_stack([mine * 1.0 for _, _, mine in rows])[used]
    if shift is not None:
        places = [part.what == PLACE for part, _, _ in rows]
        values[:, places] += shift[:, None] * sizes[:, places]
    others = [
        *(_widths(few, used, mode == k, row[0], resolution_s) for k, row in zip(kept, rows, strict=False)),
        *_tail(few, used, last, resolution_s),
    ]
    return Scores(
        [*(part for part, _, _ in rows), *(part for part, _, _ in others)],
        np.column_stack([values, *(total for _, total, _ in others)]),
        np.column_stack([sizes, *(size for _, _, size in others)]),
    )


def _widths(
    counts: np.ndarray, bins: np.ndarray, mine: np.ndarray, place: Component, resolution_s: float
) -> tuple[Component, np.ndarray, np.ndarray]:
    """Return the width of a mode, its total in each unit, and the calls that count."""
    inside = np.where(mine[bins], counts, 0.0)
    size = inside.sum(axis=1)
    slower, faster = (_trimmed_mean(inside, bins, *ends) for ends in ((LITTLE, 0.5), (0.5, 1 - LITTLE)))
    least = max(_step_octaves(place.t_s, resolution_s), RELATIVE_WIDTH) / 4
    octaves = np.maximum((slower - faster) / 2, least)
    value = np.where(size > 0, np.log2(octaves), 0.0)
    width = float(2.0 ** (value @ size / size.sum()))
    grain = float(np.log2(1 + 2 * place.grain_octaves / width))
    return Component(WIDTH, place.mode, place.t_s, grain, place.weight, width), value * size, size


def _tail(
    counts: np.ndarray, bins: np.ndarray, mine: np.ndarray, resolution_s: float
) -> list[tuple[Component, np.ndarray, np.ndarray]]:
    """Return share and location of the tail, with totals in each unit and the calls that count."""
    inside = np.where(mine[bins], counts, 0.0)
    size, pooled = counts.sum(axis=1), inside.sum(axis=0)[None]
    whole = np.zeros((1, len(mine)))
    whole[0, bins] = pooled[0]
    lower, upper = (float(quantile_octaves(whole, level)[0]) for level in (0.25, 0.75))
    fence = upper + _FENCE * max(upper - lower, _step_octaves(2.0**upper * 1e-9, resolution_s))
    beyond = fence - _trimmed_mean(pooled, bins, 0.25, 0.75)
    from_octaves = (_trimmed_mean(inside, bins, 0.25, 0.75) + beyond)[:, None]
    edges = np.log2(np.maximum(bin_edges_s() * 1e9, 0.5))
    low, high = np.maximum(edges[bins], from_octaves), np.maximum(edges[bins + 1], from_octaves)
    slow = inside * (high - low) / (edges[bins + 1] - edges[bins])
    calls, octaves = slow.sum(axis=1), (slow * ((low + high) / 2 - from_octaves)).sum(axis=1)
    mean_s = float(slow.sum(axis=0) @ 2.0 ** bin_octaves()[bins] / max(calls.sum(), 1e-300)) * 1e-9
    share = Component(TAIL, None, 2.0**fence * 1e-9, 0.0, float(calls.sum() / size.sum()), mean_s=mean_s)
    found = [(share, calls, size)]
    if calls.any():
        found.append((replace(share, what=TAIL_PLACE), octaves, calls))
    return found


def quantile_octaves(counts: np.ndarray, level: float) -> np.ndarray:
    """Compute quantiles of histograms, in log2 of ns."""
    edges_ns = bin_edges_s() * 1e9
    before = np.cumsum(counts, axis=1)
    wanted = level * before[:, -1:]
    # Weights are sums of fractions: what is equal but for rounding is equal.
    below, up_to = (before < wanted * factor for factor in (1 - _ROUNDING, 1 + _ROUNDING))
    row = np.arange(len(counts))

    def place_ns(number: np.ndarray) -> np.ndarray:
        inside = counts[row, number]
        fraction = np.clip((wanted[:, 0] - (before[row, number] - inside)) / inside, 0, 1)
        low, high = edges_ns[number], np.maximum(edges_ns[number + 1] - 1, edges_ns[number])
        return np.where(inside > 0, low + fraction * (high - low), np.nan)

    last = counts.shape[1] - 1
    lower, upper = (np.minimum(passed.sum(axis=1), last) for passed in (below, up_to))
    with np.errstate(invalid="ignore", divide="ignore"):
        lower_ns = place_ns(lower)
        between = (upper > lower) & (counts[row, upper] > 0)
        place = np.where(between, 0.5 * (lower_ns + place_ns(upper)), lower_ns)
        return np.log2(np.maximum(place, 0.5))


def component_shares(counts: np.ndarray, partition: Partition) -> np.ndarray:
    """Return the share of each unit's calls in each mode with calls: float64, shape (u, modes)."""
    mode = partition.mode_index(np.arange(counts.shape[1]))
    inside = np.column_stack([counts[:, mode == k].sum(axis=1) for k in range(len(partition))])
    shares: np.ndarray = inside[:, inside.any(axis=0)] / counts.sum(axis=1, keepdims=True)
    return shares


def _place_score(pooled: np.ndarray, mine: np.ndarray) -> tuple[np.ndarray, float, float]:
    """Return the score, the median (s) and the robust standard deviation (octaves) of a mode."""
    inside = np.where(mine, pooled, 0.0)[None]
    lower, middle, upper = (float(quantile_octaves(inside, level)[0]) for level in (0.25, 0.5, 0.75))
    spread = (upper - lower) / 1.349
    width = _CLIP * max(spread, 0.05)
    away = bin_octaves() - middle
    kept = inside[0][np.abs(away) < width].sum() / inside.sum()
    return np.clip(away, -width, width) / max(kept, 0.5), 2.0**middle * 1e-9, spread


def _trimmed_mean(counts: np.ndarray, bins: np.ndarray, low: float, high: float) -> np.ndarray:
    """Return the mean log2 duration of the calls between two ranks, from the slowest, as parts of all."""
    above = np.cumsum(counts[:, ::-1], axis=1)[:, ::-1]
    calls = above[:, :1]
    taken = np.clip(np.minimum(above, high * calls) - np.maximum(above - counts, low * calls), 0, None)
    mean: np.ndarray = (taken @ bin_octaves()[bins]) / np.maximum(taken.sum(axis=1), 1e-300)
    return mean


def _grain_octaves(t_s: float, spread: float, resolution_s: float) -> float:
    """Return the largest error of the mean of a normal density that a step hides.

    It is the first term of the Fourier series of the rounding error (B. Widrow and I. Kollár, Quantization
    Noise, 2008), and the whole step for a width of zero.
    """
    step = _step_octaves(t_s, resolution_s)
    return float(step * np.exp(-2 * (np.pi * spread / step) ** 2)) if step > 0 else 0.0


def _step_octaves(t_s: float, resolution_s: float) -> float:
    """Return the step of bins and clock at a duration."""
    t_ns = max(t_s * 1e9, 0.5)
    of_bins = RELATIVE_WIDTH if t_ns >= 1 / RELATIVE_WIDTH else 0.0
    return float(np.log2(1 + max(resolution_s * 1e9 / t_ns, of_bins)))
