"""What is said about the slowest of N calls."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ensembles.statistics.slowest.equation1 import Equation1
from ensembles.statistics.slowest.exchangeability import Factor
from ensembles.units import count_text, seconds_text

METHODS = {
    "within-reach": "the calls seen, with no assumption on their distribution",
    "beyond": "a tail above the last mode, with its uncertainty",
    "phases": "the slowest calls of the phases seen",
    "phases-carried": "the slowest calls of the phases seen, each carried up the tail of its phase",
    "blocks": "the slowest calls of stretches of time, as phases are not known or have a single call",
}
"""What an answer can stand on."""


@dataclass(frozen=True)
class Tail:
    """The slowest of N calls to come.

    Attributes
    ----------
    n, tasks : int
        Calls that were seen; calls, one a task, of which the slowest is asked for.
    median_s, mean_s, low_s, high_s : float or None
        Of its predictive distribution: the next one lies between low and high with the chance ``level``, what
        the data leave uncertain included. None: refused, or (the mean) not finite as far as the data say.
    level : float
    method : str
        What it stands on, a key of `METHODS`; ``refused``.
    observed_max_s : float or None
        The slowest call seen.
    exchangeable : bool or None
        No test found that it matters which phase, task or time a call belongs to; None: nothing could be
        tested.
    broken_by : tuple of Factor
        What matters, the most first.
    phases : int or None
        Phases that were seen; None: not known.
    effective_phases : float or None
        Independent phases that they are worth, as neighbours in time resemble each other.
    effective_n : float
        Independent calls that the calls are worth.
    extremal_index : float or None
        One over the mean number of slow calls that come together in time; None: times are not known.
    equation1 : Equation1 or None
        The paper's answer; None: there are no calls.
    refused : str or None
        Why there is no answer.
    unsettled : str or None
        Why the answer holds for phases from all over such a run, and not for those that come next: the run
        drifts, or has just changed. None: nothing says so.
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

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes, as ``ensio tail --json`` prints it."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        found["equation1"] = None if self.equation1 is None else self.equation1.to_json()
        found["broken_by"] = [
            {"by": one.name, "p_value": one.p_value, "share": one.share, "groups": one.groups}
            for one in self.broken_by
        ]
        return found

    def __str__(self) -> str:
        what = f"the slowest of {count_text(self.tasks, 'call')}"
        if self.refused or self.low_s is None or self.high_s is None or self.median_s is None:
            lines = [f"{what}: no answer, {self.refused}"]
        else:
            lines = [
                f"{what}: {seconds_text(self.low_s)} to {seconds_text(self.high_s)} with a chance of "
                f"{100 * self.level:g} %, median {seconds_text(self.median_s)}",
                f"  stands on {METHODS[self.method]}",
            ]
            if self.unsettled:
                lines.append(f"  {self.unsettled}")
        if self.equation1 is not None:
            lines.append(
                f"  Equation 1 (all calls independent and alike): {seconds_text(self.equation1.low_s)} to "
                f"{seconds_text(self.equation1.high_s)}"
            )
        return "\n".join(lines)
