"""Which modes are made by many phases, and which are the doing of one or two."""

from __future__ import annotations

import numpy as np

from ensembles.statistics.modes.bumps import Bump
from ensembles.statistics.modes.logcells import LogCells
from ensembles.statistics.modes.valleys import DEPTH_RATIO
from ensembles.statistics.sample import Sample

_LEAST_PHASES = 8
_LEAST_EVIDENCE = 2.0

Span = tuple[float, float]


def without_bumps(sample: Sample, cells: LogCells, spans: list[Span]) -> tuple[list[Span], tuple[Bump, ...]]:
    """Drop modes that rest on few phases.

    Parameters
    ----------
    spans : list of (float, float)
        Stretches of log time that are high, low, high, ..., high.

    Returns
    -------
    list of (float, float)
        Those that stay.
    tuple of Bump

    Notes
    -----
    The difference of density between a mode and a valley is a sum over phases; it is compared to the root of
    the sum of squares of its terms. One phase alone gives 1, k equal ones the root of k; 2 is asked for.
    """
    spans = list(spans)
    if not sample.phases_known or len(sample.phase) < _LEAST_PHASES or len(spans) < 3:
        return spans, ()
    bumps = []
    while len(spans) >= 3:
        held = np.array([calls_by_phase(sample, cells, *span) for span in spans])
        density = held / np.array([high - low for low, high in spans])[:, None]
        rises = [
            min(
                _support(density[i] - DEPTH_RATIO * density[j])
                for j in (i - 1, i + 1)
                if 0 < j < len(spans) - 1
            )
            for i in range(0, len(spans), 2)
        ]
        weakest = int(np.argmin(rises))
        if rises[weakest] >= _LEAST_EVIDENCE:
            break
        place = 2 * weakest
        bumps.append(_bump(sample, spans[place], held[place]))
        valleys = [j for j in (place - 1, place + 1) if 0 < j < len(spans) - 1]
        gone = max(valleys, key=lambda j: density[j].sum())
        spans = [span for j, span in enumerate(spans) if j not in (place, gone)]
    return spans, tuple(sorted(bumps, key=lambda bump: bump.low_s))


def effective_phases(calls: np.ndarray) -> float:
    """By how many phases calls were made, if all had made equally many: float.

    Parameters
    ----------
    calls : ndarray, shape (p,)
        Of each phase.
    """
    return float(calls.sum() ** 2 / max((calls**2).sum(), 1e-300))


def calls_by_phase(sample: Sample, cells: LogCells, low: float, high: float) -> np.ndarray:
    """Calls of each phase in the cells from one place in log time to another: float64, shape (p,)."""
    first, last = np.searchsorted(cells.edges, np.array([low, high]) + 1e-9) - 1
    cell = cells.cell_of_bin[sample.bin]
    counts = np.where((cell >= first) & (cell < last), sample.count, 0)
    before = np.concatenate([[0], np.cumsum(counts)])
    return np.diff(before[sample.begin]).astype(np.float64)


def _support(difference: np.ndarray) -> float:
    return float(difference.sum() / max(np.sqrt((difference**2).sum()), 1e-300))


def _bump(sample: Sample, span: Span, calls: np.ndarray) -> Bump:
    low_s, high_s = np.exp(span)
    return Bump(
        float(low_s),
        float(high_s),
        float(calls.sum() / sample.total),
        int(sample.phase[int(np.argmax(calls))]),
        effective_phases(calls),
    )
