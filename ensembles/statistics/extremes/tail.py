"""The predicted slowest of N calls, as an answer."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import Any

from ensembles.faces.answer import Answer
from ensembles.model.statement import Interval, LowerBound, Part, Statement, Table
from ensembles.model.units import share_text
from ensembles.statistics.extremes.exchangeability import (
    Factor,
)
from ensembles.statistics.extremes.next_phase import NextPhase
from ensembles.statistics.extremes.order_statistics import (
    Equation1,
)

METHODS = {
    "within-reach": "order statistics of exchangeable calls, whatever their distribution",
    "beyond": "a tail fitted above the last mode of exchangeable calls, with its uncertainty",
    "phases": "the slowest calls of past phases",
    "phases-carried": "the slowest calls of past phases, extrapolated along the tails of their phases",
    "blocks": "the slowest calls of blocks of time, because phases are unknown or have a single call",
}
"""Methods of a prediction: what it is based on."""


@dataclass(frozen=True)
class Tail(Answer):
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
    extremal_index : float or None
        One over the mean size of the clusters in time of slow calls; None: times are unknown.
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
    extremal_index: float | None
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

    question = "tail"

    @property
    def width(self) -> float | None:
        """Ratio of the ends of the interval; None: refused."""
        return None if self.low_s is None or self.high_s is None else self.high_s / self.low_s

    def to_json(self) -> dict[str, Any]:
        """Return the object that ``ensio tail --json`` prints."""
        found = {field.name: getattr(self, field.name) for field in fields(self) if field.name != "per"}
        found["width"] = self.width
        found["unseen_level"] = UNSEEN_LEVEL
        found["unseen_one_in"] = 1 / self.unseen_share if self.unseen_share > 0 else None
        found["equation1"] = None if self.equation1 is None else self.equation1.to_json()
        found["next_phase"] = None if self.next_phase is None else self.next_phase.to_json()
        found["broken_by"] = [
            {"by": one.name, "p_value": one.p_value, "share": one.share, "groups": one.groups}
            for one in self.broken_by
        ]
        return found

    @property
    def parts(self) -> tuple[Part, ...]:
        """A title, a table with Equation 1 of the paper, and what the prediction is based on."""
        values = {"tasks": self.tasks, "calls": self.n, "phases": self.phases}
        head = Statement("tail.what", values | {"is_one": self.tasks == 1, "is_several": self.tasks > 1})
        unit = "s/MiB" if self.per == "MiB" else "s"
        units = {"": "", "median": unit, f"{100 * self.level:g} % interval": unit, "width": "ratio"}
        rows = [self._row("prediction", self)]
        if self.equation1 is not None:
            rows.append(self._row("Equation 1", self.equation1))
        table = Table.of_rows("row", {**units, "mean": unit}, rows)
        return ((head,), table, tuple(self._said(unit)))

    def _row(self, name: str, found: Tail | Equation1) -> tuple[Any, ...]:
        if found.low_s is None or found.median_s is None:
            return name, *"----"
        if found.high_s is None:
            # The median of the slowest of N lies among n calls if N < n log 2.
            reaches = self.tasks < self.n * math.log(2)
            median = found.median_s if reaches else LowerBound(found.median_s)
            return name, median, LowerBound(found.low_s), "-", LowerBound(found.mean_s or 0.0)
        mean = "-" if found.mean_s is None else found.mean_s
        width = found.high_s / found.low_s if found.low_s > 0 else "-"
        return name, found.median_s, Interval(found.low_s, found.high_s), width, mean

    def _said(self, unit: str) -> Iterator[Statement]:
        """Say what the prediction is based on, what it assumes, and how far it reaches."""
        if self.tasks == 1:
            yield Statement("tail.one_task")
        if self.refused is not None:
            yield Statement("tail.refused", {"why": self.refused})
        else:
            yield Statement("tail.method", {"method": METHODS[self.method]})
            if self.mean_s is None:
                yield Statement("tail.no_mean")
        if self.unsettled is not None:
            yield Statement("tail.unsettled", {"why": self.unsettled})
        following = self.next_phase
        if following is not None:
            interval = following.refused or Interval(following.low_s or 0.0, following.high_s or 0.0)
            known = {"coverage": following.coverage, "trials": following.trials, "width": following.width}
            yield Statement("tail.next", {**known, "interval": interval, "unit": unit})
        most = "-" if self.observed_max_s is None else self.observed_max_s
        yield Statement("tail.observed", {"max_s": most, "unit": unit})
        yield self._exchangeability()
        if 0.5 < self.unseen_share < 1:
            yield Statement("tail.few")
        elif 0 < self.unseen_share < 1:
            yield Statement("tail.unseen", {"one_in": round(1 / self.unseen_share), "level": UNSEEN_LEVEL})
        if self.equation1 is not None:
            is_bound, made = self.equation1.is_bound, self.equation1.phases
            some = made if made is not None and made < (self.phases or 0) and not is_bound else None
            values = {"is_bound": is_bound, "calls": self.n, "tasks": self.tasks, "phases": self.phases}
            yield Statement("tail.equation", values | {"made": some})

    def _exchangeability(self) -> Statement:
        if self.exchangeable is None:
            return Statement("tail.untested")
        if self.exchangeable:
            return Statement("tail.exchangeable")
        based_on_all = self.method in _OF_EXCHANGEABLE
        few, phases = self.effective_n < 0.9 * self.n, self.effective_phases
        alike = phases is not None and self.phases and phases < 0.9 * self.phases
        values = {
            "causes": ", ".join(f"{one.name} ({share_text(one.share)})" for one in self.broken_by),
            "is_based_on_all": based_on_all,
            "is_not": not based_on_all,
            "effective": round(self.effective_n) if few else None,
            "effective_phases": round(phases) if phases is not None and alike else None,
        }
        return Statement("tail.dependent", values)


_OF_EXCHANGEABLE = ("within-reach", "beyond")
UNSEEN_LEVEL = 0.95
"""Probability with which a kind of calls that none of the calls shows has at most `Tail.unseen_share`."""
