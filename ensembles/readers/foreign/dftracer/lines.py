"""The text of DFTracer's files: JSON records, one a line, whole or torn, packed or not."""

from __future__ import annotations

import json
import zlib
from collections.abc import Iterator
from typing import Any, BinaryIO, get_type_hints

import msgspec

from ensembles.model.errors import EnsioError

BLOCK_BYTES = 1 << 22
"""So much text is looked at together."""

LONGEST_LINE_BYTES = 1 << 18
"""DFTracer's own limit is 16 KiB; what is longer is none of its records."""

_HOPELESS_BYTES = 1 << 28
"""So much text without a record among it, and it is given up: memory is bounded anyway, time is not."""

_GZIP = b"\x1f\x8b"
_PACKED_BYTES = 1 << 15
_FEW = 32

UNTOLD = -(1 << 63)
"""In place of a number that a record does not have."""

Name = int | str | None


class Arguments(msgspec.Struct, gc=False):
    """What a record says beside name and time; a hash is a number or a text, as the version has it."""

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
    """A line. ``ph`` is a letter of the Chrome format, or from DFTracer 4 on a number."""

    name: str
    ph: int | str
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
        Lines that are no record.
    torn : bool
        Its end is missing.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self.skipped = 0
        self.torn = False

    def blocks(self) -> Iterator[bytes]:
        """Whole lines, some MiB of them at a time.

        Raises
        ------
        EnsioError
            The file cannot be read.
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
        return EnsioError(f"{self.path} holds hundreds of MB that are no records of DFTracer: is it damaged?")

    def _texts(self) -> Iterator[bytes]:
        try:
            with open(self.path, "rb") as file:
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
        """What gzip packed, one member after the other, as far as it is sound."""
        member = zlib.decompressobj(wbits=31)
        packed = held = b""
        while packed or (packed := file.read(_PACKED_BYTES)):
            try:
                text = member.decompress(packed, BLOCK_BYTES)
            except zlib.error:
                self.torn = True
                break
            packed = member.unconsumed_tail
            if member.eof:
                # Between members there may be zeros.
                packed = (member.unused_data or file.read(_PACKED_BYTES)).lstrip(b"\0")
                member = zlib.decompressobj(wbits=31) if packed else member
            held += text
            if len(held) >= BLOCK_BYTES:
                yield held
                held = b""
        self.torn |= not member.eof
        yield held

    def records(self) -> Iterator[list[Record]]:
        """The records, block by block.

        Raises
        ------
        EnsioError
            The file cannot be read, or is full of something else.
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
            # The record that was being written is not missing from the count of what makes no sense.
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
            line = line.strip().rstrip(b",")
            if line in (b"", b"[", b"]"):
                continue
            record = _leniently(line.removesuffix(b"]").rstrip())
            if record is None:
                self.skipped += 1
            else:
                records.append(record)
        return records


def _leniently(line: bytes) -> Record | None:
    """A record with arguments of unexpected kinds, or names that are no UTF-8; None: it is no record."""
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
    """Those arguments that are of the kinds that are expected."""
    kept = {}
    for name, value in args.items() if isinstance(args, dict) else ():
        try:
            kept[name] = msgspec.convert(value, _KINDS[name], strict=False)
        except (KeyError, msgspec.MsgspecError):
            continue
    return kept
