"""Bindings to Darshan's library (libdarshan-util), which is part of the package ``darshan``.

The rest of that package is not used: its DataFrames take a second to import and microseconds per segment.
Only `sandbox_process` calls the library, in a separate process, because the library trusts its input.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
from array import array
from collections.abc import Iterator
from functools import cache
from glob import escape, glob
from sysconfig import get_path
from typing import Any

from ensembles.model.errors import EnsioError, MissingLibrary

# The declarations of the package lack these. ensio_fd is the beginning of `struct darshan_fd_s`.
_MORE = """
int darshan_log_get_mod(void *, int, void *, int);
struct ensio_fd { char version[8]; int swap_flag; };
"""

_RECORDS = {
    "POSIX": ("struct darshan_posix_file", "posix"),
    "DFS": ("struct darshan_dfs_file", "dfs"),
    "DAOS": ("struct darshan_daos_object", "daos"),
    "MPI-IO": ("struct darshan_mpiio_file", "mpiio"),
    "STDIO": ("struct darshan_stdio_file", "stdio"),
    "H5F": ("struct darshan_hdf5_file", "h5f"),
    "H5D": ("struct darshan_hdf5_dataset", "h5d"),
    "PNETCDF_FILE": ("struct darshan_pnetcdf_file", "pnetcdf_file"),
    "PNETCDF_VAR": ("struct darshan_pnetcdf_var", "pnetcdf_var"),
}
"""Modules of counters: type of their records, and prefix of the variables with the counters' names."""

_OTHER_RECORDS = {"LUSTRE": "struct darshan_lustre_record", "HEATMAP": "struct darshan_heatmap_record"}
_COMPONENT_COUNTERS = 7
_MOST_BINS = 1 << 20


class DarshanError(Exception):
    """The library failed; the text names the operation."""


def _unusable(reason: str) -> MissingLibrary:
    """Make the error for a package that does not fit: what is used of a wheel of it serves every Python."""
    return MissingLibrary(
        f"Darshan logs cannot be read: the package darshan {_version()} {reason}: pip install --no-deps "
        f"--upgrade --only-binary :all: --python-version 3.12 --target {get_path('purelib')} 'darshan>=3.5'"
    )


def _misfit(error: Exception) -> MissingLibrary:
    return _unusable(f"does not fit ({type(error).__name__}: {error})")


def _version() -> str:
    try:
        return importlib.metadata.version("darshan")
    except importlib.metadata.PackageNotFoundError:
        return "of unknown version"


def error_frame(path: str, error: Exception) -> dict[str, Any]:
    """Describe what ended the reading of a log as a frame: only an error of the library itself is damage."""
    found: dict[str, Any] = {"kind": "error"}
    match error:
        case MissingLibrary():
            return found | {"library": str(error)}
        case EnsioError():
            return found | {"text": str(error)}
        case DarshanError():
            return found | {"failed": str(error)}
        case MemoryError():
            return found | {"failed": "read the log in bounded memory"}
        case OSError():
            return found | {"text": f"{path} cannot be read: {error.strerror}"}
    return found | {"library": str(_misfit(error))}


def _declarations(folder: str) -> str:
    """Load the C declarations from their file; importing the package would import all of it."""
    place = os.path.join(folder, "backend", "api_def_c.py")
    spec = importlib.util.spec_from_file_location("_ensio_darshan_declarations", place)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    declarations: str = module.load_darshan_header()
    return declarations + _MORE


@cache
def load() -> tuple[Any, Any]:
    """Load the declarations and the library, once in a process."""
    spec = importlib.util.find_spec("darshan")
    if spec is None or importlib.util.find_spec("cffi") is None:
        raise MissingLibrary(
            "Darshan logs are read by the package darshan, which is missing: pip install 'ensio[darshan]'"
        )
    import cffi

    (folder, *_) = spec.submodule_search_locations or [""]
    ffi = cffi.FFI()
    try:
        ffi.cdef(_declarations(folder))
    except Exception as error:
        raise _misfit(error) from error
    beside = os.path.join(escape(os.path.dirname(folder)), "darshan.libs", "libdarshan-util*.so*")
    bundled = glob(beside)
    try:
        library = ffi.dlopen(bundled[0] if bundled else "libdarshan-util.so")
    except OSError as error:
        reason = str(error).partition("\n")[0].partition(".  ")[0]
        raise _unusable(f"came without its library ({reason})") from error
    _ = library.dfs_counter_names  # older ones pass over what DAOS did
    return ffi, library


