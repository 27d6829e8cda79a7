"""Candidates that are rejected as modes: ends of an even spread, and bumps that few phases made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensembles.model.units import seconds_text
from ensembles.statistics.modes.density import DEPTH_RATIO, LogCells
from ensembles.statistics.samples.counted_durations import CountedDurations

Span = tuple[float, float]

_END = 0.1
_LEAST_AT_THE_END = 0.6
_MOST_RISE = 1.3


@dataclass(frozen=True)
class Bump:
    """A candidate that was rejected as a mode.

    Either few phases made it, so that the next run may not show it; or its calls are spread evenly over
    linear time, which gives a maximum at the end of the log-time axis.

    Attributes
    ----------
    low_s, high_s : float
        Range of durations, in seconds.
    share : float
        Share of the calls.
    phase : int or None
        Phase that made most of these calls; None: they are spread evenly.
    effective_phases : float or None
        Effective number of phases that made them.
    """

    low_s: float
    high_s: float
    share: float
    phase: int | None = None
    effective_phases: float | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the attributes by name."""
        return dict(vars(self))

    def __str__(self) -> str:
        where = f"from {seconds_text(self.low_s)} to {seconds_text(self.high_s)}"
        what = f"no mode: {self.share:.1%} of the calls, {where},"
        if self.effective_phases is None:
            return f"{what} are evenly spread over that time"
        if self.effective_phases < 1.5:
            return f"{what} come from phase {self.phase} alone"
        some = f"about {self.effective_phases:.0f} phases, most from phase {self.phase}"
        return f"{what} come from {some}, and are not typical of the other phases"


def without_even_spread(cells: LogCells, spans: list[Span]) -> tuple[list[Span], tuple[Bump, ...]]:
    """Drop a last mode whose calls are spread evenly over linear time.

    Parameters
    ----------
    cells : LogCells
    spans : list of (float, float)
        Intervals of log time that are high, low, high, ..., high.

    Returns
    -------
    list of (float, float)
        Intervals that remain.
    tuple of Bump

    Notes
    -----
    The density per log time of such calls grows in proportion to time and ends with a jump. The last interval
    is rejected if it has at most 1.3 times as many calls per second as the antimode before it, and if the
    last tenth of log time is about as dense as the interval.
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
    """Drop modes that are based on few phases.

    Parameters
    ----------
    sample : CountedDurations
    cells : LogCells
    spans : list of (float, float)
        Intervals of log time that are high, low, high, ..., high.

    Returns
    -------
    list of (float, float)
        Intervals that remain.
    tuple of Bump

    Notes
    -----
    The difference between the densities of a mode and an antimode is a sum over phases. It is divided by the
    root of the sum of squares of its terms: one phase alone gives 1, k equal phases give the root of k. A
    mode needs 2.
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
    """Return the effective number of phases that made calls: (Σ calls)² / Σ calls².

    Parameters
    ----------
    calls : ndarray, shape (p,)
        Number of calls of each phase.

    Returns
    -------
    float

    Examples
    --------
    >>> effective_phases(np.array([10.0, 10.0, 10.0])), effective_phases(np.array([30.0, 0.0, 0.0]))
    (3.0, 1.0)
    """
    return float(calls.sum() ** 2 / max((calls**2).sum(), 1e-300))


def calls_by_phase(sample: CountedDurations, cells: LogCells, low: float, high: float) -> np.ndarray:
    """Count the calls of each phase between two positions in log time: float64, shape (p,)."""
    first, last = np.searchsorted(cells.edges, np.array([low, high]) + 1e-9) - 1
    cell = cells.cell_of_bin[sample.bin]
    counts = np.where((cell >= first) & (cell < last), sample.count, 0)
    before = np.concatenate([[0], np.cumsum(counts)])
    calls: np.ndarray = np.diff(before[sample.begin]).astype(np.float64)
    return calls


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
