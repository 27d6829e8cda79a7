"""Text entries of a spool that threads and signal handlers stored at the same time."""

from __future__ import annotations

import struct
import zlib

from ensembles.model.c_layout import CONSTANTS, TEXT
from ensembles.readers.native.spool_bytes import KnownTexts

FILE = CONSTANTS["ENSIO_TEXT_FILE"]


def entry(kind: int, number: int, body: bytes, total: int = 1) -> bytes:
    """An entry as the recorder lays it out, padded to eight bytes."""
    return TEXT.pack(kind=kind, id=number, length=len(body), sum=total) + body + bytes(-len(body) % 8)


def test_an_entry_that_was_never_completed_is_skipped() -> None:
    text = entry(FILE, 1, b"/a") + entry(0, 0, b"/b, then a jump") + entry(FILE, 2, b"/c")
    texts = KnownTexts().parsed(text)
    assert texts.files == [(1, b"/a"), (2, b"/c")]
    assert texts.is_whole
    assert texts.unknown == 0


def test_bytes_that_nobody_took_are_damage() -> None:
    texts = KnownTexts().parsed(entry(FILE, 1, b"/a") + entry(0, 0, b"", total=0) + entry(FILE, 2, b"/c"))
    assert texts.files == [(1, b"/a")]
    assert not texts.is_whole


def test_a_changed_bit_of_an_entry_is_damage_and_takes_its_text() -> None:
    of_file = zlib.crc32(struct.pack("=III", 7, 5, 1) + b"/data")
    sound = entry(FILE, 7, b"/data", FILE ^ of_file)
    behind = entry(FILE, 8, b"/c")
    assert KnownTexts().parsed(sound + behind).files == [(7, b"/data"), (8, b"/c")]
    for bit in range(8 * (TEXT.size + len(b"/data"))):
        changed = bytearray(sound)
        changed[bit // 8] ^= 1 << bit % 8
        texts = KnownTexts().parsed(bytes(changed) + behind)
        in_reserved = TEXT.field_offset("reserved") * 8 <= bit < TEXT.field_offset("id") * 8
        assert texts.is_whole == in_reserved, bit
        assert (7, b"/data") not in texts.files or in_reserved


def test_a_path_that_two_threads_stored_is_one_file() -> None:
    texts = KnownTexts().parsed(entry(FILE, 1, b"/a") * 2)
    assert dict(texts.files) == {1: b"/a"}
