"""Estimate: a number with its confidence interval."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ensembles.model.units import seconds_text


@dataclass(frozen=True)
class Estimate:
    """A value with its confidence interval.

    Attributes
    ----------
    value : float
        NaN: the data do not determine it.
    low, high : float
        Ends of the interval; infinite if the data give no bound on that side, NaN if on neither.

    Examples
    --------
    >>> print(Estimate(1.0, 0.9, 1.2))
    1 (0.9 to 1.2)
    """

    value: float
    low: float = math.nan
    high: float = math.nan

    def to_json(self) -> dict[str, float | None]:
        """Return ``value``, ``low`` and ``high``, each a finite number or None."""
        return {name: finite(getattr(self, name)) for name in ("value", "low", "high")}

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


def finite(value: float) -> float | None:
    """Return a number for JSON; None if it is not finite."""
    return float(value) if math.isfinite(value) else None


def estimates_lines(estimates: Mapping[str, Estimate]) -> list[str]:
    """Format each estimate as a line with its name; names that end in ``_s`` are in seconds."""
    lines = []
    for name, found in estimates.items():
        in_s = name.endswith("_s")
        texts = [
            seconds_text(value) if in_s and math.isfinite(value) else f"{value:.4g}"
            for value in (found.value, found.low, found.high)
        ]
        plain = name.removesuffix("_s").replace("l_", "L-").replace("_", " ")
        ends = f"{texts[1]} to {texts[2]}"
        if found.high == math.inf or found.low == -math.inf:
            ends = f"{texts[1]} or more" if found.low > -math.inf else f"{texts[2]} or less"
        lines.append(f"  {plain:<20} {texts[0]}  ({ends})")
    return lines
