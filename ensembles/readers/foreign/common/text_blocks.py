"""Find the files of a trace, and read the lines of untrusted texts, packed or not, in bounded memory."""

from __future__ import annotations

import os
import zlib
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any, BinaryIO

from ensembles.files.untrusted import MOST_PART_BYTES, Reading, beginning_of, open_regular
from ensembles.model.errors import EnsioError
from ensembles.model.sanitize_text import sanitize_text
from ensembles.model.units import BYTES_AT_ONCE, count_text

BLOCK_BYTES = 4 * BYTES_AT_ONCE
GZIP = b"\x1f\x8b"
_PACKED_BYTES = 1 << 15


def sorted_out(
    path: str, has_name: Callable[[str], bool], is_one: Callable[[bytes], object]
) -> tuple[list[str], list[str]]:
    """List the files of a trace in a folder, and the others of such names; a file is its only one.

    `is_one`: whether the first bytes of a file are those of a trace. Empty files hold nothing.
    """
    if not os.path.isdir(path):
        return [path], []
    with os.scandir(path) as entries:
        named = sorted(entry.path for entry in entries if has_name(entry.name) and entry.is_file())
    found: tuple[list[str], list[str]] = [], []
    for file in named:
        if beginning := beginning_of(file, 4096):
            found[not is_one(beginning)].append(file)
    return found


def note_others(note: Callable[[str], None], others: list[str], tool: str) -> None:
    """Note the files of `sorted_out` that are not read."""
    if others:
        note(f"left out {some_files(others)}: damaged at the beginning, or not of {tool}")


def some_files(paths: list[str]) -> str:
    """Name the first of some files, and the number of the others."""
    name = sanitize_text(os.path.basename(paths[0]))
    return name if len(paths) == 1 else f"{name} and {count_text(len(paths) - 1, 'more file')}"


def inflated(packed: bytes, unpack: Any, most_bytes: int) -> tuple[bytes, bool]:
    """Decompress the next bytes by a decompressor of zlib up to the first damage, and return if there is one.

    zlib reports damage without the text before it, which is made again byte by byte.
    """
    before, text = unpack.copy(), list[bytes]()
    try:
        return unpack.decompress(packed, most_bytes), False
    except zlib.error:
        with suppress(zlib.error):
            text.extend(before.decompress(packed[place : place + 1]) for place in range(len(packed)))
    return b"".join(text), True


def plain(beginning: bytes, most_bytes: int) -> bytes:
    """Return the first bytes of a file, decompressed if it is packed by gzip."""
    if not beginning.startswith(GZIP):
        return beginning
    return inflated(beginning, zlib.decompressobj(wbits=31), most_bytes)[0]


class TextBlocks:
    """The lines of a file, in blocks.

    `skipped`: number of lines that are left out; here, because they are longer than `BYTES_AT_ONCE`.
    `damaged`: whether the compressed data end with an error.
    `torn`, `ends_in_line`: whether the compressed data, or the last line, have no end.
    """

    def __init__(self, path: str, sign: bytes = b"\n", block_bytes: int = BLOCK_BYTES) -> None:
        self.path = path
        self._sign, self._block_bytes = sign, block_bytes
        self.skipped = 0
        self.damaged = self.torn = self.ends_in_line = False

    def blocks(self) -> Iterator[bytes]:
        """Yield whole lines; only the last may lack its end."""
        held, skipping, hopeless = b"", False, 0
        for text in self._texts():
            hopeless = 0 if self._sign in text else hopeless + len(text)
            if hopeless > MOST_PART_BYTES:
                raise self.hopeless()
            if skipping:
                _, end, text = text.partition(b"\n")
                skipping = not end
            lines, end, rest = text.rpartition(b"\n")
            if end:
                yield held + lines + end
                held = b""
            held += rest
            if len(held) > BYTES_AT_ONCE:
                self.skipped += 1
                skipping, held = True, b""
        self.ends_in_line = skipping or bool(held)
        if held:
            yield held

    def hopeless(self) -> EnsioError:
        """Make the error of a file whose lines are of another kind."""
        return EnsioError(
            f"{self.path} has hundreds of MB without a line to read: it may be damaged, copy it again"
        )

    def _texts(self) -> Iterator[bytes]:
        with Reading(self.path), open_regular(self.path) as file:
            packed = file.read(2) == GZIP
            file.seek(0)
            if packed:
                yield from self._unpacked(file)
            else:
                while text := file.read(self._block_bytes):
                    yield text

    def _unpacked(self, file: BinaryIO) -> Iterator[bytes]:
        """Yield the decompressed members of a gzip file up to the first damage."""
        member = zlib.decompressobj(wbits=31)
        packed = held = b""
        while packed or (packed := file.read(_PACKED_BYTES)):
            text, self.damaged = inflated(packed, member, self._block_bytes)
            if self.damaged:
                yield held + text
                return
            packed = member.unconsumed_tail
            if member.eof:
                # Zeros may pad the members.
                packed = (member.unused_data or file.read(_PACKED_BYTES)).lstrip(b"\0")
                member = zlib.decompressobj(wbits=31) if packed else member
            held += text
            if len(held) >= self._block_bytes:
                yield held
                held = b""
        self.torn |= not member.eof
        yield held
