"""The image of a page before its program has come: what the trace diagram will show, as a PNG in the page."""

from __future__ import annotations

import base64
import io
from collections.abc import Sequence

import numpy as np
from PIL import Image

from ensembles.viz.common.style import COLOURS
from ensembles.viz.explorer.page import Explorer

_ROWS, _CELLS = 330, 1024
"""Pixels at most: about those of the trace diagram on a screen."""
_ENHANCED = 0.4
"""Power of the opacity, as in the trace diagram."""


def first_image(explorer: Explorer) -> str:
    """Return the address of the image of the first run, which has its bytes; empty: the run has no calls."""
    shares, classes = explorer.first_shares()
    return (
        ""
        if shares is None
        else f"data:image/png;base64,{base64.b64encode(png_of(shares, classes)).decode()}"
    )


def png_of(shares: np.ndarray, classes: Sequence[str]) -> bytes:
    """Draw shares of time as a PNG: a colour for each class, opacity for the part of the time.

    Parameters
    ----------
    shares : ndarray of uint8, shape (rows, cells, classes)
        255 is the whole time of a pixel. The first row is the uppermost.

    Examples
    --------
    >>> import numpy as np
    >>> from ensembles.viz.explorer.first_image import png_of
    >>> png_of(np.full((4, 8, 1), 255, np.uint8), ["write"])[:4]
    b'\\x89PNG'
    """
    few = _joined(_joined(shares.astype(np.float32), 0, _ROWS), 1, _CELLS)
    total = few.sum(axis=2)
    colours = np.array([[int(COLOURS[name][at : at + 2], 16) for at in (1, 3, 5)] for name in classes])
    mixed = few @ colours.astype(np.float32) / np.maximum(total, 1e-9)[:, :, None]
    alpha = 255 * np.minimum(total / 255, 1) ** _ENHANCED
    pixels = np.rint(np.concatenate([mixed, alpha[:, :, None]], axis=2)).astype(np.uint8)
    file = io.BytesIO()
    Image.fromarray(pixels, "RGBA").save(file, "PNG", compress_level=1)
    return file.getvalue()


def _joined(values: np.ndarray, axis: int, most: int) -> np.ndarray:
    """Average neighbours along an axis until there are at most so many."""
    count = -(-values.shape[axis] // most)
    if count == 1:
        return values
    starts = np.arange(0, values.shape[axis], count)
    sizes = np.diff(np.append(starts, values.shape[axis]))
    shape = [-1 if at == axis else 1 for at in range(3)]
    averages: np.ndarray = np.add.reduceat(values, starts, axis=axis) / sizes.reshape(shape)
    return averages
