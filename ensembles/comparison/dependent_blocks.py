"""Nearly independent blocks of a run, for comparisons with one run per group.

Calls resemble the calls before them, and so do phases. Blocks have a length of at least `TIMES` integrated
autocorrelation times of what is compared, so that they are nearly independent. There are at most
`MOST_BLOCKS`: few long blocks have nearly the power of many short ones, and are valid for longer correlations
(R. Ibragimov and U. K. Müller, "t-statistic based correlation and heterogeneity robust inference", Journal of
Business and Economic Statistics 28, 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from ensembles.comparison.components import compute_scores
from ensembles.comparison.mode_partition import fit_partition
from ensembles.statistics.samples.counted_durations import CountedDurations
from ensembles.summaries.bins import BIN_COUNT

TIMES = 2.0
MOST_BLOCKS = 12
FEWEST_BLOCKS = 3

MOST_UNITS = 384
"""Largest number of phases, or of slices of time with equal numbers of calls."""


def unit_counts(sample: CountedDurations, most: int = MOST_UNITS) -> np.ndarray:
    """Return the histograms of phases; many phases are merged with their neighbours."""
    # Units have equal numbers of calls, so that many tiny phases do not weigh as much as few large ones.
    phases = len(sample.n)
    middle = (np.cumsum(sample.n) - sample.n / 2) / max(sample.total, 1)
    unit = np.arange(phases) if phases <= most else np.minimum((middle * most).astype(np.int64), most - 1)
    _, unit = np.unique(unit, return_inverse=True)
    counts = np.zeros((int(unit.max(initial=-1)) + 1, BIN_COUNT))
    np.add.at(counts, (unit[np.repeat(np.arange(phases), np.diff(sample.begin))], sample.bin), sample.count)
    return counts


def merged(counts: np.ndarray, blocks: int) -> np.ndarray:
    """Merge neighbouring units to at most `blocks` blocks with about equal numbers of calls."""
    calls = counts.sum(axis=1)
    middle = (np.cumsum(calls) - calls / 2) / calls.sum()
    _, first = np.unique(np.minimum((middle * blocks).astype(np.int64), blocks - 1), return_index=True)
    return np.add.reduceat(counts, first, axis=0)


def scaled(runs: Sequence[np.ndarray]) -> np.ndarray:
    """Stack the histograms of the units of several runs, scaled to equal mean weight per unit."""
    return np.concatenate([counts / (counts.sum() / len(counts)) for counts in runs])


def block_memory(runs: Sequence[np.ndarray], resolution_s: float = 0.0) -> float:
    """Return an upper bound of the integrated autocorrelation time, in units.

    The autocorrelations of each part within runs are added up to the first one that is not positive. The part
    with the longest autocorrelation time decides.

    References
    ----------
    C. J. Geyer, "Practical Markov chain Monte Carlo", Statistical Science 7, 1992.
    """
    counts = scaled(runs)
    scores = compute_scores(
        counts, fit_partition(counts.mean(axis=0), sum(float(run.sum()) for run in runs), resolution_s)
    )
    begin = np.cumsum([0, *(len(run) for run in runs)])
    longest = 1.0
    for total, size in zip(scores.total.T, scores.size.T, strict=True):
        rests = []
        for a, b in pairwise(begin):
            if size[a:b].sum() > 0:
                rests.append(total[a:b] - size[a:b] * total[a:b].sum() / size[a:b].sum())
        longest = max(longest, _autocorrelation_time(rests))
    return longest


def _autocorrelation_time(rests: list[np.ndarray]) -> float:
    power = sum(float(rest @ rest) for rest in rests)
    n = sum(len(rest) for rest in rests)
    if power <= 0:
        return 1.0
    time = 1.0
    for lag in range(1, min(len(rest) for rest in rests)):
        pairs = sum(len(rest) - lag for rest in rests)
        together = sum(float(rest[lag:] @ rest[:-lag]) for rest in rests)
        # The estimated mean reduces every autocorrelation by time/n.
        found = together / pairs / (power / n) + time * len(rests) / n
        if found < 0:
            break
        time += 2 * min(found, 1.0)
    kept = (time - 1) / (time + 1)
    kept += np.sqrt((1 - kept**2) / n)  # a standard error: few phases cannot show that they are independent
    return (1 + kept) / (1 - kept) if kept < 1 else np.inf


def lost_spread(memory: float, length: float) -> float:
    """Return the factor by which standard errors exceed those of independent blocks.

    Neighbouring blocks still resemble each other. For an autoregression of first order with a known
    integrated autocorrelation time, the variance of the mean of a block is known too.

    References
    ----------
    M. S. Bartlett, "On the theoretical specification and sampling properties of autocorrelated time-series",
    Supplement to the Journal of the Royal Statistical Society 8, 1946.

    Examples
    --------
    >>> lost_spread(memory=1.0, length=10.0)
    1.0
    """
    kept = (memory - 1) / (memory + 1)
    in_block = memory - 2 * kept * (1 - kept**length) / (length * (1 - kept) ** 2)
    return float(np.sqrt(memory / in_block))


@dataclass(frozen=True)
class DependentBlocks:
    """Runs divided into blocks."""

    # list of ndarray, shape (blocks, BIN_COUNT) each: Histograms of the blocks of each run; possibly fewer
    # blocks than `FEWEST_BLOCKS`
    counts: list[np.ndarray]
    # Upper bound of the integrated autocorrelation time, in units (phases, or pieces that replace them)
    memory: float
    spread: float  # Factor by which standard errors exceed those of independent blocks


def make_blocks(samples: Sequence[CountedDurations]) -> DependentBlocks:
    """Divide each run into blocks that are nearly independent."""
    runs = [unit_counts(sample) for sample in samples]
    memory = block_memory(runs, max(sample.resolution_s for sample in samples))
    blocks = [max(1, min(MOST_BLOCKS, int(len(run) / (TIMES * memory)))) for run in runs]
    shortest = min(len(run) / n for run, n in zip(runs, blocks, strict=True))
    spread = lost_spread(memory, shortest) if np.isfinite(memory) else np.inf
    return DependentBlocks([merged(run, n) for run, n in zip(runs, blocks, strict=True)], memory, spread)
