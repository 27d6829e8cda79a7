"""Meaning of Darshan's counters: which of them count which calls."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from ensembles.model.events import Call

BUCKETS = (
    ("0_100", 0, 100),
    ("100_1K", 101, 1024),
    ("1K_10K", 1025, 10 * 1024),
    ("10K_100K", 10 * 1024 + 1, 100 * 1024),
    ("100K_1M", 100 * 1024 + 1, 1 << 20),
    ("1M_4M", (1 << 20) + 1, 4 << 20),
    ("4M_10M", (4 << 20) + 1, 10 << 20),
    ("10M_100M", (10 << 20) + 1, 100 << 20),
    ("100M_1G", (100 << 20) + 1, 1 << 30),
    ("1G_PLUS", (1 << 30) + 1, (1 << 63) - 1),
)
"""Darshan's classes of request sizes: suffix of the counter's name, smallest and largest size in bytes."""


class CounterMapping(NamedTuple):
    """Names of the counters of a module for one kind of calls, without the prefix of the module."""

    call: Call  # The call under which they are shown
    counts: tuple[str, ...]  # Counters whose sum is the number of calls
    moved: str | None  # Bytes moved
    # time, longest: Sum of the durations and longest duration (None: unknown)
    time: str
    longest: str | None
    # first, last: Times of the first and of the last calls
    first: tuple[str, ...]
    last: tuple[str, ...]
    sizes: str | None  # Prefix of the counters of request sizes


def _ways(
    layer: str,
    names: tuple[str, str, str],
    reads: Sequence[str],
    writes: Sequence[str],
    others: Sequence[str],
    sizes: str | None,
) -> tuple[CounterMapping, ...]:
    transfers = (
        CounterMapping(
            Call(name, layer, op),
            tuple(counts),
            f"BYTES_{done}",
            f"F_{kind}_TIME",
            f"F_MAX_{kind}_TIME" if sizes is not None else None,
            (f"F_{kind}_START_TIMESTAMP",),
            (f"F_{kind}_END_TIMESTAMP",),
            None if sizes is None else f"SIZE_{kind}_{sizes}",
        )
        for name, op, counts, kind, done in (
            (names[0], "read", reads, "READ", "READ"),
            (names[1], "write", writes, "WRITE", "WRITTEN"),
        )
    )
    first = ("F_OPEN_START_TIMESTAMP", "F_CLOSE_START_TIMESTAMP")
    last = ("F_OPEN_END_TIMESTAMP", "F_CLOSE_END_TIMESTAMP")
    metadata = CounterMapping(
        Call(names[2], layer, "meta"), tuple(others), None, "F_META_TIME", None, first, last, None
    )
    return (*transfers, metadata)


_KINDS = ("INDEP", "COLL", "SPLIT", "NB")
WAYS: dict[str, tuple[CounterMapping, ...]] = {
    "POSIX": _ways(
        "posix",
        ("read", "write", "open, seek, stat, sync"),
        ["READS"],
        ["WRITES"],
        ["OPENS", "SEEKS", "STATS", "FSYNCS", "FDSYNCS"],
        "",
    ),
    "MPI-IO": _ways(
        "mpiio",
        ("MPI_File_read", "MPI_File_write", "MPI_File_open, MPI_File_sync"),
        [f"{kind}_READS" for kind in _KINDS],
        [f"{kind}_WRITES" for kind in _KINDS],
        ["INDEP_OPENS", "COLL_OPENS", "SYNCS"],
        "AGG_",
    ),
    "STDIO": _ways(
        "stdio",
        ("fread", "fwrite", "fopen, fseek, fflush"),
        ["READS"],
        ["WRITES"],
        ["OPENS", "SEEKS", "FLUSHES"],
        None,
    ),
    "DFS": _ways(
        "dfs",
        ("dfs_read", "dfs_write", "dfs_open, dfs_stat"),
        ["READS", "READXS"],
        ["WRITES", "WRITEXS"],
        ["OPENS", "GLOBAL_OPENS", "LOOKUPS", "DUPS", "GET_SIZES", "PUNCHES", "REMOVES", "STATS"],
        "",
    ),
    "DAOS": _ways(
        "daos",
        ("daos_obj_fetch", "daos_obj_update", "daos_obj_open, daos_obj_punch"),
        ["OBJ_FETCHES", "ARRAY_READS", "KV_GETS"],
        ["OBJ_UPDATES", "ARRAY_WRITES", "KV_PUTS"],
        [
            *(f"OBJ_{what}" for what in ("OPENS", "PUNCHES", "DKEY_PUNCHES", "AKEY_PUNCHES")),
            *(f"OBJ_{what}" for what in ("DKEY_LISTS", "AKEY_LISTS", "RECX_LISTS")),
            *(
                f"ARRAY_{what}"
                for what in ("OPENS", "GET_SIZES", "SET_SIZES", "STATS", "PUNCHES", "DESTROYS")
            ),
            *(f"KV_{what}" for what in ("OPENS", "REMOVES", "LISTS", "DESTROYS")),
        ],
        "",
    ),
}
"""Counters of reads, writes and other calls, by module.

Darshan counts functions of the same kind together; they are shown under the name of the first function."""

CALLS = tuple(way.call for ways in WAYS.values() for way in ways)
