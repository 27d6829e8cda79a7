"""Layout of spools and job files, and the bin law, parsed from the C headers that define them.

``event.h``, ``jobfile.h`` and ``bins.h`` are resources of the package ``ensembles.headers``. Python does not
repeat their numbers: a change of a header changes the reader, and a header that cannot be parsed is an error.
"""

from __future__ import annotations

import re
import struct
from collections import namedtuple
from functools import cached_property
from pkgutil import get_data
from typing import Any

import numpy as np

from ensembles.model.errors import EnsioError

_FORMATS = {"u1": "B", "i1": "b", "u2": "H", "i2": "h", "u4": "I", "i4": "i", "u8": "Q", "i8": "q"}
_TYPES = {f"{'u' * (kind[0] == 'u')}int{8 * int(kind[1])}_t": kind for kind in _FORMATS}
_FORMATS["f8"] = "d"
_TYPES["double"] = "f8"
_DEFINE = re.compile(r"#define\s+(\w+)(?:\s+(.*))?$")
_NUMBER = re.compile(r"(0[xX][0-9a-fA-F]+|[0-9]+)[uUlL]*$")
_STRUCT = re.compile(r"struct\s+(\w+)\s*\{$")
_MEMBER = re.compile(r"(?:struct\s+)?(\w+)\s+(\w+)(?:\[(\w+)\])?\s*;$")
_IGNORED = re.compile(r"#\s*(ifndef|ifdef|if|endif|include|else)\b")


class Structure:
    """A C structure, as a NumPy type for arrays and as a named tuple for single objects.

    `dtype`: one field per member, without padding. Nested structures are nested fields, arrays are subarrays.
    `size`: bytes.

    Examples
    --------
    >>> from ensembles.model.c_layout import parse_structures
    >>> text = '''
    ... struct pair {
    ...     uint32_t id;
    ...     uint32_t bytes;
    ... };
    ... '''
    >>> pair = parse_structures(text)["pair"]
    >>> pair.size
    8
    >>> pair.unpack(pair.pack(id=7, bytes=100))
    pair(id=7, bytes=100)
    """

    def __init__(self, name: str, dtype: np.dtype) -> None:
        self.name = name
        self.dtype = dtype
        self.size = dtype.itemsize

    @cached_property
    def _members(self) -> list[tuple[str, str]]:
        return list(_flat_members(self.dtype))

    @cached_property
    def _struct(self) -> struct.Struct:
        return struct.Struct("=" + "".join(_FORMATS[kind] for _, kind in self._members))

    @cached_property
    def _tuple(self) -> Any:
        """Made when it is first asked for: Python compiles a class for it."""
        return namedtuple(self.name, [member for member, _ in self._members])

    def field_offset(self, member: str) -> int:
        """Return the offset of a member of the structure itself, bytes."""
        fields = self.dtype.fields
        assert fields is not None
        return fields[member][1]

    def unpack(self, buffer: Any, offset: int = 0) -> Any:
        """Unpack one structure.

        `offset`: bytes from the start of the buffer to the structure.

        The members. Those of nested structures are named ``outer_inner``, entries of arrays ``name0``,
        ``name1`` and so on.
        """
        return self._tuple._make(self._struct.unpack_from(buffer, offset))

    def pack(self, **members: int) -> bytes:
        """Pack one structure; members that are not given are 0."""
        return self._struct.pack(*(self._tuple(**dict.fromkeys(self._tuple._fields, 0) | members)))


def _flat_members(dtype: np.dtype, prefix: str = "") -> Any:
    for name in dtype.names or ():
        field = dtype[name]
        if field.subdtype:
            entry, (length,) = field.subdtype
            whole = np.dtype([(f"{name}{i}", entry) for i in range(length)])
            yield from _flat_members(whole, prefix)
        elif field.names:
            yield from _flat_members(field, f"{prefix}{name}_")
        else:
            yield prefix + name, field.str[1:]


def _code_lines(text: str) -> Any:
    """Yield number and text of each line of a header that is not blank, without comments."""
    code = re.sub(r"/\*.*?\*/", lambda comment: "\n" * comment[0].count("\n"), text, flags=re.DOTALL)
    for number, line in enumerate(code.splitlines(), start=1):
        if line.strip():
            yield number, line.strip()


def parse_constants(text: str, name: str = "header") -> dict[str, int]:
    """Parse the integer constants of a C header."""
    constants = {}
    for line_number, line in _code_lines(text):
        definition = _DEFINE.match(line)
        if definition is None or not definition[2]:
            continue
        number = _NUMBER.match(definition[2].strip())
        if number is None:
            raise EnsioError(f"{name}, line {line_number}: {definition[1]} is not a plain number: {line}")
        constants[definition[1]] = int(number[1], 0)
    return constants


