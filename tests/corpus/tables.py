"""Tables of real runs (NumPy arrays, one row a call) as run directories, which commands can read."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from spool_writer import SpoolContent, write_spool

from ensembles.model.c_layout import CONSTANTS, EVENT
from ensembles.model.events import Call

_KINDS = {
    "pread": "read",
    "fread": "read",
    "pwrite": "write",
    "fwrite": "write",
    "lseek": "seek",
    "lseek64": "seek",
}
_KINDS |= dict.fromkeys(("open", "open64", "fopen", "fopen64", "opendir"), "open")
_KINDS |= {name: name for name in ("read", "write", "close")} | {"fclose": "close"}
_BEGAN_UNIX_NS = 1_700_000_000_000_000_000


def write_table_as_run(table: Path, folder: Path, number: int | None = None) -> None:
    """Write a spool for each rank.

    Parameters
    ----------
    table : Path
        ``.npz`` with columns as data/README.md describes them.
    folder : Path
    number : int, optional
        Of its runs, this one; default: it has one.
    """
    with np.load(table, allow_pickle=False) as loaded:
        columns = dict(loaded)
    rows = np.ones(len(columns["rank"]), bool) if number is None else columns["run"] == number
    calls = {place + 1: _call_of(str(name)) for place, name in enumerate(columns["op_names"])}
    files = {place + 1: f"/data/{str(name).lstrip('/')}" for place, name in enumerate(columns["files"])}
    origin = columns["start"][rows].min()
    start, end = (np.rint((columns[name] - origin) * 1e9).astype(np.int64) for name in ("start", "end"))
    lasted_ns = int(end[rows].max()) + 1_000_000
    ranks = np.unique(columns["rank"][rows])
    folder.mkdir()
    for task, rank in enumerate(ranks):
        mine = np.flatnonzero(rows & (columns["rank"] == rank))
        mine = mine[np.argsort(end[mine], kind="stable")]
        events = np.zeros(len(mine), EVENT.dtype)
        events["call"], events["file"] = columns["op"][mine] + 1, columns["file"][mine] + 1
        events["offset"] = columns["offset"][mine]
        events["requested"] = events["moved"] = np.maximum(columns["length"][mine], 0)
        events["start"], events["duration"] = start[mine], np.maximum(end[mine] - start[mine], 0)
        head = {
            "clock": CONSTANTS["ENSIO_CLOCK_MONOTONIC"],
            "pid": 100 + task,
            "rank": task,
            "tasks": len(ranks),
            "first_realtime_ns": _BEGAN_UNIX_NS,
            "last_ticks": lasted_ns,
            "last_monotonic_ns": lasted_ns,
            "last_realtime_ns": _BEGAN_UNIX_NS + lasted_ns,
        }
        properties = {"host": "node0001", "program": "/data/program", "command": "program", "mode": "trace"}
        properties["start_unix_ns"] = str(_BEGAN_UNIX_NS)
        used = {place: files[place] for place in np.unique(events["file"]).tolist()}
        write_spool(folder / f"{task:04d}.spool", SpoolContent([events], used, calls, properties, head))


def _call_of(text: str) -> Call:
    layer, _, name = text.rpartition(":")
    return Call(name, layer.lower() or "posix", _KINDS.get(name, "meta"))
