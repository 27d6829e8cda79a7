"""Parse the files of DFTracer: JSON records, one per line, possibly truncated or compressed."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, get_type_hints

import msgspec

from ensembles.files.untrusted import open_regular
from ensembles.model.errors import EnsioError
from ensembles.readers.foreign.dftracer.files import bare

BLOCK_BYTES = 1 << 22
"""Bytes of text that are parsed at a time."""

LONGEST_LINE_BYTES = 1 << 18
"""Longer lines are not records: DFTracer's limit is 16 KiB."""

_HOPELESS_BYTES = 1 << 28
"""Reading fails after this many bytes without a record, which bounds the time."""

_GZIP = b"\x1f\x8b"
_PACKED_BYTES = 1 << 15
_FEW = 32

UNTOLD = -(1 << 63)
"""Value of a number that a record lacks."""

Name = int | str | None


class Arguments(msgspec.Struct, gc=False):
    """Arguments of a record. Hashes are numbers or texts, depending on the version."""

    ret: int = UNTOLD
    count: int = UNTOLD
    size: int = UNTOLD
    offset: int = UNTOLD
    fhash: Name = None
    hhash: Name = None
    fname: str | None = None
    hostname: str | None = None
    name: Name = None
    value: Any = None
    ppid: Name = None
    cwd: Name = None
    cmd_hash: Name = None
    exec_hash: Name = None


class Record(msgspec.Struct, gc=False):
    """A record. ``ph`` is a letter of the Chrome format, or a number since DFTracer 4."""

    name: str
    ph: int | str
    id: Name = None
    cat: str = ""
    pid: int = 0
    tid: int = 0
    ts: int = 0
    dur: int = 0
    args: Arguments | None = None


NO_ARGUMENTS = Arguments()
_KINDS = get_type_hints(Arguments)

# Versions before 1.0.4 write numbers as texts.
_STRICT = msgspec.json.Decoder(Record, strict=False)


class TextFile:
    """A file of records.

    Attributes
    ----------
    path : str
    skipped : int
        Number of lines that are not records.
    damaged : bool
        Whether the compressed data end with an error.
    torn : bool
        Whether the end of the file is missing.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.skipped = 0
        self.torn = False
        self.damaged = False

    def blocks(self) -> Iterator[bytes]:
        """Yield whole lines, some MiB at a time.

        Yields
        ------
        bytes

        Raises
        ------
        EnsioError
            The file cannot be read, or has no records.
        """
        held = b""
        skipping = False
        nameless = 0
        for text in self._texts():
            nameless = 0 if b'"name"' in text else nameless + len(text)
            if nameless > _HOPELESS_BYTES:
                raise self._hopeless()
            end = text.rfind(b"\n") + 1
            if skipping:
                begin = text.find(b"\n") + 1
                if not begin:
                    continue
                skipping, held, text, end = False, b"", text[begin:], max(end - begin, 0)
            if end:
                yield held + text[:end]
                held = text[end:]
            else:
                held += text
            if len(held) > LONGEST_LINE_BYTES:
                self.skipped += 1
                skipping, held = True, b""
        if held.strip():
            yield held

    def _hopeless(self) -> EnsioError:
        return EnsioError(
            f"{self.path} has hundreds of MB without a record of DFTracer: it may be damaged, copy it again"
        )

    def _texts(self) -> Iterator[bytes]:
        try:
            with open_regular(self.path) as file:
                packed = file.read(2) == _GZIP
                file.seek(0)
                if packed:
                    yield from self._unpacked(file)
                else:
                    while text := file.read(BLOCK_BYTES):
                        yield text
        except OSError as error:
            raise EnsioError(f"{self.path} cannot be read: {error.strerror or error}") from error

    def _unpacked(self, file: BinaryIO) -> Iterator[bytes]:
        """Yield the decompressed members of a gzip file up to the first damage."""
        member = zlib.decompressobj(wbits=31)
        packed = held = b""
        while packed or (packed := file.read(_PACKED_BYTES)):
            try:
                text = member.decompress(packed, BLOCK_BYTES)
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
            if len(held) >= BLOCK_BYTES:
                yield held
                held = b""
        self.torn |= not member.eof
        yield held

    def records(self) -> Iterator[list[Record]]:
        """Yield the records, block by block.

        Raises
        ------
        EnsioError
            The file cannot be read, or has no records.
        """
        hopeless = 0
        last: bytes = b""
        for block in self.blocks():
            if b"},\n" in block:  # the Chrome format has commas between records
                block = block.replace(b"},\n", b"}\n")
            records = self._decoded(block)
            hopeless = 0 if records else hopeless + len(block)
            if hopeless > _HOPELESS_BYTES:
                raise self._hopeless()
            if records:
                yield records
            last = block[-LONGEST_LINE_BYTES:]
        tail = last.rstrip()
        if tail and not tail.endswith((b"}", b"]")):
            # A truncated last record is not an invalid line.
            self.torn, self.skipped = True, max(self.skipped - 1, 0)

    def _decoded(self, block: bytes) -> list[Record]:
        try:
            return _STRICT.decode_lines(block)
        except (msgspec.MsgspecError, RecursionError, ValueError):
            pass
        lines = block.split(b"\n")
        if len(lines) > _FEW:
            half = len(lines) // 2
            return self._decoded(b"\n".join(lines[:half])) + self._decoded(b"\n".join(lines[half:]))
        records = []
        for line in lines:
            line = bare(line)
            if not line:
                continue
            record = _leniently(line)
            if record is None:
                self.skipped += 1
            else:
                records.append(record)
        return records


def _leniently(line: bytes) -> Record | None:
    """Parse a record with arguments of unexpected types or invalid UTF-8; None: it is not a record."""
    if len(line) > LONGEST_LINE_BYTES:
        return None
    try:
        return _STRICT.decode(line)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        pass
    try:
        told = json.loads(line.decode("utf-8", "surrogateescape"), strict=False)
        told["args"] = _plain(told.get("args"))
        return msgspec.convert(told, Record, strict=False)
    except (ValueError, RecursionError, AttributeError, TypeError, OverflowError):
        return None


def _plain(args: Any) -> dict[str, Any]:
    """Keep the arguments that have the expected types."""
    kept = {}
    for name, value in args.items() if isinstance(args, dict) else ():
        try:
            kept[name] = msgspec.convert(value, _KINDS[name], strict=False)
        except (KeyError, msgspec.MsgspecError):
            continue
    return kept
