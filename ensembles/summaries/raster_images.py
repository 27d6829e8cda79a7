"""Images of a raster, at resolutions that suit a screen and a file, and all that a trace diagram shows of it.

Files keep images (`DrawnRaster`): raise `ensembles.passes.kept.VERSION` if others are made of a raster.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass
from typing import Any, NoReturn

import numpy as np

from ensembles.passes.group import SummaryRequest
from ensembles.summaries.raster import CLASSES, Raster

# A canvas draws the nearest pixel of an image. With more pixels than the screen, whole tasks would disappear:
# a coarser image of averages is drawn until the reader zooms in.
_SCREEN_ROWS = 420
_SCREEN_CELLS = 1024

_MOST_BYTES = 200_000
"""Limit of the compressed fine image: with the coarse image and base64, 0.45 MB of a page."""

_COMPRESSED_AT_ONCE = 1 << 16


@dataclass(frozen=True)
class ShareImage:
    """Shares of (tasks × time) spent in calls, one byte for each pixel and class."""

    # 255 is the whole of the tasks and time of a pixel. A share above zero is at least 1, so that it remains
    # visible. Shape (rows, cells, classes).
    shares: np.ndarray
    ranks_per_row: int  # Tasks in a row
    cell_ns: int  # Width of a pixel, in nanoseconds


def share_images(raster: Raster, present: list[str]) -> list[ShareImage]:
    """Return one image or, if it has more pixels than a screen, a fine and a coarse one."""
    rows_joined = cells_joined = 1
    fine = share_image(raster, present, rows_joined, cells_joined)
    while _is_longer(fine.shares, _MOST_BYTES):
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


def _is_longer(shares: np.ndarray, most_bytes: int) -> bool:
    """Whether an image has more bytes when it is compressed, of which no more than needed are computed."""
    compressor, data = zlib.compressobj(), shares.reshape(-1)
    compressed = 0
    for low in range(0, len(data), _COMPRESSED_AT_ONCE):
        compressed += len(compressor.compress(data[low : low + _COMPRESSED_AT_ONCE].data))
        if compressed > most_bytes:
            return True
    return compressed + len(compressor.flush()) > most_bytes


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


class DrawnRaster:
    """What a trace diagram shows of a raster: a twentieth of its bytes, which files keep.

    `raster`: the raster of the whole run. Default: it is filled with what is kept.
    `tasks`, `ranks_per_row`, `several_threads`, `extent_ns`, `edges_ns`: as of the raster.
    `images`: from `share_images`; none if no call took time.

    Examples
    --------
    >>> from ensembles.summaries.raster import raster_request
    >>> from ensembles.summaries.raster_images import DrawnRaster
    >>> run = en.open("ensio-ior")
    >>> drawn = DrawnRaster(run.tasks, run.summarize({"raster": raster_request()})["raster"])
    >>> drawn.present(), drawn.images[0].shares.shape[0]
    (['write', 'read', 'metadata'], 8)
    """

    results = (
        *("ranks_per_row", "several_threads", "extent_ns", "edges_ns", "images"),
        *("_present", "_inside_ns"),
    )
    result_types = (ShareImage,)

    def __init__(self, tasks: int, raster: Raster | None = None) -> None:
        raster = Raster(tasks) if raster is None else raster
        self.tasks, self.ranks_per_row = raster.tasks, raster.ranks_per_row
        self.several_threads = raster.several_threads
        self.extent_ns, self.edges_ns = raster.extent_ns, raster.edges_ns
        self._present = raster.present()
        chosen = [list(CLASSES).index(name) for name in self._present]
        self._inside_ns: np.ndarray = raster.time_ns[chosen].sum(axis=1)
        self.images = share_images(raster, self._present) if self._present else []

    def present(self) -> list[str]:
        """List the classes in which any time was spent, in the order of `CLASSES`."""
        return list(self._present)

    def tasks_inside(self, name: str) -> np.ndarray:
        """Compute the mean number of tasks in calls of a class, over time, as `Raster.tasks_inside`."""
        cell_ns = int(self.edges_ns[1] - self.edges_ns[0])
        tasks: np.ndarray = self._inside_ns[self._present.index(name)] / cell_ns
        return tasks


def drawn_request() -> SummaryRequest:
    """Return the request by which a drawn raster of a run is kept; no pass makes one."""
    return SummaryRequest(_no_drawing)


def _no_drawing(_: Any) -> NoReturn:
    """Describe a drawing, which is made of a raster."""
    raise NotImplementedError
