"""Read traces of Recorder 2.3 to 3: rank by rank, from its table of calls, its grammar and its times."""

from __future__ import annotations

import os
import re
import struct
from collections.abc import Iterator, Mapping

import numpy as np

from ensembles.files.untrusted import MOST_PART_BYTES, SMALL_PART_BYTES, inflate, open_regular, read_whole
from ensembles.model.errors import EnsioError
from ensembles.model.metadata import LEAST_BYTES, Process, RunMetadata
from ensembles.model.units import DEFLATE_RATIO, HALF_INT64, LATEST_S, MOST_TASKS, count_text
from ensembles.readers.common.call_dictionary import UNKNOWN_CALL
from ensembles.readers.foreign.common.id_tables import MOST_CALLS, CallIds, FileIds
from ensembles.readers.foreign.common.import_table import CARRIED_BY, ForeignTrace
from ensembles.readers.foreign.recorder.signatures import (
    Interpreter,
    Rules,
    Signature,
    expand,
    parse_grammar,
    parse_signatures,
)

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
