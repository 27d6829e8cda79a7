"""Data of two pictures that show whether a fitted tail is right: threshold stability, and quantiles."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from ensembles.statistics.extremes.pareto_tail import ParetoTail, fit_pareto_tail
from ensembles.statistics.samples.counted_durations import CountedDurations


@dataclass(frozen=True, eq=False)
class TailDiagnostics:
    """Threshold stability and quantiles of a fitted tail.

    Attributes
    ----------
    threshold_s, shape, exceedances : ndarray, shape (k,)
        Thresholds in seconds, posterior mean of the shape above each, and number of calls above it. The shape
        is about constant above a threshold that is high enough.
    expected_s, observed_s : ndarray of float64, shape (m,)
        Calls above the threshold that was chosen, in decreasing order, beside what the fitted tail expects of
        the same ranks. On the diagonal of a quantile plot the tail is right.
    """

    threshold_s: np.ndarray
    shape: np.ndarray
    exceedances: np.ndarray
    expected_s: np.ndarray
    observed_s: np.ndarray


def diagnose_tail(
    sample: CountedDurations, largest_s: np.ndarray | None = None, thresholds: int = 8
) -> TailDiagnostics | None:
    """Fit the tail of a sample above several thresholds.

    Parameters
    ----------
    sample : CountedDurations
    largest_s : ndarray of float64, optional
        Exact durations of the longest calls, as for `fit_pareto_tail`.
    thresholds : int
        Number of thresholds: from half as many to twice as many calls above as were chosen.

    Returns
    -------
    TailDiagnostics or None
        None: no tail can be fitted.

    References
    ----------
    S. Coles, "An Introduction to Statistical Modeling of Extreme Values", 2001, section 4.3.

    Examples
    --------
    >>> durations_s = np.random.default_rng(1).exponential(1.0, 5000)
    >>> found = diagnose_tail(CountedDurations.from_durations(durations_s), np.sort(durations_s)[-1000:])
    >>> bool(np.abs(found.shape).max() < 0.4), bool(0.9 < (found.observed_s / found.expected_s).mean() < 1.1)
    (True, True)
    """
    chosen = fit_pareto_tail(sample, largest_s)
    if chosen is None:
        return None
    above = np.minimum(chosen.above * np.geomspace(0.5, 2.0, thresholds), sample.total)
    wanted = np.unique(np.rint(above).astype(np.int64))
    fitted = [fit_pareto_tail(sample, largest_s, exceedances=int(number)) for number in wanted]
    tails = [one for one in fitted if one is not None]
    observed_s = chosen.longest.longest_s(chosen.above)
    return TailDiagnostics(
        np.array([one.threshold_s for one in tails]),
        np.array([one.shape for one in tails]),
        np.array([one.above for one in tails]),
        _expected_s(chosen),
        observed_s,
    )


def _expected_s(tail: ParetoTail) -> np.ndarray:
    """Return the posterior mean of the log of each rank above the threshold, in seconds."""
    chance = (np.arange(tail.above) + 0.5) / tail.above
    expected: np.ndarray = np.exp(np.log(tail.nodes.exceeded_with(np.log(chance))) @ tail.nodes.weight)
    return expected * tail.threshold_s
