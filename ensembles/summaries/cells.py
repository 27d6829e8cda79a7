"""The recorded summary: sums over calls by function, size class and ordinal class.

The recorder keeps one for each process while the program runs (``libtrace/summary/drain.c``). This module
makes it from events, and merges those of processes; `ensembles.summaries.from_cells` derives other summaries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any

import numpy as np

from ensembles.model.c_layout import CONSTANTS
from ensembles.model.events import COLUMNS, MISSING, Call, Events
from ensembles.model.units import count_text
from ensembles.passes.summary import Summary
from ensembles.summaries.bins import (
    BIN_COUNT,
    UNKNOWN_ORDINAL,
    Ordinals,
    bin_index,
    ordinal_class,
    size_class,
)
from ensembles.summaries.keyed_sums import sum_by_keys, unique_counts
from ensembles.summaries.nesting import Nesting
from ensembles.summaries.runtotals import counted_elsewhere

LARGEST = CONSTANTS["ENSIO_LARGEST"]
"""Number of longest calls of a cell that are kept as events."""

_SIGN = np.uint64(1 << 63)

KEYS = ("call", "size_class", "ordinal_class")
SUMS = (
    "count",
    "errors",
    "moved",
    "outer_count",
    "outer_moved",
    "time_ns",
    "inner_ns",
    "outer_ns",
    "without_bin",
)
LEAST = ("min_ns", "min_requested", "start_ns")
MOST = ("max_ns", "max_requested", "end_ns")
CENTRAL = ("mean_ns", "m2", "m3", "m4")
CELL_DTYPES: dict[str, Any] = (
    dict.fromkeys(KEYS, np.int64)
    | dict.fromkeys(SUMS + LEAST + MOST, np.int64)
    | {"min_requested": np.uint64, "max_requested": np.uint64}
    | dict.fromkeys(CENTRAL, np.float64)
)
_LONGEST_COLUMNS = tuple(name for name in COLUMNS if name not in MISSING)
_LONGEST = tuple(f"longest_{name}" for name in _LONGEST_COLUMNS)
ARRAYS = (*CELL_DTYPES, "bin_cell", "bin", "bin_count", "longest_cell", *_LONGEST)
"""Names of the arrays of `CellSummary.to_arrays`."""


class CellSummary(Summary):
    """A mergeable summary: sums over the calls of each cell.

    A cell is a function, a size class and an ordinal class (`ensembles.summaries.bins`).

    `calls`: functions that the ``call`` of a cell indexes.
    `files`: paths that the ``file`` of the longest calls indexes.
    `cells`: columns, with the cells sorted by their keys ``call``, ``size_class`` and ``ordinal_class``:
    ``count`` and ``errors`` of calls; ``moved`` bytes, and ``outer_moved`` without those that a call around
    counts; ``time_ns``, and ``inner_ns`` of it inside recorded inner calls; ``outer_count`` and ``outer_ns``
    of calls inside no other; ``min_ns``, ``max_ns``, ``mean_ns`` of durations, and ``m2`` to ``m4``: sums of
    powers of the deviations from the mean; ``min_requested``, ``max_requested`` bytes; ``start_ns``,
    ``end_ns``: first entry and last return since the origin; ``without_bin``: calls that the histogram lacks.
    `histogram`: number of calls of a cell in a bin of the bin law; only bins with calls.
    `longest`: the `LARGEST` longest calls of each cell as events, without call sites and flights; of equals
    the earlier ones.
    `durations_known`: false: the tool that recorded the run kept only sums of durations. Then there are no
    histogram and no deviations, and ``max_ns`` may be −1 (not known).
    """

    durations_known = True
    # By layer and operation, request sizes that were recorded apart from the cells: least and largest size in
    # bytes, and the number of calls; an entry may occur several times.
    told_sizes: Mapping[tuple[str, str], list[tuple[int, int, int]]] = MappingProxyType({})
    results = ("calls", "cells", "histogram", "longest")

    def __init__(self, calls: Sequence[Call] = (), files: Sequence[str] = ("",)) -> None:
        self.calls = tuple(calls)
        self.files = files
        self.cells = {name: np.empty(0, dtype) for name, dtype in CELL_DTYPES.items()}
        empty = np.empty(0, np.int64)
        self.histogram = (empty, empty, empty)
        self.longest = (empty, Events.empty(self.calls, files))
        self._ordinals = Ordinals()
        self._nesting = Nesting()

    def __len__(self) -> int:
        return len(self.cells["count"])

    def __repr__(self) -> str:
        return f"CellSummary: {count_text(self.count, 'call')} in {count_text(len(self), 'cell')}"

    @property
    def count(self) -> int:
        """Number of calls."""
        return int(self.cells["count"].sum())

    def add(self, chunk: Events, ordinals_known: bool = True) -> None:
        """Add events of one run, those of a thread in the order of completion.

        `chunk`: the events.
        `ordinals_known`: false: earlier calls of the run are missing, so that the ordinals of these are not
        known.
        """
        if not len(chunk):
            return
        ordinal = self._ordinals.count(chunk) if ordinals_known else np.full(len(chunk), UNKNOWN_ORDINAL)
        inner_ns = self._nesting.inner_ns(chunk)
        self.merge(_part(chunk, ordinal_class(ordinal), inner_ns))

    def merge(self, other: CellSummary) -> None:
        """Add another summary; calls are distinguished by name and layer, files by path."""
        if not len(other):
            return
        if not len(self):
            self.calls, self.files = other.calls, other.files
        theirs = other.cells
        events = other.longest[1]
        if other.calls != self.calls or (other.files is not self.files and other.files != self.files):
            theirs, events = self._renumbered(other)
        joined = {name: np.concatenate([self.cells[name], theirs[name]]) for name in CELL_DTYPES}
        key = (joined["call"] << 16) | (joined["size_class"] << 8) | joined["ordinal_class"]
        _, first, group = np.unique(key, return_index=True, return_inverse=True)
        mine = len(self)
        self.cells = _grouped(joined, first, group)
        self.histogram = _joined_bins(self.histogram, other.histogram, group, mine)
        cell = np.concatenate([group[self.longest[0]], group[mine + other.longest[0]]])
        longest = Events.concatenate([self._renewed(self.longest[1]), self._renewed(events)])
        self.longest = _longest(cell, longest)

    def _renewed(self, events: Events) -> Events:
        """Copy events with the dictionaries of this summary."""
        return Events(_without_site(events), self.calls, self.files)

    def _renumbered(self, other: CellSummary) -> tuple[dict[str, np.ndarray], Events]:
        """Renumber the cells and longest calls of another summary, whose further names are added."""
        numbers = {call: number for number, call in enumerate(self.calls)}
        call_of = np.array([numbers.setdefault(call, len(numbers)) for call in other.calls], np.int64)
        self.calls = tuple(numbers)
        events = other.longest[1]
        used = np.unique(events.file)
        known = {path: number for number, path in enumerate(self.files)}
        file_of = np.zeros(int(used.max(initial=0)) + 1, np.int64)
        for number in used.tolist():
            file_of[number] = known.setdefault(other.files[number], len(known))
        self.files = list(known)
        columns = _without_site(events) | {"call": call_of[events.call], "file": file_of[events.file]}
        cells = other.cells | {"call": call_of[other.cells["call"]]}
        return cells, Events(columns, self.calls, self.files)

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Return the summary as arrays, with indices into `calls` and `files`.

        The columns of `cells`; ``bin_cell``, ``bin`` and ``bin_count`` of `histogram`; ``longest_cell`` and
        the columns of the longest calls as ``longest_<column>``.
        """
        cell, events = self.longest
        arrays = dict(self.cells)
        arrays |= dict(zip(("bin_cell", "bin", "bin_count"), self.histogram, strict=True))
        arrays |= {"longest_cell": cell}
        return arrays | {f"longest_{name}": column for name, column in _without_site(events).items()}

    @classmethod
    def from_arrays(
        cls, arrays: dict[str, np.ndarray], calls: Sequence[Call], files: Sequence[str]
    ) -> CellSummary:
        """Make a summary from the arrays of `to_arrays`."""
        summary = cls(calls, files)
        summary.cells = {name: arrays[name].astype(dtype) for name, dtype in CELL_DTYPES.items()}
        summary.histogram = (arrays["bin_cell"], arrays["bin"], arrays["bin_count"])
        columns = {name: arrays[f"longest_{name}"] for name in _LONGEST_COLUMNS}
        summary.longest = (arrays["longest_cell"], Events(columns, calls, files))
        summary._check()
        return summary

    def _check(self) -> None:
        n = len(self)
        cell, events = self.longest
        limits = [
            (self.cells["call"], len(self.calls)),
            (self.histogram[0], n),
            (self.histogram[1], BIN_COUNT),
            (cell, n),
            (events.call, len(self.calls)),
            (events.file, len(self.files)),
        ]
        if any(len(values) and not 0 <= values.min() <= values.max() < limit for values, limit in limits):
            raise ValueError("its summary has indices out of range")
        lengths = {len(column) for column in self.cells.values()}, {len(part) for part in self.histogram}
        if any(len(found) > 1 for found in lengths) or len(cell) != len(events):
            raise ValueError("the columns of its summary have different lengths")


