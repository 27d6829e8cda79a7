"""Fingerprints: which calls a program made, in which order, without their times.

Two runs have equal fingerprints if their tasks made the same calls, with the same sizes, at the same offsets
of the same files, phase by phase. A pattern that shall stand for a program is compared with the program in
this way; a fingerprint has neither code nor data nor file names of the program.

Each phase has three digests, from strict to tolerant:

``ordered``    the calls of each task in their order: function, file, offset, requested bytes
``unordered``  the same calls in any order
``bytes``      the bytes that each task read and wrote, whatever the calls were: adjacent transfers are joined

Files are identified by the order in which a task first used them, and by the number of tasks that use them,
so that names do not matter.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from ensembles.model.events import OPS, Events
from ensembles.passes.kept import DIGEST_BYTES
from ensembles.passes.start_order import order_by_start
from ensembles.passes.summary import BY_RANK, Summary

if TYPE_CHECKING:
    from ensembles.structure.phases.result import Phases

WHOLE = 0
"""Number of the entry for the whole run."""

_MODULUS = 1 << 8 * DIGEST_BYTES
_DIGESTS = ("ordered", "unordered", "bytes")


@dataclass
class PhaseFingerprint:
    """The calls of one phase, or of the whole run."""

    calls: Counter[str] = field(default_factory=Counter)  # Number of calls of each function
    moved: Counter[str] = field(default_factory=Counter)  # Requested bytes of reads and of writes
    tasks: int = 0  # Number of tasks with calls
    # By name (``ordered``, ``unordered``, ``bytes``): sum of the digests of the tasks, modulo 2^128
    digests: dict[str, int] = field(default_factory=lambda: dict.fromkeys(_DIGESTS, 0))

    def to_json(self) -> dict[str, Any]:
        """Return counts, bytes and digests; a digest has 32 hexadecimal digits."""
        return {
            "tasks": self.tasks,
            "calls": dict(sorted(self.calls.items())),
            "read_bytes": self.moved["read"],
            "written_bytes": self.moved["write"],
            "digests": {name: f"{value:0{2 * DIGEST_BYTES}x}" for name, value in self.digests.items()},
        }


class Fingerprint(Summary):
    """A mergeable summary: the fingerprint of a run.

    `entries`: by number of the phase, from 1 in the order of time; `WHOLE`: all calls.
    `files`: number of tasks that use each file of the run.
    """

    columns = ("rank", "thread", "start", "call", "depth", "carried", "file", "offset", "requested")
    requires = BY_RANK

    def __init__(
        self, phases: Phases | None = None, nested: bool = False, without_file: bool = False
    ) -> None:
        self.entries: dict[int, PhaseFingerprint] = {WHOLE: PhaseFingerprint()}
        self.files: Counter[int] = Counter()
        self._phases = phases
        self._nested = nested
        self._without_file = without_file

    def add(self, chunk: Events) -> None:
        """Add all calls of some tasks: by default, the calls on files count, and only the outermost."""
        chunk = chunk[((chunk.file > 0) | self._without_file) & (chunk.outermost | self._nested)]
        if not len(chunk):
            return
        order = order_by_start(chunk)
        events = chunk if order is None else chunk[order]
        phase = None if self._phases is None else self._phases.phase_index(events)
        cuts = np.flatnonzero(np.diff(events.rank)) + 1
        for low, high in zip([0, *cuts.tolist()], [*cuts.tolist(), len(events)], strict=True):
            self._add_task(events[low:high], None if phase is None else phase[low:high])

    def _add_task(self, events: Events, phase: np.ndarray | None) -> None:
        files, file = _in_order_of_use(events.file)
        self.files.update(files.tolist())
        rank = int(events.rank[0])
        rows = np.stack([events.call, file, events.offset, events.requested], axis=1).astype(np.int64)
        self._add_rows(WHOLE, rank, events, rows)
        if phase is not None:
            for number in np.unique(phase[phase > 0]).tolist():
                self._add_rows(number, rank, events, rows[phase == number])

    def _add_rows(self, number: int, rank: int, events: Events, rows: np.ndarray) -> None:
        entry = self.entries.setdefault(number, PhaseFingerprint())
        entry.tasks += 1
        used, call = np.unique(rows[:, 0], return_inverse=True)
        by_name = sorted(range(len(used)), key=lambda place: events.calls[used[place]].name)
        names = [events.calls[used[place]].name for place in by_name]
        place_of = np.empty(len(used), np.int64)
        place_of[by_name] = np.arange(len(used))
        rows = np.column_stack([place_of[call], rows[:, 1:]])
        entry.calls.update(dict(zip(names, np.bincount(rows[:, 0]).tolist(), strict=True)))
        head = "\0".join(names)
        kind = np.array([OPS.index(events.calls[used[place]].op) for place in by_name])[rows[:, 0]]
        extents = []
        for op in ("read", "write"):
            mine = rows[kind == OPS.index(op)]
            entry.moved[op] += int(mine[:, 3].sum())
            extents.append(_joined(mine[:, 1], mine[:, 2], mine[:, 3]))
        for name, text, arrays in (
            ("ordered", head, [rows]),
            ("unordered", head, [_in_any_order(rows)]),
            ("bytes", "", extents),
        ):
            digest = _digest(rank, text, arrays)
            entry.digests[name] = (entry.digests[name] + digest) % _MODULUS

    def merge(self, other: Fingerprint) -> None:
        """Add the tasks of another part of the run."""
        for number, entry in other.entries.items():
            mine = self.entries.setdefault(number, PhaseFingerprint())
            mine.calls.update(entry.calls)
            mine.moved.update(entry.moved)
            mine.tasks += entry.tasks
            for name, value in entry.digests.items():
                mine.digests[name] = (mine.digests[name] + value) % _MODULUS
        self.files.update(other.files)

    def to_json(self) -> dict[str, Any]:
        """Return plain JSON values; ``files`` counts the files by the number of tasks that use one."""
        by_tasks = Counter(self.files.values())
        return {
            "tasks": self.entries[WHOLE].tasks,
            "files": [{"tasks": tasks, "files": by_tasks[tasks]} for tasks in sorted(by_tasks)],
            "whole": self.entries[WHOLE].to_json(),
            "phases": [self.entries[number].to_json() for number in sorted(self.entries) if number != WHOLE],
        }


def differences(first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    """Describe how two fingerprints differ, the strongest first; empty if they are equal."""
    found = []
    if first["tasks"] != second["tasks"]:
        found.append(f"tasks: {first['tasks']:,} and {second['tasks']:,}")
    if first["files"] != second["files"]:
        found.append(f"files: {_files_text(first['files'])}, and {_files_text(second['files'])}")
    found += _entry_differences("the whole run", first["whole"], second["whole"])
    if len(first["phases"]) != len(second["phases"]):
        found.append(f"phases: {len(first['phases']):,} and {len(second['phases']):,}")
    else:
        pairs = zip(first["phases"], second["phases"], strict=True)
        for number, (one, other) in enumerate(pairs, 1):
            found += _entry_differences(f"phase {number}", one, other)
    return found


def _entry_differences(where: str, first: dict[str, Any], second: dict[str, Any]) -> list[str]:
    found = []
    for name in sorted({*first["calls"], *second["calls"]}):
        counts = first["calls"].get(name, 0), second["calls"].get(name, 0)
        if counts[0] != counts[1]:
            found.append(f"{where}: {counts[0]:,} and {counts[1]:,} calls of {name}")
    for key, what in (("read_bytes", "read"), ("written_bytes", "written")):
        if first[key] != second[key]:
            found.append(f"{where}: {first[key]:,} and {second[key]:,} bytes {what}")
    if found:
        return found
    same = {name: first["digests"][name] == second["digests"][name] for name in _DIGESTS}
    if not same["bytes"]:
        return [f"{where}: as many calls and bytes, but at other offsets or on other files"]
    if not same["unordered"]:
        return [f"{where}: the same bytes, but in calls of other sizes or on files without data"]
    return [] if same["ordered"] else [f"{where}: the same calls in another order"]


def _files_text(files: list[dict[str, int]]) -> str:
    return ", ".join(f"{each['files']:,} used by {each['tasks']:,}" for each in files) or "none"


def _in_order_of_use(file: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the files of a task in the order of their first use, and the place of each call's file in it."""
    if not file.all():
        files, known = _in_order_of_use(file[file > 0])
        every = np.full(len(file), -1, np.int64)
        every[file > 0] = known
        return files, every
    files, first, place = np.unique(file, return_index=True, return_inverse=True)
    by_use = np.argsort(first)
    rank = np.empty(len(files), np.int64)
    rank[by_use] = np.arange(len(files))
    return files[by_use], rank[place.reshape(-1)]


