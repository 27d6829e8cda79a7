"""Tick rates of the processes' clocks."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from ensembles.model.c_layout import CONSTANTS
from ensembles.model.units import DAY_S, HALF_INT64, share_text
from ensembles.readers.native.spool import Spool

_PRECISE_NS = 1_000_000_000
"""Readings with this distance determine the rate to better than 1e-6."""

_RENEWAL_TICKS = 2 * CONSTANTS["ENSIO_CLOCK_RENEWAL_TICKS"]
"""Twice the time after which a thread renews the clock reading."""

_LEAST_TOLD = 5e-4
"""Errors of a rate below this would be told as 0.0 %."""


_DAY_NS = DAY_S * 10**9

_MONOTONIC = CONSTANTS["ENSIO_CLOCK_MONOTONIC"]

_POSSIBLE_NS_PER_TICK = (0.05, 1e3)
"""Limits of plausible rates: 20 GHz to 1 MHz. Readings beyond them are damaged."""


class _Rate(NamedTuple):
    span_ns: int
    ns_per_tick: float


_NONE = _Rate(0, 0.0)


@dataclass(slots=True)
class Clocks:
    """Tick rates of the processes of a run.

    A process reads its tick counter and the system's clock together at its start, from time to time, and at
    its end. A process that was killed early has readings close together, or only one. It gets the rate of the
    process of the same host whose readings are farthest apart, since their counters have the same rate.
    """

    spools: Sequence[Spool]
    # Sentences about rates that are inaccurate, taken from another host, or unknown
    notes: list[str] = field(init=False, default_factory=list)
    _best: dict[bytes, _Rate] = field(init=False, default_factory=dict)
    _known: dict[str, float] = field(init=False, default_factory=dict)
    _own: dict[str, _Rate] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        for spool in self.spools:
            rate = self._own[spool.path] = _own_rate(spool)
            if rate > self._best.get(spool.host, _NONE):
                self._best[spool.host] = rate

    def ns_per_tick(self, spool: Spool) -> float:
        """Return the length of a tick of a process's clock."""
        known = self._known.get(spool.path)
        if known is None:
            known = self._known[spool.path] = self._ns_per_tick(spool)
        return known

    def _ns_per_tick(self, spool: Spool) -> float:
        if spool.head.clock == _MONOTONIC:
            return 1.0
        own = self._own[spool.path]
        if own.span_ns >= _PRECISE_NS:
            return own.ns_per_tick
        best = self._best.get(spool.host, _NONE)
        # A difference beyond the error of short readings means another machine with the same name.
        if _differ(best, own):
            best = own
        if best is not _NONE:
            error = 100 / best.span_ns
            if not spool.ended and error >= _LEAST_TOLD:
                self.notes.append(
                    f"the clock rate of {spool.name} is inaccurate (it has not ended): its times may be "
                    f"wrong by {share_text(error, 1)}"
                )
            return best.ns_per_tick
        return self._foreign_rate(spool)

    def life_ticks(self, spool: Spool) -> int:
        """Return the time from the first clock reading after which a process made no call, in ticks.

        A process renews its reading with a call that ends `_RENEWAL_TICKS` later; recorders that keep sums
        do so, others may have been killed in a long call.
        """
        if not (spool.ended or spool.has_sums):
            return int(HALF_INT64)
        head, ns_per_tick = spool.head, self.ns_per_tick(spool)
        elapsed_ns = max(
            head.last_monotonic_ns - head.first_monotonic_ns, head.last_realtime_ns - head.first_realtime_ns
        )
        return int(max(head.last_ticks - head.first_ticks, elapsed_ns / ns_per_tick, 0)) + _RENEWAL_TICKS

    def step_s(self) -> float | None:
        """Return the step of the coarsest of the clocks, in seconds; None: one is unknown.

        A counter advances by one tick or more at a time, as the recorder measured; older recorders did not.
        The system's clock shows nanoseconds that were rounded from an unknown counter.
        """
        steps = []
        for spool in self.spools:
            ticks = spool.properties.get(b"clock_step_ticks", b"")
            told = int(ticks) if ticks.isdigit() and len(ticks) < 6 else 0
            if not told or spool.head.clock == _MONOTONIC:
                return None
            steps.append(told * self.ns_per_tick(spool))
        return 1e-9 * max(steps) if steps else None

    def _foreign_rate(self, spool: Spool) -> float:
        head = spool.head
        at_once = (head.last_ticks, head.last_monotonic_ns) == (head.first_ticks, head.first_monotonic_ns)
        why = "it was killed at once" if at_once else "its clock readings are implausible"
        what = f"the clock rate of {spool.name} is unknown ({why})"
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
    """Describe the hosts whose time of day differs by more than a day from that of most processes."""
    usual_ns = sorted(spool.head.first_realtime_ns for spool in spools)[len(spools) // 2]
    notes: dict[bytes, str] = {}
    for spool in spools:
        late_ns = spool.head.first_realtime_ns - usual_ns
        if abs(late_ns) > _DAY_NS:
            host = os.fsdecode(spool.host) or f"of {spool.name}"
            notes.setdefault(
                spool.host,
                f"the clock of host {host} was {abs(late_ns) / _DAY_NS:,.0f} days "
                f"{'ahead of' if late_ns > 0 else 'behind'} that of most processes when recording began: if "
                "they ran together, its calls are shown far from the others, and the run's span is wrong",
            )
    return list(notes.values())


def _own_rate(spool: Spool) -> _Rate:
    """Compute the rate from a process's own readings, if these are plausible and agree."""
    head = spool.head
    own, before = (
        _rate(
            getattr(head, f"{which}_ticks") - head.first_ticks,
            getattr(head, f"{which}_monotonic_ns") - head.first_monotonic_ns,
        )
        for which in ("last", "spare")
    )
    return _NONE if head.clock == _MONOTONIC or _differ(own, before) else own


def _rate(ticks: int, elapsed_ns: int) -> _Rate:
    ns_per_tick = elapsed_ns / ticks if ticks > 0 else 0.0
    least, most = _POSSIBLE_NS_PER_TICK
    is_possible = elapsed_ns > 0 and least <= ns_per_tick <= most
    return _Rate(elapsed_ns, ns_per_tick) if is_possible else _NONE


def _differ(one: _Rate, other: _Rate) -> bool:
    """Whether two rates differ by more than the error of short readings."""
    if _NONE in (one, other):
        return False
    return abs(one.ns_per_tick / other.ns_per_tick - 1) > 0.01 + 1e4 / min(one.span_ns, other.span_ns)
