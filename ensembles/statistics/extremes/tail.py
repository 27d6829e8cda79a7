"""The predicted slowest of N calls."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ensembles.model.fields import Fields
from ensembles.model.levels import SIGNIFICANT
from ensembles.statistics.extremes.exchangeability import Factor
from ensembles.statistics.extremes.next_phase import NextPhase
from ensembles.statistics.extremes.order_statistics import Equation1

METHODS = {
    "within-reach": "order statistics of exchangeable calls, whatever their distribution",
    "beyond": "a tail fitted above the last mode of exchangeable calls, with its uncertainty",
    "phases": "the slowest calls of past phases",
    "phases-carried": "the slowest calls of past phases, extrapolated along the tails of their phases",
    "blocks": "the slowest calls of blocks of time, because phases are unknown or have a single call",
}
"""Methods of a prediction: what it is based on."""


@dataclass(frozen=True)
class Tail(Fields):
    """Prediction of the slowest of N new calls.

    Attributes
    ----------
    n, tasks : int
        Number of calls of the ensemble, and number N of new calls, one for each task.
    median_s, mean_s, low_s, high_s : float or None
        Median, mean and ends of the prediction interval, in seconds. The interval includes the uncertainty of
        the fitted distribution. None: refused; a mean may also be infinite for all that the data show.
    level : float
        Probability of the interval.
    method : str
        Method, a key of `METHODS`; ``refused``.
    observed_max_s : float or None
        The slowest call of the ensemble, in seconds.
    exchangeable : bool or None
        Whether no test found a dependence on phase, task or time; None: no test was possible.
    broken_by : tuple of Factor
        Factors on which durations depend, the strongest first.
    phases : int or None
        Number of phases of the ensemble; None: unknown.
    effective_phases : float or None
        Effective number of independent phases: neighbours in time resemble each other.
    effective_n : float
        Effective sample size: number of independent calls.
    equation1 : Equation1 or None
        Result of the paper's Equation 1; None: there are no calls.
    refused : str or None
        Reason of a refusal.
    unsettled : str or None
        Reason why the prediction holds for phases from the whole run, but not for the next ones: the run
        drifts, or has just changed. None: there is no sign of that.
    reach : int
        Largest N that the data answer without extrapolation.
    unseen_share : float
        Share that a kind of calls may have without one of them among the n calls, at 95 %: about 3 / n.
    threshold_s, shape, exceedances : float, float and int, or None
        Lower end of the fitted tail, posterior mean of the shape of the generalised Pareto distribution, and
        number of calls above the threshold; None: the answer is based on no fitted tail.
    next_phase : NextPhase or None
        Prediction for the next phase from those before it; None: phases are unknown or too few.
    per : {"call", "MiB"}
        What durations are of.
    """

    n: int
    tasks: int
    median_s: float | None
    mean_s: float | None
    low_s: float | None
    high_s: float | None
    level: float
    method: str
    observed_max_s: float | None
    exchangeable: bool | None
    broken_by: tuple[Factor, ...]
    phases: int | None
    effective_phases: float | None
    effective_n: float
    equation1: Equation1 | None
    refused: str | None
    unsettled: str | None = None
    reach: int = 0
    unseen_share: float = 1.0
    threshold_s: float | None = None
    shape: float | None = None
    exceedances: int | None = None
    next_phase: NextPhase | None = None
    per: str = "call"

    @property
    def width(self) -> float | None:
        """Ratio of the ends of the interval; None: refused."""
        return None if self.low_s is None or self.high_s is None else self.high_s / self.low_s

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``ensio tail --json`` prints."""
        one_in = 1 / self.unseen_share if self.unseen_share > 0 else None
        more = {"width": self.width, "unseen_level": UNSEEN_LEVEL, "unseen_one_in": one_in}
        return {name: value for name, value in super().to_json().items() if name != "per"} | more


UNSEEN_LEVEL = 1 - SIGNIFICANT
"""Probability with which a kind of calls that none of the calls shows has at most `Tail.unseen_share`."""
