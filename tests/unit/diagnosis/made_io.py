"""Runs made call by call, with what a program would have left: facts of files, samples, calls inside "
"calls."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np
from spool_writer import SpoolContent, write_spool

import ensembles as en
from ensembles.model.c_layout import CONSTANTS, EVENT, SURROUNDINGS
from ensembles.model.events import Call

CALLS = {
    1: Call("open", "posix", "open"),
    2: Call("close", "posix", "close"),
    3: Call("pread", "posix", "read"),
    4: Call("pwrite", "posix", "write"),
    5: Call("fwrite", "stdio", "write"),
    6: Call("fread", "stdio", "read"),
    7: Call("MPI_File_write_at", "mpiio", "write"),
    8: Call("H5Dwrite", "hdf5", "write"),
    9: Call("H5Dread", "hdf5", "read"),
    10: Call("H5Gcreate", "hdf5", "meta"),
    11: Call("MPI_Barrier", "mpisync", "wait"),
    21: Call("fsync", "posix", "sync"),
    22: Call("MPI_File_write_at_all", "mpiio", "write"),
    23: Call("stat", "posix", "meta"),
    24: Call("fstat", "posix", "meta"),
    25: Call("readdir", "posix", "meta"),
    26: Call("mmap", "posix", "meta"),
    27: Call("unlink", "posix", "meta"),
    28: Call("MPI_File_read_at_all", "mpiio", "read"),
    29: Call("MPI_Allreduce", "mpisync", "wait"),
    30: Call("nc_open", "netcdf", "open"),
    31: Call("nc_close", "netcdf", "close"),
    32: Call("H5Fopen", "hdf5", "open"),
    33: Call("H5Oopen", "hdf5", "open"),
    34: Call("H5Fclose", "hdf5", "close"),
    35: Call("fopen", "stdio", "open"),
    36: Call("fclose", "stdio", "close"),
    37: Call("MPI_File_open", "mpiio", "open"),
    38: Call("MPI_File_close", "mpiio", "close"),
    39: Call("MPI_File_delete", "mpiio", "meta"),
    40: Call("nc_put_vara", "netcdf", "write"),
    41: Call("rename", "posix", "meta"),
    42: Call("MPI_File_iwrite_at", "mpiio", "write"),
    43: Call("fprintf", "stdio", "write"),
    44: Call("msync", "posix", "sync"),
    45: Call("fflush", "stdio", "sync"),
    46: Call("fseek", "stdio", "seek"),
    47: Call("lseek", "posix", "seek"),
    48: Call("fcntl", "posix", "meta"),
    49: Call("posix_fadvise", "posix", "meta"),
    50: Call("aio_write", "posix", "write"),
    51: Call("aio_suspend", "posix", "wait"),
    52: Call("MPI_Gather", "mpisync", "wait"),
}
_NUMBERS = {call.name: number for number, call in CALLS.items()}
_WITHOUT_FILE = ("MPI_Barrier", "MPI_Allreduce", "MPI_Gather", "aio_suspend")
BEGIN = 10**12
KIB, MIB = 1 << 10, 1 << 20


class Made(NamedTuple):
    """One call: times in microseconds; ``inside`` are the calls that it makes, from its start on."""

    name: str
    us: float
    size: int = 0
    offset: int = -1
    file: int = 1
    inside: Sequence[Made] = ()
    gap_us: float = 1.0
    error: int = 0
    carried: int = 0


def _rows(calls: Iterable[Made], now: float, depth: int) -> tuple[list[tuple], float]:
    rows = []
    for call in calls:
        start = now
        inner, now = _rows(call.inside, now, depth + 1)
        now = max(now, start + call.us)
        rows += inner
        rows.append((start, now - start, call, depth))
        now += call.gap_us
    return rows, now


def io_run(
    folder: Path,
    tasks: Sequence[Sequence[Made]],
    files: Mapping[int, str] | None = None,
    facts: Mapping[int, Mapping[str, str]] | None = None,
    samples: Sequence[Mapping[str, int]] = (),
    mode: str = "trace",
    head: Mapping[str, int] | Callable[[int], Mapping[str, int]] | None = None,
    starts_us: Sequence[float] | None = None,
    tasks_per_node: int = 64,
    **properties: str,
) -> en.Run:
    """Make a run of which every task makes its calls one after the other.

    Parameters
    ----------
    samples : sequence of mapping
        Of task 0: members of ``struct ensio_surroundings``, with ``us`` as its moment.
    **properties
        Further properties of each process, such as ``recorder``.
    """
    folder.mkdir(parents=True)
    for rank, calls in enumerate(tasks):
        rows, now = _rows(calls, 0.0 if starts_us is None else starts_us[rank], 0)
        events = np.zeros(len(rows), EVENT.dtype)
        for event, (start, us, call, depth) in zip(events, rows, strict=True):
            event["call"], event["depth"] = _NUMBERS[call.name], depth
            event["start"], event["duration"] = BEGIN + round(start * 1e3), round(us * 1e3)
            event["requested"] = event["moved"] = call.size
            if call.error:
                event["moved"] = -call.error
            event["flags"] = call.carried
            event["offset"], event["file"] = call.offset, 0 if call.name in _WITHOUT_FILE else call.file
        taken = np.zeros(len(samples) if rank == 0 else 0, SURROUNDINGS.dtype)
        for row, sample in zip(taken, samples, strict=False):
            row["ticks"] = BEGIN + round(sample["us"] * 1e3)
            row["read"] = CONSTANTS["ENSIO_READ_PROCESS"] | CONSTANTS["ENSIO_READ_MEMORY"]
            for name, value in sample.items():
                if name != "us":
                    row[name] = value
        whole_head = {
            "clock": CONSTANTS["ENSIO_CLOCK_MONOTONIC"],
            "pid": 100 + rank,
            "rank": rank,
            "tasks": len(tasks),
            "first_ticks": BEGIN,
            "first_monotonic_ns": BEGIN,
            "last_ticks": BEGIN + round(now * 1e3),
            "last_monotonic_ns": BEGIN + round(now * 1e3),
            **((head(rank) if callable(head) else head) or {}),
        }
        content = SpoolContent(
            [events],
            files or {1: "/scratch/data"},
            CALLS,
            {
                "host": f"node{rank // tasks_per_node:04}",
                "program": "/opt/app",
                "command": "app",
                "mode": mode,
                **properties,
            },
            whole_head,
            facts or {},
            surroundings=taken if len(taken) else None,
        )
        write_spool(folder / f"{rank}.spool", content)
    return en.open(folder)


def found_ids(run: en.Run) -> dict[str, str]:
    """Severity of each finding."""
    return {finding.id: finding.severity for finding in en.diagnose(run).findings}


def refusal(run: en.Run, cause: str) -> str:
    """Why a cause was not examined, or ``""``."""
    return next((entry.reason for entry in en.diagnose(run).not_examined if entry.id == cause), "")
