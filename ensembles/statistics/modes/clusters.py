"""How many clusters there are: intervals of log duration that are denser than the antimodes beside them."""

from __future__ import annotations

import numpy as np

from ensembles.statistics.modes.density import (
    LEAST_CALLS,
    LEAST_SHARE,
    CellBlocks,
    LogCells,
    chain,
    evidence,
)

THRESHOLDS = ((30.0, 0.9), (100.0, 1.4), (300.0, 1.8))
"""Evidence that an antimode needs, by effective number of filled cells.

About 1 % of samples of 1,000 calls of a flat density, the least favourable one, reach it; of larger samples
fewer do.
"""

_WIDEST_SPARSE_CELL = 0.045
_MOST_CELLS = 320

Span = tuple[float, float]


def highs_and_lows(cells: LogCells) -> tuple[list[Span], float]:
    """Find intervals of log time in which the density is significantly high and low.

    Returns
    -------
    spans : list of (float, float)
        High, low, high, ..., high: one more than twice the number of antimodes. With a single mode, the whole
        range.
    chance : float
        Upper bound of the p-value of the deepest antimode under a flat density.
    """
    coarse = cells_to_look_at(cells)
    blocks = CellBlocks.from_counts(coarse.counts, coarse.edges)
    found = evidence(blocks, float(coarse.counts.sum()))
    threshold = mode_threshold(coarse.counts)
    spans = [
        (float(coarse.edges[blocks.start[block]]), float(coarse.edges[blocks.end[block]]))
        for block in chain(found, threshold)
    ]
    chance = chance_of_second_mode(found.deepest(), threshold)
    return spans or [(float(cells.edges[0]), float(cells.edges[-1]))], chance


def cells_to_look_at(cells: LogCells, most: int = _MOST_CELLS) -> LogCells:
    """Join cells until each holds enough calls, and there are not too many for the search."""
    least, widest = max(LEAST_CALLS, LEAST_SHARE * cells.counts.sum()) / 3, _WIDEST_SPARSE_CELL
    coarse = cells.coarser(least, widest)
    while len(coarse.counts) > most and widest < 1.0:
        least, widest = 1.3 * least, 1.3 * widest
        coarse = cells.coarser(least, widest)
    return coarse


def mode_threshold(counts: np.ndarray) -> float:
    """Return the evidence that an antimode needs among cells with these counts.

    It grows with the effective number of filled cells: the inverse of Simpson's index of the counts.
    """
    filled = counts.sum() ** 2 / np.sum(counts.astype(np.float64) ** 2)
    places, levels = zip(*THRESHOLDS, strict=True)
    return float(np.interp(np.log(filled), np.log(places), levels))


def chance_of_second_mode(deepest_valley: float, threshold: float) -> float:
    """Bound the p-value of the deepest antimode under a flat density.

    It is 1 % at the threshold, and ten times less for each further 0.45 of evidence. Simulated p-values fall
    at least as fast.
    """
    if not np.isfinite(deepest_valley):
        return 1.0
    return float(min(1.0, 0.01 * 10.0 ** (-(deepest_valley - threshold) / 0.45)))
