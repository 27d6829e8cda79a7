"""File regions that tasks write: strided regions and boxes of a grid."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np

from ensembles.model.units import AT_ONCE
from ensembles.workloads.patterns.pattern import MOST_OPERATIONS

_MOST_CELLS = 1 << 24


def common_strides(regions: Regions) -> tuple[int, int] | None:
    """Return the stride and plane stride (0: no planes) that all regions share, or None."""
    rows = np.where(regions.pieces > 1, regions.stride, 0)
    planes = np.where(regions.planes > 1, regions.plane_stride, 0)
    flat = (regions.pieces == 1) & (
        regions.planes > 1
    )  # planes of one piece are pieces with the plane stride
    strides = np.unique(rows[rows > 0])
    plane_strides = np.unique(planes[planes > 0])
    if flat.all() and len(plane_strides) == 1:
        return int(plane_strides[0]), 0
    if len(strides) != 1 or len(plane_strides) > 1:
        return None
    return int(strides[0]), int(plane_strides[0]) if len(plane_strides) else 0


def shared_byte_of_boxes(regions: Regions) -> Any:
    """Find file and byte that two tasks write, if all regions are boxes of one grid, else NotImplemented.

    With stride s and plane stride p, every byte has one position x + y s + z p with 0 <= x < s and
    x + y s < p, and a region is a box in x, y and z. The edges of all boxes divide space into cells. A block
    of an array is about one cell, for any number of pieces in the file. Two boxes overlap if they share a
    cell.
    """
    shared_strides = common_strides(regions)
    if shared_strides is None:
        return NotImplemented
    stride, plane_stride = shared_strides
    pieces, planes = regions.pieces, regions.planes
    length = regions.size // (pieces * planes)
    if not plane_stride:
        pieces, planes = pieces * planes, np.ones_like(planes)
        z, rest = np.zeros_like(regions.offset), regions.offset
    else:
        z, rest = regions.offset // plane_stride, regions.offset % plane_stride
    y, x = rest // stride, rest % stride
    fits = x + length <= stride
    if plane_stride:
        fits &= (y + pieces - 1) * stride + x + length <= plane_stride
    if not fits.all():
        return NotImplemented
    axes = [_cells(x, x + length), _cells(y, y + pieces), _cells(z, z + planes)]
    count = np.prod([(last - first).astype(float) for _, first, last in axes], axis=0)
    if count.sum() > _MOST_CELLS:
        return NotImplemented
    owner = np.repeat(np.arange(len(regions)), count.astype(np.int64))
    number = np.arange(len(owner)) - np.repeat(np.cumsum(count) - count, count.astype(np.int64)).astype(
        np.int64
    )
    coordinates = []
    for _, first, last in axes:
        wide = (last - first)[owner]
        coordinates.append(first[owner] + number % wide)
        number = number // wide
    order = np.lexsort((*coordinates, regions.file[owner]))
    owner, coordinates = owner[order], [axis[order] for axis in coordinates]
    same = regions.file[owner[1:]] == regions.file[owner[:-1]]
    for axis in coordinates:
        same &= axis[1:] == axis[:-1]
    shared = same & (regions.rank[owner[1:]] != regions.rank[owner[:-1]])
    if not shared.any():
        return None
    bad = int(np.argmax(shared)) + 1
    corner = [int(edges[axis[bad]]) for (edges, _, _), axis in zip(axes, coordinates, strict=True)]
    byte = corner[0] + corner[1] * stride + corner[2] * plane_stride
    return int(regions.file[owner[bad]]), byte


def _cells(first: np.ndarray, end: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return all edges of an axis, and first and end (exclusive) of the cells of each box."""
    edges = np.unique(np.concatenate([first, end]))
    return edges, np.searchsorted(edges, first), np.searchsorted(edges, end)


_MERGED_WHEN = 1 << 21


