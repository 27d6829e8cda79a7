"""Non-blocking requests: how many completed, and the time in the calls that posted them."""

from __future__ import annotations

import numpy as np

from ensembles.model.events import OPS, Events, op_of_calls
from ensembles.model.flights import OPERATIONS
from ensembles.passes.summary import ANY_ORDER, Summary


class Requests(Summary):
    """A mergeable summary: requests with a known flight that were not posted inside another call.

    Attributes
    ----------
    requests : dict of str to int
        Number of requests by operation (`ensembles.model.flights.OPERATIONS`).
    post_ns : dict of str to int
        Time in the calls that posted them.

    Examples
    --------
    >>> from ensembles.passes.summary import ignoring_run
    >>> from ensembles.summaries.requests import Requests
    >>> en.open("ensio-ior").summarize(ignoring_run(Requests)).requests
    {'read': 0, 'write': 0, 'other': 0}
    """

    of_all_calls = True
    columns = ("call", "depth", "duration", "flight")
    requires = ANY_ORDER
    results = ("requests", "post_ns")

    def __init__(self) -> None:
        self.requests = dict.fromkeys(OPERATIONS, 0)
        self.post_ns = dict.fromkeys(OPERATIONS, 0)

    def add(self, chunk: Events) -> None:
        """Add events."""
        posted = np.flatnonzero((chunk.flight >= 0) & (chunk.depth == 0))
        if not len(posted):
            return
        op, duration = op_of_calls(chunk.calls)[chunk.call[posted]], chunk.duration[posted]
        known = [op == OPS.index(name) for name in OPERATIONS[:2]]
        for name, mine in zip(OPERATIONS, [*known, ~(known[0] | known[1])], strict=True):
            self.requests[name] += int(mine.sum())
            self.post_ns[name] += int(duration[mine].sum())

    def merge(self, other: Requests) -> None:
        """Add a summary of other events of the same run."""
        for name in OPERATIONS:
            self.requests[name] += other.requests[name]
            self.post_ns[name] += other.post_ns[name]

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return ``requests`` and ``post_ns``, each of shape (3,), in the order of `OPERATIONS`."""
        return {
            "requests": np.array(list(self.requests.values()), np.int64),
            "post_ns": np.array(list(self.post_ns.values()), np.int64),
        }