def warm_up() -> None:
    """Parse the types and read the names of counters, so that forked processes find them done."""
    ffi, library = load()
    for kind in (
        "struct ensio_fd *",
        "struct darshan_job *",
        "struct darshan_mod_info **",
        "struct darshan_name_record **",
        "int *",
        "char[]",
        "void **",
        *(f"{record} *" for record, _ in _RECORDS.values()),
    ):
        ffi.typeof(kind)
    for name in ("open", "get_job", "get_exe", "get_modules", "get_name_records", "get_record", "get_mod"):
        getattr(library, f"darshan_log_{name}")
    _ = library.darshan_free
    for _, prefix in _RECORDS.values():
        _listed(f"{prefix}_counter_names")
        _listed(f"{prefix}_f_counter_names")


@cache
def _listed(variable: str) -> list[str]:
    ffi, library = load()
    names: list[str] = []
    table = getattr(library, variable)
    while not (name := os.fsdecode(ffi.string(table[len(names)], 64))).endswith("_NUM_INDICES"):
        names.append(name)
    return names


class Log:
    """An open Darshan log.

    `knows_threads`: whether the library's segments have thread ids.
    `swapped`: whether the log has the other byte order.
    """

    def __init__(self, path: str) -> None:
        self.ffi, self.library = load()
        self.knows_threads = "pthread_id" in dict(self.ffi.typeof("segment_info").fields)
        self._handle = self.library.darshan_log_open(os.fsencode(path))
        if self._handle == self.ffi.NULL:
            raise DarshanError("open the log")
        self.swapped = bool(self.ffi.cast("struct ensio_fd *", self._handle).swap_flag)

    def _text(self, value: Any, longest: int) -> str:
        return os.fsdecode(self.ffi.string(value, longest))

    def job(self) -> dict[str, Any]:
        """Read the description of the job."""
        record = self.ffi.new("struct darshan_job *")
        if self.library.darshan_log_get_job(self._handle, record) < 0:
            raise DarshanError("read the description of the job")
        command = self.ffi.new("char[]", 8192)
        if self.library.darshan_log_get_exe(self._handle, command) < 0:
            raise DarshanError("read the name of the program")
        return {
            "uid": record.uid,
            "jobid": record.jobid,
            "nprocs": record.nprocs,
            "start_ns": record.start_time_sec * 10**9 + record.start_time_nsec,
            "end_ns": record.end_time_sec * 10**9 + record.end_time_nsec,
            "metadata": self._text(record.metadata, 1024),
            "command": self._text(command, 8191),
        }

    def mounts(self) -> list[tuple[str, str]]:
        """Read the mount points and the types of their file systems."""
        found = self.ffi.new("struct darshan_mnt_info **")
        count = self.ffi.new("int *")
        if self.library.darshan_log_get_mounts(self._handle, found, count) < 0:
            raise DarshanError("read the mount points")
        return [
            (self._text(found[0][i].mnt_path, 3015), self._text(found[0][i].mnt_type, 3015))
            for i in range(count[0])
        ]

    def modules(self) -> dict[str, dict[str, Any]]:
        """Return ``number``, ``version`` and ``partial`` of each module, by name."""
        found = self.ffi.new("struct darshan_mod_info **")
        count = self.ffi.new("int *")
        self.library.darshan_log_get_modules(self._handle, found, count)
        entries = [found[0][i] for i in range(count[0])]
        return {
            f"number {entry.idx}" if entry.name == self.ffi.NULL else self._text(entry.name, 64): {
                "number": entry.idx,
                "version": entry.ver,
                "partial": bool(entry.partial_flag),
            }
            for entry in entries
        }

    def names(self) -> tuple[array[int], list[str]]:
        """Read ids and paths of the files."""
        found = self.ffi.new("struct darshan_name_record **")
        count = self.ffi.new("int *")
        self.library.darshan_log_get_name_records(self._handle, found, count)
        entries = [found[0][i] for i in range(count[0])]
        identities = array("Q", (entry.id for entry in entries))
        return identities, [self._text(entry.name, 65536) for entry in entries]

    def counter_names(self, module: str) -> tuple[list[str], list[str]]:
        """Return the names of the integer counters and of the timers of a module."""
        _, prefix = _RECORDS[module]
        return _listed(f"{prefix}_counter_names"), _listed(f"{prefix}_f_counter_names")

    def records(self, module: str, number: int) -> Iterator[Any]:
        """Yield the records of a module of counters."""
        kind = _RECORDS[module][0] if module in _RECORDS else _OTHER_RECORDS[module]
        while True:
            place = self.ffi.new("void **")
            found = self.library.darshan_log_get_record(self._handle, number, place)
            if found < 0:
                raise DarshanError(f"read the records of {module}")
            if found == 0:
                return
            yield self.ffi.cast(f"{kind} *", place[0])
            self.library.darshan_free(place[0])

    def counter_shape(self, module: str) -> tuple[int, int, int]:
        """Return the number of integer counters and of timers of a module, and of words before them.

        A record consists of file id, rank, further ids, integer counters and timers, of 8 bytes each.
        """
        fields = dict(self.ffi.typeof(_RECORDS[module][0]).fields)
        before = fields["counters"].offset // 8 - 2
        return fields["counters"].type.length, fields["fcounters"].type.length, before

    def counters(self, module: str, number: int, most: int) -> Iterator[bytes]:
        """Yield the bytes of the records of a module, up to `most` records at a time."""
        size = 8 * (2 + sum(self.counter_shape(module)))
        rows: list[bytes] = []
        for record in self.records(module, number):
            rows.append(bytes(self.ffi.buffer(record, size)))
            if len(rows) == most:
                yield b"".join(rows)
                rows = []
        if rows:
            yield b"".join(rows)

    def layouts(self, number: int) -> Iterator[tuple[int, list[dict[str, Any]]]]:
        """Yield the id of each file on Lustre, and the components of its layout."""
        for record in self.records("LUSTRE", number):
            components, place = [], 0
            for i in range(record.num_comps):
                component = record.comps[i]
                values = [component.counters[k] for k in range(_COMPONENT_COUNTERS)]
                targets = max(min(values[1], record.num_stripes - place), 0)
                components.append(
                    {
                        "counters": values,
                        "pool": self._text(component.pool_name, 16),
                        "targets": [record.ost_ids[place + k] for k in range(targets)],
                    }
                )
                place += targets
            yield record.base_rec.id, components

    def heatmaps(self, number: int) -> Iterator[tuple[int, int, float, array[int], array[int]]]:
        """Yield id, rank, width of a bin in seconds, and bytes written and read by bin, of each heat map."""
        for record in self.records("HEATMAP", number):
            if not 0 <= record.nbins <= _MOST_BINS:
                raise DarshanError("read the records of HEATMAP")
            bins = [
                array("q", self.ffi.buffer(place, 8 * record.nbins)[:])
                for place in (record.write_bins, record.read_bins)
            ]
            yield record.base_rec.id, record.base_rec.rank, record.bin_width_seconds, bins[0], bins[1]

    def read_into(self, number: int, buffer: Any, length: int) -> int:
        """Decompress the next bytes of a module into a buffer.

        Number of bytes; less than `length` only at the end. The next call would begin again.
        """
        place = self.ffi.from_buffer(buffer)
        done: int = self.library.darshan_log_get_mod(self._handle, number, place, length)
        if done < 0:
            raise DarshanError("decompress the records of DXT")
        return done
