"""Stationarity: whether the last phases of a run resemble the earlier ones.

Phases may differ and depend on their neighbours, and still represent the phases to come. If the run drifts,
or has just changed, they do not: a prediction then holds for phases from the whole run, but not for the next
ones.
"""

from __future__ import annotations

import numpy as np

from ensembles.model.levels import ENOUGH, FEWEST_IN_TIME, SIGNIFICANT
from ensembles.statistics import special
from ensembles.statistics.extremes.exchangeability import CallAttributes
from ensembles.statistics.extremes.phase_maxima import longest_log_s
from ensembles.statistics.samples.counted_durations import CountedDurations

MOST_STEP = 16
BLOCKS = ENOUGH + 1
"""Least number of blocks of time: a central 90 % interval lies within the range of their slowest calls."""


def time_blocks(calls: CallAttributes, tasks: int, resolution_s: float = 0.0) -> CountedDurations | None:
    """Divide calls into consecutive blocks of time with ``tasks`` calls each.

    If that gives fewer than 20 blocks, blocks are shorter, down to a sixteenth.
    """
    n = len(calls.durations_s)
    if calls.start_ns is None:
        return None
    size = min(max(tasks, FEWEST_IN_TIME), n // BLOCKS)
    if size < FEWEST_IN_TIME or size * MOST_STEP < tasks:
        return None
    order = np.argsort(calls.start_ns, kind="stable")
    # The first calls, which would be no whole block, belong to none.
    order = order[n % size :]
    return CountedDurations.from_durations(
        calls.durations_s[order], np.arange(len(order)) // size, resolution_s
    )


_LAST = (1, 2, 4, 8, 12)


def drift_of_calls(sample: CountedDurations, calls: CallAttributes | None) -> str | None:
    """Test whether calls have settled, by phases or, without enough phases, by blocks of time.

    Properties of a phase are its median and the duration that a twentieth of its calls exceeds, which do not
    depend on how many calls it has.
    """
    inside = sample.phase >= 0
    grouped: CountedDurations | None = None
    if sample.phases_known and np.count_nonzero(inside) >= FEWEST_IN_TIME:
        grouped = sample.chosen(inside)
    elif calls is not None:
        grouped = time_blocks(calls, FEWEST_IN_TIME, sample.resolution_s)
    if grouped is None:
        return None
    return unsettled(*longest_log_s(grouped, 1 + np.outer(grouped.n - 1.0, [0.5, 0.05])).T)


def unsettled(*series: np.ndarray) -> str | None:
    """Test whether a run has settled.

    Student's t compares the last stretches of time with those before them, and looks for a trend
    (docs/reference/methods/tail.md, Has the run settled?).
    """
    tested = [one for one in series if len(one) >= FEWEST_IN_TIME and np.ptp(one) > 0]
    chances = np.array([_chances(_means(_ranks(one)), _means(np.arange(len(one)))) for one in tested])
    chances = chances.reshape(-1, len(_LAST) + 1)
    if not chances.size or chances.min() * (len(series) * (len(_LAST) + 1)) >= SIGNIFICANT:
        return None
    place = int(chances.min(0).argmin())
    if place == len(_LAST):
        return "the run has not settled: its phases drift, so that the next phases may differ"
    share = f"{_LAST[place]} of {FEWEST_IN_TIME}"
    return (
        f"the run has not settled: its last phases ({share} stretches of time) differ from the earlier "
        "ones, so that the next phases may differ too"
    )


def _ranks(values: np.ndarray) -> np.ndarray:
    """Return mid-ranks, which any steady increase makes a straight line."""
    _, place, count = np.unique(values, return_inverse=True, return_counts=True)
    ranks: np.ndarray = (np.cumsum(count) - 0.5 * count)[place.reshape(-1)]
    return ranks


def _means(values: np.ndarray) -> np.ndarray:
    """Return averages in stretches with equal numbers of phases."""
    return np.array([part.mean() for part in np.array_split(values, FEWEST_IN_TIME)])


def _chances(means: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Return p-values: the last stretches compared with those before them, and a trend.

    The number of independent stretches is that of an autoregression of the residuals; its correlation is
    corrected for bias, and one standard error is added.
    """
    n, place, chances = len(means), np.arange(len(means)), []
    for shape in (*(place >= n - k for k in _LAST), times):
        change = shape - shape.mean()
        size = float(change @ means / (change @ change))
        rest = means - means.mean() - size * change
        squares = max(float(rest @ rest), 1e-12)
        likely = float(rest[1:] @ rest[:-1]) / squares
        likely += (1 + 4 * likely) / n
        memory = np.clip(likely + np.sqrt(max(1 - likely**2, 0.0) / n), 0.0, 0.95)
        share = (1 - memory) / (1 + memory)
        student = abs(size) * np.sqrt(change @ change * share * (n - 2) / squares)
        chances.append(2 * float(special.stdtr(max(n * share - 2, 1.0), -student)))
    return np.array(chances)
