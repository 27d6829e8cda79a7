"""Thresholds that rules share: one for each question, so that all rules give it the same answer.

They were chosen once and are not tuned to a set of runs; docs/reference/calibration/diagnosis.md has what
they do on runs that played no part.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ensembles.model.units import MIB

LOW = 0.5
"""Part of a saving at its lower end, where one run does not show how much of it is gained."""

DENSE = 0.7
"""Part of a whole from which it stands for the whole: bytes of a range, a full cache, what is surely kept."""

FAR = 3.0
"""Ratio from which two numbers are of different kinds: a mean describes no call, bytes are read again."""

LEAST_UNITS = 4
"""Tasks, nodes, files or targets of which one can be compared with the others."""

LEAST_CALLS = 8
"""Calls of a task, in a phase or long ones in all, from which on they are a habit."""

MANY = 64
"""Tasks of a file, or requests, from which their number may matter."""

SMALL_CLASS = 18
"""Requests below 2^18 bytes: a request of a target's stripe is four times as large, or more."""

LARGE_BYTES = MIB
"""Bytes of a request, or of a file, from which the time is that of the bytes: what a buffer makes of small
requests."""

WIDE_BYTES = 16 * MIB
"""Bytes that are work for several targets at once."""

NORMAL_90 = 1.6448536269514722
"""Standard deviations of a normal distribution that are half its 90 % interval."""

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
    >>> from ensembles.diagnosis.limits import fixed_costs_ns
    >>> [cost.tolist() for cost in fixed_costs_ns(np.array([4000.0]), [np.array([5000.0])] * 3)]
    [[3000.0], [4000.0], [4666.666666666667]]
    """
    copied = mean_bytes < COPIED_BYTES
    rates = (
        np.where(copied, small, large)
        for small, large in zip(COPIED_BYTES_PER_NS, SHARED_MEMORY_BYTES_PER_NS, strict=True)
    )
    return [np.maximum(floor - mean_bytes / rate, 0) for floor, rate in zip(floors_ns, rates, strict=True)]


def share_joined(calls: np.ndarray, moved: np.ndarray) -> np.ndarray:
    """Compute which share of calls goes in pieces of `LARGE_BYTES`; 0: they are fewer than `LEAST_CALLS`."""
    left = np.ones(calls.shape)
    np.divide(np.ceil(moved / LARGE_BYTES), calls, out=left, where=calls >= LEAST_CALLS)
    share: np.ndarray = 1 - np.minimum(left, 1.0)
    return share
