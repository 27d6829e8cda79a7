"""A figure of a paper, beside the same of our runs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Figure:
    """One number.

    Attributes
    ----------
    case, what : str
        Where it stands, and of what it is.
    paper : float
        What the paper says; NaN where it says something else than a number.
    ours : float
    low, high : float
        Between these ours shall lie.
    unit : str
    """

    case: str
    what: str
    paper: float
    ours: float
    low: float
    high: float
    unit: str = "s"

    @property
    def met(self) -> bool:
        """Whether ours lies where it shall."""
        return bool(self.low <= self.ours <= self.high)

    def cells(self) -> tuple[str, ...]:
        """Of a table: case, figure, paper, ours, ratio, goal, met."""
        told = np.isfinite(self.paper) and self.paper != 0
        return (
            self.case,
            self.what,
            f"{self.paper:.4g} {self.unit}".rstrip() if np.isfinite(self.paper) else "–",
            f"{self.ours:.4g} {self.unit}".rstrip(),
            f"{self.ours / self.paper:.2f}" if told else "–",
            f"{_end(self.low)} to {_end(self.high)}",
            "yes" if self.met else "no",
        )


HEADERS = ("case", "figure", "paper", "ours", "ratio", "goal", "met")


def within(share: float, case: str, what: str, paper: float, ours: float, unit: str = "s") -> Figure:
    """A figure that shall differ from the paper's by at most this share of it."""
    return Figure(case, what, paper, ours, paper * (1 - share), paper * (1 + share), unit)


def _end(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else "any"
