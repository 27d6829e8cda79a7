"""How long a tick of a process's clock is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field

from ensembles.readers.layout import CONSTANTS
from ensembles.readers.spool import Spool


@dataclass(slots=True)
class Clocks:
    """The tick rates of the processes of a run.

    A process reads its tick counter and the system's clock together when it begins and when it ends. One that
    was killed soon after its start has only one reading: it borrows the rate of another process of its host,
    whose counter ticks alike.

    Attributes
    ----------
    notes : list of str
        Which rates are borrowed from another host, or not known.
    """

    spools: Sequence[Spool]
    notes: list[str] = field(init=False, default_factory=list)
    _best: dict[bytes, tuple[int, float]] = field(init=False, default_factory=dict)
    _unknown: int = field(init=False, default=0)

    def __post_init__(self) -> None:
        for spool in self.spools:
            rate, span_ticks = _own_rate(spool)
            host = spool.properties.get(b"host", b"")
            if rate and span_ticks > self._best.get(host, (0, 0.0))[0]:
                self._best[host] = (span_ticks, rate)

    def ns_per_tick(self, spool: Spool) -> float:
        """Nanoseconds a tick of this process's clock."""
        if spool.head.clock == CONSTANTS["ENSIO_CLOCK_MONOTONIC"]:
            return 1.0
        rate, _ = _own_rate(spool)
        if rate:
            return rate
        host = spool.properties.get(b"host", b"")
        if host in self._best:
            return self._best[host][1]
        if self._best:
            other, (_, rate) = max(self._best.items(), key=lambda item: item[1][0])
            self.notes.append(
                f"the clock rate of {spool.name} is not known (it was killed at once) and taken from "
                f"host {os.fsdecode(other)}: its times may be wrong by a factor"
            )
            return rate
        self.notes.append(
            f"the clock rate of {spool.name} is not known (it was killed at once): its times are in ticks of "
            "the processor's counter as if these were nanoseconds, too long by a factor of about 2 to 4"
        )
        return 1.0


def _own_rate(spool: Spool) -> tuple[float, int]:
    """Nanoseconds a tick by a process's own readings (0.0: it has only one), and the ticks between them."""
    head = spool.head
    ticks = head.last_ticks - head.first_ticks
    elapsed_ns = head.last_monotonic_ns - head.first_monotonic_ns
    if head.clock == CONSTANTS["ENSIO_CLOCK_MONOTONIC"] or ticks <= 0 or elapsed_ns <= 0:
        return 0.0, 0
    return elapsed_ns / ticks, ticks
