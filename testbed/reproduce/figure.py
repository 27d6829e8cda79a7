"""A published number, compared with the same number of a simulated run."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Figure:
    """A published number and its simulated counterpart.

    Attributes
    ----------
    case, what : str
        Case study and quantity.
    paper : float
        Published value; NaN if the paper does not give a number.
    ours : float
        Simulated value.
    low, high : float
        Tolerance interval of the simulated value.
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
        """Whether the simulated value is within the tolerance interval."""
        return bool(self.low <= self.ours <= self.high)

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a table row, as in `HEADERS`."""
        has_ratio = np.isfinite(self.paper) and self.paper != 0
        return (
            self.case,
            self.what,
            f"{self.paper:.4g} {self.unit}".rstrip() if np.isfinite(self.paper) else "–",
            f"{self.ours:.4g} {self.unit}".rstrip(),
            f"{self.ours / self.paper:.2f}" if has_ratio else "–",
            f"{_end(self.low)} to {_end(self.high)}",
            "yes" if self.met else "no",
        )


HEADERS = ("case", "quantity", "paper", "simulated", "ratio", "tolerance", "met")


def within(share: float, case: str, what: str, paper: float, ours: float, unit: str = "s") -> Figure:
    """Return a number with a relative tolerance around the published value.

    Parameters
    ----------
    share : float
        Relative tolerance.
    case, what, paper, ours, unit
        As for `Figure`.

    Examples
    --------
    >>> within(0.1, "IOR", "mode R", 32.0, 30.9).met
    True
    """
    return Figure(case, what, paper, ours, paper * (1 - share), paper * (1 + share), unit)


def _end(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else "any"
