"""Divide log duration into the modes of all groups together.

The partition is made of all calls regardless of their group. A permutation of groups does not change it, so
that permutation tests remain exact. Durations of a run may all be longer or shorter than those of the next
one: runs are aligned by this factor first.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np

from ensembles.summaries.bins import BIN_COUNT, bin_index, bin_low_ns

LEAST_SHARE = 0.02
"""Least share of the calls that a mode has."""
DEEPEST_SADDLE = 0.6
"""Between two modes the density falls below this part of the lower mode's height."""
LEAST_Z = 4.0
"""Least depth of this minimum in standard errors."""

_LEAST_BANDWIDTH = 0.05  # octaves: 3.5 %, about a bin
_GRID = 64  # points an octave
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
    `DEEPEST_SADDLE` there, by `LEAST_Z` standard errors, and if both have `LEAST_SHARE` of the calls.
    """
    used = np.flatnonzero(weight > 0)
    everything = Partition(np.array([0, BIN_COUNT]))
    if len(used) < 3 or calls < 30:
        return everything
    place, share = bin_octaves()[used], weight[used] / weight[used].sum()
    width = _widths(place, share, resolution_s)
    grid = np.arange(place[0] - 0.5, place[-1] + 0.5, 1 / _GRID)
    kernel = np.exp(-0.5 * ((grid[:, None] - place) / width) ** 2) / (width * np.sqrt(2 * np.pi))
    density = kernel @ share
    error = np.sqrt(kernel**2 @ share / calls)
    cuts = _cuts(density, error, np.interp(grid, place, np.cumsum(share)))
    if not cuts:
        return everything
    inner = np.searchsorted(bin_octaves(), grid[cuts])
    return Partition(np.unique(np.concatenate([[0], inner, [BIN_COUNT]])))


def _widths(place: np.ndarray, share: np.ndarray, resolution_s: float) -> np.ndarray:
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
            heavy = min(edges[i + 1] - edges[i], edges[i + 2] - edges[i + 1]) / LEAST_SHARE
            merit = min(depth, deep, heavy)
            if merit < worst:
                worst, where = merit, i
        if worst >= 1 and len(saddles) < _MOST_MODES:
            break
        del tops[where if density[tops[where]] < density[tops[where + 1]] else where + 1]
        saddles = [a + int(np.argmin(density[a:b])) for a, b in pairwise(tops)]
    return saddles


_STEPS = 32  # an octave, about a bin
_WIDTH = 3.0  # of the smoothing, in steps
_MARGIN = 64  # steps: the smoothing of the first bin does not reach the last
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
    >>> from ensembles.comparison.mode_partition import find_shifts
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
    size = int(2 ** np.ceil(np.log2(2 * (step.max() + 1) + _MARGIN)))
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
