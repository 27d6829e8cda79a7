"""The uncompressed head of a Darshan log: which version wrote it, and where its parts lie.

Darshan's library believes what stands there, so it is looked at before the library sees the file. Layout:
``darshan-log-format.h`` of Darshan 3 (``struct darshan_header``; before version 3.41 with room for 16
modules).
"""

from __future__ import annotations

import bz2
import re
import struct
import zlib
from typing import NamedTuple

from ensembles.model.errors import EnsioError

MAGIC = 6567223
VERSIONS = ("3.00", "3.10", "3.20", "3.21", "3.41")
"""Versions of the format that Darshan's library reads, and converts where they are old."""

_VERSION = re.compile(rb"[0-9]+\.[0-9]+\0+")
_GZIP = b"\x1f\x8b"
_ZLIB, _BZIP2 = 0, 1
_FEW_MODULES, _MANY_MODULES = 16, 64
MOST_JOB_BYTES = 1 << 16
LONGEST = 1328
"""Bytes of the head, at most."""


class DamagedLog(Exception):
    """The text says what is wrong with a log."""


class Header(NamedTuple):
    """What the head says.

    Attributes
    ----------
    version : str
    swapped : bool
        It was written by a machine of the other byte order.
    is_zlib : bool
        Its parts are compressed by zlib, else by bzip2.
    job : tuple of (int, int)
        Offset and length of the job's description, in the file.
    names : tuple of (int, int)
        Offset and length of the names of files, in the file; length 0: there are none.
    modules : tuple of (int, int)
        Likewise, of each module.
    """

    version: str
    swapped: bool
    is_zlib: bool
    job: tuple[int, int]
    names: tuple[int, int]
    modules: tuple[tuple[int, int], ...]


def log_version(beginning: bytes) -> str | None:
    """The version of a Darshan log that begins so; None: it is none.

    Logs of Darshan 1 and 2 are compressed as a whole (gzip), and look the same inside.
    """
    if beginning.startswith(_GZIP):
        try:
            beginning = zlib.decompressobj(31).decompress(beginning, 64)
        except zlib.error:
            return None
    if len(beginning) < 16 or not _VERSION.fullmatch(beginning[:8]):
        return None
    if MAGIC not in (struct.unpack_from("<q", beginning, 8)[0], struct.unpack_from(">q", beginning, 8)[0]):
        return None
    return beginning[:8].rstrip(b"\0").decode("ascii")


def read_header(path: str, beginning: bytes, size_bytes: int) -> Header:
    """The head of a log of Darshan 3.

    Parameters
    ----------
    path : str
        For messages.
    beginning : bytes
        The first `LONGEST` bytes of the file, or all.
    size_bytes : int
        Of the file.

    Raises
    ------
    EnsioError
        The library reads no such version, or the parts that the head names do not lie in the file.
    """
    version = log_version(beginning) or ""
    if version not in VERSIONS or beginning.startswith(_GZIP):
        raise EnsioError(
            f"{path} is a Darshan log of format {version}, which Darshan's library does not read: "
            "convert it with the darshan-convert of the Darshan that made it"
        )
    old = version < "3.41"
    count = _FEW_MODULES if old else _MANY_MODULES
    swapped = struct.unpack_from("<q", beginning, 8)[0] != MAGIC
    shape = struct.Struct(f"{'>' if swapped else '<'}{'B3xI' if old else 'B7xQ'}{2 + 2 * count}Q{count}I")
    if len(beginning) < 16 + shape.size:
        raise damaged(path, f"it ends after {size_bytes:,} bytes, within its head")
    compression, _, *numbers = shape.unpack_from(beginning, 16)
    if compression not in (_ZLIB, _BZIP2):
        raise EnsioError(
            f"{path} is a Darshan log that is not compressed by zlib or bzip2, which Darshan's library does "
            "not read safely: convert it with darshan-convert"
        )
    places = list(zip(numbers[0 : 2 + 2 * count : 2], numbers[1 : 2 + 2 * count : 2], strict=True))
    head_bytes = 16 + shape.size
    end = _check_places(path, places, head_bytes, size_bytes)
    job = (head_bytes, end - head_bytes)
    return Header(version, swapped, compression == _ZLIB, job, places[0], tuple(places[1:]))


def check_job(path: str, header: Header, packed: bytes) -> None:
    """See whether the job's description is whole: the library looks at its beginning only.

    Parameters
    ----------
    path : str
        For messages.
    header : Header
    packed : bytes
        The part `header.job` of the file, or the beginning of it.

    Raises
    ------
    EnsioError
        It is not.
    """
    unpacking = zlib.decompressobj() if header.is_zlib else bz2.BZ2Decompressor()
    try:
        unpacking.decompress(packed, MOST_JOB_BYTES)
        whole = unpacking.eof
    except (zlib.error, OSError):
        whole = False
    if not whole:
        raise damaged(path, "the description of the job cannot be unpacked")


def _check_places(path: str, places: list[tuple[int, int]], head_bytes: int, size_bytes: int) -> int:
    """The end of the job's description, which lies between the head and the first part; all parts have to lie
    apart, in the file."""
    end = head_bytes
    for offset, length in sorted(place for place in places if place[1]):
        if offset + length > size_bytes:
            raise damaged(path, f"{offset + length:,} bytes are announced, and {size_bytes:,} are there")
        if offset <= head_bytes or offset < end:
            raise damaged(path, f"its parts overlap at byte {offset:,}")
        end = offset + length
    names = places[0]
    # Where there are no names the library takes the job to end at the first module.
    firsts = [offset for offset, _ in ([names] if names[0] else places[1:]) if offset]
    first = firsts[0] if firsts else size_bytes
    if first <= head_bytes or any(length and offset < first for offset, length in places):
        raise damaged(path, "there is no room for the description of the job in it")
    return first


def damaged(path: str, how: str) -> EnsioError:
    """The sentence about a damaged log."""
    return EnsioError(f"{path} is a damaged Darshan log: {how}; copy it again from where it was written")
