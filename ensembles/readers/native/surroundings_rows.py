"""Read samples of the kernel's counters from spools and job files."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from ensembles.model.c_layout import CONSTANTS, SURROUNDINGS
from ensembles.model.surroundings import COLUMNS, COUNTERS, UNKNOWN, SurroundingsTable
from ensembles.passes.damage import DamageReport
from ensembles.readers.native.rank_assignment import Member
from ensembles.readers.native.spool import SummaryPart
from ensembles.readers.native.spool_bytes import Contents
from ensembles.readers.native.window_decoder import Decoding

_GROUPS = {
    "PROCESS": ("read_by_calls", "cancelled_write_bytes"),
    "MEMORY": ("available_bytes", "writeback_bytes"),
    "PRESSURE": ("some_us", "full_us"),
    "CGROUP": ("cgroup_read_bytes", "cgroup_writes"),
    "CGROUP_PRESSURE": ("cgroup_some_us", "cgroup_full_us"),
    "NFS": ("nfs_read_bytes", "nfs_retransmissions"),
    "LUSTRE_DIRTY": ("lustre_dirty_bytes", "lustre_dirty_bytes"),
    "LUSTRE_AHEAD": ("lustre_ahead_hits", "lustre_ahead_misses"),
    "LUSTRE_RPCS": ("lustre_read_rpcs", "lustre_write_pages"),
}
_NAMES = list(COUNTERS)
_BIT_OF = {
    name: CONSTANTS[f"ENSIO_READ_{group}"]
    for group, (first, last) in _GROUPS.items()
    for name in _NAMES[_NAMES.index(first) : _NAMES.index(last) + 1]
}


@dataclass(frozen=True, slots=True)
class SampledSpool:
    """A spool with samples.

    Attributes
    ----------
    decoding : Decoding
    contents : Contents
    parts : sequence of SummaryPart
        Locations of the rows in the contents.
    """

    decoding: Decoding
    contents: Contents
    parts: Sequence[SummaryPart]


def sampled_spools(members: Sequence[Member], decodings: Sequence[Decoding]) -> list[SampledSpool]:
    """Select the spools with samples."""
    if not any(member.spool.surroundings for member in members):
        return []
    decoding_of = {decoding.path: decoding for decoding in decodings}
    return [
        SampledSpool(decoding_of[spool.path], spool.contents, spool.surroundings)
        for spool in (member.spool for member in members)
        if spool.surroundings and spool.path in decoding_of
    ]


def read_surroundings(spools: Sequence[SampledSpool], damage: DamageReport) -> SurroundingsTable:
    """Read all samples of some spools, and report those that are left out."""
    parts = [_columns(spool, damage) for spool in spools]
    if not parts:
        return SurroundingsTable.empty()
    return SurroundingsTable({name: np.concatenate([part[name] for part in parts]) for name in COLUMNS})


def _columns(spool: SampledSpool, damage: DamageReport) -> dict[str, np.ndarray]:
    """Decode the complete rows of a process with possible times; its bytes are untrusted."""
    decoding = spool.decoding
    with spool.contents.opened() as contents:
        rows, lost = contents.rows(SURROUNDINGS, "read", spool.parts)
    since = (rows["ticks"] - np.uint64(decoding.first_ticks)).view("i8")
    most = decoding.most_ticks
    sound = (since >= -most) & (since <= most)
    damage.leave_out(decoding.path, lost + int(np.count_nonzero(~sound)), "counter sample")
    rows, since = rows[sound], since[sound]
    counters = {
        name: np.where((rows["read"] & bit) != 0, np.maximum(rows[name].astype("i8"), UNKNOWN), UNKNOWN)
        for name, bit in _BIT_OF.items()
    }
    return {
        "rank": np.full(len(rows), decoding.rank, "u4"),
        "time": np.rint(since * decoding.ns_per_tick).astype("i8") + decoding.start_ns,
        "cost": rows["cost_ns"].astype("i8"),
        **counters,
    }
