"""Determine the call of each row of an OTF2 archive from its region, I/O paradigm and kind."""

from __future__ import annotations

import re

import numpy as np

from ensembles.model.errors import EnsioError
from ensembles.model.events import OPS, Call
from ensembles.readers.foreign.otf2.definitions import Definitions

LAYERS = {"POSIX": "posix", "ISOC": "stdio", "MPI-IO": "mpiio", "HDF5": "hdf5"}
"""Layer of each I/O paradigm, by its identification. Other paradigms become layers with their names."""

OPS_OF_ROWS = ("read", "write", "sync", "open", "close", "seek", "meta", "meta")
"""Kind of operation of each kind of row. For larger kinds the region determines the operation."""

_NAMES_OF_ROWS = ("read", "write", "flush", "open", "close", "seek", "delete", "duplicate")
_CALL_ROW = 8
_IO_ROLES = (27, 38)
_MOST_CALLS = 0xFFFF
_STREAMS = re.compile(
    r"f(open|close|dopen|reopen|read|write|seek|tell|flush|gets?c?|puts?c?|printf|scanf).*|rewind|puts|getc|putc"
)
_OPS = (
    (
        "open",
        re.compile(
            r"(f|fd|fre)?open(at|dir)?(64)?|creat(64)?|tmpfile(64)?|mkstemps?|MPI_File_open|H5[A-Z](open|create).*"
        ),
    ),
    ("close", re.compile(r"f?close(dir)?|MPI_File_close|H5[A-Z]close")),
    ("seek", re.compile(r".*(seek|tell).*|rewind|f[gs]etpos(64)?")),
    ("sync", re.compile(r".*(sync|flush).*")),
    ("read", re.compile(r".*read(?!dir|link).*|f?getc|f?gets|f?scanf")),
    ("write", re.compile(r".*write.*|f?putc|f?puts|f?printf")),
)


class CallResolver:
    """Resolver of rows to calls, which adds new calls as they occur.

    `known`: the calls that the column ``call`` indexes; the first is unknown.
    `without_operation`: number of reads and writes so far with a region but without an I/O record.
    """

    def __init__(self, definitions: Definitions) -> None:
        self._definitions = definitions
        self.known = [Call("unknown", "unknown", "meta")]
        self._places: dict[Call, int] = {self.known[0]: 0}
        self._ours = self._our_calls()
        self._others: dict[int, int] = {}
        self.without_operation = 0

    def _our_calls(self) -> np.ndarray | None:
        """Return the call number of each region of an archive of ensio; None for other archives."""
        regions = self._definitions.call_regions
        if not regions or not all(said.startswith("ensio call ") for _, said, _ in regions.values()):
            return None
        table = np.zeros(max(regions) + 1, "u2")
        self.known, self._places = [], {}
        for number, (name, said, _) in regions.items():
            op, _, layer = said.removeprefix("ensio call ").partition(" ")
            if op not in OPS or len(self.known) > _MOST_CALLS:
                raise EnsioError("an OTF2 archive of ensio names calls that it cannot have: copy it again")
            table[number] = len(self.known)
            self.known.append(Call(name, layer, op))
        return table

    def resolve(self, rows: np.ndarray) -> np.ndarray:
        """Resolve the call of each row."""
        region = rows["region"]
        if self._ours is not None:
            inside = region < len(self._ours)
            return np.where(inside, self._ours[np.where(inside, region, 0)], 0).astype("u2")
        key = region.astype("u8") << 16 | rows["paradigm"].astype("u8") << 8 | rows["kind"]
        unique, place, counts = np.unique(key, return_inverse=True, return_counts=True)
        others = [self._other(number) for number in unique.tolist()]
        for number, other, count in zip(unique.tolist(), others, counts.tolist(), strict=True):
            self.without_operation += count * self._lacks_operation(number & 0xFF, self.known[other])
        return np.array(others, "u2")[place]

    @staticmethod
    def _lacks_operation(kind: int, call: Call) -> bool:
        """Test whether a read or write lacks its I/O record; ends of split collectives never have one."""
        return kind == _CALL_ROW and call.op in ("read", "write") and not call.name.endswith("_end")

    def _other(self, key: int) -> int:
        if key not in self._others:
            call = self._call_of(key >> 16, key >> 8 & 0xFF, key & 0xFF)
            if call not in self._places:
                if len(self.known) > _MOST_CALLS:
                    return 0
                self._places[call] = len(self.known)
                self.known.append(call)
            self._others[key] = self._places[call]
        return self._others[key]

    def _call_of(self, region: int, paradigm: int, kind: int) -> Call:
        name, _, role = self._definitions.call_regions.get(region, ("", "", 0))
        told = self._definitions.paradigms.get(paradigm, "")
        layer = LAYERS.get(told, told.lower()) if told else _layer_of(name, role)
        if kind < _CALL_ROW:
            return Call(name or f"{told or 'I/O'} {_NAMES_OF_ROWS[kind]}", layer, OPS_OF_ROWS[kind])
        if layer == "mpisync":
            return Call(name, layer, "wait")
        return Call(name, layer, next((op for op, names in _OPS if names.fullmatch(name)), "meta"))


def _layer_of(name: str, role: int) -> str:
    """Determine the layer of a function without an I/O record."""
    if name.startswith("MPI_File_"):
        return "mpiio"
    if role not in _IO_ROLES:
        return "mpisync"
    if re.match(r"H5[A-Z]", name):
        return "hdf5"
    if name.startswith(("nc_", "ncmpi_")):
        return "netcdf" if name.startswith("nc_") else "pnetcdf"
    return "stdio" if _STREAMS.fullmatch(name) else "posix"
