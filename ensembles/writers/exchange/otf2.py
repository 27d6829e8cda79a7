"""Write OTF2 archives for Vampir and other trace tools, through the program ``ensio-otf2``."""

from __future__ import annotations

import dataclasses
import json
import os
import stat
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, NamedTuple

import numpy as np

from ensembles.files.atomic_write import atomic_write_folder
from ensembles.files.readership import find_readership
from ensembles.model.errors import EnsioError
from ensembles.model.events import COLUMNS, Call
from ensembles.model.regions import COLUMNS as REGION_COLUMNS
from ensembles.model.sites import frames_text
from ensembles.model.surroundings import COLUMN_MEANINGS, COUNTERS, LEVELS, UNKNOWN, SurroundingsTable
from ensembles.model.units import ROWS_AT_ONCE
from ensembles.passes.progress import announced, counted
from ensembles.recorder import otf2_program as link

if TYPE_CHECKING:
    from ensembles.structure.recorded_run import RecordedRun

PARADIGMS = {
    "posix": "POSIX",
    "stdio": "ISOC",
    "mpiio": "MPI-IO",
    "hdf5": "HDF5",
    "netcdf": "netCDF",
    "pnetcdf": "PnetCDF",
}
"""OTF2's names of I/O paradigms by layer. Other layers keep their names."""

NO_IO = ("mpisync", "mpimsg", "program", "unknown", "")
"""Layers that are not I/O paradigms."""

NAME = "traces"
"""Name of the archive in its folder: ``traces.otf2``, as in archives of Score-P."""

_NON_BLOCKING = ("MPI_File_iread", "MPI_File_iwrite", "aio_")
_SPLIT = "_begin"
_COLLECTIVE = ("_all", "_ordered")
_DELETES = ("unlink", "unlinkat", "remove", "MPI_File_delete")
_BYTES_A_CALL = 60


class Cost(NamedTuple):
    """Estimated size of an archive."""

    files: int  # Number of files: two per location and two more
    size_bytes: int  # Approximate size


class Written(NamedTuple):
    """Description of a written archive."""

    anchor: str  # Path of the anchor file, which tools open
    # locations, handles: Number of locations and of I/O handles
    locations: int
    handles: int
    # Number of calls that are recorded later in the archive than they began. An attribute has the time.
    late_calls: int


