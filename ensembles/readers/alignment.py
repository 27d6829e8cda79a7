"""How the clocks of a run's nodes stand to each other.

In MPI_Init and MPI_Finalize all ranks meet at some barriers and read their clocks when they come and when
they leave. Nobody leaves before everyone has come. If a node's clock is ahead of the reference's by θ, then
of every barrier, each time by the clock of its own node,

    last coming (node) - first leaving (reference)  <=  θ  <=  first leaving (node) - last coming (reference).

The barriers of one meeting together leave an interval that holds θ, whatever the delays were.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ensembles.readers.clock import Clocks
from ensembles.readers.layout import CONSTANTS
from ensembles.readers.spool import Spool

_MEETINGS = CONSTANTS["ENSIO_MEETINGS"]

_READING_NS = 500
"""How much the readings that tie a process's ticks to the time of day may be off."""

_FASTEST_DRIFT = 1e-3
"""No two clocks drift apart faster than this; those of machines that are kept in time do so far slower."""


class _Meeting(NamedTuple):
    """Times of a node at the barriers of a meeting, ns since 1970 by its own clock, one entry a barrier."""

    last_entered: np.ndarray
    first_left: np.ndarray


class _Offset(NamedTuple):
    """A clock is ahead by between `low_ns` and `high_ns` at a moment of its own."""

    low_ns: float
    high_ns: float
    at_ns: float


class Correction(NamedTuple):
    """What to take from the times of a node: ``offset_ns + drift * (time - at_ns)``."""

    offset_ns: float = 0.0
    drift: float = 0.0
    at_ns: float = 0.0

    def ahead_ns(self, time_ns: int) -> int:
        """How far the clock is ahead at a time of its own, rounded to whole ns."""
        return round(self.offset_ns + self.drift * (time_ns - self.at_ns))


_NONE = Correction()


@dataclass(slots=True)
class Alignment:
    """Corrections of the nodes' clocks to that of rank 0's node.

    Parameters
    ----------
    spools : sequence of Spool
    clocks : Clocks

    Attributes
    ----------
    error_s : float or None
        No time between MPI_Init and MPI_Finalize is wrong by more against the times of rank 0's node; 0 on a
        single node, None where that is not known.
    notes : list of str
        Which nodes are not aligned.
    """

    spools: Sequence[Spool]
    clocks: Clocks
    error_s: float | None = field(init=False, default=0.0)
    notes: list[str] = field(init=False, default_factory=list)
    _corrections: dict[bytes, Correction] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        hosts = {_host(spool) for spool in self.spools}
        if len(hosts) < 2:
            return
        reference = next((_host(spool) for spool in self.spools if spool.head.rank == 0), None)
        ends = [self._meetings(where) for where in ("begin", "end")]
        errors_ns = [0.0]
        for host in sorted(hosts - {reference}):
            offsets = [
                _offset(meetings[host], meetings[reference])
                for meetings in ends
                if host in meetings and reference in meetings
            ]
            if offsets:
                self._corrections[host], error_ns = _correction(offsets)
                errors_ns.append(error_ns)
        self._describe(hosts, reference, errors_ns, bool(ends[0]) and not ends[1])

    def correction(self, spool: Spool) -> Correction:
        """For the times of a process."""
        return self._corrections.get(_host(spool), _NONE)

    def _describe(
        self, hosts: set[bytes], reference: bytes | None, errors_ns: list[float], cut: bool
    ) -> None:
        left = len(hosts) - len(self._corrections) - 1
        if left:
            self.error_s = None
            which = f"{len(hosts)} nodes" if not self._corrections else f"{left} of {len(hosts)} nodes"
            self.notes.append(
                f"the clocks of {which} are not aligned to each other (that takes an MPI program that is "
                "recorded in all its ranks): times of different nodes are as far apart as their times of day"
            )
            return
        self.error_s = max(errors_ns) / 1e9
        if cut:
            self.notes.append(
                f"the clocks of {len(hosts)} nodes are aligned as they stood in MPI_Init, for the program "
                "did not come to MPI_Finalize: by how much they drifted apart later is not known"
            )

    def _meetings(self, where: str) -> dict[bytes, _Meeting]:
        """The times of each node at the barriers of ``begin`` or ``end``."""
        readings: defaultdict[bytes, list[np.ndarray]] = defaultdict(list)
        launch = next((_launch(spool) for spool in self.spools if spool.head.rank == 0), b"")
        for spool in self.spools:
            if getattr(spool.head, f"{where}0_left") == 0:
                continue
            ticks = np.array(
                [
                    [getattr(spool.head, f"{where}{number}_{edge}") for number in range(_MEETINGS)]
                    for edge in ("entered", "left")
                ],
                "u8",
            )
            if (
                _launch(spool) == launch
                and spool.head.rank >= 0
                and _plausible(ticks, spool.head.first_ticks)
            ):
                elapsed = (ticks - np.uint64(spool.head.first_ticks)).astype("i8")
                elapsed_ns = np.rint(elapsed * self.clocks.ns_per_tick(spool)).astype("i8")
                readings[_host(spool)].append(spool.head.first_realtime_ns + elapsed_ns)
        return {
            host: _Meeting(np.max([times[0] for times in all_], 0), np.min([times[1] for times in all_], 0))
            for host, all_ in readings.items()
        }


def _host(spool: Spool) -> bytes:
    return spool.properties.get(b"host", b"")


def _launch(spool: Spool) -> bytes:
    return spool.properties.get(b"launch", b"")


def _plausible(ticks: np.ndarray, first_ticks: int) -> bool:
    return bool(
        (ticks[0] >= max(first_ticks, 1)).all() and (ticks[1] >= ticks[0]).all() and (ticks < 1 << 63).all()
    )


def _offset(node: _Meeting, reference: _Meeting) -> _Offset:
    low = int((node.last_entered - reference.first_left).max()) - _READING_NS
    high = int((node.first_left - reference.last_entered).min()) + _READING_NS
    return _Offset(min(low, high), max(low, high), float(node.first_left.mean()))


def _correction(offsets: Sequence[_Offset]) -> tuple[Correction, float]:
    """The correction, and how much it may be off between the meetings."""
    first, last = offsets[0], offsets[-1]
    middles = [(offset.low_ns + offset.high_ns) / 2 for offset in offsets]
    errors = [(offset.high_ns - offset.low_ns) / 2 for offset in offsets]
    elapsed_ns = last.at_ns - first.at_ns
    apart = first.low_ns > last.high_ns or last.low_ns > first.high_ns
    if apart and elapsed_ns > 0 and abs(middles[-1] - middles[0]) < _FASTEST_DRIFT * elapsed_ns:
        drift = (middles[-1] - middles[0]) / elapsed_ns
        return Correction(middles[0], drift, first.at_ns), max(errors)
    # Within their errors the clock did not drift. Slopes of short runs would be made of errors alone.
    low, high = min(first.low_ns, last.low_ns), max(first.high_ns, last.high_ns)
    return Correction((low + high) / 2, 0.0, first.at_ns), (high - low) / 2
