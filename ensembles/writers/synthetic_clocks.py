"""Clocks of synthetic nodes, and the barriers at which their tasks read them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ensembles.readers.layout import CONSTANTS

_MEETINGS = CONSTANTS["ENSIO_MEETINGS"]
_LATENCY_NS = 10_000
"""A barrier takes so long after the last task has come."""


@dataclass(frozen=True, slots=True)
class NodeClock:
    """The clocks of a node at a true time, which is 0 when the job begins.

    Attributes
    ----------
    ticks_per_ns : float
    booted_ns : int
        Its monotonic clock at 0.
    unix_ns : int
        Its time of day at 0.
    drift : float
        Of both, ns more in each true ns; the tick counter does not drift.
    """

    ticks_per_ns: float
    booted_ns: int
    unix_ns: int
    drift: float

    def ticks(self, time_ns: np.ndarray | float) -> np.ndarray:
        """The tick counter at true times."""
        first = int(self.booted_ns * self.ticks_per_ns)
        return np.uint64(first) + np.rint(np.multiply(time_ns, self.ticks_per_ns)).astype("u8")

    def reading(self, name: str, time_ns: int) -> dict[str, int]:
        """Members of a spool's head: the reading `name` of all clocks."""
        elapsed_ns = time_ns + round(time_ns * self.drift)
        return {
            f"{name}_ticks": int(self.ticks(time_ns)),
            f"{name}_monotonic_ns": self.booted_ns + elapsed_ns,
            f"{name}_realtime_ns": self.unix_ns + elapsed_ns,
        }


class Barriers:
    """When the tasks of a job come to its barriers and leave them.

    Parameters
    ----------
    random : numpy.random.Generator
    tasks : int
    begin_ns : mapping of str to int
        True time at which the barriers of each meeting begin.
    skew_ns : float
        By how much tasks come and leave later than others: exponentially distributed with this mean.
    """

    def __init__(
        self, random: np.random.Generator, tasks: int, begin_ns: Mapping[str, int], skew_ns: float
    ) -> None:
        self._times: dict[str, np.ndarray] = {}
        for name, begin in begin_ns.items():
            left = np.full(tasks, float(begin))
            times = np.empty((_MEETINGS, 2, tasks))
            for barrier in times:
                barrier[0] = left + random.exponential(skew_ns, tasks)
                left = barrier[0].max() + _LATENCY_NS + random.exponential(skew_ns, tasks)
                barrier[1] = left
            self._times[name] = times

    def readings(self, rank: int, clock: NodeClock, meetings: Sequence[str]) -> dict[str, int]:
        """Members of a spool's head: what a task reads at the barriers of these meetings."""
        return {
            f"{name}{number}_{edge}": int(ticks)
            for name in meetings
            for number, barrier in enumerate(clock.ticks(self._times[name][:, :, rank]))
            for edge, ticks in zip(("entered", "left"), barrier, strict=True)
        }
