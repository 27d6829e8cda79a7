"""Read DFTracer traces (``.pfw``, ``.pfw.gz``) of versions 1 to 4: one file of JSON records per process.

docs/reference/formats/other-tools.md describes the meaning of the records, and what they lack.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from itertools import compress, repeat
from operator import attrgetter
from typing import Any

import msgspec
import numpy as np

from ensembles.files.untrusted import Reading
from ensembles.model.errors import EnsioError
from ensembles.model.metadata import RunMetadata
from ensembles.model.regions import KINDS, RegionTable
from ensembles.model.units import HALF_INT64, count_text
from ensembles.readers.foreign.common.import_table import ForeignTrace
from ensembles.readers.foreign.common.text_blocks import note_others, some_files
from ensembles.readers.foreign.dftracer.lines import (
    NO_ARGUMENTS,
    UNTOLD,
    Names,
    Record,
    TextFile,
    bare,
    dftracer_files,
)

MOST_REGIONS = 1 << 20
"""Maximum number of regions (functions of C, C++ and Python programs), which are kept in memory."""

_EVENT, _METADATA, _OTHER = range(3)
_KIND_OF_PHASE = {"X": _EVENT, 1: _EVENT, "1": _EVENT, "M": _METADATA, 4: _METADATA, "4": _METADATA}
_UNIT_NS = {"NS": 1, "US": 1_000, "MS": 1_000_000, "SEC": 1_000_000_000}
_OWN = "dftracer"
_FIRST_LINES = 1000


class DFTracerImport(ForeignTrace):
    """A DFTracer trace; a `ForeignTrace`."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._names = Names()
        self._unit_ns = 1_000
        self._left_out = self._other = self._bad = self._sizeless = 0
        self._region_blocks: list[dict[str, np.ndarray]] = []
        self._regions = self._regions_left_out = 0
        self._copies = Copies()
        with Reading(path):
            files, self._others = dftracer_files(path)
        self._damaged: list[str] = []
        firsts = {file: self._look_through(file) for file in files}
        known = {file: first for file, first in firsts.items() if first is not None}
        if not known:
            why = "its compressed data are damaged before the first: copy it again"
            why = why if self._damaged else "there is nothing to read"
            raise EnsioError(f"{path} has no call of DFTracer with a time: {why}")
        self._files = sorted(known, key=lambda file: (known[file], file))
        self._without = [file for file in firsts if file not in known and file not in self._damaged]
        self.metadata = RunMetadata(
            0, 0, min(known.values()), (), [], [], [], mode="trace", recorder="DFTracer"
        )

    def _look_through(self, path: str) -> int | None:
        """Collect the ranks in a file, and return the earliest time in its first block, ns, or None."""
        first, unit_ns, text = None, 1_000, TextFile(path)
        for block in text.blocks():
            at = block.find(b'"rank"')
            while at >= 0:
                begin, end = block.rfind(b"\n", 0, at) + 1, block.find(b"\n", at)
                end = end if end >= 0 else len(block)
                self._names.note_rank(block[begin:end])
                at = block.find(b'"rank"', end)
            if first is None:
                first, unit_ns = _first_time(block), _unit_in(block)
        if text.damaged:
            self._damaged.append(path)
        return None if first is None else first * unit_ns

    def blocks(self, max_events: int) -> Iterator[Mapping[str, np.ndarray]]:
        """Yield blocks of calls, as `ForeignTrace.blocks`."""
        texts = []
        for path in self._files:
            self._unit_ns = 1_000
            self._names.begin_file(os.path.basename(path))
            text = TextFile(path)
            texts.append(text)
            for records in text.records():
                for low in range(0, len(records), max_events):
                    yield self._columns(records[low : low + max_events])
        self._finish(texts)

    def _columns(self, records: list[Record]) -> dict[str, np.ndarray]:
        kinds = np.fromiter(
            map(_KIND_OF_PHASE.get, map(attrgetter("ph"), records), repeat(_OTHER)), "u1", len(records)
        )
        self._other += int((kinds == _OTHER).sum())
        own = np.fromiter(map(_OWN.__eq__, map(attrgetter("cat"), records)), bool, len(records))
        # In the order of the file: the names of folders precede the start of a process in them.
        for record in compress(records, (kinds == _METADATA) | (own & (kinds == _EVENT))):
            self._note(record)
        events = list(compress(records, (kinds == _EVENT) & ~own))
        codes = np.fromiter(
            map(self._names.codes.__getitem__, map(attrgetter("name", "cat"), events)), "i8", len(events)
        )
        self._left_out += int((codes == self._names.NO_IO).sum())
        numbers = _integers(events, ("ts", "dur"))
        latest = HALF_INT64 // self._unit_ns
        sound = ((numbers >= 0) & (numbers <= latest)).all(axis=1)
        wanted = (codes >= 0) | (codes <= self._names.REGION)
        self._bad += int((wanted & ~sound).sum())
        chosen = wanted & sound
        events, codes, numbers = list(compress(events, chosen)), codes[chosen], numbers[chosen]
        args = [event.args or NO_ARGUMENTS for event in events]
        pairs = np.fromiter(
            map(
                self._names.pairs.__getitem__,
                zip(
                    map(attrgetter("hhash", "hostname"), args),
                    map(attrgetter("pid", "tid"), events),
                    strict=True,
                ),
            ),
            "i8",
            len(events),
        )
        rank, thread = self._names.rank_and_thread(pairs)
        start = numbers[:, 0] * self._unit_ns
        duration = numbers[:, 1] * self._unit_ns
        self._names.note_times(pairs, start, start + duration)
        single = self._copies.are_new(
            [event.id for event in events], np.stack([rank, thread, codes, start, duration])
        )
        columns = {
            "rank": rank,
            "thread": thread,
            "call": codes,
            "start": start - self.metadata.origin_unix_ns,
            "duration": duration,
        }
        calls = (codes >= 0) & single
        self._keep_regions(columns, (codes < 0) & single)
        columns = {name: column[calls] for name, column in columns.items()}
        args = list(compress(args, calls))
        columns["file"] = np.fromiter(
            map(self._names.files.__getitem__, map(attrgetter("fhash", "fname"), args)), "u4", len(args)
        )
        return {**columns, **self._sizes(codes[calls], _integers(args, ("ret", "count", "size", "offset")))}

    def _sizes(self, codes: np.ndarray, numbers: np.ndarray) -> dict[str, np.ndarray]:
        """Compute requested and moved bytes and offset from ret, count, size and offset of each call."""
        told = numbers != UNTOLD
        ret, count, size, offset = np.where(told, numbers, 0).T
        has_ret, _, has_size, has_offset = told.T
        moves, at_offset, seeks, counts_items = self._names.traits(codes)
        item = np.where(counts_items & has_size, np.clip(size, 0, 1 << 31), 1)
        most = HALF_INT64 // np.maximum(item, 1)
        failed = has_ret & (ret < 0)
        moved = np.where(moves, np.clip(ret, 0, most) * item, 0)
        self._sizeless += int((moves & ~has_ret).sum())
        where = np.where(at_offset & has_offset, offset, -1)
        where = np.where(seeks & has_ret, ret, where)
        return {
            "requested": np.where(moves, np.clip(count, 0, most) * item, 0).astype("u8"),
            "moved": np.where(failed, -1, moved),
            "offset": np.maximum(where, -1),
        }

    def _keep_regions(self, columns: Mapping[str, np.ndarray], mask: np.ndarray) -> None:
        count = int(mask.sum())
        kept = min(count, MOST_REGIONS - self._regions)
        self._regions += kept
        self._regions_left_out += count - kept
        if kept:
            self._region_blocks.append({name: column[mask][:kept] for name, column in columns.items()})

    def _note(self, record: Record) -> None:
        args = record.args or NO_ARGUMENTS
        if _KIND_OF_PHASE.get(record.ph) == _EVENT:
            self._names.note_life(record, min(max(record.ts, 0) * self._unit_ns, HALF_INT64))
        elif record.name == "CM" and args.name == "time_metric":
            self._unit_ns = _UNIT_NS.get(str(args.value).upper(), 1_000)
        else:
            self._names.note(record)

    def _finish(self, texts: Sequence[TextFile]) -> None:
        names, metadata = self._names, self.metadata
        metadata.calls, metadata.files = names.calls.calls, names.paths()
        metadata.processes = names.as_processes()
        metadata.tasks = max((process.rank for process in metadata.processes), default=-1) + 1
        metadata.threads = sum(process.threads for process in metadata.processes)
        metadata.hosts = sorted({process.host for process in metadata.processes if process.host})
        metadata.clock_step_s = self._unit_ns * 1e-9
        metadata.clock_error_s = 0.0 if len(metadata.hosts) <= 1 else None
        self._tell(texts, metadata)

    def _tell(self, texts: Sequence[TextFile], metadata: RunMetadata) -> None:
        note = metadata.note
        if self._unit_ns >= 1_000:
            note("timer resolution 1 µs (DFTracer): shorter calls have a duration of 0 or 1 µs")
        note("DFTracer records no errno, and only for few calls whether they failed, or an offset")
        for sentence in self._names.notes():
            note(sentence)
        note_others(note, self._others, "DFTracer")
        if self._damaged:
            what = "compressed data are damaged, and the rest is missing: copy it again"
            metadata.note_damage([f"{some_files(self._damaged)}: {what}"], [-1])
        torn = [text.path for text in texts if text.torn and not text.damaged]
        if torn:
            note(f"{some_files(torn)}: the end is missing (program killed?); the rest is read")
        lines = sum(text.skipped for text in texts) + self._bad
        if lines:
            metadata.note_damage([f"skipped {count_text(lines, 'invalid line')}"], [lines])
        if self._without:
            note(f"skipped {count_text(len(self._without), 'file')} without a call")
        if self._other:
            note(f"skipped {count_text(self._other, 'record')} of counters or sums of calls")
        if self._left_out:
            note(f"left out {count_text(self._left_out, 'call')} other than I/O (fork, exec, pipe …)")
        if self._sizeless:
            note(
                f"the bytes moved by {self._sizeless:,} reads and writes are not in the trace: set "
                "DFTRACER_INC_METADATA=1 to record them"
            )
        if self._copies.found:
            note(
                f"left out {count_text(self._copies.found, 'record')} that forked processes wrote again from "
                "their copy of DFTracer's buffer"
            )
        if self._regions_left_out:
            note(f"left out {self._regions_left_out:,} calls of the program's functions from the regions")
        layers = {call.layer for call in metadata.calls}
        if "posix" in layers and layers & {"mpiio", "hdf5"}:
            note(
                "the trace does not record which POSIX calls are inside MPI-IO or HDF5 calls: bytes count in "
                "both layers; choose one with --layer"
            )

    def regions(self) -> RegionTable:
        """Return the functions of the program that DFTracer recorded."""
        blocks = self._region_blocks
        if not blocks:
            return RegionTable.empty()
        columns = {name: np.concatenate([block[name] for block in blocks]) for name in blocks[0]}
        columns["name"] = self._names.REGION - columns.pop("call")
        columns["kind"] = np.full(len(columns["rank"]), KINDS.index("region"))
        columns["ended"] = np.ones(len(columns["rank"]))
        return RegionTable(columns, self._names.region_names)