def parse_structures(text: str, name: str = "header") -> dict[str, Structure]:
    """Parse the structures of a C header.

    Every member is a fixed-width integer, a double, an earlier structure, or an array of these. Its natural
    alignment must need no padding.
    """
    constants = parse_constants(text, name)
    structures: dict[str, Structure] = {}
    alignments: dict[str, int] = {}
    members: list[tuple[str, np.dtype]] = []
    current, size, alignment = "", 0, 1
    for number, line in _code_lines(text):
        where = f"{name}, line {number}"
        if not current:
            start = _STRUCT.match(line)
            if start:
                current, members, size, alignment = start[1], [], 0, 1
            elif not (_DEFINE.match(line) or _IGNORED.match(line)):
                raise EnsioError(f"{where}: neither a definition nor a structure: {line}")
            continue
        if line == "};":
            if size % alignment:
                raise EnsioError(f"{where}: unnamed padding at the end of struct {current}")
            structures[current] = Structure(current, np.dtype(members))
            alignments[current] = alignment
            current = ""
            continue
        member = _MEMBER.match(line)
        if member is None or (member[1] not in _TYPES and member[1] not in structures):
            raise EnsioError(f"{where}: not a member of fixed width: {line}")
        dtype = np.dtype(_TYPES[member[1]]) if member[1] in _TYPES else structures[member[1]].dtype
        member_alignment = alignments.get(member[1], dtype.itemsize)
        if size % member_alignment:
            raise EnsioError(f"{where}: unnamed padding before {member[2]} in struct {current}")
        length = _length(member[3], constants, where) if member[3] else 1
        members.append((member[2], np.dtype((dtype, (length,))) if member[3] else dtype))
        size += length * dtype.itemsize
        alignment = max(alignment, member_alignment)
    if current:
        raise EnsioError(f"{name}: struct {current} has no end")
    return structures


def _length(length: str, constants: dict[str, int], where: str) -> int:
    """Return the length of an array, given as a number or as the name of a constant."""
    number = constants.get(length, 0) if not length.isdigit() else int(length)
    if number <= 0:
        raise EnsioError(f"{where}: not the length of an array: {length}")
    return number


def _header(name: str) -> str:
    """Return the text of a header, without the slow import of `importlib.resources`."""
    try:
        data = get_data("ensembles.headers", name)
        assert data is not None
    except (AssertionError, OSError, ImportError) as error:
        raise EnsioError(f"the header {name} is not in the installed package: reinstall ensio") from error
    return data.decode()


_EVENT_H = _header("event.h")
_JOBFILE_H = _header("jobfile.h")

CONSTANTS = parse_constants(_EVENT_H, "event.h") | parse_constants(_JOBFILE_H, "jobfile.h")
"""Numbers of ``event.h`` and ``jobfile.h``, for example ``CONSTANTS["ENSIO_SPOOL_VERSION"]``."""

EXCLUDED = "".join(re.findall(r'^ +"(.*)"', _header("excluded.h"), re.MULTILINE)).split(":")
"""Globs of files that the recorder leaves out; the first that matches decides, ``!`` is an exception."""

BIN_CONSTANTS = parse_constants(_header("bins.h"), "bins.h")
"""Numbers of the bin law: ``ENSIO_BIN_BITS``, ``ENSIO_BIN_COUNT``."""

_STRUCTURES = parse_structures(_EVENT_H + _JOBFILE_H, "event.h and jobfile.h")

EVENT = _STRUCTURES["ensio_event"]
SPOOL = _STRUCTURES["ensio_spool"]
FLIGHT = _STRUCTURES["ensio_flight"]
FLIGHTS = _STRUCTURES["ensio_flights"]
LOSSES = _STRUCTURES["ensio_losses"]
ACCOUNT = _STRUCTURES["ensio_account"]
WINDOW = _STRUCTURES["ensio_window"]
TEXT = _STRUCTURES["ensio_text"]
SURROUNDINGS = _STRUCTURES["ensio_surroundings"]
JOB = _STRUCTURES["ensio_job"]
JOB_PROCESS = _STRUCTURES["ensio_job_process"]
JOB_WINDOW = _STRUCTURES["ensio_job_window"]
JOB_DATA = _STRUCTURES["ensio_job_data"]
JOB_CALL = _STRUCTURES["ensio_job_call"]
JOB_SUMMARY = _STRUCTURES["ensio_job_summary"]
JOB_CELL = _STRUCTURES["ensio_job_cell"]
BLOCK = _STRUCTURES["ensio_block"]
TEMPLATE = _STRUCTURES["ensio_template"]
CELL = _STRUCTURES["ensio_cell"]
