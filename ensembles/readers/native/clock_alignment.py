"""Alignment of the clocks of a run's nodes.

In MPI_Init and MPI_Finalize all ranks call several barriers and read their clocks on entry and on return. No
rank returns before all ranks have entered. Let θ be the offset by which the clock of a node is ahead of the
reference clock. Then for every barrier, with all times by the local clock of the node,

    last entry (node) - first return (reference)  <=  θ  <=  first return (node) - last entry (reference).

The barriers of one meeting together give an interval that contains θ, whatever the network delays were.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

import numpy as np

from ensembles.model.c_layout import SPOOL
from ensembles.readers.native.clock import Clocks
from ensembles.readers.native.spool import Spool

_EDGES = ("entered", "left")

_READING_NS = 500
"""Error of the readings that relate a process's ticks to the time of day."""

_FASTEST_DRIFT = 1e-3
"""Upper bound on the relative drift of two clocks; synchronised clocks drift far less."""


class _Meeting(NamedTuple):
    """Times of a node at the barriers of a meeting, by its local clock: ns since 1970, one per barrier."""

    last_entered: np.ndarray
    first_left: np.ndarray


class _Offset(NamedTuple):
    """Bounds `low_ns` and `high_ns` on the offset of a clock at its local time `at_ns`."""

    low_ns: float
    high_ns: float
    at_ns: float


class Correction(NamedTuple):
    """Correction of the times of a node: subtract ``offset_ns + drift * (time - at_ns)``.

    Examples
    --------
    >>> Correction(offset_ns=100.0, drift=1e-6, at_ns=0.0).ahead_ns(1_000_000_000)
    1100
    """

    offset_ns: float = 0.0
    drift: float = 0.0
    at_ns: float = 0.0

    def ahead_ns(self, time_ns: int) -> int:
        """Return how far the clock is ahead at a local time, rounded to ns."""
        return round(self.offset_ns + self.drift * (time_ns - self.at_ns))


_NONE = Correction()


@dataclass(slots=True)
class Alignment:
    """Corrections of the nodes' clocks to the clock of the node of rank 0."""

    spools: Sequence[Spool]
    clocks: Clocks
    # Bound on the error of all times between MPI_Init and MPI_Finalize, relative to the node of rank 0, s. 0
    # on a single node; None: unknown.
    error_s: float | None = field(init=False, default=0.0)
    notes: list[str] = field(init=False, default_factory=list)  # Sentences about nodes that are not aligned
    _corrections: dict[bytes, Correction] = field(init=False, default_factory=dict)

    def __post_init__(self) -> None:
        hosts = {spool.host for spool in self.spools}
        if len(hosts) < 2:
            return
        reference = next((spool.host for spool in self.spools if spool.head.rank == 0), None)
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
        """Return the correction for the times of a process."""
        return self._corrections.get(spool.host, _NONE) if self._corrections else _NONE

    def _describe(
        self, hosts: set[bytes], reference: bytes | None, errors_ns: list[float], cut: bool
    ) -> None:
        left = len(hosts) - len(self._corrections) - 1
        if left:
            self.error_s = None
            which = f"{len(hosts)} nodes" if not self._corrections else f"{left} of {len(hosts)} nodes"
            self.notes.append(
                f"the clocks of {which} are not aligned (this needs an MPI program of which all ranks are "
                "recorded): times of different nodes differ as much as their times of day"
            )
            return
        self.error_s = max(errors_ns) / 1e9
        if cut:
            self.notes.append(
                f"the clocks of {len(hosts)} nodes are aligned in MPI_Init only, because the program did not "
                "reach MPI_Finalize: their later drift is unknown"
            )

    def _meetings(self, where: str) -> dict[bytes, _Meeting]:
        """Return the times of each node at the barriers of ``begin`` or ``end``."""
        launch = next((spool.launch for spool in self.spools if spool.head.rank == 0), b"")
        heads = np.frombuffer(b"".join([spool.head_bytes for spool in self.spools]), SPOOL.dtype)
        met_at = np.flatnonzero((heads[where]["left"][:, 0] != 0) & (heads["rank"] >= 0)).tolist()
        met_at = [place for place in met_at if self.spools[place].launch == launch]
        if not met_at:
            return {}
        met = [self.spools[place] for place in met_at]
        ticks = np.stack([heads[where][edge][met_at] for edge in _EDGES], axis=1)
        first_ticks = np.array([spool.head.first_ticks for spool in met], "u8")
        kept = (ticks[:, 0] >= np.maximum(first_ticks, 1)[:, None]).all(1)  # in a possible order
        kept &= (ticks[:, 1] >= ticks[:, 0]).all(1) & (ticks < 1 << 63).all((1, 2))
        met, ticks = [met[row] for row in np.flatnonzero(kept).tolist()], ticks[kept]
        first_ticks = first_ticks[kept]
        ns_per_tick = np.array([self.clocks.ns_per_tick(spool) for spool in met])
        elapsed = (ticks - first_ticks[:, None, None]).astype("i8")
        elapsed_ns = np.rint(elapsed * ns_per_tick[:, None, None]).astype("i8")
        begin_ns = np.array([spool.head.first_realtime_ns for spool in met], "i8")
        times_ns = begin_ns[:, None, None] + elapsed_ns
        rows: defaultdict[bytes, list[int]] = defaultdict(list)
        for row, spool in enumerate(met):
            rows[spool.host].append(row)
        return {
            host: _Meeting(times_ns[mine, 0].max(0), times_ns[mine, 1].min(0)) for host, mine in rows.items()
        }


def _offset(node: _Meeting, reference: _Meeting) -> _Offset:
    low = int((node.last_entered - reference.first_left).max()) - _READING_NS
    high = int((node.first_left - reference.last_entered).min()) + _READING_NS
    return _Offset(min(low, high), max(low, high), float(node.first_left.mean()))


def _correction(offsets: Sequence[_Offset]) -> tuple[Correction, float]:
    """Compute the correction, and a bound on its error between the meetings."""
    first, last = offsets[0], offsets[-1]
    middles = [(offset.low_ns + offset.high_ns) / 2 for offset in offsets]
    errors = [(offset.high_ns - offset.low_ns) / 2 for offset in offsets]
    elapsed_ns = last.at_ns - first.at_ns
    apart = first.low_ns > last.high_ns or last.low_ns > first.high_ns
    if apart and elapsed_ns > 0 and abs(middles[-1] - middles[0]) < _FASTEST_DRIFT * elapsed_ns:
        drift = (middles[-1] - middles[0]) / elapsed_ns
        return Correction(middles[0], drift, first.at_ns), max(errors)
    # The intervals overlap: no drift is detectable. In short runs a slope would be an artefact of the errors.
    low, high = min(first.low_ns, last.low_ns), max(first.high_ns, last.high_ns)
    return Correction((low + high) / 2, 0.0, first.at_ns), (high - low) / 2
