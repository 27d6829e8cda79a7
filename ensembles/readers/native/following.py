"""Follow a run in progress: read the calls that were recorded since the last time, in bounded memory."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ensembles.files.untrusted import open_regular
from ensembles.model.c_layout import EVENT
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, Call, Events
from ensembles.readers.common.columns import empty_columns
from ensembles.readers.native.block_reader import BLOCK_EVENTS, BlockReader
from ensembles.readers.native.spool import Window
from ensembles.readers.native.window_decoder import Decoding, read_slots

if TYPE_CHECKING:
    from ensembles.readers.native.spool_source import SpoolSource

K = TypeVar("K")

_UNCERTAIN = 64
"""An empty slot with at most so many later calls may still be filled: its call is being stored."""

_KEPT = 0.75
"""Part of the largest number of calls that remains when the oldest ones are left out."""


@dataclass
class _Process:
    """The calls of one process that were read."""

    # By location of a window: the first slot that was not read
    places: dict[int, int] = field(default_factory=dict)
    # Columns. Times are relative to the start of the process; files and calls are numbered by the follower.
    parts: list[dict[str, np.ndarray]] = field(default_factory=list)
    is_whole: bool = False  # The process has ended, and its calls were read from what it left


class Follower:
    """Holds the latest calls of a run in progress.

    `since_ns`: calls that started earlier are left out, ns since the origin of the run; None: no call is.
    `left_out`: number of calls that were left out.
    """

    def __init__(self, most_events: int) -> None:
        self.most_events = most_events
        self._processes: dict[str, _Process] = {}
        self._files: dict[str, int] = {}
        self._calls: dict[Call, int] = {}
        self.since_ns: int | None = None
        self.left_out = 0

    def take(self, source: SpoolSource) -> bool:
        """Read what was recorded since the last time."""
        news = False
        for decoding in source.decodings:
            process = self._processes.setdefault(decoding.path, _Process())
            if process.is_whole:
                continue
            try:
                news |= self._take_process(decoding, process, source)
            except EnsioError:
                # A process that has ended since the run was opened: the next time reads what it left.
                if os.path.exists(decoding.path):
                    raise
        if news:
            self._leave_out(source)
        return news

    def _take_process(self, decoding: Decoding, process: _Process, source: SpoolSource) -> bool:
        if decoding.coded:
            process.parts, process.is_whole = [], True
            return self._read(decoding, process, source)
        windows = []
        with open_regular(decoding.path) as file:
            for window in decoding.windows:
                first = process.places.get(window.position, 0)
                until = _complete_until(file.fileno(), window, first)
                process.places[window.position] = until
                if until > first:
                    windows.append(window.from_slot(first, until))
        return bool(windows) and self._read(replace(decoding, windows=windows), process, source)

    def _read(self, decoding: Decoding, process: _Process, source: SpoolSource) -> bool:
        reader = BlockReader([decoding])
        while True:
            columns = empty_columns(BLOCK_EVENTS)
            count = reader.read(columns, 0, BLOCK_EVENTS)
            if count:
                part = {name: column[:count].copy() for name, column in columns.items()}
                part["start"] -= decoding.start_ns
                part["file"] = _numbers(source.metadata.files, self._files)[part["file"]]
                part["call"] = _numbers(source.metadata.calls, self._calls)[part["call"]]
                part["site"][:] = 0
                process.parts.append(part)
            if count < BLOCK_EVENTS:
                return bool(process.parts)

    def _leave_out(self, source: SpoolSource) -> None:
        """Leave out the oldest calls, if there are too many."""
        starts = {decoding.path: decoding.start_ns for decoding in source.decodings}
        parts = [
            (process, place, part["start"] + starts.get(path, 0))
            for path, process in self._processes.items()
            for place, part in enumerate(process.parts)
        ]
        count = sum(len(start) for _, _, start in parts)
        if count > self.most_events:
            everything = np.concatenate([start for _, _, start in parts])
            newest = int(_KEPT * self.most_events)
            self.since_ns = int(np.partition(everything, count - newest)[count - newest])
        if self.since_ns is None:
            return
        for process, place, start in parts:
            kept = start >= self.since_ns
            self.left_out += int(np.count_nonzero(~kept))
            if not kept.all():
                process.parts[place] = {name: column[kept] for name, column in process.parts[place].items()}
        for process in self._processes.values():
            process.parts = [part for part in process.parts if len(part["start"])]

    def events(self, source: SpoolSource) -> Events:
        """Return the calls that are held, sorted by (rank, start)."""
        parts = []
        for decoding in source.decodings:
            for part in self._processes[decoding.path].parts if decoding.path in self._processes else ():
                rank = np.full(len(part["start"]), decoding.rank, part["rank"].dtype)
                parts.append({**part, "rank": rank, "start": part["start"] + decoding.start_ns})
        calls, files = list(self._calls), list(self._files)
        if not parts:
            return Events.empty(calls, files or [""])
        columns = {name: np.concatenate([part[name] for part in parts]) for name in COLUMNS}
        return Events(columns, calls, files).sorted()


def _numbers(names: Iterable[K], known: dict[K, int]) -> np.ndarray:
    """Return the follower's number of each name of the run; new names get one."""
    return np.array([known.setdefault(name, len(known)) for name in names], np.int64)


def _complete_until(descriptor: int, window: Window, first: int) -> int:
    """Return the slot before which no call of a window is still to be stored."""
    slot, used = first, first
    holes = np.zeros(0, np.int64)
    if window.is_coded:
        slot, part = read_slots(descriptor, window)
        filled = np.flatnonzero(part["call"])
        used = slot + (int(filled[-1]) + 1 if len(filled) else 0)
        holes = slot + np.flatnonzero(part["call"][: used - slot] == 0)
        window = window._replace(slots=slot)
    while slot < window.slots:
        wanted = min(BLOCK_EVENTS, window.slots - slot)
        raw = os.pread(descriptor, wanted * EVENT.size, window.position + slot * EVENT.size)
        calls = np.frombuffer(raw, EVENT.dtype, len(raw) // EVENT.size)["call"]
        filled = np.flatnonzero(calls)
        if not len(filled):
            break
        used = slot + int(filled[-1]) + 1
        holes = np.concatenate([holes, slot + np.flatnonzero(calls[: filled[-1]] == 0)])[-_UNCERTAIN:]
        slot += wanted
    recent = holes[holes >= used - _UNCERTAIN]
    return int(recent[0]) if len(recent) else used