@dataclass(frozen=True)
class Regions:
    """Regions that calls write, sorted by rank.

    A call writes `size` bytes in `pieces` × `planes` pieces of equal length.
    """

    # rank, file: int64, shape (calls,)
    rank: np.ndarray
    file: np.ndarray
    # offset, size, stride, plane_stride: int64, shape (calls,): Bytes
    offset: np.ndarray
    size: np.ndarray
    # pieces, planes: int64, shape (calls,)
    pieces: np.ndarray
    stride: np.ndarray
    planes: np.ndarray
    plane_stride: np.ndarray

    def __len__(self) -> int:
        return len(self.rank)

    def __getitem__(self, which: slice | np.ndarray) -> Regions:
        return Regions(*(column[which] for column in self.columns()))

    def columns(self) -> tuple[np.ndarray, ...]:
        """Return the attributes in their order."""
        return tuple(vars(self).values())

    def covers(self, file: int, byte: int) -> np.ndarray:
        """Return which calls write a byte, bool, shape (calls,)."""
        length = self.size // (self.pieces * self.planes)
        distance = byte - self.offset
        plane = np.where(self.planes > 1, distance // np.maximum(self.plane_stride, 1), 0)
        plane = np.clip(plane, 0, self.planes - 1)
        distance = distance - plane * self.plane_stride
        piece = np.where(self.pieces > 1, distance // np.maximum(self.stride, 1), 0)
        distance = distance - np.clip(piece, 0, self.pieces - 1) * self.stride
        covered: np.ndarray = (self.file == file) & (distance >= 0) & (distance < length)
        return covered


@dataclass
class WrittenRegions:
    """Regions that the tasks write in one phase, added block by block; each task is in one block.

    Adjacent regions are merged, so that memory stays small for tasks that fill a file together.
    """

    _files: list[np.ndarray] = field(default_factory=list)
    _starts: list[np.ndarray] = field(default_factory=list)
    _ends: list[np.ndarray] = field(default_factory=list)
    _held: int = 0
    _merged: int = 0
    _in_pieces: list[Regions] = field(default_factory=list)

    def add(self, regions: Regions) -> tuple[int, int] | None:
        """Add a block of tasks; return file and byte that two tasks write, or None."""
        if (regions.pieces * regions.planes > 1).any():
            self._in_pieces.append(regions)
            return None
        return self._add_intervals(regions.rank, regions.file, regions.offset, regions.offset + regions.size)

    def shared_byte(self) -> tuple[int, int] | None:
        """Return file and byte that two of the added tasks write, or None."""
        if self._in_pieces:
            regions = Regions(
                *(
                    np.concatenate(parts)
                    for parts in zip(*(r.columns() for r in self._in_pieces), strict=True)
                )
            )
            self._in_pieces = []
            if not self._held and common_strides(regions) is not None:
                found: tuple[int, int] | None = shared_byte_of_boxes(regions)
                if found is not NotImplemented:
                    return found
            for part in _parts_by_rank(regions):
                shared = self._add_pieces(part)
                if shared:
                    return shared
        return self._merge()

    def _add_pieces(self, regions: Regions) -> tuple[int, int] | None:
        """Add every piece as an interval."""
        often = regions.pieces * regions.planes
        number = np.arange(int(often.sum())) - np.repeat(np.cumsum(often) - often, often)
        wide = Regions(*(np.repeat(column, often) for column in regions.columns()))
        starts = (
            wide.offset + (number % wide.pieces) * wide.stride + (number // wide.pieces) * wide.plane_stride
        )
        return self._add_intervals(
            wide.rank, wide.file, starts, starts + wide.size // (wide.pieces * wide.planes)
        )

    def _add_intervals(
        self, rank: np.ndarray, file: np.ndarray, starts: np.ndarray, ends: np.ndarray
    ) -> tuple[int, int] | None:
        order = np.lexsort((starts, file))
        rank, file, starts, ends = rank[order], file[order], starts[order], ends[order]
        reached, farthest = _reached(file, starts, ends)
        same = file[1:] == file[:-1]
        shared = same & (starts[1:] < reached[:-1]) & (rank[1:] != rank[farthest[:-1]])
        if shared.any():
            bad = int(np.argmax(shared)) + 1
            return int(file[bad]), int(starts[bad])
        self._keep(file, starts, reached)
        if self._held - self._merged > _MERGED_WHEN:
            return self._merge()
        return None

    def _keep(self, file: np.ndarray, starts: np.ndarray, reached: np.ndarray) -> None:
        """Keep sorted intervals, and merge adjacent ones."""
        begins = np.ones(len(file), dtype=bool)
        begins[1:] = (file[1:] != file[:-1]) | (starts[1:] > reached[:-1])
        last = np.append(np.flatnonzero(begins)[1:], len(file)) - 1
        self._files.append(file[begins])
        self._starts.append(starts[begins])
        self._ends.append(reached[last])
        self._held += int(begins.sum())

    def _merge(self) -> tuple[int, int] | None:
        """Merge the intervals of all blocks; intervals of two blocks belong to different tasks."""
        if not self._files:
            return None
        file, starts, ends = (np.concatenate(parts) for parts in (self._files, self._starts, self._ends))
        order = np.lexsort((starts, file))
        file, starts, ends = file[order], starts[order], ends[order]
        shared = (file[1:] == file[:-1]) & (starts[1:] < ends[:-1])
        if shared.any():
            bad = int(np.argmax(shared)) + 1
            return int(file[bad]), int(starts[bad])
        self._files, self._starts, self._ends, self._held = [], [], [], 0
        self._keep(file, starts, ends)
        self._merged = self._held
        return None


def _reached(file: np.ndarray, starts: np.ndarray, ends: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the largest end of the regions up to each one in its file, and the index of that region.

    Regions are sorted by file and start. It suffices to compare each region with the farthest one before it:
    the first region that overlaps another task's region also overlaps the farthest one, which belongs to
    another task too, because a region of the same task would have overlapped earlier.
    """
    if len(file) == 0:
        return ends, np.arange(0)
    # Ends are replaced by their ranks among all ends, so that the numbers of a file are above those before.
    places = np.unique(ends, return_inverse=True)[1].astype(np.int64)
    numbers = np.concatenate([[0], np.cumsum(file[1:] != file[:-1])]) * (len(ends) + 1) + places
    highest = np.maximum.accumulate(numbers)
    farthest = np.maximum.accumulate(np.where(numbers == highest, np.arange(len(file)), 0))
    return ends[farthest], farthest


def _parts_by_rank(regions: Regions) -> list[Regions]:
    """Split regions into parts with a limited number of pieces, each task in one part."""
    often = regions.pieces * regions.planes
    if float(often.astype(float).sum()) > MOST_OPERATIONS:
        raise OverflowError
    order = np.argsort(regions.rank, kind="stable")
    regions, often = regions[order], often[order]
    first_of_task = np.flatnonzero(np.concatenate([[True], regions.rank[1:] != regions.rank[:-1]]))
    before = np.concatenate([[0], np.cumsum(often)])[first_of_task]
    cuts = first_of_task[np.flatnonzero(np.diff(before // AT_ONCE)) + 1]
    edges = [0, *cuts.tolist(), len(regions)]
    return [regions[slice(begin, end)] for begin, end in pairwise(edges)]
