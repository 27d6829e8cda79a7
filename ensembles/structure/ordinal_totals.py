"""What the calls of one ordinal add up to."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class OrdinalTotals:
    """The calls of one ordinal, or of a range of them.

    Attributes
    ----------
    ordinal, to : int
        The first and the last ordinal; mostly they are the same.
    n : int
        Calls.
    tasks : int or None
        Tasks that made them; None: not known.
    median_s, p90_s, min_s, max_s, mean_s : float
    """

    ordinal: int
    to: int
    n: int
    tasks: int | None
    median_s: float
    p90_s: float
    min_s: float
    max_s: float
    mean_s: float

    def to_json(self) -> dict[str, Any]:
        """A dict with the names of the attributes."""
        return asdict(self)
