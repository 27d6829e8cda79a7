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
from operator import attrgetter
from typing import NamedTuple

import numpy as np

from ensembles.model.c_layout import CONSTANTS
from ensembles.readers.native.clock import Clocks
from ensembles.readers.native.spool import Spool

_MEETINGS = CONSTANTS["ENSIO_MEETINGS"]
_EDGES = ("entered", "left")

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
        launch = next((_launch(spool) for spool in self.spools if spool.head.rank == 0), b"")
        edges_of = attrgetter(*(f"{where}{number}_{edge}" for edge in _EDGES for number in range(_MEETINGS)))
        met = [
            spool
            for spool in self.spools
            if getattr(spool.head, f"{where}0_left") and spool.head.rank >= 0 and _launch(spool) == launch
        ]
        if not met:
            return {}
        ticks = np.array([edges_of(spool.head) for spool in met], "u8").reshape(len(met), 2, _MEETINGS)
        kept = _plausible(ticks, np.array([spool.head.first_ticks for spool in met], "u8"))
        met, ticks = [met[row] for row in np.flatnonzero(kept).tolist()], ticks[kept]
        first_ticks = np.array([spool.head.first_ticks for spool in met], "u8")
        ns_per_tick = np.array([self.clocks.ns_per_tick(spool) for spool in met])
        elapsed = (ticks - first_ticks[:, None, None]).astype("i8")
        elapsed_ns = np.rint(elapsed * ns_per_tick[:, None, None]).astype("i8")
        begin_ns = np.array([spool.head.first_realtime_ns for spool in met], "i8")
        times_ns = begin_ns[:, None, None] + elapsed_ns
        rows: defaultdict[bytes, list[int]] = defaultdict(list)
        for row, spool in enumerate(met):
            rows[_host(spool)].append(row)
        return {
            host: _Meeting(times_ns[mine, 0].max(0), times_ns[mine, 1].min(0)) for host, mine in rows.items()
        }


def _host(spool: Spool) -> bytes:
    return spool.properties.get(b"host", b"")


def _launch(spool: Spool) -> bytes:
    return spool.properties.get(b"launch", b"")


def _plausible(ticks: np.ndarray, first_ticks: np.ndarray) -> np.ndarray:
    """Which processes came and left after they began, and before clocks end: bool, shape (processes,)."""
    begun = (ticks[:, 0] >= np.maximum(first_ticks, 1)[:, None]).all(1)
    return begun & (ticks[:, 1] >= ticks[:, 0]).all(1) & (ticks < 1 << 63).all((1, 2))


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
