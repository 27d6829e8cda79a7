"""Estimate: a number with its confidence interval."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from ensembles.model.fields import Fields
from ensembles.model.notebook_html import Printed
from ensembles.model.units import number_text, seconds_text

MOST_WIDTH = 30.0
"""Largest ratio of the ends of an interval of durations: a wider one is refused."""


@dataclass(frozen=True)
class Estimate(Printed, Fields):
    """A value with its confidence interval.

    Attributes
    ----------
    value : float
        NaN: the data do not determine it.
    low, high : float
        Ends of the interval; infinite if the data give no bound on that side, NaN if on neither.
    """

    value: float
    low: float = math.nan
    high: float = math.nan

    def __str__(self) -> str:
        text = partial(number_text, digits=4)
        if not math.isfinite(self.value):
            return "not determined"
        return f"{text(self.value)} ({interval_text(self.low, self.high, text)})"


def interval_text(low: float, high: float, text: Callable[[float], str], least: float = -math.inf) -> str:
    """Format an interval whose ends may be unknown."""
    bounded_low, bounded_high = math.isfinite(low) and low > least, math.isfinite(high)
    if bounded_low and bounded_high:
        return f"{text(low)} to {text(high)}"
    if bounded_high:
        return f"{text(high)} or less"
    return f"{text(low)} or more" if bounded_low else "interval not determined"


def estimates_lines(estimates: Mapping[str, Estimate]) -> list[str]:
    """Format each estimate as a line with its name; names that end in ``_s`` are in seconds."""
    lines = []
    for name, found in estimates.items():
        text: Callable[[float], str] = seconds_text if name.endswith("_s") else partial(number_text, digits=4)
        plain = name.removesuffix("_s").replace("l_", "L-").replace("_", " ")
        value = text(found.value) if math.isfinite(found.value) else "not determined"
        ends = interval_text(found.low, found.high, text)
        known = math.isfinite(found.value)
        lines.append(f"  {plain:<20} {value}" + (f"  ({ends})" if known else ""))
    return lines
