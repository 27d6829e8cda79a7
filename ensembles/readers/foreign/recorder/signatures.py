from __future__ import annotations

import os
import re
import struct
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ensembles.model.events import Call
from ensembles.model.units import HALF_INT64
from ensembles.readers.foreign.common.call_catalog import NO_IO, canonical_function

_KEY = struct.Struct("<QBBBi")
_ENTRY = struct.Struct("<iiii")
_STREAM = re.compile(
    r"^(?:f(?!sync|datasync|cntl|truncate|stat|chmod|chown|link)|v?fprintf|rewind$|tmpfile|getc|putc)"
)
_WAITS = re.compile(
    r"^MPI_(Barrier|I?Bcast|I?Reduce|I?Allreduce|I?(All)?[Gg]atherv?|I?Scatterv?|I?Alltoall[vw]?|Reduce_scatter"
    r"(_block)?|Scan|Wait(all|any|some)?|Test(all|any|some)?|S?[Ss]end|Recv|Sendrecv|Probe|Init(_thread)?|Finalize)$"
)
_BYTES = {
    f"MPI_{name}": size
    for size, names in (
        (1, "BYTE CHAR UNSIGNED_CHAR"),
        (2, "SHORT"),
        (4, "INT FLOAT UNSIGNED INTEGER REAL"),
        (8, "LONG DOUBLE DOUBLE_PRECISION LONG_LONG UINT64_T INT64_T UNSIGNED_LONG"),
    )
    for name in names.split()
}


class SignatureError(ValueError):
    """The bytes are not a table of signatures."""


class RawSignature(NamedTuple):
    """A signature as it is stored."""

    thread: int
    function: int
    depth: int
    arguments: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Signature:
    """What a signature says."""

    call: Call | None  # None: not I/O
    file: str  # Absolute path, or ``""``
    requested: int  # Bytes; −1: unknown
    offset: int  # −1: unknown
    thread: int
    depth: int


def parse_signatures(data: bytes) -> list[RawSignature]:
    """Parse a table of signatures.

    It has the number of entries, and for each entry its number, rank, length and count (32-bit integers), and
    a key: thread (64 bit), function, depth and number of arguments (8 bit each), length of the arguments (32
    bit), arguments, each with a space behind.
    """
    try:
        (count,) = struct.unpack_from("<i", data)
        if not 0 <= count <= len(data) // (_ENTRY.size + _KEY.size):
            raise SignatureError("its table of calls is impossible")
        found: list[RawSignature | None] = [None] * count
        at = 4
        for _ in range(count):
            number, _, length, _ = _ENTRY.unpack_from(data, at)
            at += _ENTRY.size
            thread, function, depth, arguments, text = _KEY.unpack_from(data, at)
            words = data[at + _KEY.size : at + length].split(b" ")
            if length != _KEY.size + text or not 0 <= number < count or len(words) != arguments + 1:
                raise SignatureError("its table of calls has a layout that is not known")
            found[number] = RawSignature(thread, function, depth, tuple(map(os.fsdecode, words[:-1])))
            at += length
    except struct.error as error:
        raise SignatureError("its table of calls is cut off") from error
    if any(each is None for each in found):
        raise SignatureError("its table of calls has gaps")
    return [each for each in found if each is not None]


class Interpreter:
    """Interprets the signatures of one table.

    `without_size`: names of reads and writes whose bytes cannot be known, such as those of derived MPI
    datatypes.
    """

    def __init__(self, functions: Sequence[str]) -> None:
        self._functions = functions
        self._mpi_files: dict[str, str] = {}
        self.without_size: set[str] = set()
        self.mapped_bytes = 0

    def interpret(self, table: Sequence[RawSignature]) -> list[Signature]:
        """Return what the signatures say, in the order of the table."""
        for raw in table:
            if self._name(raw) == "MPI_File_open" and len(raw.arguments) >= 5:
                self._mpi_files[raw.arguments[4]] = raw.arguments[1]
        return [self._one(raw) for raw in table]

    def _name(self, raw: RawSignature) -> str:
        return self._functions[raw.function] if raw.function < len(self._functions) else ""

    def _one(self, raw: RawSignature) -> Signature:
        name = self._name(raw)
        call = _call(name)
        if call is None:
            return Signature(None, "", 0, -1, raw.thread, raw.depth)
        if call.layer == "mpiio":
            file, requested, offset = self._of_mpi(name, raw.arguments)
        else:
            file, requested, offset = _of_posix(call, name, raw.arguments)
        if name.startswith("mmap") and file:
            self.mapped_bytes += max(_integer(_at(raw.arguments, 1)), 0)
        if requested < 0:
            self.without_size.add(name)
        return Signature(call, file, requested, offset, raw.thread, raw.depth)

    def _of_mpi(self, name: str, arguments: tuple[str, ...]) -> tuple[str, int, int]:
        if name == "MPI_File_open":
            return _at(arguments, 1), 0, -1
        file = self._mpi_files.get(_at(arguments, 0), "")
        if not re.search(r"_i?(read|write)(_|$)", name):
            return file, 0, -1
        explicit = "_at" in name
        offset = _integer(_at(arguments, 1)) if explicit else -1
        first = 3 if explicit else 2
        size = _BYTES.get(_at(arguments, first + 1))
        count = _integer(_at(arguments, first))
        return file, -1 if size is None or count < 0 else count * size, offset


