"""How many calls with the longest durations are wanted."""

from __future__ import annotations

import math


def wanted_calls(most: float, calls: int) -> int:
    """Compute how many calls a number or a share means.

    `most`: number of calls; a number below 1 is a share of them, of which at least one call is taken.
    `ValueError`: `most` is negative, not a number, or neither whole nor a share.

    Examples
    --------
    >>> from ensembles.model.slowest_calls import wanted_calls
    >>> wanted_calls(20, 160), wanted_calls(0.05, 160), wanted_calls(500, 160)
    (20, 8, 160)
    """
    if not most >= 0 or (most >= 1 and not float(most).is_integer() and math.isfinite(most)):
        raise ValueError(f"{most} is neither a number of calls nor a share of them, such as 20 or 0.01")
    if most >= 1 or most == 0:
        return int(min(most, calls))
    return min(max(round(most * calls), 1), calls)
