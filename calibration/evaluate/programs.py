"""Programs of drawn runs: texts of patterns, whose parameters the draw sets."""

from __future__ import annotations

_RECORDS_HEAD = """
title = "drawn"
layer = "{layer}"

[parameters]
tasks = 8
tasks_per_node = 4
steps = 3
calls = 4                  # records of a task and step
record_bytes = "MiB"
slack_bytes = 1            # bytes beyond the record, plus 1
apart = 0                  # 1: the records of a task in a shared file are not contiguous
syncs = 0                  # 1: fsync after each record
end_sync = 0               # 1: fsync after each step
lookups = 0                # stat calls of a task and step
reopen = 0                 # 1: each step opens and closes the file
header_calls = 0           # small writes of task 0 in each step
header_bytes = 512
heavy_first = 0
heavy_tasks = 0
heavy_share = 1
compute_us = 0
compute_spread_us = 0
reads = 0                  # records that a task reads back in a step
read_parts = 1             # tasks whose records each task reads
jump = 1                   # step from one record that is read to the next
size_bytes = "record_bytes + slack_bytes - 1"
read_bytes = "size_bytes"  # of a record that is read back
room_bytes = "size_bytes * calls * steps"
extra_bytes = "size_bytes * max(heavy_share - 1, 1) * calls * steps"

[files.data]
path = "{path}"

[files.header]
path = "header.dat"
layer = "posix"
"""

_SHARED = {
    False: "rank * room_bytes + ({step} * calls + {call}) * size_bytes",
    True: "(({step} * calls + {call}) * tasks + rank) * size_bytes",
}
_OWN = "({step} * calls + {call}) * size_bytes"

_WRITES_HEADER = "header_calls > 0 and rank == 0"
_COMPUTES = "compute_us + compute_spread_us > 0"


def _table(name: str, /, **fields: str) -> str:
    """A table of an array of TOML, without the fields that are empty."""
    return f"[[{name}]]\n" + "".join(f'{key} = "{value}"\n' for key, value in fields.items() if value)


def _make(call: str, file: str = "data", /, **fields: str) -> str:
    """A call of the phase before."""
    return _table("phases.operations", call=call, file=file, **fields)


def _compute(step: str, **when: str) -> str:
    """Computation of a step: as long as is drawn, and more in some tasks."""
    spread = f"(rank * 7919 + {step} * 104729{'' if step == 'repetition' else ' + 999'}) % 1009"
    return _make(
        "task.compute", "", duration_ns=f"1000 * (compute_us + {spread} * compute_spread_us // 1009)", **when
    )


def _step(number: int, step: str, call: str, is_repeated: bool, layer: str, offset: str, first: str) -> str:
    """One step, or all of them where no barrier separates them."""
    is_stream = layer == "stdio"
    write = "write" if is_stream else "write_at"
    more = f"{first} + (({step} * calls + {call}) * max(heavy_share - 1, 1) + call) * size_bytes"
    parts = [
        _table(
            "phases",
            name=f"step-{number}",
            barrier="phase",
            repetitions="calls" if is_repeated else "calls * steps",
        ),
        _compute(step, when=f"{call} == 0 and {_COMPUTES}"),
        _make("stat", times="max(lookups, 1)", when=f"{call} == 0 and lookups > 0")
        if layer == "posix"
        else "",
        _make("open", when=f"{call} == 0 and reopen == 1"),
        _make(
            "write_at",
            "header",
            times="max(header_calls, 1)",
            offset=f"({step} * header_calls + call) * header_bytes",
            size="header_bytes",
            when=f"{_WRITES_HEADER} and {call} == 0",
        ),
        _make(write, offset="" if is_stream else offset, size="size_bytes"),
        _make(
            write,
            times="max(heavy_share - 1, 1)",
            offset="" if is_stream else more,
            size="size_bytes",
            when="heavy_share > 1 and rank >= heavy_first and rank < heavy_first + heavy_tasks",
        ),
        _make("sync", when=f"syncs == 1 or (end_sync == 1 and {call} == calls - 1)")
        if layer == "posix"
        else "",
        _make("close", when=f"{call} == calls - 1 and reopen == 1"),
    ]
    return "".join(parts)


def records(layer: str, shared: bool, apart: bool, barriers: bool, steps: int, reads: bool) -> str:
    """Write the pattern of a program that writes records in steps, and perhaps reads them."""
    offset = _SHARED[apart] if shared else _OWN
    first = "tasks * room_bytes + (rank - heavy_first) * extra_bytes" if shared else "room_bytes"
    parts = [
        _RECORDS_HEAD.format(layer=layer, path="data.dat" if shared else "data.{rank}"),
        _table("phases", name="open"),
        _make("open", when="reopen == 0"),
        _make("open", "header", when=_WRITES_HEADER),
    ]
    for number in range(steps if barriers else 1):
        step = str(number) if barriers else "(repetition // calls)"
        call = "repetition" if barriers else "(repetition % calls)"
        of_step = offset.format(step=step, call=call)
        parts.append(_step(number, step, call, barriers, layer, of_step, first))
    if reads:
        place = "call * jump % reads * size_bytes"
        place = f"(rank + repetition) % tasks * room_bytes + {place}" if shared else place
        parts += [
            _table("phases", name="read", when="reads > 0", repetitions="read_parts", barrier="phase"),
            _make("read_at", times="max(reads, 1)", offset=place, size="read_bytes"),
        ]
    parts += [
        _table("phases", name="close"),
        _make("close", when="reopen == 0"),
        _make("close", "header", when=_WRITES_HEADER),
    ]
    return "".join(parts)


_WHERE = {"offset": "(repetition * tasks + rank) * block_bytes", "size": "block_bytes"}

COLLECTIVE = "".join(
    (
        """
title = "drawn"
layer = "mpiio"

[parameters]
tasks = 64
tasks_per_node = 4
steps = 6
block_bytes = "8 * MiB"
aggregators = 16
buffer_bytes = "16 * MiB"
compute_us = 0
compute_spread_us = 0

[hints]
cb_nodes = "{aggregators}"
cb_buffer_size = "{buffer_bytes}"
romio_cb_write = "enable"

[files.data]
path = "shared.dat"
""",
        _table("phases", name="open"),
        _make("open"),
        _table("phases", name="write", repetitions="steps"),
        _compute("repetition", when=_COMPUTES),
        _make("write_at_all", **_WHERE),
        _table("phases", name="close"),
        _make("close"),
    )
)

_PIECE = {
    "times": "calls",
    "offset": "((repetition * calls + call) * tasks + rank) * block_bytes",
    "size": "block_bytes",
}

HDF5 = "".join(
    (
        """
title = "drawn"
layer = "hdf5"

[parameters]
tasks = 64
tasks_per_node = 4
steps = 6
calls = 2                  # pieces of a task in each dataset
block_bytes = "MiB"
collective = 0             # 1: collective transfers
attributes = 1             # written with each dataset
attribute_bytes = 64
compute_us = 0
compute_spread_us = 0

[files.data]
path = "data.h5"
""",
        _table("phases", name="open"),
        _make("create"),
        _table("phases", name="step", repetitions="steps"),
        _compute("repetition", when=_COMPUTES),
        _make("dataset_create", size="tasks * calls * block_bytes"),
        _make("metadata", times="attributes", size="attribute_bytes"),
        _make("write", when="not collective", **_PIECE),
        _make("write_all", when="collective", **_PIECE),
        _make("dataset_close"),
        _table("phases", name="close"),
        _make("close"),
    )
)