def _integers(objects: Sequence[Any], names: tuple[str, ...]) -> np.ndarray:
    """Collect integer attributes of objects, shape (objects, names); `UNTOLD` beyond 64 bits."""
    columns = []
    for name in names:
        values = map(attrgetter(name), objects)
        try:
            columns.append(np.fromiter(values, np.int64, len(objects)))
        except OverflowError:
            kept = [value if abs(value) < 1 << 63 else UNTOLD for value in map(attrgetter(name), objects)]
            columns.append(np.array(kept, np.int64))
    return np.stack(columns, axis=1)


class _Timed(msgspec.Struct, gc=False):
    ts: int


def _first_time(block: bytes) -> int | None:
    """Find the earliest time in the first lines."""
    decoder = msgspec.json.Decoder(_Timed, strict=False)
    first = None
    for line in block.split(b"\n", _FIRST_LINES)[:_FIRST_LINES]:
        if b'"ts"' not in line:
            continue
        try:
            time = decoder.decode(bare(line))
        except (msgspec.MsgspecError, RecursionError, ValueError):
            continue
        if 0 <= time.ts <= HALF_INT64 // 1_000 and (first is None or time.ts < first):
            first = time.ts
    return first


def _unit_in(block: bytes) -> int:
    at = block.find(b'"time_metric"')
    line = block[block.rfind(b"\n", 0, max(at, 0)) + 1 :].partition(b"\n")[0]
    return next((ns for name, ns in _UNIT_NS.items() if at >= 0 and f'"{name}"'.encode() in line), 1_000)


