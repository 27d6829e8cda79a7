"""Estimate: a number and the interval in which the true one lies."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from ensembles.model.units import seconds_text


@dataclass(frozen=True)
class Estimate:
    """A value with its interval.

    Attributes
    ----------
    value : float
        NaN: the data cannot say it.
    low, high : float
        Ends of the interval; infinite where the data bound it on one side only, NaN where not at all.
    """

    value: float
    low: float = math.nan
    high: float = math.nan

    def to_json(self) -> dict[str, float | None]:
        """``value``, ``low`` and ``high``, each a finite number or None."""
        return {name: finite(getattr(self, name)) for name in ("value", "low", "high")}

    def __str__(self) -> str:
        return f"{self.value:.4g} ({self.low:.4g} to {self.high:.4g})"


def finite(value: float) -> float | None:
    """A number for JSON: None where it is not finite."""
    return float(value) if math.isfinite(value) else None


def estimates_lines(estimates: Mapping[str, Estimate]) -> list[str]:
    """A line for people of each estimate by its name; those that end in ``_s`` are seconds."""
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
