"""Read the lines of an untrusted text, packed by gzip or not, in bounded memory."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from typing import BinaryIO

from ensembles.files.untrusted import Reading, open_regular
from ensembles.model.errors import EnsioError

BLOCK_BYTES = 1 << 22
LONGEST_LINE_BYTES = 1 << 20
HOPELESS_BYTES = 1 << 28
GZIP = b"\x1f\x8b"
_PACKED_BYTES = 1 << 15


class TextBlocks:
    """The lines of a file, in blocks.

    `skipped`: number of lines that are left out; here, because they are longer than `LONGEST_LINE_BYTES`.
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
            if hopeless > HOPELESS_BYTES:
                raise self.hopeless()
            if skipping:
                _, end, text = text.partition(b"\n")
                skipping = not end
            lines, end, rest = text.rpartition(b"\n")
            if end:
                yield held + lines + end
                held = b""
            held += rest
            if len(held) > LONGEST_LINE_BYTES:
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
            try:
                text = member.decompress(packed, self._block_bytes)
            except zlib.error:
                self.damaged = True
                yield held
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
