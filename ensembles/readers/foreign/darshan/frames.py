"""Messages (frames) from the process that reads a Darshan log: JSON objects, each with arrays.

A damaged log may have corrupted the reading process. Therefore every frame is checked.
"""

from __future__ import annotations

import json
import os
import struct
import subprocess
import sys
from array import array
from collections.abc import Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

MOST_BYTES = 1 << 28
"""Limit on the parts of a frame, which are far smaller."""

ROWS = 1 << 12
"""Number of names, layouts or records of counters in a frame."""

SEGMENT_BYTES = 40
"""Length of a DXT segment (``segment_info``) in the buffer that both processes share."""

DTYPES = {"Q": "u8", "q": "i8", "B": "u1"}
"""Types of arrays: type code of the module ``array``, and NumPy type."""


class FrameError(Exception):
    """The received bytes are not a frame."""


def write_frame(stream: IO[bytes], head: dict[str, Any], arrays: Sequence[array[int]] = ()) -> None:
    """Write one frame.

    This function does not need NumPy, whose import takes longer than reading most logs.
    """
    shapes = [(column.typecode, len(column)) for column in arrays]
    text = json.dumps({**head, "arrays": shapes}).encode("ascii")
    stream.write(struct.pack("<I", len(text)) + text)
    for column in arrays:
        stream.write(column.tobytes())
    stream.flush()


def read_frame(stream: IO[bytes]) -> tuple[dict[str, Any], list[np.ndarray]]:
    """Read the next frame.

    Returns
    -------
    head : dict
    arrays : list of ndarray, shape (n,)
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


def start_library(module: str, *arguments: str, shared: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start a process that runs a module of this folder, and so Darshan's library."""
    # -P: do not import modules from the current directory.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", f"{__package__}.{module}", *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        pass_fds=shared,
        env=os.environ | {"OPENBLAS_NUM_THREADS": "1"},
    )


def end_library(child: subprocess.Popen[bytes]) -> None:
    """Kill the process, and close its pipes."""
    child.kill()
    for stream in (child.stdin, child.stdout):
        if stream is not None:
            with suppress(BrokenPipeError):
                stream.close()
    child.wait()
