"""A published number, compared with the same number of simulated runs at several seeds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

Kind = Literal["predicted", "fitted", "by construction"]
"""Where a simulated number comes from.

``predicted``        no number or rule of the model was chosen with this number of the paper in view, and
                     the paper's words define what is compared
``fitted``           a number or a rule of the model was chosen so that this one comes out, or what is
                     compared was chosen with the result in view
``by construction``  it follows from a number or a cause that the paper states and the model takes over

A number that another row has in other units (a rate and the time of the same bytes) has no row.
"""

TOLERANCE = 0.3
"""Relative tolerance of the median, unless a row has another one."""


@dataclass(frozen=True)
class Figure:
    """A published number and its simulated counterpart at one seed."""

    # case, what: Case study and quantity; together the name of the row
    case: str
    what: str
    kind: Kind
    paper: float  # Published value; NaN if the paper says it without a number
    ours: float  # Simulated value; NaN if the simulated run does not show it
    # low, high: Tolerance interval of the median
    low: float
    high: float
    unit: str = "s"


def near(
    case: str,
    what: str,
    kind: Kind,
    paper: float,
    ours: float,
    unit: str = "s",
    tolerance: float = TOLERANCE,
) -> Figure:
    """Return a number with a relative tolerance around the published value."""
    return Figure(case, what, kind, paper, ours, paper * (1 - tolerance), paper * (1 + tolerance), unit)


@dataclass(frozen=True)
class Row:
    """A published number and its simulated counterparts at all seeds."""

    first: Figure  # At the first seed
    values: np.ndarray  # Simulated values; NaN where a run does not show it

    @property
    def name(self) -> tuple[str, str]:
        """Case and quantity."""
        return self.first.case, self.first.what

    @property
    def median(self) -> float:
        """Median of the simulated values; NaN if half of the runs do not show it."""
        shown = self.values[np.isfinite(self.values)]
        return float(np.median(shown)) if 2 * len(shown) > len(self.values) else float("nan")

    @property
    def met(self) -> bool:
        """Whether the median is within the tolerance interval."""
        return bool(self.first.low <= self.median <= self.first.high)

    def _range(self) -> tuple[float, float]:
        """Return simulated values between which at least 90 % of them lie."""
        shown = self.values[np.isfinite(self.values)]
        low = np.percentile(shown, 5, method="lower")
        return float(low), float(np.percentile(shown, 95, method="higher"))

    def cells(self) -> tuple[str, ...]:
        """Return the cells of a table row, as in `HEADERS`."""
        unit, median = self.first.unit, self.median
        shown = self.values[np.isfinite(self.values)]
        low, high = self._range() if len(shown) else (np.nan, np.nan)
        has_ratio = np.isfinite(self.first.paper) and self.first.paper != 0 and np.isfinite(median)
        return (
            self.first.case,
            self.first.what,
            self.first.kind,
            f"{self.first.paper:.4g} {unit}".rstrip() if np.isfinite(self.first.paper) else "–",
            f"{median:.4g} {unit}".rstrip() if np.isfinite(median) else "not seen",
            f"{low:.4g} – {high:.4g}" if len(shown) else "",
            f"{median / self.first.paper:.2f}" if has_ratio else "–",
            f"{_end(self.first.low)} – {_end(self.first.high)}",
            "yes" if self.met else "no",
        )


HEADERS = ("case", "quantity", "kind", "paper", "median", "90 % of seeds", "ratio", "tolerance", "met")


def rows_of(by_seed: Sequence[Iterable[Figure]]) -> list[Row]:
    """Put the figures of all seeds together."""
    columns = [list(figures) for figures in by_seed]
    return [Row(same[0], np.array([figure.ours for figure in same])) for same in zip(*columns, strict=True)]


def summary(rows: Sequence[Row]) -> list[str]:
    """Say for each kind how many rows are within their tolerance."""
    told = []
    for kind in ("predicted", "fitted", "by construction"):
        mine = [row for row in rows if row.first.kind == kind]
        if mine:
            met = sum(row.met for row in mine)
            share = f" ({100 * met / len(mine):.0f} %)" if kind == "predicted" else ""
            told.append(f"{kind}: {met} of {len(mine)} within tolerance{share}")
    return told


def _end(value: float) -> str:
    return f"{value:.4g}" if np.isfinite(value) else "any"
