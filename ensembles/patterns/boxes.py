"""Regions of a file as boxes of a grid: blocks of one large array, which share its strides."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

if TYPE_CHECKING:
    from ensembles.patterns.overlap import Regions

_MOST_CELLS = 1 << 24


def strides_of(regions: Regions) -> tuple[int, int] | None:
    """The stride and plane stride (0: there are no planes) that all regions share, or None."""
    rows = np.where(regions.pieces > 1, regions.stride, 0)
    planes = np.where(regions.planes > 1, regions.plane_stride, 0)
    flat = (regions.pieces == 1) & (regions.planes > 1)  # planes of one piece: pieces with the planes' stride
    strides = np.unique(rows[rows > 0])
    plane_strides = np.unique(planes[planes > 0])
    if flat.all() and len(plane_strides) == 1:
        return int(plane_strides[0]), 0
    if len(strides) != 1 or len(plane_strides) > 1:
        return None
    return int(strides[0]), int(plane_strides[0]) if len(plane_strides) else 0


def shared_byte_of_boxes(regions: Regions) -> Any:
    """A file and a byte that two tasks write, or None; NotImplemented if they are no boxes of one grid.

    With stride s and plane stride p every byte is at one x + y s + z p with 0 <= x < s and x + y s < p, and a
    region is a box in x, y and z. The edges of all boxes cut space into cells; of blocks of an array each is
    about one cell, however many pieces it has in the file. Two boxes overlap if they have a cell in common.
    """
    shared_strides = strides_of(regions)
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
    """All edges of an axis, and the first and the one after the last cell of each box."""
    edges = np.unique(np.concatenate([first, end]))
    return edges, np.searchsorted(edges, first), np.searchsorted(edges, end)
