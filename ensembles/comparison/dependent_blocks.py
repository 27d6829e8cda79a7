"""Blocks of a run that are nearly independent of each other, where there is one run a side.

Calls resemble those before them, and so do phases. Blocks are made so long that this no longer shows: at
least `TIMES` integrated autocorrelation times of what is compared; and there are never more than
`MOST_BLOCKS`, for few long blocks are worth nearly as much as many short ones, and are right for longer
memories (Ibragimov and Müller, t-statistic based correlation and heterogeneity robust inference, 2010)."""

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
FEWEST_BLOCKS = 5

_MOST_UNITS = 384
_SEEN_AT = 0.0
"""An autocorrelation below so many standard errors ends the sum."""
_DOUBT = 1.0
"""So many standard errors are added to what is remembered from one unit to the next: few phases cannot
show that they are independent."""


def unit_counts(sample: CountedDurations, most: int = _MOST_UNITS) -> np.ndarray:
    """Histograms of phases, neighbours put together where there are many.

    Returns
    -------
    ndarray of float64, shape (u, BIN_COUNT)
        In the order of time, each with one call at least.
    """
    # Parted by number of calls, so that many tiny phases are not worth as much as a few large ones.
    phases = len(sample.n)
    middle = (np.cumsum(sample.n) - sample.n / 2) / max(sample.total, 1)
    unit = np.arange(phases) if phases <= most else np.minimum((middle * most).astype(np.int64), most - 1)
    _, unit = np.unique(unit, return_inverse=True)
    counts = np.zeros((int(unit.max(initial=-1)) + 1, BIN_COUNT))
    np.add.at(counts, (unit[np.repeat(np.arange(phases), np.diff(sample.begin))], sample.bin), sample.count)
    return counts


def merged(counts: np.ndarray, blocks: int) -> np.ndarray:
    """Neighbouring units put together to that many blocks of about equal numbers of calls, or fewer."""
    calls = counts.sum(axis=1)
    middle = (np.cumsum(calls) - calls / 2) / calls.sum()
    _, first = np.unique(np.minimum((middle * blocks).astype(np.int64), blocks - 1), return_index=True)
    return np.add.reduceat(counts, first, axis=0)


def scaled(runs: Sequence[np.ndarray]) -> np.ndarray:
    """Histograms of the units of several runs, one below the other, so that units of all runs count the
    same on the average, however many calls each run made."""
    return np.concatenate([counts / (counts.sum() / len(counts)) for counts in runs])


def block_memory(runs: Sequence[np.ndarray], resolution_s: float = 0.0) -> float:
    """For how many units what is compared remembers itself: an upper bound of the integrated
    autocorrelation time.

    Of each part the autocorrelations within runs are added until one is no longer positive (as in Geyer,
    Practical Markov Chain Monte Carlo, 1992); the part with the longest memory decides.

    Parameters
    ----------
    runs : sequence of ndarray, shape (u, BIN_COUNT) each
        Histograms of units in the order of time.
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
        # A mean that is estimated takes time/n from every autocorrelation.
        found = together / pairs / (power / n) + time * len(rests) / n
        if found < _SEEN_AT * np.sqrt(time / pairs):
            break
        time += 2 * min(found, 1.0)
    kept = (time - 1) / (time + 1)
    kept += _DOUBT * np.sqrt((1 - kept**2) / n)
    return (1 + kept) / (1 - kept) if kept < 1 else np.inf


def lost_spread(memory: float, length: float) -> float:
    """By which factor the standard error of a mean is larger than blocks of this length tell, as
    neighbouring blocks still resemble each other.

    For a memory that fades exponentially (an autoregression of first order), whose integrated
    autocorrelation time is known, the variance of the mean of a block is known too (Bartlett, On the
    theoretical specification and sampling properties of autocorrelated time-series, 1946).
    """
    kept = (memory - 1) / (memory + 1)
    in_block = memory - 2 * kept * (1 - kept**length) / (length * (1 - kept) ** 2)
    return float(np.sqrt(memory / in_block))


@dataclass(frozen=True)
class DependentBlocks:
    """Runs cut into blocks.

    Attributes
    ----------
    counts : list of ndarray, shape (blocks, BIN_COUNT) each
        Histograms of the blocks of each run; as many as there are, maybe fewer than `FEWEST_BLOCKS`.
    memory : float
        For how many units (phases, or what was given for them) a run remembers itself, at most.
    spread : float
        By which factor standard errors are larger than the blocks tell.
    """

    counts: list[np.ndarray]
    memory: float
    spread: float


def make_blocks(samples: Sequence[CountedDurations]) -> DependentBlocks:
    """Each run cut into blocks that hardly depend on each other."""
    runs = [unit_counts(sample) for sample in samples]
    memory = block_memory(runs, max(sample.resolution_s for sample in samples))
    blocks = [max(1, min(MOST_BLOCKS, int(len(run) / (TIMES * memory)))) for run in runs]
    shortest = min(len(run) / n for run, n in zip(runs, blocks, strict=True))
    spread = lost_spread(memory, shortest) if np.isfinite(memory) else np.inf
    return DependentBlocks([merged(run, n) for run, n in zip(runs, blocks, strict=True)], memory, spread)
