"""Decode the contents of a job file: blocks of events, and texts.

docs/reference/formats/job-file.md describes the coding. C code decodes the blocks.
"""

from __future__ import annotations

import zlib
from typing import Any

import numpy as np

from ensembles import _compiled
from ensembles.model.c_layout import BLOCK, CONSTANTS, TEMPLATE

BLOCK_EVENTS = CONSTANTS["ENSIO_BLOCK_EVENTS"]

_CHECKED_FROM = BLOCK.field_offset("events")
_MOST_NUMBER_BYTES = 10


def decode_events(block: Any, out: np.ndarray) -> int:
    """Decode one block of events."""
    check_block(block)
    return _compiled.decode_block(block, out.view("u1"))


def block_length(head: Any) -> int:
    """Return the length of a block by its head, bytes."""
    columns = (head.start_bytes, head.duration_bytes, head.file_bytes, head.requested_bytes)
    rest = head.moved_bytes + head.offset_bytes + head.events
    length: int = BLOCK.size + head.templates * TEMPLATE.size + sum(columns) + rest
    return length


def check_block(block: Any) -> None:
    """Check the checksum of a block."""
    if len(block) < BLOCK.size or BLOCK.unpack(block).checksum != zlib.crc32(block[_CHECKED_FROM:]):
        raise ValueError("the block's checksum is wrong")


def unshuffle(shuffled: Any, first: int, out: np.ndarray) -> None:
    """Undo the shuffle filter of HDF5, which stores the first bytes of all items before the second ones."""
    _compiled.unshuffle(shuffled, first, out.itemsize, out.view("u1"))


def shuffle(items: np.ndarray, out: np.ndarray) -> bool:
    """Apply the shuffle filter of HDF5, and pad the result with zeros."""
    return _compiled.shuffle(items, items.itemsize, out)


def decode_text(coded: bytes, known: bytes, length: int) -> bytes:
    """Decode a text that refers to a known text before it."""
    text, position, end = bytearray(known), 0, len(coded)
    wanted = len(known) + length
    while len(text) < wanted:
        # Inlined for speed: most numbers take one byte, and there are thousands of processes.
        if position < end and coded[position] < 0x80:
            literals, position = coded[position], position + 1
        else:
            literals, position = _number_at(coded, position)
        if literals > end - position:
            raise ValueError("a text ends too early")
        if literals:
            text += coded[position : position + literals]
            position += literals
        if position < end and coded[position] < 0x80:
            copied, position = coded[position], position + 1
        else:
            copied, position = _number_at(coded, position)
        if copied == 0:
            if literals == 0:
                raise ValueError("a text does not go on")
            continue
        distance, position = _number_at(coded, position)
        if not 0 < distance <= len(text) or copied > wanted - len(text):
            raise ValueError("a text leans on what is not there")
        begin = len(text) - distance
        piece = text[begin : begin + copied]
        text += piece if copied <= distance else (piece * -(-copied // distance))[:copied]
    if len(text) != wanted or position != len(coded):
        raise ValueError("the length of a text differs from its record")
    return bytes(text[len(known) :])


def _number_at(coded: bytes, position: int) -> tuple[int, int]:
    number = 0
    for shift in range(0, 7 * _MOST_NUMBER_BYTES, 7):
        if position >= len(coded):
            break
        byte = coded[position]
        position += 1
        number |= (byte & 0x7F) << shift
        if byte < 0x80:
            return number, position
    raise ValueError("a text ends in the middle of a number")
