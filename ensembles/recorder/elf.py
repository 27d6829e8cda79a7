"""Read from an ELF file how the system starts the program."""

from __future__ import annotations

import os
import struct
from contextlib import suppress

_MAGIC = b"\x7fELF"
_PROGRAMS = (2, 3)  # ET_EXEC, ET_DYN
_INTERPRETER = 3  # PT_INTERP
_HEADS = {1: ("28xI10xHH", "II8xI12x"), 2: ("32xQ14xHH", "I4xQ16xQ16x")}
"""Formats by class of the file (32 or 64 bits). First, in the ELF header: position, size and number of the
program headers. Second, in each program header: type, position and length."""
_ORDERS = {1: "<", 2: ">"}
_MOST_BYTES = 1 << 22


def read_interpreter(path: str) -> str | None:
    """Read the dynamic loader of a program, such as ``/lib64/ld-linux-x86-64.so.2``.

    Parameters
    ----------
    path : str

    Returns
    -------
    str or None
        "": the program has no loader, because it is statically linked or is a loader itself. None: `path` is
        not an ELF program, or cannot be read.
    """
    with suppress(OSError, ValueError, LookupError, OverflowError, struct.error), open(path, "rb") as file:
        head = file.read(64)
        if head[:4] != _MAGIC:
            return None
        order = _ORDERS[head[5]]
        if struct.unpack_from(f"{order}H", head, 16)[0] not in _PROGRAMS:
            return None
        where, segment = (order + form for form in _HEADS[head[4]])
        place, size, count = struct.unpack_from(where, head.ljust(64, b"\0"))
        if size < struct.calcsize(segment) or size * count > _MOST_BYTES:
            return None
        file.seek(place)
        table = file.read(size * count)
        for number in range(count):
            kind, begin, length = struct.unpack_from(segment, table, number * size)
            if kind == _INTERPRETER:
                file.seek(begin)
                return os.fsdecode(file.read(min(length, os.pathconf("/", "PC_PATH_MAX"))).rstrip(b"\0"))
        return ""
    return None
