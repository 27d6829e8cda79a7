"""How many modes there are, and whereabouts."""

from __future__ import annotations

import numpy as np

from ensembles.statistics.modes.logcells import LogCells
from ensembles.statistics.modes.valleys import LEAST_CALLS, LEAST_SHARE, Blocks, chain, evidence

THRESHOLDS = ((30.0, 0.9), (100.0, 1.4), (300.0, 1.8))
"""Evidence that a valley needs, where the calls fill so many cells: what about 1 % of flat densities, which
are the hardest, reach at 1,000 calls (fewer at more)."""

_WIDEST_SPARSE_CELL = 0.045
_MOST_CELLS = 320

Span = tuple[float, float]


def highs_and_lows(cells: LogCells) -> tuple[list[Span], float]:
    """Stretches of log time that are by turns high and low, each surely so.

    Returns
    -------
    spans : list of (float, float)
        High, low, high, ..., high: one more than twice the number of valleys. Of a single mode it is all.
    chance : float
        That calls of a flat density show as sure a valley as the surest of these, at most.
    """
    coarse = _cells_to_look_at(cells)
    blocks = Blocks.of(coarse.counts, coarse.edges)
    found = evidence(blocks, float(coarse.counts.sum()))
    threshold = threshold_of(coarse.counts)
    spans = [
        (float(coarse.edges[blocks.start[block]]), float(coarse.edges[blocks.end[block]]))
        for block in chain(found, threshold)
    ]
    chance = chance_of(found.deepest(), threshold)
    return spans or [(float(cells.edges[0]), float(cells.edges[-1]))], chance


def _cells_to_look_at(cells: LogCells) -> LogCells:
    """Cells in which modes are looked for: joined where there are few calls, more so if cells are many."""
    least, widest = max(LEAST_CALLS, LEAST_SHARE * cells.counts.sum()) / 3, _WIDEST_SPARSE_CELL
    coarse = cells.coarser(least, widest)
    while len(coarse.counts) > _MOST_CELLS and widest < 1.0:
        least, widest = 1.3 * least, 1.3 * widest
        coarse = cells.coarser(least, widest)
    return coarse


def threshold_of(counts: np.ndarray) -> float:
    """The evidence that a valley needs among cells with these counts: more, the more places there are to look
    at (the inverse of Simpson's index of the counts says how many are filled)."""
    filled = counts.sum() ** 2 / np.sum(counts.astype(np.float64) ** 2)
    places, levels = zip(*THRESHOLDS, strict=True)
    return float(np.interp(np.log(filled), np.log(places), levels))


def chance_of(deepest_valley: float, threshold: float) -> float:
    """Chance, at most, that a flat density shows a valley with so much evidence: 1 % at the threshold, and
    ten times less for each further 0.45, which is the slope of the simulated chances or less steep."""
    if not np.isfinite(deepest_valley):
        return 1.0
    return float(min(1.0, 0.01 * 10.0 ** (-(deepest_valley - threshold) / 0.45)))
