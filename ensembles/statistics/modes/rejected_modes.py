"""Candidate modes that are rejected: bumps of an even spread, and modes that one or two phases make."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensembles.model.units import seconds_text
from ensembles.statistics.modes.antimodes import DEPTH_RATIO
from ensembles.statistics.modes.density import LogCells
from ensembles.statistics.samples.counted_durations import CountedDurations

Span = tuple[float, float]

_END = 0.1
_LEAST_AT_THE_END = 0.6
_MOST_RISE = 1.3


@dataclass(frozen=True)
class Bump:
    """What looks like a mode, but was made by few phases, so that the next run may not show it; or what is
    evenly spread over time, which on the axis of log time is a hill at its end.

    Attributes
    ----------
    low_s, high_s : float
        Where it is.
    share : float
        Of the calls.
    phase : int or None
        The phase that made most of them; None: it is evenly spread.
    effective_phases : float or None
        By how many phases they were made, if all had made equally many.
    """

    low_s: float
    high_s: float
    share: float
    phase: int | None = None
    effective_phases: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Attributes by name."""
        return dict(vars(self))

    def __str__(self) -> str:
        where = f"from {seconds_text(self.low_s)} to {seconds_text(self.high_s)}"
        what = f"no mode: {self.share:.1%} of the calls, {where},"
        if self.effective_phases is None:
            return f"{what} are evenly spread over that time"
        if self.effective_phases < 1.5:
            return f"{what} come from phase {self.phase} alone"
        some = f"some {self.effective_phases:.0f} phases, most from phase {self.phase}"
        return f"{what} come from {some}; phases do not agree that calls gather there"


def without_even_spread(cells: LogCells, spans: list[Span]) -> tuple[list[Span], tuple[Bump, ...]]:
    """Drop a last mode that is only the end of calls that are evenly spread over linear time.

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
    Of such calls the density of log time grows as time does and ends with a cliff. So the last stretch is no
    mode if there are, for each second, no more calls in it than in the valley before (by a factor of 1.3),
    and the last tenth of log time is about as dense as the stretch.
    """
    if len(spans) < 3:
        return spans, ()
    end = cells.edges[-1]
    valley, high = spans[-2:]
    (low_calls, high_calls, end_calls) = (
        _calls_between(cells, *span) for span in (valley, high, (end - _END, end))
    )
    per_second = high_calls / np.diff(np.exp(high))[0]
    rises = per_second > _MOST_RISE * low_calls / np.diff(np.exp(valley))[0]
    cliff = end_calls / _END >= _LEAST_AT_THE_END * high_calls / (high[1] - high[0])
    if rises or not cliff:
        return spans, ()
    share = _calls_between(cells, valley[1], end) / cells.counts.sum()
    return spans[:-2], (Bump(float(np.exp(valley[1])), float(np.exp(end)), float(share)),)


def _calls_between(cells: LogCells, low: float, high: float) -> float:
    before = np.concatenate([[0], np.cumsum(cells.counts)])
    return float(np.diff(np.interp([low, high], cells.edges, before))[0])


_LEAST_PHASES = 8
_LEAST_EVIDENCE = 2.0


def without_bumps(
    sample: CountedDurations, cells: LogCells, spans: list[Span]
) -> tuple[list[Span], tuple[Bump, ...]]:
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


def calls_by_phase(sample: CountedDurations, cells: LogCells, low: float, high: float) -> np.ndarray:
    """Calls of each phase in the cells from one place in log time to another: float64, shape (p,)."""
    first, last = np.searchsorted(cells.edges, np.array([low, high]) + 1e-9) - 1
    cell = cells.cell_of_bin[sample.bin]
    counts = np.where((cell >= first) & (cell < last), sample.count, 0)
    before = np.concatenate([[0], np.cumsum(counts)])
    return np.diff(before[sample.begin]).astype(np.float64)


def _support(difference: np.ndarray) -> float:
    return float(difference.sum() / max(np.sqrt((difference**2).sum()), 1e-300))


def _bump(sample: CountedDurations, span: Span, calls: np.ndarray) -> Bump:
    low_s, high_s = np.exp(span)
    return Bump(
        float(low_s),
        float(high_s),
        float(calls.sum() / sample.total),
        int(sample.phase[int(np.argmax(calls))]),
        effective_phases(calls),
    )
