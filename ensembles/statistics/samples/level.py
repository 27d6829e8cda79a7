"""The one check of the level of an interval."""

from __future__ import annotations

import numbers

from ensembles.model.errors import EnsioError


def check_level(level: float) -> float:
    """Return a level between 0 and 1, or raise an `EnsioError`."""
    if isinstance(level, bool) or not isinstance(level, numbers.Real) or not 0 < level < 1:
        raise EnsioError(f"the level {level!r} is not between 0 and 1: give for example 0.9")
    return float(level)
