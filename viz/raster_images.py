"""Images of a raster, at resolutions that suit a screen and a file."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from ensembles.summaries.raster import CLASSES, Raster

# A canvas draws the nearest pixel of an image. With more pixels than the screen, whole tasks would disappear:
# a coarser image of averages is drawn until the reader zooms in.
_SCREEN_ROWS = 420
_SCREEN_CELLS = 1024

_MOST_BYTES = 200_000
"""Limit of the compressed fine image: with the coarse image and base64, 0.45 MB of a page."""


@dataclass(frozen=True)
class ShareImage:
    """Shares of (tasks × time) spent in calls, one byte for each pixel and class.

    Attributes
    ----------
    shares : ndarray of uint8, shape (rows, cells, classes)
        255 is the whole of the tasks and time of a pixel. A share above zero is at least 1, so that it
        remains visible.
    ranks_per_row : int
        Tasks in a row.
    cell_ns : int
        Width of a pixel, in nanoseconds.
    """

    shares: np.ndarray
    ranks_per_row: int
    cell_ns: int


def share_images(raster: Raster, present: list[str]) -> list[ShareImage]:
    """Return one image or, if it has more pixels than a screen, a fine and a coarse one.

    Parameters
    ----------
    raster : Raster
    present : list of str
        Classes to show, at least one.

    Returns
    -------
    list of ShareImage
        The fine image first.
    """
    rows_joined = cells_joined = 1
    fine = share_image(raster, present, rows_joined, cells_joined)
    while len(zlib.compress(fine.shares.data)) > _MOST_BYTES:
        # A screen shows fewer rows than cells.
        if rows_joined == cells_joined:
            rows_joined *= 2
        else:
            cells_joined *= 2
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
    """Return the image in which a pixel joins `rows_joined` rows and `cells_joined` cells of a raster."""
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
    """Sum groups of `count` neighbours along an axis; the last group may be smaller."""
    if count == 1:
        return values
    return np.add.reduceat(values, np.arange(0, values.shape[axis], count), axis=axis)
