"""Number of events of a run."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import Events
from ensembles.passes.summary import ANY_ORDER, Summary


class EventCount(Summary):
    """A mergeable summary: the number of events."""

    columns = ("duration",)
    requires = ANY_ORDER
    results = ("events",)

    def __init__(self) -> None:
        self.events = 0

    def add(self, chunk: Events) -> None:
        """Add events."""
        self.events += len(chunk)

    def merge(self, other: EventCount) -> None:
        """Add another count."""
        self.events += other.events

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``events``."""
        return {"events": np.array(self.events, np.int64)}
