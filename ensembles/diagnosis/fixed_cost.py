"""What a small request costs whatever its size: its duration without the copying of its bytes."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

COPIED_BYTES = 8192
COPIED_BYTES_PER_NS = (2.0, 4.0, 12.0)
"""Rates at which requests below `COPIED_BYTES` are copied, for the least, likely and greatest gain: what they
cost beyond is the entry into the kernel and the work on their page."""

SHARED_MEMORY_BYTES_PER_NS = (0.25, 1.0, 1.0)
"""The same for larger requests, which new pages of memory and other tasks slow down."""


LEAST_TARGET_BYTES_PER_NS = 0.05
"""Rate at which any storage target writes, and a slow disk."""

OUTLIER = 16.0
"""Calls of this many times the median duration of their size wait for something else than the call."""


def fixed_costs_ns(mean_bytes: np.ndarray, floors_ns: Sequence[np.ndarray]) -> list[np.ndarray]:
    """Take the time of the bytes off durations.

    Examples
    --------
    >>> import numpy as np
    >>> from ensembles.diagnosis.fixed_cost import fixed_costs_ns
    >>> [cost.tolist() for cost in fixed_costs_ns(np.array([4000.0]), [np.array([5000.0])] * 3)]
    [[3000.0], [4000.0], [4666.666666666667]]
    """
    copied = mean_bytes < COPIED_BYTES
    rates = (
        np.where(copied, small, large)
        for small, large in zip(COPIED_BYTES_PER_NS, SHARED_MEMORY_BYTES_PER_NS, strict=True)
    )
    return [np.maximum(floor - mean_bytes / rate, 0) for floor, rate in zip(floors_ns, rates, strict=True)]
