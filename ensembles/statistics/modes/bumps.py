"""What looks like a mode of log duration, and is none."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from ensembles.statistics.modes.logcells import LogCells
from ensembles.units import seconds_text

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