def _without_site(events: Events) -> dict[str, np.ndarray]:
    """Return the columns of the longest calls of a summary."""
    return {name: getattr(events, name) for name in _LONGEST_COLUMNS}


def _grouped(cells: dict[str, np.ndarray], first: np.ndarray, group: np.ndarray) -> dict[str, np.ndarray]:
    """Merge the rows of each group."""
    n = len(first)
    if n == len(group):
        order = np.argsort(group)
        return {name: column[order] for name, column in cells.items()}
    out = {name: cells[name][first] for name in KEYS}
    for name in SUMS:
        out[name] = np.zeros(n, CELL_DTYPES[name])
        np.add.at(out[name], group, cells[name])
    for names, ufunc in ((LEAST, np.minimum), (MOST, np.maximum)):
        for name in names:
            out[name] = cells[name][first]
            ufunc.at(out[name], group, cells[name])
    weight = cells["count"].astype(np.float64)
    total = np.bincount(group, weight, n)
    out["mean_ns"] = np.bincount(group, weight * cells["mean_ns"], n) / np.maximum(total, 1)
    delta = cells["mean_ns"] - out["mean_ns"][group]
    m2, m3, m4 = cells["m2"], cells["m3"], cells["m4"]
    out["m2"] = np.bincount(group, m2 + weight * delta**2, n)
    out["m3"] = np.bincount(group, m3 + 3 * delta * m2 + weight * delta**3, n)
    out["m4"] = np.bincount(group, m4 + 4 * delta * m3 + 6 * delta**2 * m2 + weight * delta**4, n)
    return out


