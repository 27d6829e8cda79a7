"""What the process that reads a Darshan log tells the one that asked for it: JSON objects, each with arrays.

The reading process may have been led astray by a damaged log, so that a frame is believed no further than it
can be checked.
"""

from __future__ import annotations

import json
import struct
from array import array
from collections.abc import Sequence
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

MOST_BYTES = 1 << 28
"""A frame is far smaller."""

ROWS = 1 << 12
"""Names, layouts, or records of counters in a frame."""

SEGMENT_BYTES = 40
"""Of a segment of DXT, in the buffer that both processes share (``segment_info``)."""

DTYPES = {"Q": "u8", "q": "i8", "B": "u1"}
"""Types of the arrays: as the module ``array`` has them, and NumPy."""


class FrameError(Exception):
    """What came is no frame."""


def write_frame(stream: IO[bytes], head: dict[str, Any], arrays: Sequence[array[int]] = ()) -> None:
    """Write one frame; arrays have one of `DTYPES`. NumPy, which takes longer to load than most logs
    to read, is not needed for that."""
    shapes = [(column.typecode, len(column)) for column in arrays]
    text = json.dumps({**head, "arrays": shapes}).encode("ascii")
    stream.write(struct.pack("<I", len(text)) + text)
    for column in arrays:
        stream.write(column.tobytes())
    stream.flush()


def read_frame(stream: IO[bytes]) -> tuple[dict[str, Any], list[np.ndarray]]:
    """The next frame, with arrays of shape (n,).

    Raises
    ------
    FrameError
        There is none, or it makes no sense.
    """
    import numpy as np

    (length,) = struct.unpack("<I", _exactly(stream, 4))
    try:
        head = json.loads(_exactly(stream, length))
        shapes = [(np.dtype(DTYPES[kind]), int(count)) for kind, count in head["arrays"]]
    except (ValueError, TypeError, KeyError) as error:
        raise FrameError from error
    return head, [np.frombuffer(_exactly(stream, count * dtype.itemsize), dtype) for dtype, count in shapes]


def _exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length) if 0 <= length <= MOST_BYTES else b""
    if len(data) != length:
        raise FrameError
    return data
