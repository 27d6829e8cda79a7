"""Blocks of a run that are nearly independent of each other, where there is one run a side.

Calls resemble those before them, and so do phases. Blocks are made so long that this no longer shows: at least
`TIMES` integrated autocorrelation times of what is compared; and there are never more than `MOST_BLOCKS`, for few
long blocks are worth nearly as much as many short ones, and are right for longer memories (Ibragimov and
Müller, t-statistic based correlation and heterogeneity robust inference, 2010)."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.statistics.comparison_partition import partition_of
from ensembles.statistics.comparison_parts import scores_of
from ensembles.statistics.sample import Sample
from ensembles.summaries.bins import BIN_COUNT

TIMES = 3.0
MOST_BLOCKS = 12
FEWEST_BLOCKS = 5

_MOST_UNITS = 384
_SEEN_AT = 1.0
"""An autocorrelation below so many standard errors is taken for none."""


def unit_counts(sample: Sample, most: int = _MOST_UNITS) -> np.ndarray:
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
    """Histograms of the units of several runs, one below the other, so that units of all runs count the same
    on the average, however many calls each run made."""
    return np.concatenate([counts / (counts.sum() / len(counts)) for counts in runs])


def memory_of(runs: Sequence[np.ndarray], resolution_s: float = 0.0) -> float:
    """For how many units what is compared remembers itself: the integrated autocorrelation time, at least 1.

    Of each part the autocorrelations within runs are added until one is no longer seen (Sokal, Monte Carlo
    Methods in Statistical Mechanics, 1997, with another window); the part with the longest memory decides.

    Parameters
    ----------
    runs : sequence of ndarray, shape (u, BIN_COUNT) each
        Histograms of units in the order of time.
    """
    counts = scaled(runs)
    scores = scores_of(counts, partition_of(counts.mean(axis=0), sum(float(run.sum()) for run in runs), resolution_s))
    begin = np.cumsum([0, *(len(run) for run in runs)])
    longest = 1.0
    for total, size in zip(scores.total.T, scores.size.T, strict=True):
        rests = []
        for a, b in zip(begin[:-1], begin[1:], strict=True):
            if size[a:b].sum() > 0:
                rests.append(total[a:b] - size[a:b] * total[a:b].sum() / size[a:b].sum())
        longest = max(longest, _autocorrelation_time(rests))
    return longest


def _autocorrelation_time(rests: list[np.ndarray]) -> float:
    power = sum(float(rest @ rest) for rest in rests)
    n = sum(len(rest) for rest in rests)
    if power <= 0 or n < 4:
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
    return time


def blocks_of(samples: Sequence[Sample]) -> tuple[list[np.ndarray], float]:
    """Each run cut into blocks.

    Returns
    -------
    list of ndarray, shape (blocks, BIN_COUNT) each
        Histograms of the blocks; as few as there are, maybe fewer than `FEWEST_BLOCKS`.
    memory : float
        Integrated autocorrelation time, in units (phases, or what was given for them).
    """
    runs = [unit_counts(sample) for sample in samples]
    memory = memory_of(runs, max(sample.resolution_s for sample in samples))
    length = TIMES * memory if memory > 1 else 1.0
    return [merged(run, max(1, min(MOST_BLOCKS, int(len(run) / length)))) for run in runs], memory