def _joined_bins(
    mine: tuple[np.ndarray, ...], theirs: tuple[np.ndarray, ...], group: np.ndarray, offset: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    cell = np.concatenate([group[mine[0]], group[offset + theirs[0]]])
    bins, counts = (np.concatenate([mine[at], theirs[at]]) for at in (1, 2))
    place, count = unique_counts(cell * BIN_COUNT + bins, counts)
    return place // BIN_COUNT, place % BIN_COUNT, count


def _longest(cell: np.ndarray, events: Events) -> tuple[np.ndarray, Events]:
    """Reduce calls to the longest of each cell, the longest first; of equals the earlier, then lower rank."""
    order = np.lexsort((events.thread, events.rank, events.start, -events.duration, cell))
    cell = cell[order]
    first = np.flatnonzero(np.concatenate([[True], cell[1:] != cell[:-1]])) if len(cell) else cell
    place = np.arange(len(cell)) - np.repeat(first, np.diff(np.append(first, len(cell))))
    return cell[place < LARGEST], events[order[place < LARGEST]]


def _part(chunk: Events, ordinal: np.ndarray, inner_ns: np.ndarray | None) -> CellSummary:
    """Summarize events with known ordinal classes and inner times."""
    size = size_class(chunk.requested)
    key = chunk.call.astype(np.int64) << 16 | size << 8 | ordinal
    outer, moved, duration = chunk.outermost, np.maximum(chunk.moved, 0), chunk.duration
    requested = (chunk.requested ^ _SIGN).view(np.int64)  # in the same order as without a sign
    group, none = np.empty(len(chunk), np.int32), np.zeros(len(chunk), np.int64)
    found = sum_by_keys(
        {"key": key},
        {
            "errors": chunk.moved < 0,
            "moved": moved,
            "outer_count": outer,
            "outer_moved": np.where(counted_elsewhere(chunk), 0, moved),
            "time_ns": duration,
            "inner_ns": none if inner_ns is None else inner_ns,
            "outer_ns": duration * outer,
            "without_bin": none,
        },
        {"min_ns": duration, "min_requested": requested, "start_ns": chunk.start},
        {"max_ns": duration, "max_requested": requested, "end_ns": chunk.end},
        row_of=group,
    )
    order = np.argsort(found["key"])
    found = {name: column[order] for name, column in found.items()}
    cell, unique, n = np.argsort(order)[group], found.pop("key"), len(order)
    mean = found["time_ns"] / found["n"]
    beyond = duration - mean[cell]
    part = CellSummary(chunk.calls, chunk.files)
    part.cells = {
        "call": unique >> 16,
        "size_class": unique >> 8 & 0xFF,
        "ordinal_class": unique & 0xFF,
        "count": found.pop("n"),
        **found,
        **{name: found[name].view(np.uint64) ^ _SIGN for name in ("min_requested", "max_requested")},
        "mean_ns": mean,
        **{f"m{power}": np.bincount(cell, beyond**power, n) for power in (2, 3, 4)},
    }
    number = bin_index(duration)
    place, bin_count = unique_counts(cell * BIN_COUNT + number)
    part.histogram = (place // BIN_COUNT, place % BIN_COUNT, bin_count)
    may_be = np.flatnonzero(number >= _least_bin_of_longest(n, *part.histogram)[cell])
    part.longest = _longest(cell[may_be], chunk[may_be])
    return part


def _least_bin_of_longest(cells: int, cell: np.ndarray, number: np.ndarray, count: np.ndarray) -> np.ndarray:
    """Return the bin of each cell from which on there are at least `LARGEST` calls, or else 0."""
    least = np.zeros(cells, np.int64)
    above = np.cumsum(count[::-1])[::-1]  # calls in this bin and all later ones, of this cell and later cells
    later = np.append(above, 0)[np.searchsorted(cell, cell, side="right")]
    enough = np.flatnonzero(above - later >= LARGEST)
    least[cell[enough]] = number[enough]  # the last, and so the highest, of each cell counts
    return least
