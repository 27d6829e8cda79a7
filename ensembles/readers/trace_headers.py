"""What is looked at in a ``trace.h5`` before HDF5 reads it: whether its headers have checksums.

Ensio writes superblocks of version 3 and headers of objects of version 2, of which HDF5 notices every damage.
The older kinds, which most programs still write, have no checksums, and HDF5 believes what is in them.
"""

from __future__ import annotations

import os
import struct

_HEADER = b"OHDR"
"""How a header of an object with a checksum begins; those without one begin with their version, 1."""

_SUPERBLOCK = struct.Struct("<8xBB2xQ16xQ")
"""Version, bytes of a place, the place from which others count, that of the header of the root group."""

_MOST_PLACE = (1 << 63) - 8


def check_superblock(path: str) -> None:
    """See that a file begins with headers that have checksums.

    Raises
    ------
    ValueError
        It does not.
    OSError
        It cannot be read.
    """
    with open(path, "rb") as file:
        first = file.read(_SUPERBLOCK.size)
        if len(first) < _SUPERBLOCK.size:
            raise ValueError("it is cut short")
        version, place_bytes, base, root = _SUPERBLOCK.unpack(first)
        if version not in (2, 3):
            raise ValueError("it has no checksums, as those of other programs, and of ensio before version 4")
        if place_bytes != 8 or base != 0 or not is_header(file.fileno(), root):
            raise ValueError("its first header is damaged")


def is_header(descriptor: int, place: int) -> bool:
    """Whether a header of an object with a checksum begins at this place of a file."""
    return os.pread(descriptor, len(_HEADER), min(place, _MOST_PLACE)) == _HEADER
