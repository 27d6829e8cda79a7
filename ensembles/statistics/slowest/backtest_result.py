"""What became of predictions of the slowest call."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Any

from ensembles.units import count_text


@dataclass(frozen=True)
class Coverage:
    """What became of the predictions of one way of leaving out.

    Attributes
    ----------
    kind : str
        What was left out: ``phases`` (some at a time, at random), ``later phases`` (the second half),
        ``ranks`` (a random half), or ``calls`` (at random; where phases are not known).
    coverage : float or None
        Share of the trials in which the slowest call left out lay within its interval; None: no trial.
    below, above : float or None
        Shares below and above the interval.
    trials, refused : int
        Left-out phases with a prediction, and without: predictions that were refused. Phases with less than
        half of the usual number of calls are not predicted.
    width : float or None
        Median of high / low.
    reason : str or None
        Why there is no trial, or why predictions were refused.
    """

    kind: str
    coverage: float | None
    below: float | None
    above: float | None
    trials: int
    refused: int
    width: float | None
    reason: str | None


@dataclass(frozen=True)
class Backtest:
    """Coverage of the intervals for the slowest of N on the data themselves.

    Attributes
    ----------
    coverage, trials, refused, width
        Those of the first way of leaving out.
    level : float
    tasks : int or None
        As asked for; None: as many as each phase had.
    kinds : tuple of Coverage
        All ways of leaving out.
    """

    coverage: float | None
    level: float
    trials: int
    tasks: int | None
    refused: int
    width: float | None
    kinds: tuple[Coverage, ...]

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes."""
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        found["kinds"] = [{one.name: getattr(kind, one.name) for one in fields(kind)} for kind in self.kinds]
        return found

    def __str__(self) -> str:
        lines = [f"intervals meant to hold in {100 * self.level:g} % of cases"]
        for kind in self.kinds:
            if kind.coverage is None:
                lines.append(f"  {kind.kind} left out: no trial, {kind.reason}")
                continue
            lines.append(
                f"  {kind.kind} left out: held in {100 * kind.coverage:.0f} % of "
                f"{count_text(kind.trials, 'trial')}, median width a factor of {kind.width:.3g}"
                + (f"; {kind.refused:,} refused" if kind.refused else "")
            )
        return "\n".join(lines)