def _in_any_order(rows: np.ndarray) -> np.ndarray:
    return rows[np.lexsort(rows.T[::-1])]


def _joined(file: np.ndarray, offset: np.ndarray, size: np.ndarray) -> np.ndarray:
    """Join adjacent and overlapping transfers of a task: rows of file, first byte (-1: unknown), and end."""
    size = np.maximum(size, 0)
    unknown = np.unique(file[offset < 0])
    sums = np.bincount(file[offset < 0], size[offset < 0]).astype(np.int64)[unknown]
    without_offset = np.column_stack([unknown, np.full(len(unknown), -1), sums])
    known = (offset >= 0) & (size > 0)
    order = np.lexsort((offset[known], file[known]))
    file, start = file[known][order], offset[known][order]
    end = start + size[known][order]
    if not len(file):
        return without_offset
    new = np.r_[True, np.diff(file) > 0]
    reach = np.empty_like(end)
    for low, high in zip(np.flatnonzero(new), [*np.flatnonzero(new)[1:], len(end)], strict=True):
        reach[low:high] = np.maximum.accumulate(end[low:high])
    begins = new | np.r_[True, start[1:] > reach[:-1]]
    first = np.flatnonzero(begins)
    last = np.r_[first[1:], len(end)] - 1
    return np.concatenate([without_offset, np.column_stack([file[first], start[first], reach[last]])])


def _digest(rank: int, text: str, arrays: list[np.ndarray]) -> int:
    digest = hashlib.blake2b(f"{rank}\0{text}".encode(), digest_size=DIGEST_BYTES)
    for array in arrays:
        digest.update(len(array).to_bytes(8, "little"))
        digest.update(np.ascontiguousarray(array, "<i8").tobytes())
    return int.from_bytes(digest.digest(), "little")
