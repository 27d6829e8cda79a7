"""What the process that reads a Darshan log tells the one that asked for it: frames of a JSON object and arrays.

The reading process may have been led astray by a damaged log, so that a frame is believed no further than it
can be checked.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Sequence
from typing import Any, BinaryIO

import numpy as np

MOST_BYTES = 1 << 28
"""A frame is far smaller."""

ROWS = 1 << 12
"""Names, layouts, or records of counters in a frame."""

SEGMENT_BYTES = 40
"""Of a segment of DXT, in the buffer that both processes share (``segment_info``)."""

DTYPES = ("u8", "i8", "f8")


class FrameError(Exception):
    """What came is no frame."""


def write_frame(stream: BinaryIO, head: dict[str, Any], arrays: Sequence[np.ndarray] = ()) -> None:
    """Write one frame; arrays have one of `DTYPES` and the byte order of this machine."""
    shapes = [(array.dtype.str[1:], *array.shape) for array in arrays]
    text = json.dumps({**head, "arrays": shapes}).encode("ascii")
    stream.write(struct.pack("<I", len(text)) + text)
    for array in arrays:
        stream.write(np.ascontiguousarray(array).tobytes())
    stream.flush()


def read_frame(stream: BinaryIO) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The next frame.

    Raises
    ------
    FrameError
        There is none, or it makes no sense.
    """
    (length,) = struct.unpack("<I", _exactly(stream, 4))
    try:
        head = json.loads(_exactly(stream, length))
        shapes = [(np.dtype(kind), tuple(map(int, shape))) for kind, *shape in head["arrays"] if kind in DTYPES]
    except (ValueError, TypeError, KeyError) as error:
        raise FrameError from error
    arrays = []
    for dtype, shape in shapes:
        if any(side < 0 for side in shape):
            raise FrameError
        count = int(np.prod(shape, dtype=object))
        arrays.append(np.frombuffer(_exactly(stream, count * dtype.itemsize), dtype).reshape(shape))
    return head, arrays


def _exactly(stream: BinaryIO, length: int) -> bytes:
    data = stream.read(length) if 0 <= length <= MOST_BYTES else b""
    if len(data) != length:
        raise FrameError
    return data
