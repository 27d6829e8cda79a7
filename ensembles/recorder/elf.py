"""Read from an ELF file how the system starts the program, and its build id."""

from __future__ import annotations

import os
import struct
from contextlib import suppress
from typing import BinaryIO

from ensembles.files.untrusted import open_regular

_MAGIC = b"\x7fELF"
_PROGRAMS = (2, 3)  # ET_EXEC, ET_DYN
_INTERPRETER = 3  # PT_INTERP
_NOTES = 4  # PT_NOTE
_BUILD_ID = 3  # NT_GNU_BUILD_ID
_CLASS_64 = 2
_HEADS = {1: ("28xI10xHH", "II8xI12x"), 2: ("32xQ14xHH", "I4xQ16xQ16x")}
"""Formats by class of the file (32 or 64 bits). First, in the ELF header: position, size and number of the
program headers. Second, in each program header: type, position and length."""
_ORDERS = {1: "<", 2: ">"}
_MOST_BYTES = 1 << 22


def read_interpreter(path: str) -> str | None:
    """Read the dynamic loader of a program, such as ``/lib64/ld-linux-x86-64.so.2``.

    Returns
    -------
    str or None
        "": the program has no loader, because it is statically linked or is a loader itself. None: `path` is
        not an ELF program, or cannot be read.
    """
    with suppress(OSError, ValueError, LookupError, OverflowError, struct.error), open_regular(path) as file:
        for begin, length in _segments(file, _INTERPRETER):
            file.seek(begin)
            return os.fsdecode(file.read(min(length, os.pathconf("/", "PC_PATH_MAX"))).rstrip(b"\0"))
        return ""
    return None


def is_for_64_bits(path: str) -> bool:
    """Return whether an ELF program is for 64 bits; False also: it cannot be read."""
    with suppress(OSError), open_regular(path) as file:
        return file.read(5) == _MAGIC + bytes([_CLASS_64])
    return False


def _segments(file: BinaryIO, wanted: int) -> list[tuple[int, int]]:
    """Return position and length of the segments of a kind in a program; ValueError: it is none."""
    head = file.read(64)
    order = _ORDERS[head[5]] if head[:4] == _MAGIC else ""
    if not order or struct.unpack_from(f"{order}H", head, 16)[0] not in _PROGRAMS:
        raise ValueError("not an ELF program")
    where, segment = (order + form for form in _HEADS[head[4]])
    place, size, count = struct.unpack_from(where, head.ljust(64, b"\0"))
    if size < struct.calcsize(segment) or size * count > _MOST_BYTES:
        raise ValueError("not an ELF program")
    file.seek(place)
    table = file.read(size * count)
    found = (struct.unpack_from(segment, table, number * size) for number in range(count))
    return [(begin, length) for kind, begin, length in found if kind == wanted]


def read_build_id(path: str) -> str:
    """Read the build id of an ELF file, in hexadecimal digits; "": it has none, or is not an ELF file."""
    with open_regular(path) as file, suppress(ValueError, LookupError, OverflowError, struct.error):
        notes = _segments(file, _NOTES)
        file.seek(5)
        order = _ORDERS[file.read(1)[0]]
        for begin, length in notes:
            file.seek(begin)
            found = _build_id_in(file.read(min(length, _MOST_BYTES)), order)
            if found:
                return found
    return ""


def _build_id_in(notes: bytes, order: str) -> str:
    at = 0
    while at + 12 <= len(notes):
        name_bytes, bytes_, kind = struct.unpack_from(f"{order}III", notes, at)
        name = at + 12
        begin = name + -(-name_bytes // 4) * 4
        if kind == _BUILD_ID and notes[name : name + 4] == b"GNU\0" and name_bytes == 4:
            return notes[begin : begin + bytes_].hex()
        at = begin + -(-bytes_ // 4) * 4
    return ""