def _call(name: str) -> Call | None:
    if not name or name in NO_IO or name in ("dup", "dup2", "umask"):
        return None
    if name.startswith("MPI_File"):
        return canonical_function(name, "mpiio")
    if name.startswith("MPI_"):
        return canonical_function(name, "mpisync") if _WAITS.match(name) else None
    if name.startswith("H5"):
        return canonical_function(name, "hdf5")
    if name.startswith(("ncmpi", "nc_")):
        return canonical_function(name, "pnetcdf" if name.startswith("ncmpi") else "netcdf")
    return canonical_function(name, "stdio" if _STREAM.match(name) else "posix")


def _of_posix(call: Call, name: str, arguments: tuple[str, ...]) -> tuple[str, int, int]:
    if call.layer not in ("posix", "stdio"):
        return "", 0, -1
    if name in ("fread", "fwrite"):
        size, items = _integer(_at(arguments, 1)), _integer(_at(arguments, 2))
        return _path(_at(arguments, 3)), size * items if min(size, items) >= 0 else -1, -1
    if name.startswith("__"):  # the stat calls of older C libraries: version, path
        return _path(_at(arguments, 1)), 0, -1
    file = _path(_at(arguments, 4 if name.startswith("mmap") else 0))
    if call.op == "seek":
        begins = _at(arguments, 2) in ("0", "SEEK_SET")
        return file, 0, _integer(_at(arguments, 1)) if begins else -1
    if call.op not in ("read", "write"):
        return file, 0, -1
    vectors = call.name in ("readv", "writev", "fprintf")
    requested = _integer(_at(arguments, 1 if vectors else 2))
    at_offset = call.name in ("pread", "pwrite")
    return file, requested, _integer(_at(arguments, 3)) if at_offset else -1


def _path(word: str) -> str:
    return word if word.startswith("/") else ""


def _at(arguments: tuple[str, ...], i: int) -> str:
    return arguments[i] if i < len(arguments) else ""


def _integer(word: str) -> int:
    number = int(word) if re.fullmatch(r"-?\d{1,19}", word) else -1
    return number if -1 <= number < HALF_INT64 else -1


START = -1
_MOST_WORK = 64

Rules = dict[int, np.ndarray]
"""Rules by number (negative); each an array of shape (symbols, 2): symbol and number of repetitions."""


class GrammarError(ValueError):
    """The bytes are not a grammar, or it is impossible."""


def parse_grammar(data: bytes) -> Rules:
    """Parse a grammar: 32-bit integers.

    It has the number of rules, and for each rule its number, its number of symbols, and pairs of symbol and
    exponent.
    """
    if len(data) < 4 or len(data) % 4:
        raise GrammarError("its grammar is cut off")
    numbers = np.frombuffer(data, "<i4").astype(np.int64)
    rules: Rules = {}
    at = 1
    for _ in range(int(numbers[0])):
        if at + 2 > len(numbers):
            raise GrammarError("its grammar is cut off")
        rule, symbols = numbers[at : at + 2].tolist()
        body = numbers[at + 2 : at + 2 + 2 * symbols]
        if symbols < 0 or len(body) != 2 * symbols:
            raise GrammarError("its grammar is cut off")
        rules[rule] = body.reshape(-1, 2)
        at += 2 + 2 * symbols
    return rules


def expand(rules: Rules, calls: int, signatures: int) -> np.ndarray:
    """Expand a grammar."""
    order = _order(rules)
    lengths: dict[int, int] = {}
    for rule in order:
        body = rules[rule]
        if len(body) and (body[:, 1].min() < 1 or body[:, 0].max() >= signatures):
            raise GrammarError("its grammar has a symbol that is not defined")
        lengths[rule] = sum(
            exponent * (1 if symbol >= 0 else lengths[symbol]) for symbol, exponent in body.tolist()
        )
    if lengths[START] != calls:
        raise GrammarError(f"its grammar makes {lengths[START]:,} calls, and there are times of {calls:,}")
    if sum(lengths.values()) > _MOST_WORK * calls + (1 << 20):
        raise GrammarError("its grammar is impossibly deep")
    expanded: dict[int, np.ndarray] = {}
    for rule in order:
        parts = [
            np.full(exponent, symbol) if symbol >= 0 else np.tile(expanded[symbol], exponent)
            for symbol, exponent in rules[rule].tolist()
        ]
        expanded[rule] = np.concatenate(parts) if parts else np.empty(0, np.int64)
    return expanded[START]


def _order(rules: Rules) -> list[int]:
    """Return the rules that the first one needs, each after those that it contains."""
    done: dict[int, bool] = {}
    found: list[int] = []
    stack = [START]
    while stack:
        rule = stack[-1]
        if rule not in rules:
            raise GrammarError(f"its grammar lacks rule {rule}")
        if rule not in done:
            done[rule] = False
            inner = np.unique(rules[rule][:, 0])
            inner = inner[inner < 0]
            if any(done.get(symbol) is False for symbol in inner.tolist()):
                raise GrammarError("its grammar is infinite")
            stack += [symbol for symbol in inner.tolist() if symbol not in done]
        else:
            stack.pop()
            if not done[rule]:
                done[rule] = True
                found.append(rule)
    return found
