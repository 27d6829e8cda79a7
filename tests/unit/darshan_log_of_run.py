"""A run as a Darshan log: the counters of POSIX, MPI-IO and STDIO that follow from its events."""

from __future__ import annotations

import math
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from made_darshan_logs import MadeLog

import ensembles as en
from ensembles.model.events import Events
from ensembles.run.requests import boundary_of

MODULES = {"posix": "POSIX", "mpiio": "MPI-IO", "stdio": "STDIO"}
LIMITS = (100, 1024, 10240, 102400, 1 << 20, 4 << 20, 10 << 20, 100 << 20, 1 << 30)
"""Greatest sizes in bytes of Darshan's classes of requests, but for the last."""

SIZES = (
    "0_100",
    "100_1K",
    "1K_10K",
    "10K_100K",
    "100K_1M",
    "1M_4M",
    "4M_10M",
    "10M_100M",
    "100M_1G",
    "1G_PLUS",
)
_OPS = {"open": "OPENS", "seek": "SEEKS", "meta": "STATS", "sync": "FSYNCS"}

Values = dict[str, float]


def write_log(source: Path, path: Path) -> None:
    """Write the log of a run; files that all tasks use have one record, as Darshan reduces them."""
    from darshan.backend.cffi_backend import counter_names, fcounter_names

    run = en.open(str(source))
    log = MadeLog(
        tasks=run.tasks, command="program", mounts=(("lustre", "/"),), run_s=math.ceil(run.length_s)
    )
    log.names = {number: name for number, name in enumerate(run.files) if name}
    for layer, module in MODULES.items():
        events = run.select(layer=layer)
        whole, real = (
            [name.partition("_")[2] for name in of(module)] for of in (counter_names, fcounter_names)
        )
        for file, rank, values in _records(run, events, module):
            numbers = [int(values.get(name, 0)) for name in whole] + [values.get(name, 0.0) for name in real]
            shape = f"<Qq{len(whole)}q{len(real)}d"
            log.parts[module] = log.parts.get(module, b"") + struct.pack(shape, file, rank, *numbers)
    log.write(path)


def _records(run: en.Run, events: Events, module: str) -> Iterator[tuple[int, int, Values]]:
    """Yield the records: file, task or -1 for all, and counters by name."""
    for file in np.unique(events.file[events.file > 0]):
        of_file = events.file == file
        ranks = np.unique(events.rank[of_file])
        each = [
            _counters(run, events, np.flatnonzero(of_file & (events.rank == rank)), module) for rank in ranks
        ]
        if len(ranks) < max(run.tasks, 2):
            yield from zip([int(file)] * len(ranks), map(int, ranks), each, strict=True)
            continue
        shared = {name: _reduction(name)(values[name] for values in each) for name in each[0]}
        times_s = [sum(values[f"F_{what}_TIME"] for what in ("READ", "WRITE", "META")) for values in each]
        moved = [values["BYTES_READ"] + values["BYTES_WRITTEN"] for values in each]
        for name, at in (("FASTEST", int(np.argmin(times_s))), ("SLOWEST", int(np.argmax(times_s)))):
            shared |= {f"{name}_RANK": float(ranks[at]), f"{name}_RANK_BYTES": moved[at]}
            shared[f"F_{name}_RANK_TIME"] = times_s[at]
        shared |= {
            "F_VARIANCE_RANK_TIME": float(np.var(times_s)),
            "F_VARIANCE_RANK_BYTES": float(np.var(moved)),
        }
        yield int(file), -1, shared


def _reduction(name: str) -> Callable[..., float]:
    if name.endswith("START_TIMESTAMP"):
        return lambda values: min(filter(None, values), default=0.0)
    return max if "MAX_" in name or name.endswith(("END_TIMESTAMP", "ALIGNMENT")) else sum


def _counters(run: en.Run, events: Events, rows: np.ndarray, module: str) -> Values:
    """Return the counters of the calls of one task in one file, by time."""
    rows = rows[np.argsort(events.start[rows], kind="stable")]
    calls = [run.calls[call] for call in events.call[rows]]
    ops = np.array([call.op for call in calls])
    start_s, time_s = 1e-9 * events.start[rows], 1e-9 * events.duration[rows]
    values: Values = {counter: float((ops == op).sum()) for op, counter in _OPS.items()}
    is_data = np.isin(ops, ("read", "write"))
    values["F_META_TIME"] = float(time_s[~is_data].sum())
    values["RW_SWITCHES"] = float((ops[is_data][1:] != ops[is_data][:-1]).sum())
    offset, size = events.offset[rows], np.maximum(events.moved[rows], 0)
    boundary = boundary_of(run, run.files[events.file[rows[0]]]) or 4096
    values["FILE_NOT_ALIGNED"] = float((is_data & (offset % boundary > 0)).sum())
    values |= {"FILE_ALIGNMENT": boundary, "MEM_ALIGNMENT": 8}
    for what in ("open", "close", "read", "write"):
        mine, name = ops == what, what.upper()
        values[f"F_{name}_START_TIMESTAMP"] = float(start_s[mine].min(initial=np.inf)) if mine.any() else 0.0
        values[f"F_{name}_END_TIMESTAMP"] = float((start_s + time_s)[mine].max(initial=0.0))
    for op, moved in (("READ", "READ"), ("WRITE", "WRITTEN")):
        mine = ops == op.lower()
        first, sizes = offset[mine], size[mine]
        ends = first[:-1] + sizes[:-1]
        values |= {f"{op}S": float(mine.sum()), f"BYTES_{moved}": float(sizes.sum())}
        values[f"MAX_BYTE_{moved}"] = float((first + sizes - 1).max(initial=0))
        values |= {f"F_{op}_TIME": float(time_s[mine].sum())}
        values[f"F_MAX_{op}_TIME"] = float(time_s[mine].max(initial=0.0))
        values |= {
            f"SEQ_{op}S": float((first[1:] >= ends).sum()),
            f"CONSEC_{op}S": float((first[1:] == ends).sum()),
        }
        counts = np.bincount(np.searchsorted(LIMITS, sizes), minlength=len(SIZES))
        between = "AGG_" if module == "MPI-IO" else ""
        values |= {f"SIZE_{op}_{between}{name}": float(n) for name, n in zip(SIZES, counts, strict=True)}
        collective = sum(
            call.name.endswith(("_all", "_all_begin"))
            for call, is_mine in zip(calls, mine, strict=True)
            if is_mine
        )
        values |= {f"COLL_{op}S": float(collective), f"INDEP_{op}S": float(mine.sum() - collective)}
    return values
