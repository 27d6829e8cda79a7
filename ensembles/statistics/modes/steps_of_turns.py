"""Steps of a ladder of durations: calls that begin together and are served one after the other."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ensembles.model.fields import Fields
from ensembles.model.units import count_text, seconds_text, share_text


@dataclass(frozen=True)
class StepsOfTurns(Fields):
    """Phases whose calls begin together and end one after the other, evenly spaced.

    Durations in such a phase are evenly spread from one step to all of them. Its first steps are apart on a
    logarithmic scale, where they look like modes; the others are not resolved.
    """

    unit: str  # What is served in turns: ``"node"`` or ``"task"``
    units: int  # Number of them, in the median phase
    step_s: float  # From one end to the next, in the median phase, in seconds
    longest_s: float  # From the first start to the last end, in the median phase, in seconds
    phases: int  # Phases with evenly spaced ends
    tested: int  # Phases that could show them
    share: float  # Share of the calls of these phases in all calls
    chance: float  # p-value: probability that independent ends are even in as many phases

    @property
    def explain_modes(self) -> bool:
        """Whether most calls are in such phases."""
        return self.share >= 0.5

    def to_json(self) -> dict[str, Any]:
        """Return the fields, and whether they explain the modes."""
        return super().to_json() | {"explain_modes": self.explain_modes}

    def __str__(self) -> str:
        where = f"in {self.phases:,} of {count_text(self.tested, 'phase')}"
        said = (
            f"steps {seconds_text(self.step_s)} apart: {self.units:,} {self.unit}s begin together and are "
            f"served one after the other (node-serialisation) {where}, with {share_text(self.share, None)} "
            f"of the calls (p-value {self.chance:.2g}); durations are evenly spread up to "
            f"{seconds_text(self.longest_s)} there"
        )
        return said + ": short modes are single steps, and the longest is the rest" * self.explain_modes
