"""Check the uncompressed header of a Darshan log: format version, and locations of its parts.

Darshan's library trusts the header. Therefore it is checked before the library opens the file. The layout is
``struct darshan_header`` of ``darshan-log-format.h`` in Darshan 3; before format 3.41 it has 16 modules.
"""

from __future__ import annotations

import bz2
import json
import os
import re
import struct
import subprocess
import sys
import zlib
from array import array
from collections.abc import Iterable, Sequence
from contextlib import suppress
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from ensembles.files.untrusted import MOST_PART_BYTES, Reading, open_regular
from ensembles.model.errors import EnsioError
from ensembles.readers.foreign.common.text_blocks import GZIP, plain, sorted_out

if TYPE_CHECKING:
    import numpy as np


MAGIC = 6567223
VERSIONS = ("3.00", "3.10", "3.20", "3.21", "3.41")
"""Format versions that Darshan's library reads; it converts old ones."""

_VERSION = re.compile(rb"[0-9]+\.[0-9]+\0+")
_COMPRESSIONS = ("zlib", "bzip2")
"""By their numbers in the header."""

MOST_JOB_BYTES = 1 << 16


def _shape(is_old: bool, order: str = "<") -> tuple[int, struct.Struct]:
    """Return the number of modules of a format, and the layout of the header behind its first 16 bytes."""
    count = 16 if is_old else 64
    return count, struct.Struct(f"{order}{'B3xI' if is_old else 'B7xQ'}{2 + 2 * count}Q{count}I")


class DamagedLog(Exception):
    """A log is damaged; the text describes how."""


class Header(NamedTuple):
    """Contents of the header."""

    version: str  # Format version
    swapped: bool  # Whether the log has the other byte order
    is_zlib: bool  # Whether zlib compressed the parts; else bzip2 did
    job: tuple[int, int]  # Offset and length of the job's description in the file, bytes
    names: tuple[int, int]  # Offset and length of the file names, bytes; length 0: there are none
    number: int = 0  # Number of the job, for a batch job that of the batch system
    # start_ns, end_ns: Start and end of the job, ns since 1970
    start_ns: int = 0
    end_ns: int = 0
    tasks: int = 1


def log_version(beginning: bytes) -> str | None:
    """Return the format version of a Darshan log.

    Logs of Darshan 1 and 2 are compressed as a whole (gzip), but begin in the same way inside. Those of
    Darshan 1 have no magic number.

    Examples
    --------
    >>> import struct
    >>> log_version(b"3.41".ljust(8, bytes(1)) + struct.pack("<q", MAGIC))
    '3.41'
    """
    is_packed = beginning.startswith(GZIP)
    beginning = plain(beginning, 64)
    if len(beginning) < 16 or not _VERSION.fullmatch(beginning[:8]):
        return None
    if is_packed and beginning.startswith(b"1."):
        return beginning[:8].rstrip(b"\0").decode("ascii")
    if MAGIC not in (struct.unpack_from("<q", beginning, 8)[0], struct.unpack_from(">q", beginning, 8)[0]):
        return None
    return beginning[:8].rstrip(b"\0").decode("ascii")


def _read_header(path: str, beginning: bytes, size_bytes: int) -> Header:
    """Parse and check the header of a log of Darshan 3, whose parts must lie in the file."""
    version = log_version(beginning) or ""
    if version not in VERSIONS or beginning.startswith(GZIP):
        raise EnsioError(
            f"{path} is a Darshan log of format {version}, which Darshan's library does not read: "
            "convert it with darshan-convert of the Darshan release that wrote it"
        )
    swapped = struct.unpack_from("<q", beginning, 8)[0] != MAGIC
    count, shape = _shape(version < "3.41", ">" if swapped else "<")
    if len(beginning) < 16 + shape.size:
        raise damaged(path, f"it ends after {size_bytes:,} bytes, within its header")
    compression, _, *numbers = shape.unpack_from(beginning, 16)
    if compression >= len(_COMPRESSIONS):
        raise EnsioError(
            f"{path} is a Darshan log that is not compressed by zlib or bzip2, which Darshan's library does "
            "not read safely: convert it with darshan-convert"
        )
    places = list(zip(numbers[0 : 2 + 2 * count : 2], numbers[1 : 2 + 2 * count : 2], strict=True))
    head_bytes = 16 + shape.size
    end = _check_places(path, places, head_bytes, size_bytes)
    job = (head_bytes, end - head_bytes)
    return Header(version, swapped, _COMPRESSIONS[compression] == "zlib", job, places[0])


