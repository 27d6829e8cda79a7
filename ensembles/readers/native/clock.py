"""How long a tick of a process's clock is."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import median_high
from typing import NamedTuple

from ensembles.model.c_layout import CONSTANTS
from ensembles.readers.native.spool import Spool

_PRECISE_NS = 1_000_000_000
"""Readings this far apart give the rate to better than a millionth."""

_ROUGH_NS = 1_000_000
"""Readings nearer than this may give a rate that is wrong by more than a ten-thousandth."""


_DAY_NS = 86_400 * 10**9

_SLOWEST_NS_PER_TICK = 1e3
_FASTEST_NS_PER_TICK = 0.05
"""No machine's counter ticks slower than 1 MHz or faster than 20 GHz: such readings are damaged."""


class _Rate(NamedTuple):
    span_ns: int
    ns_per_tick: float


_NONE = _Rate(0, 0.0)


@dataclass(slots=True)
class Clocks:
    """The tick rates of the processes of a run.

    A process reads its tick counter and the system's clock together when it begins, now and then, and when it
    ends. One that was killed early has readings that lie close together, or only one: it borrows the rate of
    the process of its host whose readings lie farthest apart, for their counters tick alike.

    Attributes
    ----------
    notes : list of str
        Which rates are known only roughly, are borrowed from another host, or are not known.
    """

    spools: Sequence[Spool]
    notes: list[str] = field(init=False, default_factory=list)
    _best: dict[bytes, _Rate] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for spool in self.spools:
            rate = _own_rate(spool)
            if rate > self._best.get(_host(spool), _NONE):
                self._best[_host(spool)] = rate

    def ns_per_tick(self, spool: Spool) -> float:
        """Nanoseconds a tick of this process's clock."""
        if spool.head.clock == CONSTANTS["ENSIO_CLOCK_MONOTONIC"]:
            return 1.0
        own = _own_rate(spool)
        if own.span_ns >= _PRECISE_NS:
            return own.ns_per_tick
        best = self._best.get(_host(spool), _NONE)
        # A rate that differs by more than short readings explain is that of another machine of the same name.
        if own is not _NONE and abs(best.ns_per_tick / own.ns_per_tick - 1) > 0.01 + 1e4 / own.span_ns:
            best = own
        if best is not _NONE:
            if best.span_ns < _ROUGH_NS and not spool.ended:
                self.notes.append(
                    f"the clock rate of {spool.name} is known only roughly (it has not ended): its times "
                    f"may be off by {100 / best.span_ns:.1%}"
                )
            return best.ns_per_tick
        return self._foreign_rate(spool)

    def _foreign_rate(self, spool: Spool) -> float:
        head = spool.head
        at_once = (head.last_ticks, head.last_monotonic_ns) == (head.first_ticks, head.first_monotonic_ns)
        why = "it was killed at once" if at_once else "its readings of the clock make no sense"
        what = f"the clock rate of {spool.name} is not known ({why})"
        if self._best:
            other, rate = max(self._best.items(), key=lambda item: item[1])
            host = os.fsdecode(other)
            self.notes.append(f"{what} and taken from host {host}: its times may be wrong by a factor")
            return rate.ns_per_tick
        self.notes.append(
            f"{what}: its times are in ticks of the processor's counter as if these were nanoseconds, "
            "too long by a factor of about 2 to 4"
        )
        return 1.0


def notes_on_wrong_clocks(spools: Sequence[Spool]) -> list[str]:
    """Hosts whose time of day is more than a day from that of most processes, one sentence each."""
    usual_ns = median_high(spool.head.first_realtime_ns for spool in spools)
    notes: dict[bytes, str] = {}
    for spool in spools:
        late_ns = spool.head.first_realtime_ns - usual_ns
        if abs(late_ns) > _DAY_NS:
            host = os.fsdecode(_host(spool)) or f"of {spool.name}"
            notes.setdefault(
                _host(spool),
                f"the clock of host {host} was {abs(late_ns) / _DAY_NS:,.0f} days "
                f"{'ahead of' if late_ns > 0 else 'behind'} that of most processes when recording began: if "
                "they ran together, its calls are shown far from the others, and the run's span is wrong",
            )
    return list(notes.values())


def _host(spool: Spool) -> bytes:
    return spool.properties.get(b"host", b"")


def _own_rate(spool: Spool) -> _Rate:
    """The rate by a process's own readings, if it is one that a machine may have."""
    head = spool.head
    ticks = head.last_ticks - head.first_ticks
    elapsed_ns = head.last_monotonic_ns - head.first_monotonic_ns
    if head.clock == CONSTANTS["ENSIO_CLOCK_MONOTONIC"] or ticks <= 0 or elapsed_ns <= 0:
        return _NONE
    ns_per_tick = elapsed_ns / ticks
    if not _FASTEST_NS_PER_TICK <= ns_per_tick <= _SLOWEST_NS_PER_TICK:
        return _NONE
    return _Rate(elapsed_ns, ns_per_tick)
