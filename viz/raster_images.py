"""A raster as images of shares, of a size that a screen can show and a file can hold."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from ensembles.summaries.raster import CLASSES, Raster

# A canvas draws the nearest pixel of an image: one with more pixels than the screen would lose whole tasks.
# So a coarser image, of averages, is drawn until the reader zooms in.
_SCREEN_ROWS = 420
_SCREEN_CELLS = 1024

_MOST_BYTES = 1_700_000
"""Compressed; with the coarser image and in base64 it becomes two thirds more."""


@dataclass(frozen=True)
class ShareImage:
    """Shares of (tasks × time) that were spent in calls.

    Attributes
    ----------
    shares : ndarray of uint8, shape (rows, cells, classes)
        255 is all of the tasks and time of a pixel. What is there at all is at least 1, so that it is never
        drawn, or told, as nothing.
    ranks_per_row : int
    cell_ns : int
    """

    shares: np.ndarray
    ranks_per_row: int
    cell_ns: int


def share_images(raster: Raster, present: list[str]) -> list[ShareImage]:
    """One image, or two where it has more pixels than a screen: a fine one for zooming in, and a coarse one.

    Parameters
    ----------
    raster : Raster
    present : list of str
        Classes to show, at least one.
    """
    rows_joined = cells_joined = 1
    fine = share_image(raster, present, rows_joined, cells_joined)
    while len(zlib.compress(fine.shares.data, 1)) > _MOST_BYTES:
        rows_joined, cells_joined = 2 * rows_joined, 2 * cells_joined
        fine = share_image(raster, present, rows_joined, cells_joined)
    rows, cells = fine.shares.shape[:2]
    if rows <= _SCREEN_ROWS and cells <= _SCREEN_CELLS:
        return [fine]
    rows_joined *= 2 if rows > _SCREEN_ROWS else 1
    cells_joined *= 2 if cells > _SCREEN_CELLS else 1
    return [fine, share_image(raster, present, rows_joined, cells_joined)]


def share_image(
    raster: Raster, present: list[str], rows_joined: int = 1, cells_joined: int = 1
) -> ShareImage:
    """The image in which so many rows and cells of a raster are joined to one pixel."""
    tasks = _joined(raster.tasks_of_row, 0, rows_joined)
    cell_ns = raster.cell_ns * cells_joined
    per_byte_ns = (tasks * (cell_ns / 255.0)).astype(np.float32)[:, None]
    time_ns = raster.time_ns
    layers = []
    for name in present:
        of_class = time_ns[list(CLASSES).index(name)]
        scaled = _joined(_joined(of_class, 0, rows_joined), 1, cells_joined) / per_byte_ns
        layers.append(np.where(scaled > 0, np.clip(np.rint(scaled), 1, 255), 0).astype(np.uint8))
    return ShareImage(np.stack(layers, axis=-1), raster.ranks_per_row * rows_joined, cell_ns)


def _joined(values: np.ndarray, axis: int, count: int) -> np.ndarray:
    """Sums of `count` neighbours along an axis; the last one may be of fewer."""
    if count == 1:
        return values
    return np.add.reduceat(values, np.arange(0, values.shape[axis], count), axis=axis)