def open_header(path: str) -> Header:
    """Read and check the header of a log, and the job's description, of which the library checks little."""
    with Reading(path), open_regular(path) as file:
        longest = 16 + _shape(is_old=False)[1].size
        header = _read_header(path, file.read(longest), os.fstat(file.fileno()).st_size)
        file.seek(header.job[0])
        packed = file.read(min(header.job[1], MOST_JOB_BYTES))
    unpacking = zlib.decompressobj() if header.is_zlib else bz2.BZ2Decompressor()
    old = header.version < "3.41"
    try:
        job = unpacking.decompress(packed, MOST_JOB_BYTES)
        if not unpacking.eof:
            raise EOFError
        numbers = struct.unpack_from(f"{'>' if header.swapped else '<'}{5 if old else 7}q", job)
    except (zlib.error, OSError, EOFError, struct.error) as error:
        raise damaged(path, "the description of the job cannot be decompressed") from error
    *_, tasks, number = numbers
    start_ns = numbers[1] * 10**9 + (0 if old else numbers[2])
    end_ns = (numbers[2 if old else 3] + 1) * 10**9  # of older logs, whole seconds
    return header._replace(number=number, start_ns=start_ns, end_ns=end_ns, tasks=tasks)


def _check_places(path: str, places: list[tuple[int, int]], head_bytes: int, size_bytes: int) -> int:
    """Check that parts lie in the file and do not overlap; return the end of the description of the job."""
    end = head_bytes
    for offset, length in sorted(place for place in places if place[1]):
        if offset + length > size_bytes:
            raise damaged(path, f"it has {size_bytes:,} of at least {offset + length:,} bytes")
        if offset <= head_bytes or offset < end:
            raise damaged(path, f"its parts overlap at byte {offset:,}")
        end = offset + length
    names = places[0]
    # Without names, the library assumes that the description ends at the first module.
    firsts = [offset for offset, _ in ([names] if names[0] else places[1:]) if offset]
    first = firsts[0] if firsts else size_bytes
    if first <= head_bytes or any(length and offset < first for offset, length in places):
        raise damaged(path, "it has no space for the description of the job")
    return first


def logs_of(path: str) -> tuple[list[str], list[str]]:
    """List the logs of a path: itself, or the files ``*.darshan`` of a folder; and the others."""
    return sorted_out(path, lambda name: name.endswith(".darshan"), log_version)


def runs_of(paths: Iterable[str]) -> list[list[str]]:
    """Group logs into runs: processes of a job without MPI are tasks of one if they ran at one time."""
    runs: list[list[str]] = []
    alone: list[tuple[str, int, int, int, str]] = []
    for path in paths:
        with suppress(EnsioError):
            header = open_header(path)
            if header.tasks == 1 and header.number:
                alone.append((os.path.dirname(path), header.number, header.start_ns, header.end_ns, path))
                continue
        runs.append([path])
    last, latest_ns = ("", 0), 0
    for folder, number, start_ns, end_ns, path in sorted(alone):
        if (folder, number) != last or start_ns > latest_ns:
            runs.append([])
            last, latest_ns = (folder, number), end_ns
        runs[-1].append(path)
        latest_ns = max(latest_ns, end_ns)
    return runs


def damaged(path: str, how: str) -> EnsioError:
    """Make the error for a damaged log."""
    return EnsioError(f"{path} is a damaged Darshan log: {how}; copy it again from where it was written")


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
    """Read the next frame."""
    import numpy as np

    (length,) = struct.unpack("<I", _exactly(stream, 4))
    try:
        head = json.loads(_exactly(stream, length))
        shapes = [(np.dtype(DTYPES[kind]), int(count)) for kind, count in head["arrays"]]
    except (ValueError, TypeError, KeyError) as error:
        raise FrameError from error
    return head, [np.frombuffer(_exactly(stream, count * dtype.itemsize), dtype) for dtype, count in shapes]


def _exactly(stream: IO[bytes], length: int) -> bytes:
    data = stream.read(length) if 0 <= length <= MOST_PART_BYTES else b""
    if len(data) != length:
        raise FrameError
    return data


def start_library(*arguments: str, shared: Sequence[int] = ()) -> subprocess.Popen[bytes]:
    """Start a process that runs Darshan's library (`sandbox_process`)."""
    # -P: do not import modules from the current directory.
    return subprocess.Popen(
        [sys.executable, "-P", "-m", f"{__package__}.sandbox_process", *arguments],
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