_ODD = np.uint64(0x9E3779B97F4A7C15)
_HALF = np.uint64(32)


class Copies:
    """The records seen so far, as hashes of 64 bits: fork copies the buffer of DFTracer.

    `found`: number of copies.
    """

    def __init__(self) -> None:
        self.found = 0
        self._seen: list[np.ndarray] = []

    def are_new(self, ids: Sequence[int | str | None], columns: np.ndarray) -> np.ndarray:
        """Test which records occur for the first time, by ids in their processes; without one, each does."""
        new = np.ones(len(ids), bool)
        rows = np.flatnonzero(np.fromiter((known is not None for known in ids), bool, len(ids)))
        if not len(rows):
            return new
        key = np.fromiter(map(hash, ids), np.int64, len(ids)).view(np.uint64)
        for column in columns:
            key = (key ^ key >> _HALF) * _ODD + column.view(np.uint64)
        known, first = np.unique(((key ^ key >> _HALF) * _ODD)[rows], return_index=True)
        fresh = np.ones(len(known), bool)
        for seen in self._seen:
            place = np.minimum(np.searchsorted(seen, known), len(seen) - 1)
            fresh &= seen[place] != known
        new[rows] = False
        new[rows[first[fresh]]] = True
        self.found += len(rows) - int(fresh.sum())
        # Parts of twice the size of the next: few to search, and each hash is sorted few times.
        part = known[fresh]
        while self._seen and len(self._seen[-1]) <= len(part):
            part = np.sort(np.concatenate([self._seen.pop(), part]))
        if len(part):
            self._seen.append(part)
        return new
