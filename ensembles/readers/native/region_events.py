"""Read the phases and regions that programs named."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ensembles.model.c_layout import EVENT
from ensembles.model.regions import COLUMNS, RegionTable
from ensembles.passes.damage import DamageReport
from ensembles.readers.common.call_dictionary import Dictionary
from ensembles.readers.native.block_reader import BLOCK_EVENTS
from ensembles.readers.native.process_metadata import Member
from ensembles.readers.native.spool import Window
from ensembles.readers.native.spool_bytes import Contents, OpenContents
from ensembles.readers.native.window_decoder import Decoding


@dataclass(frozen=True, slots=True)
class MarkedSpool:
    """A spool with marks of phases and regions."""

    decoding: Decoding
    numbers: Mapping[str, int]  # Call number by kind of mark (``phase``, ``region``, ``region_begin``)
    names: Mapping[int, str]  # Names by number
    contents: Contents
    windows: Sequence[Window]  # Locations of the marks in the contents
    last_ticks: int  # Last reading of its clock, ticks
    ended: bool  # Whether the process ended in order


def marked_spools(
    members: Sequence[Member], decodings: Sequence[Decoding], dictionary: Dictionary
) -> list[MarkedSpool]:
    """Select the spools in which a program named a phase or region."""
    if not any(member.spool.marks for member in members):
        return []
    decoding_of = {decoding.path: decoding for decoding in decodings}
    return [
        MarkedSpool(
            decoding=decoding_of[member.spool.path],
            numbers=dictionary.marks(member.spool.calls_text),
            names={number: os.fsdecode(name) for number, name in member.spool.region_names.items()},
            contents=member.spool.contents,
            windows=member.spool.marks,
            last_ticks=member.spool.head.last_ticks,
            ended=member.replaced or member.spool.ended,
        )
        for member in members
        if member.spool.marks and member.spool.path in decoding_of
    ]


def read_regions(spools: Sequence[MarkedSpool], damage: DamageReport) -> RegionTable:
    """Read all phases and regions of some spools, and report the marks that are left out."""
    names: dict[str, int] = {}
    parts = [_occurrences(spool, names, damage) for spool in spools]
    if not parts:
        return RegionTable.empty()
    return RegionTable(
        {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}, list(names)
    )


def _occurrences(spool: MarkedSpool, names: dict[str, int], damage: DamageReport) -> dict[str, np.ndarray]:
    """Make the columns of one process; new names get the next numbers."""
    marks, end = _marks(spool, damage)
    phases = _phases(marks[marks["call"] == spool.numbers.get("phase", 0)], end, spool.ended)
    regions = _regions(marks, spool.numbers, end)
    kinds = [np.full(len(rows["start"]), kind, "u1") for kind, rows in enumerate((phases, regions))]
    both = {name: np.concatenate([phases[name], regions[name]]) for name in phases}
    decoding = spool.decoding
    used = {number: spool.names.get(number, "") for number in sorted(set(both["id"].tolist()))}
    number_of = {number: names.setdefault(name, len(names)) for number, name in used.items()}
    start, until = map(decoding.times_ns, (both["start"], both["start"] + both["duration"]))
    return {
        "rank": np.full(len(both["id"]), decoding.rank, "u4"),
        "thread": np.minimum(decoding.first_thread + both["thread"], 0xFFFF).astype("u2"),
        "kind": np.concatenate(kinds),
        "name": np.array([number_of[number] for number in both["id"].tolist()], "u4"),
        "start": start,
        "duration": until - start,
        "ended": both["ended"].astype("u1"),
    }


_MARK = np.dtype([("thread", "i8"), ("call", "i8"), ("id", "i8"), ("start", "i8"), ("duration", "i8")])
"""A mark: start in ticks since the first clock reading of the process, duration in ticks."""


def _marks(spool: MarkedSpool, damage: DamageReport) -> tuple[np.ndarray, int]:
    """Return the marks of a spool sorted by start, and the last known time of its process, ticks."""
    decoding = spool.decoding
    with spool.contents.opened() as contents:
        rows, lost = contents.rows(EVENT, "call", spool.windows)
        # A killed process may have made calls after the last reading of its clock.
        calls = [] if spool.ended else _events(contents, decoding.windows)
        sound = (_sound(events, decoding) for events in calls)
        ends = (start + events["duration"].view("i8") for events, start in sound)
        end = max((int(each.max(initial=0)) for each in ends), default=0)
    marks = _columns(rows, decoding)
    damage.leave_out(decoding.path, lost + len(rows) - len(marks), "phase or region mark")
    marks = marks[np.argsort(marks["start"], kind="stable")]
    last = int((marks["start"] + marks["duration"]).max(initial=0))
    return marks, max(end, last, min(spool.last_ticks - decoding.first_ticks, decoding.most_ticks))


def _events(contents: OpenContents, windows: Sequence[Window]) -> Iterator[np.ndarray]:
    """Yield the completed events in windows, a block at a time."""
    for window in windows:
        for slot in range(0, window.slots, BLOCK_EVENTS):
            wanted = min(BLOCK_EVENTS, window.slots - slot)
            raw = contents.read(wanted * EVENT.size, window.position + slot * EVENT.size)
            events = np.frombuffer(raw, EVENT.dtype, len(raw) // EVENT.size)
            yield events[events["call"] != 0]


def _sound(events: np.ndarray, decoding: Decoding) -> tuple[np.ndarray, np.ndarray]:
    """Return the events with possible times, and their starts in ticks since the first clock reading."""
    since, sound = decoding.since(events["start"])
    sound &= events["duration"] <= decoding.most_ticks
    return events[sound], since[sound]


def _columns(events: np.ndarray, decoding: Decoding) -> np.ndarray:
    events, start = _sound(events, decoding)
    marks = np.empty(len(events), _MARK)
    marks["thread"] = np.minimum(events["requested"], 0xFFFF)
    marks["call"], marks["id"], marks["duration"] = events["call"], events["offset"], events["duration"]
    marks["start"] = start
    return marks


def _phases(marks: np.ndarray, end: int, process_ended: bool) -> dict[str, np.ndarray]:
    """Make rows of phases; each lasts until the next one of its process."""
    ends = np.append(marks["start"][1:], end) if len(marks) else marks["start"]
    ended = np.ones(len(marks), bool)
    ended[-1:] = process_ended
    return _rows(marks, ends - marks["start"], ended)


def _regions(marks: np.ndarray, numbers: Mapping[str, int], end: int) -> dict[str, np.ndarray]:
    """Make rows of regions; those without a recorded end last until the last known time."""
    whole = marks[marks["call"] == numbers.get("region", 0)]
    begun = marks[marks["call"] == numbers.get("region_begin", 0)]
    open_ones = begun[~_among(begun, whole)]
    both = np.concatenate([whole, open_ones])
    duration = np.concatenate([whole["duration"], end - open_ones["start"]])
    return _rows(both, duration, np.arange(len(both)) < len(whole))


def _among(begun: np.ndarray, whole: np.ndarray) -> np.ndarray:
    """Test which begin marks belong to an ended region (same thread, name and start): bool."""
    both = np.concatenate([whole, begun])
    order = np.lexsort((both["id"], both["thread"], both["start"]))  # stable: ended regions come first
    rows = both[order]
    same = np.ones(len(rows), bool)
    same[:1] = False
    for name in ("id", "thread", "start"):
        same[1:] &= rows[name][1:] == rows[name][:-1]
    found = np.empty(len(rows), bool)
    found[order] = same
    return found[len(whole) :]


def _rows(marks: np.ndarray, duration: np.ndarray, ended: np.ndarray) -> dict[str, np.ndarray]:
    rows = {name: marks[name] for name in ("thread", "id", "start")}
    return rows | {"duration": np.maximum(duration, 0), "ended": ended}
