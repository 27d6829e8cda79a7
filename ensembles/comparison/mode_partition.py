"""Divide log duration into the modes of all groups together.

The partition is made of all calls regardless of their group. A permutation of groups does not change it, so
that permutation tests remain exact.
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
