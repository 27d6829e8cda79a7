"""Align runs by the factor that all their durations share.

Durations of a run may all be longer or shorter than those of the next one. The modes of such runs are
matched by dividing each run by its factor before the modes are found.
"""

from __future__ import annotations

import numpy as np

from ensembles.comparison.mode_partition import bin_octaves
from ensembles.summaries.bins import BIN_COUNT

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
    >>> from ensembles.comparison.alignment import find_shifts
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