def estimate_cost(run: RecordedRun, ranks_per_location: int = 1) -> Cost:
    """Estimate the size of the archive that `write_otf2` would write."""
    locations = (
        max(run.info.threads, run.tasks) if ranks_per_location == 1 else -(-run.tasks // ranks_per_location)
    )
    locations += len(run.surroundings()) > 0
    return Cost(2 * locations + 2, run.reading.most_events * _BYTES_A_CALL)


def write_otf2(run: RecordedRun, path: str, ranks_per_location: int = 1) -> Written:
    """Write a run as an OTF2 archive, a folder that appears under its name when it is complete."""
    if ranks_per_location < 1:
        raise ValueError("a location has at least one rank")
    tool = link.program()
    path = str(Path(path))
    if os.path.lexists(path):
        raise EnsioError(f"{path} exists already: name a folder that does not exist yet")
    try:
        with atomic_write_folder(path, find_readership(run.path)) as folder:
            told = _written_by(tool, run, folder, ranks_per_location, path)
    except OSError as error:
        raise EnsioError(f"{path} cannot be made: {error.strerror or error}") from error
    anchor = os.path.join(path, f"{NAME}.otf2")
    return Written(anchor, told["locations"], told["handles"], told["late"])


def _written_by(
    tool: str, run: RecordedRun, folder: int, ranks_per_location: int, path: str
) -> dict[str, int]:
    allowed = stat.S_IMODE(os.fstat(folder).st_mode)
    with (
        tempfile.TemporaryFile() as answer,
        tempfile.TemporaryFile() as complaint,
        subprocess.Popen(
            [tool, "write", f"/proc/self/fd/{folder}", NAME],
            stdin=subprocess.PIPE,
            stdout=answer,
            stderr=complaint,
            pass_fds=[folder],
            umask=0o777 & ~allowed,
        ) as process,
    ):
        assert process.stdin is not None
        link.widen(process.stdin)
        try:
            _tell(process.stdin, run, ranks_per_location)
            process.stdin.close()
        except BrokenPipeError:
            pass
        except BaseException:
            process.kill()
            raise
        if process.wait() != 0:
            complaint.seek(0)
            reason = complaint.read(1000).decode("utf-8", "replace").strip() or "it was killed"
            raise EnsioError(f"{path} could not be written: {reason}")
        answer.seek(0)
        return {
            name: int(number)
            for name, number in (line.split() for line in answer.read().decode().splitlines())
        }


def _tell(pipe: IO[bytes], run: RecordedRun, ranks_per_location: int) -> None:
    """Send the run to the program, in the order that it expects."""
    tasks = max(run.tasks, 1)
    _send(pipe, link.SETTINGS_KIND, 1, link.SETTINGS.pack(run.info.origin_unix_ns, ranks_per_location, 0))
    _send(pipe, link.RUN_KIND, 1, json.dumps(_facts_of(run)).encode())
    _send_texts(pipe, link.CALLS_KIND, [_words_of(call) for call in run.calls])
    _send_texts(pipe, link.FILES_KIND, [[name] for name in run.files])
    _send_texts(pipe, link.PROPERTIES_KIND, _file_properties(run))
    _send_texts(pipe, link.HOSTS_KIND, [[host] for host in _hosts_of(run, tasks)])
    processes = [
        [str(max(process.rank, 0)), json.dumps(dataclasses.asdict(process))] for process in run.info.processes
    ]
    _send_texts(pipe, link.PROCESSES_KIND, processes)
    _send_texts(pipe, link.NAMES_KIND, [[name] for name in run.regions.names])
    for low in range(0, len(run.regions), ROWS_AT_ONCE):
        _send_columns(pipe, link.REGIONS_KIND, run.regions[low : low + ROWS_AT_ONCE].columns, REGION_COLUMNS)
    with announced("reading", run.path, run.reading.most_events):
        for events in counted(run.chunks(ROWS_AT_ONCE)):
            _send_columns(pipe, link.EVENTS_KIND, events.columns, COLUMNS)
    _send_samples(pipe, run)
    _send(pipe, link.END_KIND, 0, b"")


def _send_samples(pipe: IO[bytes], run: RecordedRun) -> None:
    table = run.surroundings()
    if len(table):
        _send_texts(pipe, link.COUNTERS_KIND, [words_of(name) for name in counters_of(table)])
        rows = sample_rows(table)
        _send(pipe, link.SAMPLES_KIND, len(rows), rows.tobytes())


def _send(pipe: IO[bytes], kind: int, count: int, data: bytes) -> None:
    pipe.write(link.HEAD.pack(kind, count, len(data)))
    pipe.write(data)


def _send_texts(pipe: IO[bytes], kind: int, things: Sequence[Sequence[str]]) -> None:
    _send(pipe, kind, len(things), b"".join(link.texts(words) for words in things))


def _send_columns(
    pipe: IO[bytes], kind: int, columns: Mapping[str, np.ndarray], dtypes: Mapping[str, np.dtype]
) -> None:
    """Send columns one after another, each padded to a multiple of 8 bytes."""
    arrays = [np.ascontiguousarray(columns[name], dtype) for name, dtype in dtypes.items()]
    gaps = [bytes(-array.nbytes % 8) for array in arrays]
    size = sum(array.nbytes + len(gap) for array, gap in zip(arrays, gaps, strict=True))
    pipe.write(link.HEAD.pack(kind, len(arrays[0]), size))
    for array, gap in zip(arrays, gaps, strict=True):
        pipe.write(array.data)
        pipe.write(gap)


def _facts_of(run: RecordedRun) -> dict[str, Any]:
    """Collect the metadata of the run, except files and processes, for ensio's reader."""
    return {
        "tasks": run.tasks,
        "threads": run.info.threads,
        "origin_unix_ns": run.info.origin_unix_ns,
        "mode": run.mode,
        "job": run.info.job,
        "user": run.info.user,
        "libc": run.info.libc_version,
        "mpi": run.info.mpi_version,
        "hosts": run.info.hosts,
        "clock_error_s": run.info.clock_error_s,
        "clock_step_s": run.info.clock_step_s,
        "environment": run.info.environment,
        "mounts": {
            host: [dataclasses.asdict(mount) for mount in table] for host, table in run.info.mounts.items()
        },
        "processors": run.info.processors,
        "notes": run.notes,
        "flights": {op: list(sums) for op, sums in run.info.flights.items()},
        "sites": [frames_text(site.frames) for site in run.info.sites],
    }


def _words_of(call: Call) -> list[str]:
    """Describe a call for the program: name, layer, operation, paradigm, letters for properties."""
    paradigm = "" if call.layer in NO_IO else PARADIGMS.get(call.layer, call.layer)
    data = call.op in ("read", "write", "sync")
    letters = "n" * (data and (call.name.startswith(_NON_BLOCKING) or call.name.endswith(_SPLIT)))
    letters += "c" * (call.layer == "mpiio" and any(part in call.name for part in _COLLECTIVE))
    letters += "d" * (call.name in _DELETES) + "b" * (call.name == "MPI_Barrier")
    return [call.name, call.layer, call.op, paradigm, letters]


def _file_properties(run: RecordedRun) -> list[list[str]]:
    """Collect the properties of files: their file systems and other recorded properties."""
    rows: list[list[str]] = []
    for number, path in enumerate(run.files):
        if not path:
            continue
        mount = run.info.filesystem_of(path)
        if mount:
            told = {"Mount Point": mount.point, "File System": mount.type, "File System Source": mount.source}
            rows += [[str(number), name, value] for name, value in told.items() if value]
        rows += [[str(number), name, value] for name, value in run.info.file_facts.get(path, {}).items()]
    return rows


def _hosts_of(run: RecordedRun, tasks: int) -> list[str]:
    hosts = [""] * tasks
    for process in run.info.processes:
        if 0 <= process.rank < tasks:
            hosts[process.rank] = hosts[process.rank] or process.host
    return [host or "unknown" for host in hosts]


def counters_of(table: SurroundingsTable) -> list[str]:
    """Return the names of the counters that any sample includes, after ``cost``."""
    return ["cost", *(name for name in COUNTERS if (table.columns[name] != UNKNOWN).any())]


def words_of(name: str) -> list[str]:
    """Describe a counter for the program: name, unit, meaning, ``sum`` or ``level``."""
    unit, meaning = COLUMN_MEANINGS[name]
    level = name in LEVELS or name == "cost"
    return [name, unit or "#", meaning, "level" if level else "sum"]


def sample_rows(table: SurroundingsTable) -> np.ndarray:
    """Return each known counter of each sample as a row of `otf2_program.SAMPLE`, by time."""
    names = counters_of(table)
    parts = []
    for number, name in enumerate(names):
        column = table.columns[name]
        known = column != UNKNOWN if name != "cost" else np.ones(len(table), bool)
        part = np.zeros(int(known.sum()), link.SAMPLE)
        part["time"], part["value"] = table.columns["time"][known], column[known]
        part["metric"] = len(names) * (1 + table.columns["rank"][known].astype(np.int64)) + number
        parts.append(part)
    rows = np.concatenate(parts)
    return rows[np.argsort(rows["time"], kind="stable")]
