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

[[phases]]
name = "open"
[[phases.operations]]
call = "open"
file = "data"
when = "reopen == 0"
[[phases.operations]]
call = "open"
file = "header"
when = "header_calls > 0 and rank == 0"
"""

_STEP = """
[[phases]]
name = "{name}"
barrier = "phase"
repetitions = "{repetitions}"
[[phases.operations]]
call = "task.compute"
duration_ns = "1000 * (compute_us + (rank * 7919 + {step} * 104729 + 999) % 1009 * compute_spread_us // 1009)"
when = "{call} == 0 and compute_us + compute_spread_us > 0"
{stat}[[phases.operations]]
call = "open"
file = "data"
when = "{call} == 0 and reopen == 1"
[[phases.operations]]
call = "write_at"
file = "header"
times = "max(header_calls, 1)"
offset = "({step} * header_calls + call) * header_bytes"
size = "header_bytes"
when = "header_calls > 0 and rank == 0 and {call} == 0"
{write}{more}
{sync}
[[phases.operations]]
call = "close"
file = "data"
when = "{call} == calls - 1 and reopen == 1"
"""

_WRITE = """
[[phases.operations]]
call = "write_at"
file = "data"
offset = "{offset}"
size = "size_bytes"
"""

_STREAM_WRITE = """
[[phases.operations]]
call = "write"
file = "data"
size = "size_bytes"
"""

_MORE = """
[[phases.operations]]
call = "write_at"
file = "data"
times = "max(heavy_share - 1, 1)"
offset = "{first} + (({step} * calls + {call}) * max(heavy_share - 1, 1) + call) * size_bytes"
size = "size_bytes"
when = "heavy_share > 1 and rank >= heavy_first and rank < heavy_first + heavy_tasks"
"""

_MORE_OF_STREAM = """
[[phases.operations]]
call = "write"
file = "data"
times = "max(heavy_share - 1, 1)"
size = "size_bytes"
when = "heavy_share > 1 and rank >= heavy_first and rank < heavy_first + heavy_tasks"
"""

_STAT = """
[[phases.operations]]
call = "stat"
file = "data"
times = "max(lookups, 1)"
when = "{call} == 0 and lookups > 0"
"""

_SYNC = """
[[phases.operations]]
call = "sync"
file = "data"
when = "syncs == 1 or (end_sync == 1 and {call} == calls - 1)"
"""

_READS = """
[[phases]]
name = "read"
when = "reads > 0"
repetitions = "read_parts"
barrier = "phase"
[[phases.operations]]
call = "read_at"
file = "data"
times = "max(reads, 1)"
offset = "{offset}"
size = "read_bytes"
"""

_CLOSE = """
[[phases]]
name = "close"
[[phases.operations]]
call = "close"
file = "data"
when = "reopen == 0"
[[phases.operations]]
call = "close"
file = "header"
when = "header_calls > 0 and rank == 0"
"""

_SHARED = {
    False: "rank * room_bytes + ({step} * calls + {call}) * size_bytes",
    True: "(({step} * calls + {call}) * tasks + rank) * size_bytes",
}
_OWN = "({step} * calls + {call}) * size_bytes"


def records(layer: str, shared: bool, apart: bool, barriers: bool, steps: int, reads: bool) -> str:
    """Write the pattern of a program that writes records in steps, and perhaps reads them."""
    parts = [_RECORDS_HEAD.format(layer=layer, path="data.dat" if shared else "data.{rank}")]
    offset = _SHARED[apart] if shared else _OWN
    first = "tasks * room_bytes + (rank - heavy_first) * extra_bytes" if shared else "room_bytes"
    for number in range(steps if barriers else 1):
        step, call = (
            (str(number), "repetition") if barriers else ("(repetition // calls)", "(repetition % calls)")
        )
        names = {"step": step, "call": call}
        parts.append(
            _STEP.format(
                name=f"step-{number}",
                repetitions="calls" if barriers else "calls * steps",
                write=(_STREAM_WRITE if layer == "stdio" else _WRITE.format(offset=offset.format(**names))),
                more=_MORE_OF_STREAM if layer == "stdio" else _MORE.format(first=first, **names),
                sync=_SYNC.format(**names) if layer == "posix" else "",
                stat=_STAT.format(**names) if layer == "posix" else "",
                **names,
            )
        )
    if reads:
        place = "call * jump % reads"
        where = (
            f"(rank + repetition) % tasks * room_bytes + {place} * size_bytes"
            if shared
            else f"{place} * size_bytes"
        )
        parts.append(_READS.format(offset=where))
    return "".join([*parts, _CLOSE])


COLLECTIVE = """
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

[[phases]]
name = "open"
[[phases.operations]]
call = "open"
file = "data"

[[phases]]
name = "write"
repetitions = "steps"
[[phases.operations]]
call = "task.compute"
duration_ns = "1000 * (compute_us + (rank * 7919 + repetition * 104729) % 1009 * compute_spread_us // 1009)"
when = "compute_us + compute_spread_us > 0"
[[phases.operations]]
call = "write_at_all"
file = "data"
offset = "(repetition * tasks + rank) * block_bytes"
size = "block_bytes"

[[phases]]
name = "close"
[[phases.operations]]
call = "close"
file = "data"
"""

HDF5 = """
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

[[phases]]
name = "open"
[[phases.operations]]
call = "create"
file = "data"

[[phases]]
name = "step"
repetitions = "steps"
[[phases.operations]]
call = "task.compute"
duration_ns = "1000 * (compute_us + (rank * 7919 + repetition * 104729) % 1009 * compute_spread_us // 1009)"
when = "compute_us + compute_spread_us > 0"
[[phases.operations]]
call = "dataset_create"
file = "data"
size = "tasks * calls * block_bytes"
[[phases.operations]]
call = "metadata"
file = "data"
times = "attributes"
size = "attribute_bytes"
[[phases.operations]]
call = "write"
file = "data"
times = "calls"
when = "not collective"
offset = "((repetition * calls + call) * tasks + rank) * block_bytes"
size = "block_bytes"
[[phases.operations]]
call = "write_all"
file = "data"
times = "calls"
when = "collective"
offset = "((repetition * calls + call) * tasks + rank) * block_bytes"
size = "block_bytes"
[[phases.operations]]
call = "dataset_close"
file = "data"

[[phases]]
name = "close"
[[phases.operations]]
call = "close"
file = "data"
"""
