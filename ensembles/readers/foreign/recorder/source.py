"""Read traces of Recorder 2.3 to 3: rank by rank, from its table of calls, its grammar and its times."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from ensembles.files.untrusted import MOST_PART_BYTES, SMALL_PART_BYTES, inflate, open_regular, read_whole
from ensembles.model.errors import EnsioError
from ensembles.model.events import Call
from ensembles.model.metadata import LEAST_BYTES, Process, RunMetadata
from ensembles.model.units import DEFLATE_RATIO, HALF_INT64, LATEST_S, MOST_TASKS, count_text
from ensembles.readers.common.call_dictionary import UNKNOWN_CALL
from ensembles.readers.foreign.common.call_catalog import NO_IO, canonical_function
from ensembles.readers.foreign.common.id_tables import MOST_CALLS, CallIds, FileIds
from ensembles.readers.foreign.common.import_table import CARRIED_BY, ForeignTrace

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


_METADATA = "recorder.mt"
_MOST_TIMES = 1 << 31
_FUNCTIONS = re.compile(rb"creat\n(?:[ -~]+\n)+")
_NO_NUMBERS = np.empty(0, "<i4")


class _Damaged(ValueError):
    """The trace is damaged; the text says how."""


class RecorderImport(ForeignTrace):
    """A trace of Recorder; a `ForeignTrace`."""

    def __init__(self, path: str) -> None:
        self.path = path
        self._calls, self._files = CallIds(), FileIds()
        self._left_out = self._reversed = 0
        self._without_size: set[str] = set()
        self._mapped_bytes = 0
        try:
            self._version = _version_of(path)
            self._read_metadata()
        except (_Damaged, struct.error) as error:
            raise self._refusal(error) from error
        except OSError as error:
            raise EnsioError(f"{error.filename} cannot be read: {error.strerror}") from error
        self.metadata = RunMetadata(
            self._tasks, self._tasks, round(self._start_s * 1e9), (UNKNOWN_CALL,), [""], [], []
        )
        self.metadata.recorder = "Recorder " + ".".join(map(str, self._version))
        self.metadata.clock_step_s = self._step_s
        self.metadata.mode = "trace"

    def _refusal(self, error: Exception, where: str = "") -> EnsioError:
        how = where + ("one of its files is cut off" if isinstance(error, struct.error) else str(error))
        return EnsioError(
            f"{self.path} is a damaged trace of Recorder: {how}; copy it again from where it was written"
        )

    def _read_metadata(self) -> None:
        data = read_whole(os.path.join(self.path, _METADATA), SMALL_PART_BYTES)
        listed = _FUNCTIONS.search(data)
        if listed is None:
            raise _Damaged("the list of functions is missing")
        self._functions = listed[0].decode("ascii").split("\n", MOST_CALLS)[:-1]
        if self._version >= (3,):
            self._tasks, self._start_s, self._step_s = struct.unpack_from("<i12xdd", data)
            packed, self._is_merged, between, within = struct.unpack_from("<4?", data, 36)
            self._times_packed = packed
            if between or within:
                raise EnsioError(
                    f"{self.path} was recorded with Recorder's pattern recognition, which replaces "
                    "arguments: record without it (RECORDER_INTERPROCESS_PATTERN_RECOGNITION=0 "
                    "RECORDER_INTRAPROCESS_PATTERN_RECOGNITION=0)"
                )
        else:
            self._tasks, self._start_s, self._step_s = struct.unpack_from("<i4xdd", data)
            merged = struct.unpack_from("<i", data, 32)[0] if self._version >= (2, 4) else 0
            self._times_packed, self._is_merged = False, bool(merged)
        if not 1 <= self._tasks <= MOST_TASKS or not 0 <= self._start_s < LATEST_S:
            raise _Damaged("its number of ranks or its start is impossible")
        if not 1e-10 < self._step_s < 1:
            raise _Damaged("the resolution of its times is impossible")

    def blocks(self, max_events: int) -> Iterator[Mapping[str, np.ndarray]]:
        """Yield the calls of each rank."""
        rank = 0
        try:
            merged = self._merged() if self._is_merged else None
            for rank in range(self._tasks):
                signatures, rules = self._of_rank(rank) if merged is None else merged[rank]
                yield from self._rank_blocks(rank, signatures, rules, max_events)
        except (ValueError, struct.error) as error:
            raise self._refusal(error, f"rank {rank}: ") from error
        except OSError as error:
            raise EnsioError(f"{error.filename} cannot be read: {error.strerror}") from error
        self._finish()

    def _of_rank(self, rank: int) -> tuple[list[Signature], Rules]:
        table = self._part(f"{rank}.cst")
        return self._interpreted(table), parse_grammar(self._part(f"{rank}.cfg"))

    def _merged(self) -> list[tuple[list[Signature], Rules]]:
        """Return what all ranks share: one table, and a grammar for each kind of rank."""
        newer = self._version >= (3,)
        signatures = self._interpreted(self._part("recorder.cst" if newer else "0.cst"))
        data = read_whole(os.path.join(self.path, "ug.mt"), 4 * MOST_TASKS + 4)
        numbers = np.frombuffer(data, "<i4") if len(data) == 4 * self._tasks + 4 else _NO_NUMBERS
        if not len(numbers) or numbers[:-1].min() < 0 or numbers[:-1].max() >= numbers[-1]:
            raise _Damaged("its numbers of grammars are impossible")
        if newer:
            packed = read_whole(os.path.join(self.path, "ug.cfg"), MOST_PART_BYTES)
            grammars, at = [], 0
            for _ in range(int(numbers[-1])):
                data, at = _unpacked(packed, at)
                grammars.append(parse_grammar(data))
        else:
            grammars = [parse_grammar(self._part(f"{i}.cfg")) for i in range(int(numbers[-1]))]
        return [(signatures, grammars[number]) for number in numbers[:-1].tolist()]

    def _part(self, name: str) -> bytes:
        data = read_whole(os.path.join(self.path, name), MOST_PART_BYTES)
        return _unpacked(data, 0)[0] if self._version >= (3,) else data

    def _interpreted(self, table: bytes) -> list[Signature]:
        interpreter = Interpreter(self._functions)
        found = interpreter.interpret(parse_signatures(table))
        self._without_size |= interpreter.without_size
        self._mapped_bytes += interpreter.mapped_bytes
        return found

    def _times(self, rank: int) -> np.ndarray:
        """Read the pairs of time stamps of a rank: ticks since the start of the call before."""
        if self._version < (3,):
            data = read_whole(os.path.join(self.path, f"{rank}.ts"), _MOST_TIMES)
        else:
            with open_regular(os.path.join(self.path, "recorder.ts")) as file:
                table = file.read(8 * self._tasks)
                sizes = np.frombuffer(table, "<u8", len(table) // 8)
                if len(sizes) != self._tasks or sizes.max() > _MOST_TIMES:
                    raise _Damaged("its table of times is impossible")
                if 8 * self._tasks + sum(sizes.tolist()) > os.fstat(file.fileno()).st_size:
                    raise _Damaged("its times are cut off")
                file.seek(8 * self._tasks + int(sizes[:rank].sum()))
                data = file.read(int(sizes[rank]))
            if self._times_packed and data:
                data = _unpacked(data, 0)[0]
        if len(data) % 8:
            raise _Damaged("its times are cut off")
        return np.frombuffer(data, "<u4").reshape(-1, 2)

    def _rank_blocks(
        self, rank: int, signatures: list[Signature], rules: Rules, max_events: int
    ) -> Iterator[dict[str, np.ndarray]]:
        ticks = self._times(rank).astype(np.int64)
        which = expand(rules, len(ticks), len(signatures))
        begin = np.cumsum(ticks[:, 0])
        end = begin - ticks[:, 0] + ticks[:, 1]
        self._reversed += int((end < begin - 1).sum())  # both are rounded
        step_ns = self._step_s * 1e9
        if len(begin) and float(begin[-1]) * step_ns > HALF_INT64:
            raise _Damaged("its times are impossible")
        threads = {thread: i for i, thread in enumerate(dict.fromkeys(each.thread for each in signatures))}
        rows = [
            (
                0 if each.call is None else self._calls.number(each.call),
                self._files.number(each.file),
                max(each.requested, 0),
                each.offset,
                threads[each.thread] & 0xFFFF,
                min(each.depth, 255),
                each.call is not None,
                each.call is not None and each.call.op in ("read", "write"),
            )
            for each in signatures
        ]
        table = np.array(rows, np.int64).reshape(-1, 8)
        ops = ["" if each.call is None else each.call.op for each in signatures]
        around = np.array([CARRIED_BY.get(op, 0) for op in ops], np.int64)
        carried = _carried(which, table, around, end)
        for low in range(0, len(which), max_events):
            chosen = which[low : low + max_events]
            kept = table[chosen, 6] > 0
            self._left_out += int(len(chosen) - kept.sum())
            mine = table[chosen[kept]]
            start = np.rint(begin[low : low + max_events][kept] * step_ns).astype(np.int64)
            stop = np.rint(end[low : low + max_events][kept] * step_ns).astype(np.int64)
            yield {
                "rank": np.full(len(mine), rank),
                "thread": mine[:, 4],
                "call": mine[:, 0],
                "file": mine[:, 1],
                "depth": mine[:, 5],
                "carried": carried[low : low + max_events][kept],
                "requested": mine[:, 2].astype("u8"),
                "moved": np.where(mine[:, 7] > 0, mine[:, 2], 0),
                "offset": mine[:, 3],
                "start": start,
                "duration": np.maximum(stop - start, 0),
            }

    def _finish(self) -> None:
        metadata = self.metadata
        metadata.calls, metadata.files = self._calls.calls, self._files.paths
        if self._mapped_bytes >= LEAST_BYTES:
            metadata.has_maps()
        for rank in range(self._tasks):
            metadata.processes.append(_process(rank, metadata.origin_unix_ns))
        metadata.note(
            "Recorder keeps no return values: bytes moved are those asked for, and failed calls look like "
            "others"
        )
        if self._without_size:
            names = ", ".join(sorted(self._without_size)[:3])
            metadata.note(
                f"the bytes of some calls are unknown (derived datatypes, arguments not kept): {names}"
            )
        if self._reversed:
            metadata.note(
                "calls that end before they begin (the clock was set, or the trace is damaged: times may be "
                f"wrong): {self._reversed:,}"
            )
        if self._left_out:
            metadata.note(f"left out {count_text(self._left_out, 'call')} other than I/O and waiting")


def _version_of(path: str) -> tuple[int, ...]:
    with open_regular(os.path.join(path, "VERSION")) as file:
        match = re.match(rb"(\d+)\.(\d+)(?:\.(\d+))?", file.read(32))
    if match is None:
        raise _Damaged("the file VERSION is not a version")
    version = tuple(int(number or 0) for number in match.groups())
    if not (2, 3) <= version < (4,):
        raise EnsioError(
            f"{path} is a trace of Recorder {'.'.join(map(str, version))}; versions 2.3 to 3 are read: "
            "convert it with recorder2text of that version, or trace the program again with ensio run"
        )
    return version


def _unpacked(data: bytes, at: int) -> tuple[bytes, int]:
    """Decompress a part (its two sizes and a zlib stream), and find where the next one begins."""
    packed, length = struct.unpack_from("<QQ", data, at)
    if packed > len(data) - at - 16 or length > DEFLATE_RATIO * packed + 64:
        raise _Damaged("a compressed part is cut off")
    found = inflate(data[at + 16 : at + 16 + packed], length)
    if len(found) != length:
        raise _Damaged("a compressed part has another length than it says")
    return found, at + 16 + packed


def _carried(which: np.ndarray, table: np.ndarray, around: np.ndarray, end: np.ndarray) -> np.ndarray:
    """Find the reads (1) and writes (2) that inner calls lie in: the thread's outermost call before them."""
    found = np.zeros(len(which), np.int64)
    thread, inner = table[which, 4], table[which, 5] > 0
    for number in np.unique(thread[inner]).tolist():
        mine = np.flatnonzero(thread == number)
        outermost = np.where(inner[mine], -1, np.arange(len(mine)))
        last = np.maximum.accumulate(outermost)
        nested = inner[mine] & (last >= 0)
        call, outer = mine[nested], mine[last[nested]]
        found[call] = np.where(end[call] <= end[outer], around[which[outer]], 0)
    return found


def _process(rank: int, start_ns: int) -> Process:
    return Process(
        rank=rank,
        start_unix_ns=start_ns,
        end_unix_ns=start_ns,
    )
