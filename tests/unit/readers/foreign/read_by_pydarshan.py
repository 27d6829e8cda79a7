"""What PyDarshan reads in a log, and the same of a run."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import ensembles as en

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    import darshan
    from darshan.backend import cffi_backend

EXAMPLES = Path(darshan.__file__).parent / "examples"
_LAYERS = {"DXT_POSIX": "posix", "DXT_MPIIO": "mpiio"}
_WORDS = {"POSIX": ("posix", "POSIX"), "MPI-IO": ("mpiio", "MPIIO"), "STDIO": ("stdio", "STDIO")}
_READS = {"POSIX": ["READS"], "STDIO": ["READS"]}
_READS |= {"MPI-IO": [f"{kind}_READS" for kind in ("INDEP", "COLL", "SPLIT", "NB")]}


def segments_of(path: Path) -> Counter[tuple[Any, ...]]:
    """What PyDarshan reads: every segment as a row."""
    log = cffi_backend.log_open(str(path))
    names = cffi_backend.log_get_name_records(log)
    rows: Counter[tuple[Any, ...]] = Counter()
    for module, layer in _LAYERS.items():
        while module in cffi_backend.log_get_modules(log):
            record = cffi_backend.log_get_dxt_record(log, module)
            if record is None:
                break
            for op in ("read", "write"):
                for segment in record[f"{op}_segments"]:
                    start, end = (round(segment[f"{name}_time"] * 1e9) for name in ("start", "end"))
                    place = (record["rank"], record["hostname"], names[record["id"]])
                    rows[(*place, layer, op, segment["offset"], segment["length"], start, end)] += 1
    cffi_backend.log_close(log)
    return rows


def events_of(run: en.Run) -> Counter[tuple[Any, ...]]:
    """The same of a run."""
    events = run.events
    hosts = {process.rank: process.host for process in run.info.processes}
    columns = (events.rank, events.file, events.call, events.offset, events.moved, events.start, events.end)
    rows: Counter[tuple[Any, ...]] = Counter()
    for rank, file, call, *rest in zip(*(column.tolist() for column in columns), strict=True):
        name = run.calls[call]
        rows[(rank, hosts[rank], run.files[file], name.layer, name.op, *rest)] += 1
    return rows


def records_of(path: Path, module: str) -> Iterator[dict[str, Any]]:
    log = cffi_backend.log_open(str(path))
    while module in cffi_backend.log_get_modules(log):
        record = cffi_backend.log_get_record(log, module, dtype="dict")
        if record is None:
            break
        yield record
    cffi_backend.log_close(log)


def sums_of(path: Path) -> dict[tuple[str, str], tuple[int, int, float, float]]:
    """Count, bytes, time and longest of reads and writes of each layer, by PyDarshan's records."""
    found: dict[tuple[str, str], tuple[int, int, float, float]] = {}
    for module, (layer, word) in _WORDS.items():
        for record in records_of(path, module):
            counters, times = record["counters"], record["fcounters"]
            for op, done in (("READ", "READ"), ("WRITE", "WRITTEN")):
                names = [name.replace("READ", op) for name in _READS[module]]
                count, moved, time, most = found.get((layer, op.lower()), (0, 0, 0.0, 0.0))
                count += sum(int(counters[f"{word}_{name}"]) for name in names)
                moved += int(counters[f"{word}_BYTES_{done}"])
                # One of the logs has a negative time, of a clock that was set back.
                time += max(float(times[f"{word}_F_{op}_TIME"]), 0.0)
                most = max(most, float(times.get(f"{word}_F_MAX_{op}_TIME", 0.0)))
                found[layer, op.lower()] = (count, moved, time, most)
    return {key: sums for key, sums in found.items() if sums[0]}
