"""Find, recognise and parse the files of DFTracer: JSON records, one per line, maybe cut or compressed."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Iterator
from typing import Any, get_type_hints

import msgspec

from ensembles.readers.foreign.common.text_blocks import GZIP, HOPELESS_BYTES, LONGEST_LINE_BYTES, TextBlocks

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


class _First(msgspec.Struct, gc=False):
    """What every record has; a trace in Chrome's format may lack the category."""

    name: str
    cat: str
    pid: int
    ph: str | int


_RECORD = msgspec.json.Decoder(_First, strict=False)


def bare(line: bytes) -> bytes:
    """Return the record in a line of JSON, whose commas and brackets may be those of an array."""
    return line.strip().removeprefix(b"[").removesuffix(b"]").strip().rstrip(b",").rstrip()


def is_dftracer(beginning: bytes) -> bool:
    """Test whether the first bytes of a file, compressed or not, are records of DFTracer."""
    if beginning.startswith(GZIP):
        try:
            beginning = zlib.decompressobj(wbits=31).decompress(beginning, 1 << 16)
        except zlib.error:
            return False
    first = next(filter(None, map(bare, beginning.split(b"\n", 64))), b"")
    try:
        _RECORD.decode(first)
    except (msgspec.MsgspecError, RecursionError, ValueError):
        return False
    return True


def dftracer_files(path: str) -> list[str]:
    """List the files of a trace.

    Returns
    -------
    list of str
        The path itself, or all files ``*.pfw`` and ``*.pfw.gz`` in the folder, sorted.
    """
    if not os.path.isdir(path):
        return [path]
    with os.scandir(path) as entries:
        return sorted(
            entry.path
            for entry in entries
            if entry.name.endswith((".pfw", ".pfw.gz")) and entry.is_file() and entry.stat().st_size
        )


class TextFile(TextBlocks):
    """A file of records; also counts lines that are not records as skipped."""

    def __init__(self, path: str) -> None:
        super().__init__(path, b'"name"')

    def records(self) -> Iterator[list[Record]]:
        """Yield the records, block by block."""
        hopeless = 0
        last: bytes = b""
        for block in self.blocks():
            if b"},\n" in block:  # the Chrome format has commas between records
                block = block.replace(b"},\n", b"}\n")
            records = self._decoded(block)
            hopeless = 0 if records else hopeless + len(block)
            if hopeless > HOPELESS_BYTES:
                raise self.hopeless()
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
